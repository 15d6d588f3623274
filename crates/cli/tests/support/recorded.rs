//! Recorded stores, and the checks that this program works with them. `fixtures/README.md` explains how
//! they are recorded.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    http::{Request, Response, TIMEOUT},
    listener::Listener,
    service::{Launch, Service, document, until},
};

/// The key of the secrets in the fixtures.
pub(crate) const SECRET_KEY: &str = "the secret key of the fixtures";

/// The SQL statements that create the store, and the responses of the program that filled it.
pub(crate) struct RecordedStore {
    pub(crate) statements: String,
    recorded: Value,
}

impl RecordedStore {
    pub(crate) fn load(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let read = |ending: &str| std::fs::read_to_string(dir.join(format!("{name}.{ending}")));
        let recorded = serde_json::from_str(&read("json").unwrap()).unwrap();
        Self { statements: read("sql").unwrap(), recorded }
    }

    /// Starts this program on the store and runs all checks. Returns the running service.
    pub(crate) fn open(&self, launch: Launch, dir: &Path) -> Service {
        let service = launch
            .variable("GALLEY_SECRET_KEY", SECRET_KEY)
            .variable("GALLEY_PUBLIC_URL", "https://galley.example")
            .flags(&["--set", "webhooks_allow_private=true", "--set", "emulator=true"])
            // The events of a fixture are older than the default retention.
            .flags(&["--set", "events_kept=36500d"])
            .start();
        let opened = OpenedStore { recorded: &self.recorded, service: &service };
        opened.returns_the_recorded_responses();
        opened.replays_the_idempotent_create();
        opened.lists_and_finds_existing_templates();
        opened.changes_existing_templates();
        opened.creates_templates_with_newer_ids();
        opened.has_every_event();
        opened.delivers_pending_events(dir);
        service
    }
}

/// The recorded responses, and this program running on the same store.
struct OpenedStore<'a> {
    recorded: &'a Value,
    service: &'a Service,
}

impl OpenedStore<'_> {
    fn text(&self, pointer: &str) -> &str {
        let found = self.recorded.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_else(|| panic!("{pointer} is not recorded"))
    }

    /// A request as the first account.
    fn request(&self, method: &'static str, path: &str) -> Request {
        let base = format!("/api/v1.0/{}/{}", self.text("/phone"), self.text("/key"));
        Request::new(method, base + path)
            .header("Authorization", &format!("Bearer {}", self.text("/token")))
    }

    #[track_caller]
    fn call(&self, method: &'static str, path: &str, body: &Value, status: u16) -> Value {
        let request = self.request(method, path);
        let request = if body.is_null() { request } else { request.body(body.to_string()) };
        let response = self.service.send(&request);
        assert_eq!(response.status, status, "{method} {path}: {response:?}");
        if response.body.is_empty() { Value::Null } else { response.json() }
    }

    fn read_again(&self, reading: &Value) -> Response {
        let token = format!("Bearer {}", reading["token"].as_str().unwrap());
        let path = reading["path"].as_str().unwrap();
        self.service.send(&Request::get(path).header("Authorization", &token))
    }

    fn returns_the_recorded_responses(&self) {
        for reading in self.recorded["readings"].as_array().unwrap() {
            let response = self.read_again(reading);
            assert_eq!(reading["status"], response.status, "{}: {response:?}", reading["path"]);
            if let Err(difference) = contains(&reading["answer"], &response.json(), "") {
                panic!("{}: {difference}", reading["path"]);
            }
        }
        if self.recorded["media"].is_object() {
            let sample = self.service.send(&Request::get(self.text("/media/path")));
            assert_eq!(sample.status, 200, "{sample:?}");
            assert_eq!(json!(sample.body), self.recorded["media"]["bytes"]);
        }
    }

    fn replays_the_idempotent_create(&self) {
        let again = self
            .request("POST", "/message_templates")
            .header("Idempotency-Key", self.text("/replay/idempotency_key"))
            .body(self.text("/replay/body"));
        let again = self.service.send(&again);
        assert_eq!((again.status, again.json()), (201, self.recorded["replay"]["answer"].clone()));
    }

    fn lists_and_finds_existing_templates(&self) {
        let list = self.call("GET", "/message_templates?limit=100", &Value::Null, 200);
        let listed: Vec<&Value> =
            list["data"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
        for id in ["/edit", "/delete", "/replay/answer/id"] {
            assert!(listed.contains(&&json!(self.text(id))), "{id} in {listed:?}");
        }
        // The search index is rebuilt, or continues where it was.
        until(TIMEOUT, "every template is found by its text", || {
            let found = self.call("GET", "/message_templates?q=sundays+open", &Value::Null, 200);
            let searches = self.recorded["searches"].as_array().unwrap();
            let same =
                |it: &Value| contains(&it["answer"], &self.read_again(it).json(), "").is_ok();
            found["data"][0]["id"] == self.text("/edit") && searches.iter().all(same)
        });
    }

    fn changes_existing_templates(&self) {
        let edited = format!("/message_templates/{}", self.text("/edit"));
        let before = self.call("GET", &edited, &Value::Null, 200);
        let edit = json!({"components": [{"type": "BODY", "text": "We are closed."}]});
        let after = self.call("PATCH", &edited, &edit, 200);
        assert_eq!(after["version"], before["version"].as_u64().unwrap() + 1);
        let first = self.call("GET", &format!("{edited}?version=1"), &Value::Null, 200);
        assert_eq!(first["components"], before["components"]);
        let versions = self.call("GET", &format!("{edited}/versions"), &Value::Null, 200);
        let creators = [0, 1].map(|number| &versions["data"][number]["created_by"]);
        assert!(
            creators[0].is_string() && creators[0] == creators[1],
            "one token created both: {versions}"
        );

        let deleted = format!("/message_templates/{}", self.text("/delete"));
        let before = self.call("GET", &deleted, &Value::Null, 200);
        self.call("DELETE", &deleted, &Value::Null, 204);
        self.call("GET", &deleted, &Value::Null, 404);
        let name = before["name"].as_str().unwrap();
        self.call("POST", "/message_templates", &document(name, "Once more."), 201);
    }

    fn creates_templates_with_newer_ids(&self) {
        let list = self.call("GET", "/message_templates?limit=100", &Value::Null, 200);
        let newest = list["data"][0]["id"].as_str().unwrap().parse::<u64>().unwrap();
        let created =
            self.call("POST", "/message_templates", &document("created_afterwards", "New."), 201);
        assert!(created["id"].as_str().unwrap().parse::<u64>().unwrap() > newest, "{created}");
        let conflict = serde_json::from_str(self.text("/replay/body")).unwrap();
        let conflict = self.call("POST", "/message_templates", &conflict, 409);
        assert_eq!(conflict["existing_id"], self.text("/replay/answer/id"), "{conflict}");
    }

    /// The recorded events, plus one for each change made by these checks, and no others.
    fn has_every_event(&self) {
        let events = self.call("GET", "/events?after=0&limit=100", &Value::Null, 200);
        let events = events["data"].as_array().unwrap();
        let seqs: Vec<u64> = events.iter().map(|it| it["seq"].as_u64().unwrap()).collect();
        let then = self.recorded["events"].as_u64().unwrap();
        assert_eq!(seqs, (1..=then + 4).collect::<Vec<u64>>());
        let added = &events[events.len() - 4..];
        let types: Vec<&str> = added.iter().map(|it| it["type"].as_str().unwrap()).collect();
        let created = "template.created";
        assert_eq!(types, ["template.edited", "template.deleted", created, created]);
    }

    /// Enables the endpoint, which then receives every event since it was disabled, signed with its
    /// secret.
    fn delivers_pending_events(&self, dir: &Path) {
        let Some(behind) = self.recorded.pointer("/endpoint/behind").and_then(Value::as_u64) else {
            return;
        };
        let listener = Listener::start(dir, &["--json", "--secret", self.text("/endpoint/secret")]);
        let endpoint = format!("/webhooks/{}", self.text("/endpoint/id"));
        let change = json!({"url": listener.url, "disabled": false});
        self.call("PATCH", &endpoint, &change, 200);
        let expected = behind + 4;
        let received = listener.received(usize::try_from(expected).unwrap());
        assert!(received.iter().all(|it| it["verified"] == true), "{received:?}");
        let mut seqs: Vec<u64> =
            received.iter().map(|it| it["body"]["seq"].as_u64().unwrap()).collect();
        seqs.sort_unstable();
        let then = self.recorded["events"].as_u64().unwrap();
        assert_eq!(seqs, (then - behind + 1..=then + 4).collect::<Vec<u64>>());
    }
}

/// Checks that `now` contains everything in `then`; objects may have additional members.
fn contains(then: &Value, now: &Value, pointer: &str) -> Result<(), String> {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => then.iter().try_for_each(|(name, value)| {
            contains(value, now.get(name).unwrap_or(&Value::Null), &format!("{pointer}/{name}"))
        }),
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            then.iter().zip(now).enumerate().try_for_each(|(number, (then, now))| {
                contains(then, now, &format!("{pointer}/{number}"))
            })
        }
        _ if then == now => Ok(()),
        _ => Err(format!("{pointer} was {then} and is now {now}")),
    }
}
