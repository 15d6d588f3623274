//! The responses of a service before and after the migration of its store from SQLite to
//! PostgreSQL.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use super::migrate::{migrate_all, run};
use crate::{
    http::Request,
    postgres::Database,
    service::{
        GALLEY, KEY, Launch, PHONE, Service, authorized, collection, command, document,
        galley_json, post, until,
    },
};

/// Accepts endpoints on this machine, but sends nothing: waiting deliveries stay unchanged.
const NO_DELIVERY: [&str; 4] =
    ["--set", "webhooks_allow_private=true", "--set", "webhooks_deliver=false"];

/// The store before the migration.
const SQLITE: &str = "sqlite:galley.db";

const UNUSED_ENDPOINT: &str = "http://127.0.0.1:9/";

/// A picture of several chunks.
fn picture() -> Vec<u8> {
    let mut picture = b"\x89PNG\r\n\x1a\n".to_vec();
    picture
        .extend((0..1_500_000_u32).map(|index| index.to_le_bytes()[usize::from(index % 3 == 0)]));
    picture
}

fn serve(dir: &Path, store: &str) -> Service {
    Launch::at(store, command(GALLEY), dir).canaries().flags(&NO_DELIVERY).start()
}

#[track_caller]
fn call(service: &Service, method: &'static str, path: &str, token: &str, body: Vec<u8>) -> Value {
    let request = Request::new(method, path).header("Authorization", &format!("Bearer {token}"));
    let response = service.send(&request.header("file_offset", "0").body(body));
    assert_eq!(response.status, 200, "{path}: {response:?}");
    response.json()
}

fn create_with_key(name: &str) -> Request {
    post(&document(name, "Once.")).header("Idempotency-Key", "the-same-again")
}

fn change(service: &Service, method: &'static str, id: &str, body: &Value) {
    let request = authorized(Request::new(method, format!("{}/{id}", collection())));
    let request = request.header("Content-Type", "application/json").header("If-Match", "*");
    let response = service.send(&request.body(body.to_string()));
    assert!(response.status < 300, "{response:?}");
}

/// The requests to send before and after the migration.
struct Reads {
    paths: Vec<String>,
    waba: Value,
    sample: String,
}

/// Creates a store with rows of every kind.
fn fill(dir: &Path) -> Reads {
    let service = serve(dir, SQLITE);
    let hook = ["webhook", "add", "default", UNUSED_ENDPOINT, NO_DELIVERY[0], NO_DELIVERY[1]];
    galley_json(dir, &hook);
    galley_json(dir, &hook);
    let (mut paths, mut ids) =
        (vec![collection(), format!("{}?limit=3", collection())], Vec::new());
    for number in 0..8 {
        let text = format!("Grüße \u{1f44b} Nummer{number}");
        let created = service.create(&document(&format!("stored_{number}"), &text));
        assert_eq!(created.status, 201, "{created:?}");
        ids.push(created.json()["id"].as_str().unwrap().to_owned());
    }
    let edit = json!({"components": [{"type": "BODY", "text": "Edited."}]});
    change(&service, "PATCH", &ids[1], &edit);
    change(&service, "DELETE", &ids[2], &Value::Null);
    assert_eq!(service.send(&create_with_key("by_key")).status, 201);
    let base = format!("/api/v1.0/{PHONE}/{KEY}");
    for id in &ids {
        paths.push(format!("{}/{id}", collection()));
        paths.push(format!("{}/{id}?version=1", collection()));
        paths.push(format!("{}/{id}/versions", collection()));
    }
    paths.extend(["events", "webhooks", "webhooks/1/deliveries"].map(|it| format!("{base}/{it}")));
    galley_json(dir, &["webhook", "remove", "default", "2"]);
    galley_json(dir, &["account", "limit", "default", "250"]);
    galley_json(dir, &["token", "rotate", "2", "--overlap", "90d"]);

    let waba = galley_json(dir, &["account", "create", "waba", "--rulebook", "whatsapp"]);
    let token = waba["token"].as_str().unwrap();
    let (name, length) = ("a.png", picture().len());
    let begin =
        format!("/v23.0/app/uploads?file_name={name}&file_length={length}&file_type=image/png");
    let upload = call(&service, "POST", &begin, token, Vec::new());
    let session = format!("/v23.0/{}", upload["id"].as_str().unwrap());
    let handle = call(&service, "POST", &session, token, picture())["h"].clone();
    let list = format!("/v23.0/{}/message_templates", waba["account_id"].as_str().unwrap());
    let template = json!({
        "name": "with_picture", "language": "en_US", "category": "MARKETING",
        "components": [
            {"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [handle]}},
            {"type": "BODY", "text": "Good morning"},
        ],
    });
    call(&service, "POST", &list, token, template.to_string().into_bytes());
    let page = call(&service, "GET", &list, token, Vec::new());
    let sample = &page["data"][0]["components"][0]["example"]["header_handle"][0];
    let sample = format!("/media/{}", sample.as_str().unwrap().split_once("/media/").unwrap().1);
    assert!(service.end().0.success());
    Reads { paths, waba, sample }
}

impl Reads {
    /// The path, status and body of each response.
    fn responses(&self, service: &Service) -> Vec<(String, u16, String)> {
        let read = |path: &String| {
            let response = service.send(&authorized(Request::get(path)));
            // Leave out the request id of problems: it is unique.
            let text = response.text();
            let text = text.split("\"request_id\"").next().unwrap_or_default().to_owned();
            (path.clone(), response.status, text)
        };
        self.paths.iter().map(read).collect()
    }

    fn graph_templates(&self, service: &Service) -> Value {
        let account = self.waba["account_id"].as_str().unwrap();
        let list = format!("/v23.0/{account}/message_templates?fields=id,name,status,category");
        call(service, "GET", &list, self.waba["token"].as_str().unwrap(), Vec::new())
    }
}

/// The JSON output of a command.
fn command_output(dir: &Path, store: &str, arguments: &[&str]) -> String {
    let output = run(dir, &[arguments, &["--json", "--store", store]].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_api_returns_the_same_responses_after_a_migration() {
    let (dir, database) = (tempfile::tempdir().unwrap(), Database::fresh());
    let reads = fill(dir.path());
    let before = {
        let service = serve(dir.path(), SQLITE);
        let responses = (reads.responses(&service), reads.graph_templates(&service));
        assert!(service.end().0.success());
        responses
    };
    let commands = [
        &["account", "list"][..],
        &["account", "show", "default"],
        &["token", "list", "default"],
        &["webhook", "list", "default"],
        &["webhook", "deliveries", "default", "1"],
    ];
    let outputs =
        |store: &str| commands.map(|arguments| command_output(dir.path(), store, arguments));
    let outputs_before = outputs(SQLITE);

    let tables = migrate_all(dir.path(), &database.address());
    let rows = |name: &str| {
        tables.iter().find(|table| table["table"] == name).unwrap()["target_rows"].as_u64().unwrap()
    };
    for table in ["former_version", "idempotency", "upload"] {
        assert_eq!(rows(table), 1, "{table}");
    }
    assert!(rows("upload_chunk") > 2 && rows("event") > 10, "{tables:?}");

    assert_eq!(outputs(&database.address()), outputs_before);
    let doctor = run(dir.path(), &["doctor", "--store", &database.address()]);
    assert!(doctor.status.success(), "{doctor:?}");
    let service = serve(dir.path(), &database.address());
    let after = (reads.responses(&service), reads.graph_templates(&service));
    for (before, after) in before.0.iter().zip(&after.0) {
        assert_eq!(after, before);
    }
    assert_eq!(after.1, before.1);
    let served = service.send(&Request::get(&reads.sample));
    assert!(served.status == 200 && served.body == picture(), "{} bytes", served.body.len());

    // A repeated create gets the first response; a name in use is refused.
    let again = service.send(&create_with_key("by_key"));
    assert_eq!(
        (again.status, again.header("idempotent-replayed")),
        (201, Some("true")),
        "{again:?}"
    );
    assert_eq!(service.create(&document("stored_3", "Again.")).status, 409);
    // The search finds words as soon as the service has built its index.
    let search = authorized(Request::get(format!("{}?q=nummer5", collection())));
    until(Duration::from_secs(20), "the search finds a template", || {
        let found = service.send(&search).json();
        found["data"].as_array().is_some_and(|found| found.len() == 1)
    });
    // New rows get unused ids.
    let token: Value = serde_json::from_str(&command_output(
        dir.path(),
        &database.address(),
        &["token", "create", "waba"],
    ))
    .unwrap();
    assert_eq!(token["id"], 6, "{token}");
    let hook = ["webhook", "add", "default", UNUSED_ENDPOINT, NO_DELIVERY[0], NO_DELIVERY[1]];
    let hook: Value =
        serde_json::from_str(&command_output(dir.path(), &database.address(), &hook)).unwrap();
    assert_eq!(hook["id"], "3", "the id of the removed endpoint is not used again: {hook}");
    assert!(service.end().0.success());
}

#[test]
fn a_backup_is_migrated_like_its_store() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    galley_json(dir.path(), &["backup", "copy.db"]);
    let (store_target, copy_target) = (Database::fresh(), Database::fresh());
    let from_copy =
        ["migrate", "--from", "sqlite:copy.db", "--json", "--store", &copy_target.address()];
    let output = run(dir.path(), &from_copy);
    assert!(output.status.success(), "{output:?}");
    let tables: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(tables, migrate_all(dir.path(), &store_target.address()));
}
