//! Copies taken while the service runs, and what `galley doctor` says of good and bad stores.

use std::{
    path::Path,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::channel,
    },
};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::{
    http::BOUND,
    service::{Launch, document, galley, galley_json},
};

/// What the doctor says of each subject, and whether he is content.
fn examined(dir: &Path) -> (Vec<(String, String)>, bool) {
    let output = galley(dir, &["doctor", "--json"]);
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let rows = rows.as_array().into_iter().flatten();
    let text = |row: &Value, member: &str| row[member].as_str().unwrap().to_owned();
    let rows = rows.map(|row| (text(row, "subject"), text(row, "verdict"))).collect();
    (rows, output.status.success())
}

/// A store with some templates, and nobody at work on it.
fn filled(dir: &Path) {
    let service = Launch::new(dir).start();
    for number in 0..20 {
        let made = service.create(&document(&format!("kept_{number}"), "Kept."));
        assert_eq!(made.status, 201, "{made:?}");
    }
    assert!(service.end().0.success());
}

#[test]
fn a_copy_taken_while_serving_opens_and_holds_what_was_acknowledged_before() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let enough = AtomicBool::new(false);
    let (acknowledge, acknowledged) = channel();
    let copies = tempfile::tempdir().unwrap();
    let known = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                let answer = service.create(&document(&format!("kept_{number}"), "Kept."));
                assert_eq!(answer.status, 201, "{answer:?}");
                acknowledge.send(number).unwrap();
                if enough.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let known: u32 = (0..20).map(|_| acknowledged.recv_timeout(BOUND).unwrap()).max().unwrap();
        let path = copies.path().join("galley.db");
        let told = galley_json(dir.path(), &["backup", path.to_str().unwrap()]);
        assert_eq!(told["bytes"], path.metadata().unwrap().len());
        enough.store(true, Ordering::Relaxed);
        known
    });
    let (rows, good) = examined(copies.path());
    assert!(good, "{rows:?}");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let copy = Connection::open_with_flags(copies.path().join("galley.db"), flags).unwrap();
    for number in 0..=known {
        let query = "SELECT count(*) FROM template WHERE name = ?1";
        let found: u32 =
            copy.query_row(query, [format!("kept_{number}")], |row| row.get(0)).unwrap();
        assert_eq!(found, 1, "kept_{number} of {known}");
    }
    drop(copy);
    let restored = Launch::new(copies.path()).start();
    restored.is_well("a_copy_can_be_served");
}

#[test]
fn a_copy_never_overwrites_a_file() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    std::fs::write(dir.path().join("precious"), "mine").unwrap();
    let output = galley(dir.path(), &["backup", "precious"]);
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("already exists"));
    assert_eq!(std::fs::read(dir.path().join("precious")).unwrap(), b"mine");
}

#[test]
fn the_doctor_is_content_with_a_good_store_and_needs_one() {
    let dir = tempfile::tempdir().unwrap();
    let output = galley(dir.path(), &["doctor"]);
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("there is no store"));
    assert!(!dir.path().join("galley.db").exists(), "looking makes nothing");
    filled(dir.path());
    let (rows, good) = examined(dir.path());
    assert!(good && rows.len() >= 5, "{rows:?}");
    assert!(rows.iter().all(|(_, verdict)| verdict == "good"), "{rows:?}");
}

#[test]
fn the_doctor_notices_an_index_that_has_lost_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let path = dir.path().join("galley.db");
    let place = |query: &str| -> usize {
        let store = Connection::open(&path).unwrap();
        store.query_row(query, [], |row| row.get::<_, u32>(0)).unwrap() as usize
    };
    let size = place("PRAGMA page_size");
    let page =
        place("SELECT rootpage FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'template'");
    let mut bytes = std::fs::read(&path).unwrap();
    let page = &mut bytes[(page - 1) * size..page * size];
    assert_eq!(page[0], 10, "a leaf of an index");
    page[3..5].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let (rows, good) = examined(dir.path());
    assert!(!good, "{rows:?}");
    assert!(rows.contains(&("integrity".to_owned(), "BAD".to_owned())), "{rows:?}");
}

#[test]
fn the_doctor_notices_events_that_nobody_counted() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path());
    let store = Connection::open(dir.path().join("galley.db")).unwrap();
    assert_eq!(store.execute("UPDATE account SET last_seq = 3", []).unwrap(), 1);
    drop(store);
    let (rows, good) = examined(dir.path());
    assert!(!good, "{rows:?}");
    assert!(rows.contains(&("event numbers".to_owned(), "BAD".to_owned())), "{rows:?}");
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_as_it_is() {
    for content in [&b"not a database, and long enough to have been one"[..], &[0xa5; 8_192]] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        std::fs::write(&path, content).unwrap();
        for arguments in [&["doctor"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let output = galley(dir.path(), arguments);
            let complaint = String::from_utf8(output.stderr).unwrap();
            assert!(!output.status.success(), "{arguments:?}");
            assert!(complaint.contains("galley.db"), "{complaint}");
            assert!(!complaint.contains("panicked"), "{complaint}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
}
