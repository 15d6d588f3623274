//! `galley webhook …` beside a running service: registering, receiving, looking after.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    http::{BOUND, Request},
    listener::Listener,
    service::{GALLEY, Launch, Service, command, document, galley, galley_json, until},
};

/// Tests receive on this machine, over http.
const NEARBY: [&str; 2] = ["--set", "webhooks_allow_private=true"];

/// Where nobody listens, for endpoints that are not to get anything yet.
const NOWHERE: &str = "http://127.0.0.1:9/";

fn start(dir: &Path, flags: &[&str]) -> Service {
    Launch::new(dir).flags(&NEARBY).flags(flags).start()
}

#[track_caller]
fn webhook(dir: &Path, arguments: &[&str]) -> Value {
    galley_json(dir, &[&["webhook"], arguments, &NEARBY].concat())
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
fn make(service: &Service, name: &str) {
    let made = service.create(&document(name, "Hello!"));
    assert_eq!(made.status, 201, "{made:?}");
}

/// An endpoint of the first account, and a listener with its secret that it leads to.
fn connected(dir: &Path, flags: &[&str]) -> (String, Listener) {
    let added = webhook(dir, &["add", "default", NOWHERE]);
    let (id, secret) = (text(&added, "id"), text(&added, "secret"));
    let listener = Listener::start(dir, &[&["--json", "--secret", secret], flags].concat());
    let changed = webhook(dir, &["change", "default", id, "--url", &listener.url]);
    assert_eq!(changed["url"], *listener.url);
    (id.to_owned(), listener)
}

/// Waits until the newest delivery of an endpoint is so.
#[track_caller]
fn until_delivery(dir: &Path, id: &str, what: &str, is_so: impl Fn(&Value) -> bool) {
    until(BOUND, what, || is_so(&webhook(dir, &["deliveries", "default", id])[0]));
}

#[test]
fn a_template_made_over_http_reaches_the_local_receiver_which_verifies_it() {
    let dir = tempfile::tempdir().unwrap();
    let service = start(dir.path(), &[]);
    let (id, listener) = connected(dir.path(), &[]);
    make(&service, "spring_sale");
    let heard = &listener.heard(1)[0];
    assert_eq!((&heard["verified"], &heard["reason"]), (&json!(true), &Value::Null), "{heard}");
    assert_eq!(heard["type"], "template.created");
    assert_eq!(heard["body"]["data"]["name"], "spring_sale");
    assert!(heard["sent_at"].is_string() && heard["id"].is_string(), "{heard}");
    until_delivery(dir.path(), &id, "the delivery is written down", |it| {
        it["status"] == "delivered"
    });
    let deliveries = webhook(dir.path(), &["deliveries", "default", &id]);
    assert_eq!(deliveries.as_array().unwrap().len(), 1);
    assert_eq!(deliveries[0]["seq"], heard["body"]["seq"]);
    assert_eq!(
        (&deliveries[0]["attempts"], &deliveries[0]["response_status"]),
        (&json!(1), &json!(200))
    );
    assert_eq!(listener.process.end("INT").code(), Some(0));
}

#[test]
fn a_disabled_endpoint_gets_what_it_missed_and_events_can_be_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let service = start(dir.path(), &[]);
    let (id, listener) = connected(dir.path(), &[]);
    let disabled = webhook(dir.path(), &["disable", "default", &id]);
    assert_eq!(
        (&disabled["state"], &disabled["disabled_because"]),
        (&json!("disabled"), &json!("switched_off"))
    );
    make(&service, "missed");
    assert_eq!(webhook(dir.path(), &["show", "default", &id])["behind"], 1);
    assert_eq!(webhook(dir.path(), &["enable", "default", &id])["state"], "good");
    let first = listener.heard(1)[0].clone();
    assert_eq!(first["body"]["data"]["name"], "missed");

    let seq = first["body"]["seq"].to_string();
    until_delivery(dir.path(), &id, "it is delivered", |it| it["status"] == "delivered");
    let replayed = webhook(dir.path(), &["replay", "default", &id, "--event", &seq]);
    assert_eq!(replayed["events"], 1);
    assert_eq!(listener.heard(2)[1]["id"], first["id"], "the same event has the same id");
    until_delivery(dir.path(), &id, "it is delivered again", |it| it["status"] == "delivered");
    webhook(dir.path(), &["replay", "default", &id, "--since", "1h"]);
    assert_eq!(listener.heard(3)[2]["body"], first["body"]);

    for (arguments, says) in [
        (vec!["--event", "99"], "no such event"),
        (vec!["--since", "soon"], "--since takes a moment"),
        (vec!["--since", "1h", "--event", "1"], "cannot be used with"),
        (vec![], "required"),
    ] {
        let said = refused(dir.path(), &[&["replay", "default", &id], &arguments[..]].concat());
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

#[test]
fn both_secrets_sign_after_a_rotation_until_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let service = start(dir.path(), &[]);
    let (id, listener) = connected(dir.path(), &[]);
    let rotated = webhook(dir.path(), &["rotate", "default", &id]);
    assert!(text(&rotated, "secret").starts_with("whsec_"));
    assert!(rotated["former_secret_until"].is_string(), "{rotated}");
    make(&service, "signed_twice");
    assert_eq!(listener.heard(1)[0]["verified"], true);
    let said = refused(dir.path(), &["rotate", "default", &id]);
    assert!(said.contains("--force"), "{said}");
    let again = webhook(dir.path(), &["rotate", "default", &id, "--force"]);
    assert_ne!(again["secret"], rotated["secret"]);
    make(&service, "signed_with_others");
    let heard = &listener.heard(2)[1];
    assert_eq!(heard["verified"], false, "{heard}");
    assert!(text(heard, "reason").contains("No signature matches"), "{heard}");
}

#[test]
fn an_endpoint_that_refuses_is_tried_again_as_the_settings_say() {
    let dir = tempfile::tempdir().unwrap();
    let service = start(dir.path(), &["--set", "webhooks_retries=0s 50ms 50ms"]);
    let (id, listener) = connected(dir.path(), &["--answer", "500"]);
    make(&service, "unwanted");
    until_delivery(dir.path(), &id, "it has failed", |it| it["status"] == "failed");
    let failed = webhook(dir.path(), &["deliveries", "default", &id, "--status", "failed"]);
    assert_eq!((&failed[0]["attempts"], &failed[0]["response_status"]), (&json!(3), &json!(500)));
    assert_eq!(
        webhook(dir.path(), &["deliveries", "default", &id, "--status", "waiting"]),
        json!([])
    );
    assert_eq!(listener.heard(3).len(), 3);
    assert_eq!(webhook(dir.path(), &["show", "default", &id])["state"], "failing");
}

#[test]
fn a_process_that_is_told_so_delivers_nothing_and_another_one_does() {
    let dir = tempfile::tempdir().unwrap();
    let quiet = start(dir.path(), &["--set", "webhooks_deliver=false"]);
    let (id, listener) = connected(dir.path(), &[]);
    make(&quiet, "for_the_other");
    assert_eq!(webhook(dir.path(), &["show", "default", &id])["behind"], 1);
    let _delivers = start(dir.path(), &[]);
    assert_eq!(listener.heard(1)[0]["body"]["data"]["name"], "for_the_other");
}

#[test]
fn an_endpoint_is_listed_shown_changed_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop"]);
    let types = ["--event", "template.approved", "--event", "template.rejected"];
    let added = webhook(dir.path(), &[&["add", "shop", NOWHERE], &types[..]].concat());
    let id = text(&added, "id");
    assert_eq!(added["events"], json!(["template.approved", "template.rejected"]));
    let listed = webhook(dir.path(), &["list", "shop"]);
    assert_eq!((&listed[0]["id"], &listed[0]["state"]), (&added["id"], &json!("good")));
    assert!(!listed.to_string().contains("whsec_"), "the secret is shown once");
    let changed = webhook(dir.path(), &["change", "shop", id, "--event", "template.deleted"]);
    assert_eq!(changed["events"], json!(["template.deleted"]));
    assert_eq!(changed["url"], NOWHERE);
    let changed = webhook(dir.path(), &["change", "shop", id, "--all-events"]);
    assert_eq!(changed["events"], Value::Null);
    assert!(refused(dir.path(), &["change", "shop", id]).contains("required"));
    let removed = json!({"id": id, "state": "removed"});
    assert_eq!(webhook(dir.path(), &["remove", "shop", id]), removed);
    for command in ["show", "remove", "enable", "rotate", "deliveries"] {
        let said = refused(dir.path(), &[command, "shop", id]);
        assert!(said.contains("the account has no webhook"), "{command}: {said}");
    }
    for _ in 0..20 {
        webhook(dir.path(), &["add", "shop", NOWHERE]);
    }
    let said = refused(dir.path(), &[&["add", "shop", NOWHERE], &NEARBY[..]].concat());
    assert!(said.contains("20 webhooks"), "{said}");
}

#[test]
fn what_the_api_would_refuse_is_refused_here_too() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop"]);
    for (arguments, says) in [
        (vec!["http://example.com/"], "must begin with https://"),
        (vec!["https://127.0.0.1/"], "IP address"),
        (vec!["https://localhost:8080/"], "local network"),
        (vec!["https://user:word@example.com/"], "user name or password"),
        (vec!["example.com"], "the URL "),
        (vec!["https://example.com/", "--event", "template.eaten"], "one of template.created"),
    ] {
        let said = refused(dir.path(), &[&["add", "shop"], &arguments[..]].concat());
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
    assert_eq!(webhook(dir.path(), &["list", "shop"]), json!([]));
    assert!(refused(dir.path(), &["add", "nobody", NOWHERE]).contains("no account"));
}

/// The same command as whoever has that key; what it answers and what it warns of.
#[track_caller]
fn with_key(dir: &Path, key: &str, arguments: &[&str]) -> (Value, String) {
    let mut command = command(GALLEY);
    command.current_dir(dir).arg("webhook").args(arguments).args(NEARBY).arg("--json");
    let output = command.env("GALLEY_SECRET_KEY", key).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let warned = String::from_utf8(output.stderr).unwrap();
    (serde_json::from_slice(&output.stdout).unwrap(), warned)
}

#[test]
fn another_key_than_that_of_the_other_secrets_is_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    galley_json(dir.path(), &["account", "create", "shop"]);
    let add = |key: &str| with_key(dir.path(), key, &["add", "shop", NOWHERE]).1;
    assert_eq!(add("the key of the service"), "");
    assert_eq!(add("the key of the service"), "");
    for key in ["", "the key of another one"] {
        let said = add(key);
        assert!(said.contains("does not open") && !said.contains("another one"), "{said}");
    }
}

#[test]
fn events_wait_while_the_key_is_a_wrong_one_and_a_rotation_mends_a_lost_one() {
    let dir = tempfile::tempdir().unwrap();
    let service = start(dir.path(), &[]);
    let (added, _) = with_key(dir.path(), "the key that is lost", &["add", "default", NOWHERE]);
    let id = text(&added, "id");
    make(&service, "cannot_be_signed");
    let log = service.log.wait_for("what is wrong", |text| text.contains("cannot be signed"));
    assert!(log.contains("GALLEY_SECRET_KEY"), "{log}");
    let waiting = webhook(dir.path(), &["deliveries", "default", id]);
    assert_eq!((&waiting[0]["status"], &waiting[0]["attempts"]), (&json!("waiting"), &json!(0)));
    drop(service);

    let key = "the key from now on";
    let (rotated, _) = with_key(dir.path(), key, &["rotate", "default", id]);
    let secret = text(&rotated, "secret");
    let listener = Listener::start(dir.path(), &["--json", "--secret", secret]);
    webhook(dir.path(), &["change", "default", id, "--url", &listener.url]);
    let launch = Launch::new(dir.path()).flags(&NEARBY).variable("GALLEY_SECRET_KEY", key);
    let service = launch.start();
    make(&service, "is_signed");
    assert_eq!(listener.heard(1)[0]["verified"], true);
    assert_eq!(service.end().0.code(), Some(0));
}

#[test]
fn the_local_receiver_says_what_is_wrong_with_a_delivery() {
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
    assert_eq!(listener.post(&Request::new("POST", "/").body("no JSON")), 204);
    assert_eq!(listener.post(&signed("12")), 204);
    assert_eq!(listener.post(&signed("yesterday")), 204);
    let heard = listener.heard(3);
    assert_eq!(heard[0]["body"], "no JSON");
    for (heard, says) in heard.iter().zip(["webhook-id is missing", "old", "not a number"]) {
        assert_eq!(heard["verified"], false, "{heard}");
        assert!(text(heard, "reason").contains(says), "{says:?} in {heard}");
    }
    assert_eq!(heard[1]["type"], "template.created");
    assert_eq!(listener.process.end("TERM").code(), Some(0));

    // For people, and without a secret.
    let listener = Listener::start(dir.path(), &[]);
    let said = listener.process.log.wait_for("all of it", |text| text.contains("not checked"));
    assert!(said.contains("GALLEY_WEBHOOKS_ALLOW_PRIVATE=true galley webhook add"), "{said}");
    assert_eq!(listener.post(&signed("12")), 200);
    let said = listener.process.printed.wait_for("a delivery", |text| text.ends_with("\n\n"));
    for word in
        ["1970-01-01T00:00:12Z", "evt_1", "NOT VERIFIED: There is no secret", "\n  \"type\""]
    {
        assert!(said.contains(word), "{word:?} in {said}");
    }
    let said = refused(dir.path(), &["listen", "--secret", "whsec_short"]);
    assert!(
        said.contains("whsec_ followed by 24 to 64 bytes") && !said.contains("short"),
        "{said}"
    );
}

/// A token that could not be anywhere by chance.
const KNOWN: &str = "known-4d7Gk1Zt-to-both";

#[test]
fn a_receiver_for_meta_is_asked_signed_for_and_told_what_meta_would_tell() {
    let dir = tempfile::tempdir().unwrap();
    let service = start(dir.path(), &[]);
    let account = galley_json(dir.path(), &["account", "create", "waba", "--rulebook", "whatsapp"]);
    let secret = "0123456789abcdef0123456789abcdef";
    let listener =
        Listener::start(dir.path(), &["--json", "--verify-token", KNOWN, "--secret", secret]);
    let add = ["add", "waba", &listener.url, "--format"];
    for (arguments, says) in [
        (vec!["whatsapp"], "--verify-token is needed"),
        (vec!["whatsapp", "--verify-token", "wrong"], "with 403 instead of 200"),
        (
            vec!["whatsapp", "--verify-token", KNOWN, "--secret", "short"],
            "--secret is not a valid secret",
        ),
        (vec!["galley", "--verify-token", KNOWN], "belongs to the format"),
        (vec!["meta"], "one of galley, whatsapp"),
    ] {
        let said = refused(dir.path(), &[&add[..], &arguments, &NEARBY].concat());
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
    let said = refused(
        dir.path(),
        &["add", "default", NOWHERE, "--format", "whatsapp", "--verify-token", KNOWN],
    );
    assert!(said.contains("--format is only available to accounts with the rulebook"), "{said}");
    assert_eq!(webhook(dir.path(), &["list", "waba"]), json!([]));
    let flags = ["whatsapp", "--verify-token", KNOWN, "--secret", secret];
    let added = webhook(dir.path(), &[&add[..], &flags].concat());
    assert_eq!((&added["format"], &added["secret"]), (&json!("whatsapp"), &json!(secret)));
    let id = text(&added, "id");
    let move_it = ["change", "waba", id, "--url", &listener.url];
    assert!(
        refused(dir.path(), &[&move_it[..], &NEARBY].concat())
            .contains("--verify-token is required")
    );
    webhook(dir.path(), &[&move_it[..], &["--verify-token", KNOWN]].concat());

    let (waba, token) = (text(&account, "account_id"), text(&account, "token"));
    let template = json!({
        "name": "hello", "language": "en_US", "category": "UTILITY",
        "components": [{"type": "BODY", "text": "Hello"}],
    });
    let request = Request::new("POST", format!("/v23.0/{waba}/message_templates"))
        .header("Authorization", &format!("Bearer {token}"))
        .body(template.to_string());
    assert_eq!(service.send(&request).status, 200);
    let heard = &listener.heard(1)[0];
    assert_eq!((&heard["verified"], &heard["reason"]), (&json!(true), &Value::Null), "{heard}");
    assert_eq!(heard["type"], "message_template_status_update");
    let value = &heard["body"]["entry"][0]["changes"][0]["value"];
    assert_eq!(
        (&value["event"], &value["message_template_name"]),
        (&json!("APPROVED"), &json!("hello"))
    );
    let rotated = webhook(dir.path(), &["rotate", "waba", id]);
    assert_eq!(rotated["former_secret_until"], Value::Null, "{rotated}");

    let log = service.log.text();
    assert_eq!(service.end().0.code(), Some(0));
    let files = std::fs::read_dir(dir.path()).unwrap().map(|it| it.unwrap().path());
    for kept in files.map(|file| std::fs::read(file).unwrap()).chain([log.into_bytes()]) {
        let found = kept.windows(KNOWN.len()).any(|it| it == KNOWN.as_bytes());
        assert!(!found, "the token is kept nowhere");
    }
}
