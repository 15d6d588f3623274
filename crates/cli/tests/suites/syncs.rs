//! Checks that the service responds after the sync. `kill -9` cannot show what is on disk, so this
//! suite traces the system calls.

use std::path::Path;

use super::trace::{self, Call};
use crate::{
    http::Connection,
    service::{Launch, Service, document, galley_json, get, post, print_line},
};

const TRACED_CALLS: &str =
    "trace=read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg,pwrite64,fsync,fdatasync";
const SEQUENTIAL_CREATES: usize = 40;
const CONNECTIONS: usize = 8;
const CREATES_PER_CONNECTION: usize = 20;

fn create(connection: &mut Connection, name: &str) -> u16 {
    connection.send(&post(&document(name, "Traced.")).bytes()).unwrap();
    connection.read_response().unwrap().status
}

/// Creates templates one at a time, then concurrently. Returns their names.
fn create_templates(service: &Service) -> Vec<String> {
    let mut names: Vec<String> =
        (0..SEQUENTIAL_CREATES).map(|it| format!("sequential_{it}_")).collect();
    let mut connection = Connection::open(service.address).unwrap();
    for name in &names {
        assert_eq!(create(&mut connection, name), 201);
    }
    let concurrent = |number: usize| {
        (0..CREATES_PER_CONNECTION).map(move |it| format!("concurrent_{number}_{it}_"))
    };
    std::thread::scope(|scope| {
        for number in 0..CONNECTIONS {
            scope.spawn(move || {
                let mut connection = Connection::open(service.address).unwrap();
                for name in concurrent(number) {
                    assert_eq!(create(&mut connection, &name), 201);
                }
            });
        }
    });
    names.extend((0..CONNECTIONS).flat_map(concurrent));
    names
}

/// Checks the calls of one create: read the request, write its row to the log, sync the log, write
/// the response. Each must begin after the end of the one before.
fn check_create(name: &str, calls: &[Call]) -> Result<(), String> {
    let missing = |what: &str| format!("{name}: {what}");
    let read = calls.iter().find(|it| it.name.starts_with("re") && it.text.contains(name));
    let read = read.ok_or_else(|| missing("no request"))?;
    let responded = calls.iter().find(|it| {
        it.begun > read.ended && it.file() == read.file() && it.text.contains("HTTP/1.1 201")
    });
    let responded = responded.ok_or_else(|| missing("no response"))?;
    let of_log = |it: &&Call| it.file().ends_with("galley.db-wal") && it.succeeded();
    let written = calls
        .iter()
        .filter(of_log)
        .find(|it| it.name == "pwrite64" && it.begun > read.ended && it.text.contains(name));
    let written = written.ok_or_else(|| missing("its row was not written"))?;
    let synced = calls
        .iter()
        .filter(of_log)
        .find(|it| matches!(&*it.name, "fdatasync" | "fsync") && it.begun > written.ended);
    let synced = synced.ok_or_else(|| missing("no sync"))?;
    if synced.ended < responded.begun {
        Ok(())
    } else {
        Err(format!(
            "{name}: the response in line {} precedes the sync of lines {} to {}",
            responded.begun, synced.begun, synced.ended
        ))
    }
}

/// Runs the creates under strace. Returns the violations and the number of syncs.
fn trace_creates(dir: &Path, launch: Launch) -> (Vec<String>, usize) {
    let service = launch.start();
    let names = create_templates(&service);
    assert!(service.end().0.success());
    let calls = trace::calls(dir);
    let syncs = calls.iter().filter(|it| it.name == "fdatasync" || it.name == "fsync").count();
    let violations = names.iter().filter_map(|name| check_create(name, &calls).err()).collect();
    (violations, syncs)
}

#[test]
fn every_response_is_written_after_the_sync_of_its_row() {
    let dir = tempfile::tempdir().unwrap();
    let (violations, syncs) =
        trace_creates(dir.path(), trace::launch(dir.path(), &["-e", TRACED_CALLS]));
    assert!(violations.is_empty(), "{violations:#?}");
    let creates = SEQUENTIAL_CREATES + CONNECTIONS * CREATES_PER_CONNECTION;
    assert!(syncs >= SEQUENTIAL_CREATES, "{syncs} syncs for {creates} creates");
    print_line(format_args!("strace: {creates} creates, {syncs} syncs, no early response"));
}

/// Only debug builds have the switch.
#[cfg(debug_assertions)]
#[test]
fn the_trace_detects_responses_before_the_commit() {
    let dir = tempfile::tempdir().unwrap();
    drop(Launch::new(dir.path()).start());
    let launch = trace::launch(dir.path(), &["-e", TRACED_CALLS]);
    let (violations, _) =
        trace_creates(dir.path(), launch.variable("GALLEY_TEST_ACKNOWLEDGE", "before-commit"));
    assert!(violations.len() >= SEQUENTIAL_CREATES, "{violations:#?}");
}

#[test]
fn a_failed_sync_never_gets_a_201_and_the_service_recovers_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    drop(Launch::new(dir.path()).start());
    // Every third sync of a thread fails with a disk error.
    let inject = "inject=fdatasync,fsync:error=EIO:when=3+3";
    let service = trace::launch(dir.path(), &["-e", TRACED_CALLS, "-e", inject]).start();
    let (mut ids, mut refused) = (Vec::new(), 0);
    for number in 0..60 {
        let request = post(&document(&format!("row_{number}_"), "Synced or not."));
        let request = request.header("Idempotency-Key", &format!("row-{number}"));
        let mut response = service.send(&request);
        for _ in 0..4 {
            if response.status == 201 {
                break;
            }
            assert_eq!(response.status, 503, "{response:?}");
            refused += 1;
            response = service.send(&request);
        }
        assert_eq!(response.status, 201, "{response:?}");
        ids.push(response.json()["id"].as_str().unwrap().to_owned());
    }
    assert!(
        refused >= 10,
        "only {refused} creates were refused: the injected faults did not occur"
    );
    drop(service);

    let service = Launch::new(dir.path()).start();
    let mut connection = Connection::open(service.address).unwrap();
    for (number, id) in ids.iter().enumerate() {
        connection.send(&get(id).bytes()).unwrap();
        let response = connection.read_response().unwrap();
        assert_eq!(response.json()["name"], format!("row_{number}_"), "{response:?}");
    }
    let findings = galley_json(dir.path(), &["doctor"]);
    let templates = findings.as_array().unwrap().iter().find(|it| it["subject"] == "templates");
    assert_eq!(templates.unwrap()["seen"], ids.len().to_string());
}
