//! A store as its clients see it, before and after it was moved from SQLite to PostgreSQL.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use super::migrate::{moved, run};
use crate::{
    http::Request,
    postgres::Database,
    service::{
        GALLEY, KEY, Launch, PHONE, Service, authorized, collection, command, document,
        galley_json, post, until,
    },
};

/// Endpoints on this machine are taken, and nothing is sent to them: what waits stays as it is.
const QUIET: [&str; 4] =
    ["--set", "webhooks_allow_private=true", "--set", "webhooks_deliver=false"];

/// The store that is moved.
const SQLITE: &str = "sqlite:galley.db";

const NOWHERE: &str = "http://127.0.0.1:9/";

/// A picture of several chunks.
fn picture() -> Vec<u8> {
    let mut picture = b"\x89PNG\r\n\x1a\n".to_vec();
    picture
        .extend((0..1_500_000_u32).map(|place| place.to_le_bytes()[usize::from(place % 3 == 0)]));
    picture
}

fn serve(dir: &Path, store: &str) -> Service {
    Launch::at(store, command(GALLEY), dir).canaries().flags(&QUIET).start()
}

#[track_caller]
fn call(service: &Service, method: &'static str, path: &str, token: &str, body: Vec<u8>) -> Value {
    let request = Request::new(method, path).header("Authorization", &format!("Bearer {token}"));
    let answer = service.send(&request.header("file_offset", "0").body(body));
    assert_eq!(answer.status, 200, "{path}: {answer:?}");
    answer.json()
}

fn keyed(name: &str) -> Request {
    post(&document(name, "Once.")).header("Idempotency-Key", "the-same-again")
}

fn change(service: &Service, method: &'static str, id: &str, body: &Value) {
    let request = authorized(Request::new(method, format!("{}/{id}", collection())));
    let request = request.header("Content-Type", "application/json").header("If-Match", "*");
    let answer = service.send(&request.body(body.to_string()));
    assert!(answer.status < 300, "{answer:?}");
}

/// What there is to ask for, in both stores alike.
struct Questions {
    paths: Vec<String>,
    waba: Value,
    sample: String,
}

/// Fills a store with some of everything.
fn fill(dir: &Path) -> Questions {
    let service = serve(dir, SQLITE);
    let hook = ["webhook", "add", "default", NOWHERE, QUIET[0], QUIET[1]];
    galley_json(dir, &hook);
    galley_json(dir, &hook);
    let (mut paths, mut ids) =
        (vec![collection(), format!("{}?limit=3", collection())], Vec::new());
    for number in 0..8 {
        let text = format!("Grüße \u{1f44b} Nummer{number}");
        let made = service.create(&document(&format!("kept_{number}"), &text));
        assert_eq!(made.status, 201, "{made:?}");
        ids.push(made.json()["id"].as_str().unwrap().to_owned());
    }
    let edit = json!({"components": [{"type": "BODY", "text": "Edited."}]});
    change(&service, "PATCH", &ids[1], &edit);
    change(&service, "DELETE", &ids[2], &Value::Null);
    assert_eq!(service.send(&keyed("by_key")).status, 201);
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
    let place = format!("/v23.0/{}", upload["id"].as_str().unwrap());
    let handle = call(&service, "POST", &place, token, picture())["h"].clone();
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
    Questions { paths, waba, sample }
}

impl Questions {
    /// What the service answers to all of them.
    fn answers(&self, service: &Service) -> Vec<(String, u16, String)> {
        let ask = |path: &String| {
            let answer = service.send(&authorized(Request::get(path)));
            // Each problem has an id of its own.
            let text = answer.text().split("\"request_id\"").next().unwrap_or_default().to_owned();
            (path.clone(), answer.status, text)
        };
        self.paths.iter().map(ask).collect()
    }

    fn graph(&self, service: &Service) -> Value {
        let account = self.waba["account_id"].as_str().unwrap();
        let list = format!("/v23.0/{account}/message_templates?fields=id,name,status,category");
        call(service, "GET", &list, self.waba["token"].as_str().unwrap(), Vec::new())
    }
}

/// What a command answers about a store.
fn shown(dir: &Path, store: &str, arguments: &[&str]) -> String {
    let output = run(dir, &[arguments, &["--json", "--store", store]].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn everything_is_told_by_the_api_as_before() {
    let (dir, database) = (tempfile::tempdir().unwrap(), Database::fresh());
    let questions = fill(dir.path());
    let before = {
        let service = serve(dir.path(), SQLITE);
        let told = (questions.answers(&service), questions.graph(&service));
        assert!(service.end().0.success());
        told
    };
    let commands = [
        &["account", "list"][..],
        &["account", "show", "default"],
        &["token", "list", "default"],
        &["webhook", "list", "default"],
        &["webhook", "deliveries", "default", "1"],
    ];
    let lists = |store: &str| commands.map(|arguments| shown(dir.path(), store, arguments));
    let shown_before = lists(SQLITE);

    let tables = moved(dir.path(), &database.address());
    let rows = |name: &str| {
        tables.iter().find(|table| table["table"] == name).unwrap()["target_rows"].as_u64().unwrap()
    };
    for table in ["former_version", "idempotency", "upload"] {
        assert_eq!(rows(table), 1, "{table}");
    }
    assert!(rows("upload_chunk") > 2 && rows("event") > 10, "{tables:?}");

    assert_eq!(lists(&database.address()), shown_before);
    let doctor = run(dir.path(), &["doctor", "--store", &database.address()]);
    assert!(doctor.status.success(), "{doctor:?}");
    let service = serve(dir.path(), &database.address());
    let after = (questions.answers(&service), questions.graph(&service));
    for (before, after) in before.0.iter().zip(&after.0) {
        assert_eq!(after, before);
    }
    assert_eq!(after.1, before.1);
    let served = service.send(&Request::get(&questions.sample));
    assert!(served.status == 200 && served.body == picture(), "{} bytes", served.body.len());

    // The first answer again, and a name that is taken.
    let again = service.send(&keyed("by_key"));
    assert_eq!(
        (again.status, again.header("idempotent-replayed")),
        (201, Some("true")),
        "{again:?}"
    );
    assert_eq!(service.create(&document("kept_3", "Again.")).status, 409);
    // Words are found as soon as the service has made its search.
    let search = authorized(Request::get(format!("{}?q=nummer5", collection())));
    until(Duration::from_secs(20), "the search", || {
        let found = service.send(&search).json();
        found["data"].as_array().is_some_and(|found| found.len() == 1)
    });
    // New rows get numbers that nobody had.
    let token: Value =
        serde_json::from_str(&shown(dir.path(), &database.address(), &["token", "create", "waba"]))
            .unwrap();
    assert_eq!(token["id"], 6, "{token}");
    let hook = ["webhook", "add", "default", NOWHERE, QUIET[0], QUIET[1]];
    let hook: Value = serde_json::from_str(&shown(dir.path(), &database.address(), &hook)).unwrap();
    assert_eq!(hook["id"], "3", "the second one is gone, and its number with it: {hook}");
    assert!(service.end().0.success());
}

#[test]
fn a_copy_is_moved_like_the_store_that_it_was_made_of() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    galley_json(dir.path(), &["backup", "copy.db"]);
    let (of_store, of_copy) = (Database::fresh(), Database::fresh());
    let from_copy =
        ["migrate", "--from", "sqlite:copy.db", "--json", "--store", &of_copy.address()];
    let output = run(dir.path(), &from_copy);
    assert!(output.status.success(), "{output:?}");
    let tables: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(tables, moved(dir.path(), &of_store.address()));
}
