//! `galley events`: shows past events and follows new ones.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::Stdio,
};

use serde_json::{Value, json};

use crate::{
    http::Request,
    service::{
        Background, GALLEY, KEY, Launch, PHONE, Service, authorized, command, document, galley,
    },
};

fn create(service: &Service, name: &str) {
    let created = service.create(&document(name, "Hello!"));
    assert_eq!(created.status, 201, "{created:?}");
}

/// Parses one event per line.
#[track_caller]
fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn shown(dir: &Path, arguments: &[&str]) -> String {
    let output = galley(dir, &[&["events", "default"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(dir: &Path, arguments: &[&str]) -> String {
    let output = galley(dir, &[&["events", "default"], arguments].concat());
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn events_shows_the_newest_events_or_those_after_a_number() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    for name in ["one", "two", "three"] {
        create(&service, name);
    }
    let names = |arguments: &[&str]| -> Vec<String> {
        let events = events(&shown(dir.path(), &[arguments, &["--json"]].concat()));
        events.iter().map(|it| it["data"]["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&[]), ["one", "two", "three"]);
    assert_eq!(names(&["--limit", "2"]), ["two", "three"]);
    assert_eq!(names(&["--after", "0", "--limit", "1"]), ["one"]);
    assert_eq!(names(&["--after", "2"]), ["three"]);
    assert_eq!(names(&["--after", "3"]), [""; 0]);

    let feed = Request::get(format!("/api/v1.0/{PHONE}/{KEY}/events"));
    let feed = service.send(&authorized(feed)).json();
    assert_eq!(feed["data"], json!(events(&shown(dir.path(), &["--json"]))));

    let table = shown(dir.path(), &[]);
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows.len(), 4, "{table}");
    assert!(rows[0].starts_with("SEQ ") && rows[0].ends_with("REASON"), "{table}");
    for expected in ["3 ", "template.created", "three", "APPROVED"] {
        assert!(rows[3].contains(expected), "{expected:?} in {table}");
    }
}

#[test]
fn an_expired_or_future_cursor_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    for name in ["one", "two", "three"] {
        create(&service, name);
    }
    let output = refused(dir.path(), &["--after", "4"]);
    assert!(
        output.contains("no event 4 yet") && output.contains("the newest event is 3"),
        "{output}"
    );
    let output = refused(dir.path(), &["--after", "1", "--limit", "1", "--follow"]);
    assert!(output.contains("--after or --limit, not both"), "{output}");

    drop(service);
    let file = rusqlite::Connection::open(dir.path().join("galley.db")).unwrap();
    assert_eq!(file.execute("DELETE FROM event WHERE seq < 3", []).unwrap(), 2);
    drop(file);
    let output = refused(dir.path(), &["--after", "0"]);
    for expected in ["event 1 has expired", "the oldest event is 3", "--after 2"] {
        assert!(output.contains(expected), "{expected:?} in {output}");
    }
    // Without a number, the remaining events are shown.
    assert_eq!(events(&shown(dir.path(), &["--json"]))[0]["seq"], 3);
}

#[test]
fn follow_shows_new_events_until_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    create(&service, "before");
    for signal in ["INT", "TERM"] {
        let follower = ["events", "default", "--follow", "--limit", "1", "--json"];
        let follower = Background::start(dir.path(), &follower);
        follower.printed.wait_for("the newest event", |text| text.contains('\n'));
        create(&service, &format!("before_{signal}"));
        let name = format!("before_{signal}\"");
        let output = follower
            .printed
            .wait_for("the new event", |text| text.contains(&name) && text.ends_with('\n'));
        let seqs: Vec<u64> = events(&output).iter().map(|it| it["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs.len(), 2, "{output}");
        assert_eq!(seqs[0] + 1, seqs[1]);
        assert_eq!(follower.end(signal).code(), Some(0));
    }
}

#[test]
fn follow_exits_without_an_error_when_its_output_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    create(&service, "first");
    let mut command = command(GALLEY);
    command.current_dir(dir.path()).args(["events", "default", "--follow"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("first") {
        assert!(reader.read_line(&mut line).unwrap() > 0, "{line}");
    }
    drop(reader);
    create(&service, "second");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut output = String::new();
    child.stderr.take().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!(output, "");
}

#[test]
fn an_event_and_an_audit_entry_show_their_token_and_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).flags(&["--set", "webhooks_allow_private=true"]).start();
    create(&service, "one");
    let shown = shown(dir.path(), &[]);
    assert!(shown.contains("token 2 (first token)"), "{shown}");
    let register = Request::new("POST", format!("/api/v1.0/{PHONE}/{KEY}/webhooks"));
    let register = authorized(register).body(json!({"url": "http://127.0.0.1:9/"}).to_string());
    assert_eq!(service.send(&register).status, 201);
    let audit = galley(dir.path(), &["audit", "default"]);
    let audit = String::from_utf8(audit.stdout).unwrap();
    let line = audit.lines().find(|line| line.contains("webhook.created")).unwrap();
    assert!(line.contains("token 2  first token"), "{audit}");
}
