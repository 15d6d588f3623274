//! `galley emulator`: a throw-away service that stands in for WhatsApp.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    path::Path,
    process::Command,
    sync::mpsc::{Receiver, channel},
    thread,
};

use galley_server::delivery::{Secret, verify_meta};
use serde_json::{Value, json};

use crate::{
    http::{Connection, Request, Response, TIMEOUT},
    service::{Background, GALLEY, command},
};

/// `galley emulator` on a free port, with its temporary directory in `dir`.
pub(super) fn emulator(dir: &Path, flags: &[&str]) -> Command {
    let mut galley = command(GALLEY);
    galley.current_dir(dir).env("TMPDIR", dir);
    galley.args(["emulator", "--listen", "127.0.0.1:0"]).args(flags);
    galley
}

/// A running emulator and what it has printed.
pub(super) struct Emulator {
    pub(super) process: Background,
    ready: Value,
}

impl Emulator {
    pub(super) fn start(dir: &Path, flags: &[&str]) -> Self {
        Self::spawn(emulator(dir, &[flags, &["--json"]].concat()))
    }

    pub(super) fn spawn(command: Command) -> Self {
        let process = Background::spawn(command);
        let printed = process.printed.wait_for("a line", |text| text.ends_with('\n'));
        Self { process, ready: serde_json::from_str(&printed).unwrap() }
    }

    pub(super) fn member(&self, name: &str) -> &str {
        self.ready[name].as_str().unwrap_or_else(|| panic!("{name} in {}", self.ready))
    }

    pub(super) fn send(&self, method: &'static str, path: &str, body: &Value) -> Response {
        let address = self.member("url").trim_start_matches("http://");
        let address: SocketAddr = address.parse().unwrap();
        let token = format!("Bearer {}", self.member("token"));
        let request = Request::new(method, path).header("Authorization", &token);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = request.header("Content-Type", "application/json").body(body);
        let mut connection = Connection::open(address).unwrap();
        connection.send(&request.bytes()).unwrap();
        connection.read_response().unwrap()
    }

    /// A successful call of the Graph surface.
    #[track_caller]
    pub(super) fn graph(&self, method: &'static str, path: &str, body: &Value) -> Value {
        let response = self.send(method, &format!("/v23.0/{path}"), body);
        assert_eq!(response.status, 200, "{response:?}");
        response.json()
    }

    /// A successful call below `{base}/emulator`.
    #[track_caller]
    pub(super) fn control(&self, method: &'static str, call: &str, body: &Value) -> Value {
        let (phone, key) = (self.member("phone_number_id"), self.member("key"));
        let path = format!("/api/v1.0/{phone}/{key}/emulator/{call}");
        let response = self.send(method, &path, body);
        assert!((200..300).contains(&response.status), "{response:?}");
        response.json()
    }

    /// The templates of the account, oldest first, as `name status`.
    pub(super) fn templates(&self) -> Vec<String> {
        let list = self.graph(
            "GET",
            &format!("{}/message_templates", self.member("waba_id")),
            &Value::Null,
        );
        let mut templates: Vec<Value> = list["data"].as_array().unwrap().clone();
        templates.sort_by_key(|it| it["id"].as_str().unwrap().parse::<u64>().unwrap());
        let line = |it: &Value| format!("{} {}", it["name"], it["status"]).replace('"', "");
        templates.iter().map(line).collect()
    }

    /// Creates a template and returns the response.
    pub(super) fn create(&self, name: &str) -> Value {
        let created = self.try_create(name);
        assert_eq!(created.status, 200, "{created:?}");
        created.json()
    }

    pub(super) fn try_create(&self, name: &str) -> Response {
        let document = json!({
            "name": name, "language": "en_US", "category": "UTILITY",
            "components": [{"type": "BODY", "text": "Hi {{1}}, your order is on its way.",
                            "example": {"body_text": [["Ada"]]}}],
        });
        let path = format!("/v23.0/{}/message_templates", self.member("waba_id"));
        self.send("POST", &path, &document)
    }

    /// Sends a template message.
    fn message(&self, name: &str, parameters: &Value) -> Response {
        let message = json!({
            "messaging_product": "whatsapp", "to": "+1 555 010 9999", "type": "template",
            "template": {"name": name, "language": {"code": "en_US"},
                         "components": [{"type": "body", "parameters": parameters}]},
        });
        let path = format!("/v23.0/{}/messages", self.member("phone_number_id"));
        self.send("POST", &path, &message)
    }
}

/// The directories of emulators that are left in `dir`.
fn left_behind(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name());
    entries.filter(|it| it.to_string_lossy().starts_with("galley-emulator-")).count()
}

#[test]
fn a_template_is_created_approved_by_the_clock_sent_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let emulator = Emulator::start(dir.path(), &[]);
    let mut members: Vec<_> = emulator.ready.as_object().unwrap().keys().cloned().collect();
    members.sort_unstable();
    assert_eq!(
        members,
        [
            "account_id",
            "app_id",
            "app_secret",
            "key",
            "now",
            "phone_number_id",
            "token",
            "url",
            "waba_id"
        ]
    );
    let apps = format!("{}/subscribed_apps", emulator.member("waba_id"));
    let apps = emulator.graph("GET", &apps, &Value::Null);
    assert_eq!(apps["data"][0].get("override_callback_uri"), None, "{apps}");
    assert_eq!(emulator.create("order_pending_10m")["status"], "PENDING");
    let text = json!([{"type": "text", "text": "Ada"}]);
    assert_eq!(emulator.message("order_pending_10m", &text).json()["error"]["code"], 132_001);
    let moved = emulator.control("POST", "clock", &json!({"advance": "10m"}));
    assert_eq!(moved["applied"], 1, "{moved}");
    assert_eq!(emulator.templates(), ["order_pending_10m APPROVED"]);

    let refused = emulator.message("order_pending_10m", &json!([])).json();
    assert_eq!(refused["error"]["code"], 132_000, "{refused}");
    let sent = emulator.message("order_pending_10m", &text);
    assert_eq!(sent.status, 200, "{sent:?}");
    let id = sent.json()["messages"][0]["id"].as_str().unwrap().to_owned();
    emulator.control("POST", "clock", &json!({"advance": "3s"}));
    let messages = emulator.control("GET", "messages", &Value::Null);
    let message = &messages["data"][0];
    assert_eq!((&message["id"], &message["to"]), (&json!(id), &json!("15550109999")));
    assert_eq!(message["texts"]["body"], "Hi Ada, your order is on its way.");
    assert_eq!(message["status"], "read");

    assert_eq!(left_behind(dir.path()), 1);
    assert!(emulator.process.end("TERM").success());
    assert_eq!(left_behind(dir.path()), 0, "the store is deleted");
}

#[test]
fn the_example_script_shows_the_first_message() {
    let dir = tempfile::tempdir().unwrap();
    let process = Background::spawn(emulator(dir.path(), &[]));
    let printed =
        process.printed.wait_for("the variables", |text| text.contains("\nGALLEY_BASE_URL="));
    let variables = dir.path().join("emulator.env");
    fs::write(&variables, printed).unwrap();
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/emulator/first-message.sh");
    let mut shell = command("sh");
    let output = shell.arg(script).arg(variables).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert_eq!(printed.lines().filter(|line| line.starts_with("ok: ")).count(), 6, "{printed}");
    assert!(process.end("INT").success());
    assert_eq!(left_behind(dir.path()), 0);
}

#[test]
fn seeds_of_both_forms_are_created_in_the_order_of_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let seeds = dir.path().join("seeds");
    fs::create_dir(&seeds).unwrap();
    let document = |name: &str| {
        json!({
            "name": name, "language": "en_US", "category": "UTILITY",
            "components": [{"type": "BODY", "text": "Good morning to all of you"}],
        })
    };
    // WhatsApp does not take the header of this document of API v1.0 as it is.
    let v1 = include_str!("../../../../examples/05-text-header.json");
    let v1_name = serde_json::from_str::<Value>(v1).unwrap()["name"].clone();
    fs::write(seeds.join("2-rejected.json"), document("offer_reject_scam").to_string()).unwrap();
    fs::write(seeds.join("1-v1.json"), v1).unwrap();
    fs::write(seeds.join("notes.txt"), "not a template").unwrap();
    let emulator_seeded = Emulator::start(dir.path(), &["--seed", "seeds"]);
    let v1_line = format!("{} APPROVED", v1_name.as_str().unwrap());
    assert_eq!(emulator_seeded.templates(), [&*v1_line, "offer_reject_scam REJECTED"]);
    drop(emulator_seeded);

    let mut invalid = document("Not A Name");
    invalid["components"][0]["text"] = json!("{{1}}");
    fs::write(seeds.join("3-invalid.json"), invalid.to_string()).unwrap();
    let output = emulator(dir.path(), &["--seed", "seeds", "--json"]).output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(1), &b""[..]), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    for expected in ["3-invalid.json", "name-form", "no template was created"] {
        assert!(said.contains(expected), "{expected} in {said}");
    }
    let output = emulator(dir.path(), &["--seed", "nowhere"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--seed: nowhere is not a directory"), "{said}");
}

/// A receiver: answers verification requests with the right token, and passes on signature and body of
/// each webhook.
fn receiver(token: &'static str) -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/webhook", listener.local_addr().unwrap());
    let (sender, received) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
            let parameter = |name: &str| {
                let pair = head.split([' ', '?', '&']).find_map(|it| it.strip_prefix(name));
                pair.unwrap_or_default().to_owned()
            };
            let header = |name: &str| {
                let mut lines = head.lines().filter_map(|line| line.split_once(": "));
                let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
                found.map_or(String::new(), |(_, value)| value.to_owned())
            };
            let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
            reader.read_exact(&mut body).unwrap();
            let mut answer = String::new();
            if head.starts_with("POST") {
                let _ = sender.send((header("x-hub-signature-256"), body));
            } else if parameter("hub.verify_token=") == token {
                answer = parameter("hub.challenge=");
            }
            let length = answer.len();
            let response = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}"
            );
            let _ = stream.write_all(response.as_bytes());
        }
    });
    (url, received)
}

#[test]
fn the_callback_gets_signed_webhooks_once_it_has_answered_the_verification() {
    let dir = tempfile::tempdir().unwrap();
    let (url, received) = receiver("what-the-app-knows");
    let flags = ["--callback", &url, "--verify-token", "what-the-app-knows"];
    let emulator = Emulator::start(dir.path(), &flags);
    emulator
        .process
        .log
        .wait_for("the verification", |log| log.contains("the callback is verified"));
    emulator.create("order_reject_promotional");
    let (signature, body) = received.recv_timeout(TIMEOUT).unwrap();
    let secret = Secret::from_app_secret(emulator.member("app_secret")).unwrap();
    verify_meta(&secret, &signature, &body).unwrap();
    let webhook: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(webhook["entry"][0]["id"], emulator.member("waba_id"), "{webhook}");
    let change = &webhook["entry"][0]["changes"][0];
    assert_eq!(change["field"], "message_template_status_update", "{webhook}");
    assert_eq!(change["value"]["event"], "REJECTED", "{webhook}");
    assert_eq!(change["value"]["reason"], "PROMOTIONAL", "{webhook}");
}

#[test]
fn a_receiver_that_does_not_answer_yet_is_reported_and_the_emulator_serves() {
    let dir = tempfile::tempdir().unwrap();
    let (url, _received) = receiver("another-token");
    let flags = ["--callback", &url, "--verify-token", "what-the-app-knows"];
    let emulator = Emulator::start(dir.path(), &flags);
    emulator
        .process
        .log
        .wait_for("the reason", |log| log.contains("webhooks wait for the receiver"));
    assert_eq!(emulator.create("order")["status"], "APPROVED");
}

#[test]
fn what_cannot_work_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (arguments, code, expected) in [
        (&["--store", "sqlite:galley.db"][..], 1, "has a temporary store"),
        (&["--listen", &address], 1, "is already in use: choose another address with --listen"),
        (&["--callback", "http://127.0.0.1:1/"], 2, "--verify-token"),
        (&["--callback", "ftp://x", "--verify-token", "t"], 1, "--callback"),
        (&["--no-limits"], 2, "--faithful"),
    ] {
        let mut galley = command(GALLEY);
        galley.current_dir(dir.path()).env("TMPDIR", dir.path()).arg("emulator").args(arguments);
        let output = galley.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(expected), "{expected} in {said}");
        assert_eq!(left_behind(dir.path()), 0, "{arguments:?}");
    }
    assert!(!dir.path().join("galley.db").exists());
}
