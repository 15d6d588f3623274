//! `galley events`: looking at what happened, and following what happens.

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

fn make(service: &Service, name: &str) {
    let made = service.create(&document(name, "Hello!"));
    assert_eq!(made.status, 201, "{made:?}");
}

/// One event a line.
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
fn the_newest_events_are_shown_or_those_behind_a_number() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    for name in ["one", "two", "three"] {
        make(&service, name);
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
    for word in ["3 ", "template.created", "three", "APPROVED"] {
        assert!(rows[3].contains(word), "{word:?} in {table}");
    }
}

#[test]
fn whoever_comes_too_late_or_too_early_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    for name in ["one", "two", "three"] {
        make(&service, name);
    }
    let said = refused(dir.path(), &["--after", "4"]);
    assert!(said.contains("no event 4 yet") && said.contains("number 3"), "{said}");
    let said = refused(dir.path(), &["--after", "1", "--limit", "1", "--follow"]);
    assert!(said.contains("either --after or --limit"), "{said}");

    drop(service);
    let file = rusqlite::Connection::open(dir.path().join("galley.db")).unwrap();
    assert_eq!(file.execute("DELETE FROM event WHERE seq < 3", []).unwrap(), 2);
    drop(file);
    let said = refused(dir.path(), &["--after", "0"]);
    for word in ["event 1 is not kept", "number 3", "--after 2"] {
        assert!(said.contains(word), "{word:?} in {said}");
    }
    // Whoever names no number gets what there is.
    assert_eq!(events(&shown(dir.path(), &["--json"]))[0]["seq"], 3);
}

#[test]
fn what_happens_meanwhile_is_shown_until_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    make(&service, "before");
    for signal in ["INT", "TERM"] {
        let following = ["events", "default", "--follow", "--limit", "1", "--json"];
        let following = Background::start(dir.path(), &following);
        following.printed.wait_for("the newest event", |text| text.contains('\n'));
        make(&service, &format!("before_{signal}"));
        let name = format!("before_{signal}\"");
        let said = following
            .printed
            .wait_for("what came", |text| text.contains(&name) && text.ends_with('\n'));
        let seqs: Vec<u64> = events(&said).iter().map(|it| it["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs.len(), 2, "{said}");
        assert_eq!(seqs[0] + 1, seqs[1]);
        assert_eq!(following.end(signal).code(), Some(0));
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    make(&service, "first");
    let mut command = command(GALLEY);
    command.current_dir(dir.path()).args(["events", "default", "--follow"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("first") {
        assert!(reader.read_line(&mut line).unwrap() > 0, "{line}");
    }
    drop(reader);
    make(&service, "second");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}
