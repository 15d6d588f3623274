//! `galley webhook …` with a running service: registering, receiving and managing webhooks.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    http::{Request, TIMEOUT},
    listener::Listener,
    service::{GALLEY, Launch, Service, command, document, galley, galley_json, until},
};

/// Allows endpoints on this machine, over http.
const ALLOW_PRIVATE: [&str; 2] = ["--set", "webhooks_allow_private=true"];

/// A URL where no process listens, for endpoints that must not receive deliveries yet.
const UNREACHABLE: &str = "http://127.0.0.1:9/";

fn start(dir: &Path, flags: &[&str]) -> Service {
    Launch::new(dir).flags(&ALLOW_PRIVATE).flags(flags).start()
}

#[track_caller]
fn webhook(dir: &Path, arguments: &[&str]) -> Value {
    galley_json(dir, &[&["webhook"], arguments, &ALLOW_PRIVATE].concat())
}

#[track_caller]
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let output = galley(dir, &[&["webhook"], arguments].concat());
    assert!(!output.status.success(), "{arguments:?}: {output:?}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_else(|| panic!("no {member} in {value}"))
}

#[track_caller]
fn create(service: &Service, name: &str) {
    let created = service.create(&document(name, "Hello!"));
    assert_eq!(created.status, 201, "{created:?}");
}

/// An endpoint of the first account, and the listener at its URL.
fn connect(dir: &Path, flags: &[&str]) -> (String, Listener) {
    let added = webhook(dir, &["add", "default", UNREACHABLE]);
    let (id, secret) = (text(&added, "id"), text(&added, "secret"));
    let listener = Listener::start(dir, &[&["--json", "--secret", secret], flags].concat());
    let changed = webhook(dir, &["change", "default", id, "--url", &listener.url]);
    assert_eq!(changed["url"], *listener.url);
    (id.to_owned(), listener)
}

/// Waits until the newest delivery of an endpoint satisfies the condition.
#[track_caller]
fn until_delivery(dir: &Path, id: &str, what: &str, condition: impl Fn(&Value) -> bool) {
    until(TIMEOUT, what, || condition(&webhook(dir, &["deliveries", "default", id])[0]));
}

#[test]
fn creating_a_template_delivers_a_verified_event_to_the_local_receiver() {
    let dir = tempfile::tempdir().unwrap();
    let service = start(dir.path(), &[]);
    let (id, listener) = connect(dir.path(), &[]);
    create(&service, "spring_sale");
    let delivery = &listener.received(1)[0];
    assert_eq!(
        (&delivery["verified"], &delivery["reason"]),
        (&json!(true), &Value::Null),
        "{delivery}"
    );
    assert_eq!(delivery["type"], "template.created");
    assert_eq!(delivery["body"]["data"]["name"], "spring_sale");
    assert!(delivery["sent_at"].is_string() && delivery["id"].is_string(), "{delivery}");
    until_delivery(dir.path(), &id, "the delivery is recorded", |it| it["status"] == "delivered");
    let deliveries = webhook(dir.path(), &["deliveries", "default", &id]);
    assert_eq!(deliveries.as_array().unwrap().len(), 1);
    assert_eq!(deliveries[0]["seq"], delivery["body"]["seq"]);
    assert_eq!(
        (&deliveries[0]["attempts"], &deliveries[0]["response_status"]),
        (&json!(1), &json!(200))
    );
    assert_eq!(listener.process.end("INT").code(), Some(0));
}

#[test]
fn an_enabled_endpoint_gets_missed_events_and_events_can_be_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let service = start(dir.path(), &[]);
    let (id, listener) = connect(dir.path(), &[]);
    let disabled = webhook(dir.path(), &["disable", "default", &id]);
    assert_eq!(
        (&disabled["state"], &disabled["disabled_because"]),
        (&json!("disabled"), &json!("switched_off"))
    );
    create(&service, "missed");
    assert_eq!(webhook(dir.path(), &["show", "default", &id])["behind"], 1);
    assert_eq!(webhook(dir.path(), &["enable", "default", &id])["state"], "good");
    let first = listener.received(1)[0].clone();
    assert_eq!(first["body"]["data"]["name"], "missed");

    let seq = first["body"]["seq"].to_string();
    until_delivery(dir.path(), &id, "the event is delivered", |it| it["status"] == "delivered");
    let replayed = webhook(dir.path(), &["replay", "default", &id, "--event", &seq]);
    assert_eq!(replayed["events"], 1);
    assert_eq!(listener.received(2)[1]["id"], first["id"], "the same event has the same id");
    until_delivery(dir.path(), &id, "the event is delivered again", |it| {
        it["status"] == "delivered"
    });
    webhook(dir.path(), &["replay", "default", &id, "--since", "1h"]);
    assert_eq!(listener.received(3)[2]["body"], first["body"]);

    for (arguments, expected) in [
        (vec!["--event", "99"], "no such event"),
        (vec!["--since", "soon"], "--since expects a timestamp"),
        (vec!["--since", "1h", "--event", "1"], "cannot be used with"),
        (vec![], "required"),
    ] {
        let stderr = refused(dir.path(), &[&["replay", "default", &id], &arguments[..]].concat());
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

#[test]
fn both_secrets_sign_after_a_rotation_until_the_next_rotation() {
    let dir = tempfile::tempdir().unwrap();
    let service = start(dir.path(), &[]);
    let (id, listener) = connect(dir.path(), &[]);
    let rotated = webhook(dir.path(), &["rotate", "default", &id]);
    assert!(text(&rotated, "secret").starts_with("whsec_"));
    assert!(rotated["former_secret_until"].is_string(), "{rotated}");
    create(&service, "signed_twice");
    assert_eq!(listener.received(1)[0]["verified"], true);
    let stderr = refused(dir.path(), &["rotate", "default", &id]);
    assert!(stderr.contains("--force"), "{stderr}");
    let again = webhook(dir.path(), &["rotate", "default", &id, "--force"]);
    assert_ne!(again["secret"], rotated["secret"]);
    create(&service, "signed_with_new_secrets");
    let delivery = &listener.received(2)[1];
    assert_eq!(delivery["verified"], false, "{delivery}");
    assert!(text(delivery, "reason").contains("No signature matches"), "{delivery}");
    until_delivery(dir.path(), &id, "it is refused", |it| it["response_status"] == 401);
}

#[test]
fn failed_deliveries_are_retried_on_the_configured_schedule() {
    let dir = tempfile::tempdir().unwrap();
    let service = start(dir.path(), &["--set", "webhooks_retries=0s 50ms 50ms"]);
    let (id, listener) = connect(dir.path(), &["--answer", "500"]);
    create(&service, "unwanted");
    until_delivery(dir.path(), &id, "the delivery has failed", |it| it["status"] == "failed");
    let failed = webhook(dir.path(), &["deliveries", "default", &id, "--status", "failed"]);
    assert_eq!((&failed[0]["attempts"], &failed[0]["response_status"]), (&json!(3), &json!(500)));
    assert_eq!(
        webhook(dir.path(), &["deliveries", "default", &id, "--status", "waiting"]),
        json!([])
    );
    assert_eq!(listener.received(3).len(), 3);
    assert_eq!(webhook(dir.path(), &["show", "default", &id])["state"], "failing");
    // The log names the account and the endpoint, once for the whole outage.
    create(&service, "unwanted_too");
    until_delivery(dir.path(), &id, "the second has failed", |it| it["status"] == "failed");
    let log = service.log.text();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("a delivery failed")).collect();
    let [line] = lines[..] else { panic!("{log}") };
    let account = text(&galley_json(dir.path(), &["account", "show", "default"]), "id").to_owned();
    let origin = listener.url.trim_end_matches('/');
    for expected in [&*account, &id, origin, "it responded with 500", "WARN"] {
        assert!(line.contains(expected), "no {expected:?} in {line}");
    }
}

#[test]
fn a_process_with_delivery_disabled_leaves_deliveries_to_another_process() {
    let dir = tempfile::tempdir().unwrap();
    let without_delivery = start(dir.path(), &["--set", "webhooks_deliver=false"]);
    let (id, listener) = connect(dir.path(), &[]);
    create(&without_delivery, "for_the_other_process");
    assert_eq!(webhook(dir.path(), &["show", "default", &id])["behind"], 1);
    let _delivers = start(dir.path(), &[]);
    assert_eq!(listener.received(1)[0]["body"]["data"]["name"], "for_the_other_process");
}

#[test]
fn an_endpoint_can_be_listed_shown_changed_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop"]);
    let types = ["--event", "template.approved", "--event", "template.rejected"];
    let added = webhook(dir.path(), &[&["add", "shop", UNREACHABLE], &types[..]].concat());
    let id = text(&added, "id");
    assert_eq!(added["events"], json!(["template.approved", "template.rejected"]));
    let listed = webhook(dir.path(), &["list", "shop"]);
    assert_eq!((&listed[0]["id"], &listed[0]["state"]), (&added["id"], &json!("good")));
    assert!(!listed.to_string().contains("whsec_"), "the secret is shown only once");
    let changed = webhook(dir.path(), &["change", "shop", id, "--event", "template.deleted"]);
    assert_eq!(changed["events"], json!(["template.deleted"]));
    assert_eq!(changed["url"], UNREACHABLE);
    let changed = webhook(dir.path(), &["change", "shop", id, "--all-events"]);
    assert_eq!(changed["events"], Value::Null);
    assert!(refused(dir.path(), &["change", "shop", id]).contains("required"));
    let removed = json!({"id": id, "state": "removed"});
    assert_eq!(webhook(dir.path(), &["remove", "shop", id]), removed);
    for command in ["show", "remove", "enable", "rotate", "deliveries"] {
        let stderr = refused(dir.path(), &[command, "shop", id]);
        assert!(stderr.contains("the account has no webhook"), "{command}: {stderr}");
    }
    for _ in 0..20 {
        webhook(dir.path(), &["add", "shop", UNREACHABLE]);
    }
    let stderr = refused(dir.path(), &[&["add", "shop", UNREACHABLE], &ALLOW_PRIVATE[..]].concat());
    assert!(stderr.contains("20 webhooks"), "{stderr}");
}

#[test]
fn the_command_line_refuses_what_the_api_refuses() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop"]);
    for (arguments, expected) in [
        (vec!["http://example.com/"], "must begin with https://"),
        (vec!["https://127.0.0.1/"], "IP address"),
        (vec!["https://localhost:8080/"], "local network"),
        (vec!["https://user:word@example.com/"], "user name or password"),
        (vec!["example.com"], "the URL "),
        // The API hides from clients why a name is refused; the operator may know.
        (vec!["https://hooks.invalid/"], "Here, the name could not be resolved"),
        (
            vec!["https://example.com/", "--event", "template.eaten"],
            "[possible values: template.created",
        ),
    ] {
        let stderr = refused(dir.path(), &[&["add", "shop"], &arguments[..]].concat());
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    assert_eq!(webhook(dir.path(), &["list", "shop"]), json!([]));
    assert!(refused(dir.path(), &["add", "unknown", UNREACHABLE]).contains("no account"));
}

/// Runs `galley webhook` with this secret key. Returns the output and the warnings.
#[track_caller]
fn with_key(dir: &Path, key: &str, arguments: &[&str]) -> (Value, String) {
    let mut command = command(GALLEY);
    command.current_dir(dir).arg("webhook").args(arguments).args(ALLOW_PRIVATE).arg("--json");
    let output = command.env("GALLEY_SECRET_KEY", key).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let warnings = String::from_utf8(output.stderr).unwrap();
    (serde_json::from_slice(&output.stdout).unwrap(), warnings)
}

#[test]
fn a_key_that_cannot_open_existing_secrets_causes_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop"]);
    let add = |key: &str| with_key(dir.path(), key, &["add", "shop", UNREACHABLE]).1;
    assert_eq!(add("the key of the service"), "");
    assert_eq!(add("the key of the service"), "");
    for key in ["", "a different secret key"] {
        let stderr = add(key);
        assert!(stderr.contains("cannot be opened") && !stderr.contains("different"), "{stderr}");
    }
}

#[test]
fn events_wait_while_the_key_is_wrong_and_a_rotation_replaces_a_lost_key() {
    let dir = tempfile::tempdir().unwrap();
    let service = start(dir.path(), &[]);
    let (added, _) = with_key(dir.path(), "the lost secret key", &["add", "default", UNREACHABLE]);
    let id = text(&added, "id");
    create(&service, "cannot_be_signed");
    let log = service.log.wait_for("the signing error", |text| text.contains("cannot be signed"));
    assert!(log.contains("GALLEY_SECRET_KEY"), "{log}");
    let waiting = webhook(dir.path(), &["deliveries", "default", id]);
    assert_eq!((&waiting[0]["status"], &waiting[0]["attempts"]), (&json!("waiting"), &json!(0)));
    drop(service);

    let key = "the new secret key";
    let (rotated, _) = with_key(dir.path(), key, &["rotate", "default", id]);
    let secret = text(&rotated, "secret");
    let listener = Listener::start(dir.path(), &["--json", "--secret", secret]);
    webhook(dir.path(), &["change", "default", id, "--url", &listener.url]);
    let launch = Launch::new(dir.path()).flags(&ALLOW_PRIVATE).variable("GALLEY_SECRET_KEY", key);
    let service = launch.start();
    create(&service, "is_signed");
    assert_eq!(listener.received(1)[0]["verified"], true);
    assert_eq!(service.end().0.code(), Some(0));
}

#[test]
fn the_local_receiver_reports_why_a_delivery_is_not_verified() {
    let dir = tempfile::tempdir().unwrap();
    let secret = format!("whsec_{}", "A".repeat(43));
    let listener = Listener::start(dir.path(), &["--json", "--answer", "204", "--secret", &secret]);
    let signed = |timestamp: &str| {
        Request::new("POST", "/anywhere")
            .header("webhook-id", "evt_1")
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", "v1,AAAA")
            .body("{\"type\":\"template.created\"}")
    };
    assert_eq!(listener.post(&Request::get("/")), 405);
    assert_eq!(listener.post(&Request::new("POST", "/").body(vec![b' '; 256 * 1_024 + 1])), 413);
    assert_eq!(listener.post(&Request::new("POST", "/").body("not JSON")), 401);
    assert_eq!(listener.post(&signed("12")), 401);
    assert_eq!(listener.post(&signed("yesterday")), 401);
    let deliveries = listener.received(3);
    assert_eq!(deliveries[0]["body"], "not JSON");
    for (delivery, expected) in
        deliveries.iter().zip(["webhook-id is missing", "old", "not a number"])
    {
        assert_eq!(delivery["verified"], false, "{delivery}");
        assert!(text(delivery, "reason").contains(expected), "{expected:?} in {delivery}");
    }
    assert_eq!(deliveries[1]["type"], "template.created");
    assert_eq!(listener.process.end("TERM").code(), Some(0));

    // Human output, without a secret.
    let listener = Listener::start(dir.path(), &[]);
    let stderr = listener
        .process
        .log
        .wait_for("the instructions", |text| text.contains("no signature can be verified"));
    assert!(stderr.contains("GALLEY_WEBHOOKS_ALLOW_PRIVATE=true galley webhook add"), "{stderr}");
    assert_eq!(listener.post(&signed("12")), 401, "there is no secret");
    let stdout = listener.process.printed.wait_for("a delivery", |text| text.ends_with("\n\n"));
    for expected in
        ["1970-01-01T00:00:12.000Z", "evt_1", "NOT VERIFIED: There is no secret", "\n  \"type\""]
    {
        assert!(stdout.contains(expected), "{expected:?} in {stdout}");
    }
    let stderr = refused(dir.path(), &["listen", "--secret", "whsec_short"]);
    assert!(
        stderr.contains("whsec_ followed by 24 to 64 bytes") && !stderr.contains("short"),
        "{stderr}"
    );
}

/// A token that cannot occur by chance.
const VERIFY_TOKEN: &str = "known-4d7Gk1Zt-to-both";

#[test]
fn an_endpoint_in_meta_format_is_verified_and_gets_signed_meta_payloads() {
    let dir = tempfile::tempdir().unwrap();
    let service = start(dir.path(), &[]);
    let account = galley_json(dir.path(), &["account", "create", "waba", "--rulebook", "whatsapp"]);
    let secret = "0123456789abcdef0123456789abcdef";
    let listener = Listener::start(
        dir.path(),
        &["--json", "--verify-token", VERIFY_TOKEN, "--secret", secret],
    );
    let add = ["add", "waba", &listener.url, "--format"];
    for (arguments, expected) in [
        (vec!["whatsapp"], "--verify-token is required"),
        (vec!["whatsapp", "--verify-token", "wrong"], "with 403 instead of 200"),
        (
            vec!["whatsapp", "--verify-token", VERIFY_TOKEN, "--secret", "short"],
            "--secret is not a valid secret",
        ),
        (
            vec!["galley", "--verify-token", VERIFY_TOKEN],
            "--verify-token is only used with the format",
        ),
        (vec!["meta"], "[possible values: galley, whatsapp]"),
    ] {
        let stderr = refused(dir.path(), &[&add[..], &arguments, &ALLOW_PRIVATE].concat());
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    let stderr = refused(
        dir.path(),
        &["add", "default", UNREACHABLE, "--format", "whatsapp", "--verify-token", VERIFY_TOKEN],
    );
    assert!(
        stderr.contains("--format is only available to accounts with the rulebook"),
        "{stderr}"
    );
    assert_eq!(webhook(dir.path(), &["list", "waba"]), json!([]));
    let flags = ["whatsapp", "--verify-token", VERIFY_TOKEN, "--secret", secret];
    let added = webhook(dir.path(), &[&add[..], &flags].concat());
    assert_eq!((&added["format"], &added["secret"]), (&json!("whatsapp"), &json!(secret)));
    let id = text(&added, "id");
    let change_url = ["change", "waba", id, "--url", &listener.url];
    assert!(
        refused(dir.path(), &[&change_url[..], &ALLOW_PRIVATE].concat())
            .contains("--verify-token is required")
    );
    webhook(dir.path(), &[&change_url[..], &["--verify-token", VERIFY_TOKEN]].concat());

    let (waba, token) = (text(&account, "account_id"), text(&account, "token"));
    let template = json!({
        "name": "hello", "language": "en_US", "category": "UTILITY",
        "components": [{"type": "BODY", "text": "Hello"}],
    });
    let request = Request::new("POST", format!("/v23.0/{waba}/message_templates"))
        .header("Authorization", &format!("Bearer {token}"))
        .body(template.to_string());
    assert_eq!(service.send(&request).status, 200);
    let delivery = &listener.received(1)[0];
    assert_eq!(
        (&delivery["verified"], &delivery["reason"]),
        (&json!(true), &Value::Null),
        "{delivery}"
    );
    assert_eq!(delivery["type"], "message_template_status_update");
    let value = &delivery["body"]["entry"][0]["changes"][0]["value"];
    assert_eq!(
        (&value["event"], &value["message_template_name"]),
        (&json!("APPROVED"), &json!("hello"))
    );
    let rotated = webhook(dir.path(), &["rotate", "waba", id]);
    assert_eq!(rotated["former_secret_until"], Value::Null, "{rotated}");

    let log = service.log.text();
    assert_eq!(service.end().0.code(), Some(0));
    let files = std::fs::read_dir(dir.path()).unwrap().map(|it| it.unwrap().path());
    for content in files.map(|file| std::fs::read(file).unwrap()).chain([log.into_bytes()]) {
        let found = content.windows(VERIFY_TOKEN.len()).any(|it| it == VERIFY_TOKEN.as_bytes());
        assert!(!found, "the verify token is stored or logged");
    }
}
