//! A store that an earlier release has filled, and what has to hold when the release of today
//! goes on with it. How the fixtures are made is in `fixtures/README.md`.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    http::{Answer, BOUND, Request},
    listener::Listener,
    service::{Launch, Service, document, until},
};

/// A fixture: the statements that make the store, and what the release told about it.
pub(crate) struct Earlier {
    pub(crate) statements: String,
    told: Value,
}

impl Earlier {
    pub(crate) fn release(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let read = |ending: &str| std::fs::read_to_string(dir.join(format!("{name}.{ending}")));
        let told = serde_json::from_str(&read("json").unwrap()).unwrap();
        Self { statements: read("sql").unwrap(), told }
    }

    /// Starts the service of today on the store and goes on with it in every way. The service is
    /// still running afterwards.
    pub(crate) fn goes_on(&self, launch: Launch, dir: &Path) -> Service {
        let service = launch
            .variable("GALLEY_SECRET_KEY", "the secret key of the fixtures")
            .variable("GALLEY_PUBLIC_URL", "https://galley.example")
            .flags(&["--set", "webhooks_allow_private=true"])
            // Fixtures grow older than events usually get.
            .flags(&["--set", "events_kept=36500d"])
            .start();
        let today = Today { told: &self.told, service: &service };
        today.answers_the_same();
        today.gives_the_first_answer_again();
        today.lists_and_finds_what_there_was();
        today.changes_what_there_was();
        today.makes_more_behind_it();
        today.has_every_event();
        today.delivers_what_waited(dir);
        service
    }
}

/// What was told then, and who is asked now.
struct Today<'a> {
    told: &'a Value,
    service: &'a Service,
}

impl Today<'_> {
    fn text(&self, pointer: &str) -> &str {
        let found = self.told.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_else(|| panic!("{pointer} is not told"))
    }

    /// A call of the first account.
    fn request(&self, method: &'static str, path: &str) -> Request {
        let base = format!("/api/v1.0/{}/{}", self.text("/phone"), self.text("/key"));
        Request::new(method, base + path)
            .header("Authorization", &format!("Bearer {}", self.text("/token")))
    }

    #[track_caller]
    fn call(&self, method: &'static str, path: &str, body: &Value, status: u16) -> Value {
        let request = self.request(method, path);
        let request = if body.is_null() { request } else { request.body(body.to_string()) };
        let answer = self.service.send(&request);
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        if answer.body.is_empty() { Value::Null } else { answer.json() }
    }

    fn read_again(&self, reading: &Value) -> Answer {
        let token = format!("Bearer {}", reading["token"].as_str().unwrap());
        let path = reading["path"].as_str().unwrap();
        self.service.send(&Request::get(path).header("Authorization", &token))
    }

    fn answers_the_same(&self) {
        for reading in self.told["readings"].as_array().unwrap() {
            let answer = self.read_again(reading);
            assert_eq!(reading["status"], answer.status, "{}: {answer:?}", reading["path"]);
            if let Err(fault) = holds(&reading["answer"], &answer.json(), "") {
                panic!("{}: {fault}", reading["path"]);
            }
        }
        if self.told["media"].is_object() {
            let sample = self.service.send(&Request::get(self.text("/media/path")));
            assert_eq!(sample.status, 200, "{sample:?}");
            assert_eq!(json!(sample.body), self.told["media"]["bytes"]);
        }
    }

    fn gives_the_first_answer_again(&self) {
        let again = self
            .request("POST", "/message_templates")
            .header("Idempotency-Key", self.text("/replay/idempotency_key"))
            .body(self.text("/replay/body"));
        let again = self.service.send(&again);
        assert_eq!((again.status, again.json()), (201, self.told["replay"]["answer"].clone()));
    }

    fn lists_and_finds_what_there_was(&self) {
        let list = self.call("GET", "/message_templates?limit=100", &Value::Null, 200);
        let listed: Vec<&Value> =
            list["data"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
        for id in ["/edit", "/delete", "/replay/answer/id"] {
            assert!(listed.contains(&&json!(self.text(id))), "{id} in {listed:?}");
        }
        // The search makes itself anew, or goes on from where it was.
        until(BOUND, "all is found by its words", || {
            let found = self.call("GET", "/message_templates?q=sundays+open", &Value::Null, 200);
            let searches = self.told["searches"].as_array().unwrap();
            let same = |it: &Value| holds(&it["answer"], &self.read_again(it).json(), "").is_ok();
            found["data"][0]["id"] == self.text("/edit") && searches.iter().all(same)
        });
    }

    fn changes_what_there_was(&self) {
        let edited = format!("/message_templates/{}", self.text("/edit"));
        let before = self.call("GET", &edited, &Value::Null, 200);
        let edit = json!({"components": [{"type": "BODY", "text": "We are closed."}]});
        let after = self.call("PATCH", &edited, &edit, 200);
        assert_eq!(after["version"], before["version"].as_u64().unwrap() + 1);
        let first = self.call("GET", &format!("{edited}?version=1"), &Value::Null, 200);
        assert_eq!(first["components"], before["components"]);
        let versions = self.call("GET", &format!("{edited}/versions"), &Value::Null, 200);
        let makers = [0, 1].map(|number| &versions["data"][number]["created_by"]);
        assert!(makers[0].is_string() && makers[0] == makers[1], "one token made both: {versions}");

        let deleted = format!("/message_templates/{}", self.text("/delete"));
        let before = self.call("GET", &deleted, &Value::Null, 200);
        self.call("DELETE", &deleted, &Value::Null, 204);
        self.call("GET", &deleted, &Value::Null, 404);
        let name = before["name"].as_str().unwrap();
        self.call("POST", "/message_templates", &document(name, "Once more."), 201);
    }

    fn makes_more_behind_it(&self) {
        let list = self.call("GET", "/message_templates?limit=100", &Value::Null, 200);
        let newest = list["data"][0]["id"].as_str().unwrap().parse::<u64>().unwrap();
        let made = self.call("POST", "/message_templates", &document("of_today", "New."), 201);
        assert!(made["id"].as_str().unwrap().parse::<u64>().unwrap() > newest, "{made}");
        let taken = serde_json::from_str(self.text("/replay/body")).unwrap();
        let taken = self.call("POST", "/message_templates", &taken, 409);
        assert_eq!(taken["existing_id"], self.text("/replay/answer/id"), "{taken}");
    }

    /// Those of then, one for each change of today, and no others.
    fn has_every_event(&self) {
        let events = self.call("GET", "/events?after=0&limit=100", &Value::Null, 200);
        let events = events["data"].as_array().unwrap();
        let seqs: Vec<u64> = events.iter().map(|it| it["seq"].as_u64().unwrap()).collect();
        let then = self.told["events"].as_u64().unwrap();
        assert_eq!(seqs, (1..=then + 4).collect::<Vec<u64>>());
        let of_today = &events[events.len() - 4..];
        let types: Vec<&str> = of_today.iter().map(|it| it["type"].as_str().unwrap()).collect();
        let created = "template.created";
        assert_eq!(types, ["template.edited", "template.deleted", created, created]);
    }

    /// What happened while the endpoint was switched off, then and now, signed with its secret.
    fn delivers_what_waited(&self, dir: &Path) {
        let Some(behind) = self.told.pointer("/endpoint/behind").and_then(Value::as_u64) else {
            return;
        };
        let listener = Listener::start(dir, &["--json", "--secret", self.text("/endpoint/secret")]);
        let endpoint = format!("/webhooks/{}", self.text("/endpoint/id"));
        let change = json!({"url": listener.url, "disabled": false});
        self.call("PATCH", &endpoint, &change, 200);
        let expected = behind + 4;
        let heard = listener.heard(usize::try_from(expected).unwrap());
        assert!(heard.iter().all(|it| it["verified"] == true), "{heard:?}");
        let mut seqs: Vec<u64> =
            heard.iter().map(|it| it["body"]["seq"].as_u64().unwrap()).collect();
        seqs.sort_unstable();
        let then = self.told["events"].as_u64().unwrap();
        assert_eq!(seqs, (then - behind + 1..=then + 4).collect::<Vec<u64>>());
    }
}

/// Whether everything of `then` is there now; there may be more members than there were.
fn holds(then: &Value, now: &Value, place: &str) -> Result<(), String> {
    match (then, now) {
        (Value::Object(then), Value::Object(now)) => then.iter().try_for_each(|(name, value)| {
            holds(value, now.get(name).unwrap_or(&Value::Null), &format!("{place}/{name}"))
        }),
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            then.iter().zip(now).enumerate().try_for_each(|(number, (then, now))| {
                holds(then, now, &format!("{place}/{number}"))
            })
        }
        _ if then == now => Ok(()),
        _ => Err(format!("{place} was {then} and is {now}")),
    }
}
