//! `galley backup` of a running service, and `galley doctor` on healthy and damaged stores.

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
    http::TIMEOUT,
    service::{Launch, document, galley, galley_json},
};

/// The verdict of `galley doctor` on each subject, and whether it succeeded.
fn run_doctor(dir: &Path) -> (Vec<(String, String)>, bool) {
    let output = galley(dir, &["doctor", "--json"]);
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let rows = rows.as_array().into_iter().flatten();
    let text = |row: &Value, member: &str| row[member].as_str().unwrap().to_owned();
    let rows = rows.map(|row| (text(row, "subject"), text(row, "verdict"))).collect();
    (rows, output.status.success())
}

/// Creates a store with 20 templates and stops the service.
fn create_store(dir: &Path) {
    let service = Launch::new(dir).start();
    for number in 0..20 {
        let created = service.create(&document(&format!("kept_{number}"), "Kept."));
        assert_eq!(created.status, 201, "{created:?}");
    }
    assert!(service.end().0.success());
}

#[test]
fn a_backup_of_a_running_service_contains_everything_acknowledged_before() {
    let dir = tempfile::tempdir().unwrap();
    let service = Launch::new(dir.path()).start();
    let stop = AtomicBool::new(false);
    let (acknowledge, acknowledged) = channel();
    let copies = tempfile::tempdir().unwrap();
    let newest = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                let response = service.create(&document(&format!("kept_{number}"), "Kept."));
                assert_eq!(response.status, 201, "{response:?}");
                acknowledge.send(number).unwrap();
                if stop.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let newest: u32 =
            (0..20).map(|_| acknowledged.recv_timeout(TIMEOUT).unwrap()).max().unwrap();
        let path = copies.path().join("galley.db");
        let report = galley_json(dir.path(), &["backup", path.to_str().unwrap()]);
        assert_eq!(report["bytes"], path.metadata().unwrap().len());
        stop.store(true, Ordering::Relaxed);
        newest
    });
    let (rows, good) = run_doctor(copies.path());
    assert!(good, "{rows:?}");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let copy = Connection::open_with_flags(copies.path().join("galley.db"), flags).unwrap();
    for number in 0..=newest {
        let query = "SELECT count(*) FROM template WHERE name = ?1";
        let found: u32 =
            copy.query_row(query, [format!("kept_{number}")], |row| row.get(0)).unwrap();
        assert_eq!(found, 1, "kept_{number} of {newest}");
    }
    drop(copy);
    let restored = Launch::new(copies.path()).start();
    restored.assert_works("served_from_the_backup");
}

#[test]
fn a_backup_never_overwrites_a_file() {
    let dir = tempfile::tempdir().unwrap();
    create_store(dir.path());
    std::fs::write(dir.path().join("precious"), "mine").unwrap();
    let output = galley(dir.path(), &["backup", "precious"]);
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("already exists"));
    assert_eq!(std::fs::read(dir.path().join("precious")).unwrap(), b"mine");
}

#[test]
fn doctor_accepts_a_healthy_store_and_fails_without_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let output = galley(dir.path(), &["doctor"]);
    assert!(!output.status.success());
    assert!(String::from_utf8(output.stderr).unwrap().contains("there is no store"));
    assert!(!dir.path().join("galley.db").exists(), "doctor creates no store");
    create_store(dir.path());
    let (rows, good) = run_doctor(dir.path());
    assert!(good && rows.len() >= 5, "{rows:?}");
    assert!(rows.iter().all(|(_, verdict)| verdict == "good"), "{rows:?}");
}

#[test]
fn doctor_detects_an_index_without_rows() {
    let dir = tempfile::tempdir().unwrap();
    create_store(dir.path());
    let path = dir.path().join("galley.db");
    let number = |query: &str| -> usize {
        let store = Connection::open(&path).unwrap();
        store.query_row(query, [], |row| row.get::<_, u32>(0)).unwrap() as usize
    };
    let size = number("PRAGMA page_size");
    let page =
        number("SELECT rootpage FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'template'");
    let mut bytes = std::fs::read(&path).unwrap();
    let page = &mut bytes[(page - 1) * size..page * size];
    assert_eq!(page[0], 10, "the page is an index leaf");
    page[3..5].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let (rows, good) = run_doctor(dir.path());
    assert!(!good, "{rows:?}");
    assert!(rows.contains(&("integrity".to_owned(), "BAD".to_owned())), "{rows:?}");
}

#[test]
fn doctor_detects_events_beyond_the_last_number_of_their_account() {
    let dir = tempfile::tempdir().unwrap();
    create_store(dir.path());
    let store = Connection::open(dir.path().join("galley.db")).unwrap();
    assert_eq!(store.execute("UPDATE account SET last_seq = 3", []).unwrap(), 1);
    drop(store);
    let (rows, good) = run_doctor(dir.path());
    assert!(!good, "{rows:?}");
    assert!(rows.contains(&("event numbers".to_owned(), "BAD".to_owned())), "{rows:?}");
}

#[test]
fn a_file_that_is_not_a_store_is_refused_and_unchanged() {
    for content in [&b"not a database, only a text with a few more words"[..], &[0xa5; 8_192]] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        std::fs::write(&path, content).unwrap();
        for arguments in [&["doctor"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let output = galley(dir.path(), arguments);
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert!(!output.status.success(), "{arguments:?}");
            assert!(stderr.contains("galley.db"), "{stderr}");
            assert!(!stderr.contains("panicked"), "{stderr}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), content);
    }
}
