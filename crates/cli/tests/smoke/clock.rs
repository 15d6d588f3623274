//! A clock that has jumped ahead: the service deletes nothing until an operator confirms the time.

use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;

use crate::{
    http::{Request, TIMEOUT},
    service::{Launch, Service, galley, until},
};

fn open(dir: &Path) -> Connection {
    Connection::open(dir.join("galley.db")).unwrap()
}

fn count_events(dir: &Path) -> u32 {
    open(dir).query_row("SELECT count(*) FROM event", [], |row| row.get(0)).unwrap()
}

/// What the doctor sees of the clock. Its other findings do not matter here: the tests change times
/// without the checksums of their rows.
fn clock(dir: &Path, flags: &[&str]) -> String {
    let output = galley(dir, &[&["doctor", "--json"], flags].concat());
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = findings.as_array().unwrap().iter().find(|it| it["subject"] == "clock").unwrap();
    assert_eq!(found["verdict"], "good");
    found["seen"].as_str().unwrap().to_owned()
}

fn readiness(service: &Service) -> Value {
    service.send(&Request::get("/readyz")).json()
}

#[test]
fn a_start_with_the_clock_ahead_deletes_nothing_until_the_time_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    for name in ["one", "two", "three"] {
        service.assert_works(name);
    }
    assert!(service.end().0.success());
    assert_eq!(clock(dir.path(), &[]), "trusted");

    // For the next start, the clock is 45 days ahead.
    let move_back = "UPDATE event SET at = at - 45 * 86400000; \
                     UPDATE clock_guard SET at = at - 45 * 86400000";
    open(dir.path()).execute_batch(move_back).unwrap();
    let service = Launch::new(dir.path()).start();
    service.log.wait_for("the jump", |log| log.contains("galley doctor --accept-clock"));
    assert_eq!(readiness(&service)["warnings"][0]["name"], "clock");
    let seen = clock(dir.path(), &[]);
    assert!(seen.contains("nothing is deleted") && seen.contains("--accept-clock"), "{seen}");
    assert_eq!(clock(dir.path(), &["--accept-clock"]), "trusted");
    assert_eq!(count_events(dir.path()), 3);
    assert!(service.end().0.success());

    let service = Launch::new(dir.path()).start();
    until(TIMEOUT, "the expired events are deleted", || count_events(dir.path()) == 0);
    assert!(readiness(&service)["warnings"].is_null());
}
