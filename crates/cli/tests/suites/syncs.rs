//! No answer before the sync: `kill -9` says nothing about what the disk has, so this watches the
//! system calls themselves.

use std::path::Path;

use super::trace::{self, Call};
use crate::{
    http::Connection,
    service::{Launch, Service, document, galley_json, get, post, tell},
};

const WATCHED: &str =
    "trace=read,readv,recvfrom,recvmsg,write,writev,sendto,sendmsg,pwrite64,fsync,fdatasync";
const SEQUENTIAL: usize = 40;
const CONNECTIONS: usize = 8;
const EACH: usize = 20;

fn create(connection: &mut Connection, name: &str) -> u16 {
    connection.send(&post(&document(name, "Watched.")).bytes()).unwrap();
    connection.answer().unwrap().status
}

/// Creates one after the other, then several at once; answers the names.
fn work(service: &Service) -> Vec<String> {
    let mut names: Vec<String> = (0..SEQUENTIAL).map(|it| format!("alone_{it}_")).collect();
    let mut alone = Connection::open(service.address).unwrap();
    for name in &names {
        assert_eq!(create(&mut alone, name), 201);
    }
    let together = |number: usize| (0..EACH).map(move |it| format!("together_{number}_{it}_"));
    std::thread::scope(|scope| {
        for number in 0..CONNECTIONS {
            scope.spawn(move || {
                let mut connection = Connection::open(service.address).unwrap();
                for name in together(number) {
                    assert_eq!(create(&mut connection, &name), 201);
                }
            });
        }
    });
    names.extend((0..CONNECTIONS).flat_map(together));
    names
}

/// Demands, for one create: request read, its row written to the log, the log synced, answered;
/// each only when the one before had ended.
fn follow(name: &str, calls: &[Call]) -> Result<(), String> {
    let missing = |what: &str| format!("{name}: {what}");
    let read = calls.iter().find(|it| it.name.starts_with("re") && it.text.contains(name));
    let read = read.ok_or_else(|| missing("no request"))?;
    let answered = calls.iter().find(|it| {
        it.begun > read.ended && it.file() == read.file() && it.text.contains("HTTP/1.1 201")
    });
    let answered = answered.ok_or_else(|| missing("no answer"))?;
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
    if synced.ended < answered.begun {
        Ok(())
    } else {
        Err(format!(
            "{name}: answered in line {} before the sync of lines {} to {}",
            answered.begun, synced.begun, synced.ended
        ))
    }
}

/// What is wrong, create by create, and how many syncs there were.
fn watch(dir: &Path, launch: Launch) -> (Vec<String>, usize) {
    let service = launch.start();
    let names = work(&service);
    assert!(service.end().0.success());
    let calls = trace::calls(dir);
    let syncs = calls.iter().filter(|it| it.name == "fdatasync" || it.name == "fsync").count();
    let faults = names.iter().filter_map(|name| follow(name, &calls).err()).collect();
    (faults, syncs)
}

#[test]
fn every_answer_is_written_after_the_sync_of_its_own_row() {
    let dir = tempfile::tempdir().unwrap();
    let (faults, syncs) = watch(dir.path(), trace::launch(dir.path(), &["-e", WATCHED]));
    assert!(faults.is_empty(), "{faults:#?}");
    let creates = SEQUENTIAL + CONNECTIONS * EACH;
    assert!(syncs >= SEQUENTIAL, "{syncs} syncs for {creates} creates");
    tell(format_args!("strace: {creates} creates, {syncs} syncs, none answered early"));
}

/// The switch is there in debug builds only.
#[cfg(debug_assertions)]
#[test]
fn answers_before_the_commit_are_found_out() {
    let dir = tempfile::tempdir().unwrap();
    drop(Launch::new(dir.path()).start());
    let launch = trace::launch(dir.path(), &["-e", WATCHED]);
    let (faults, _) =
        watch(dir.path(), launch.variable("GALLEY_TEST_ACKNOWLEDGE", "before-commit"));
    assert!(faults.len() >= SEQUENTIAL, "{faults:#?}");
}

#[test]
fn a_sync_that_fails_is_never_answered_201_and_the_service_recovers_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    drop(Launch::new(dir.path()).start());
    // Every third sync of a thread reports an error of the disk.
    let inject = "inject=fdatasync,fsync:error=EIO:when=3+3";
    let service = trace::launch(dir.path(), &["-e", WATCHED, "-e", inject]).start();
    let (mut ids, mut refused) = (Vec::new(), 0);
    for number in 0..60 {
        let request = post(&document(&format!("row_{number}_"), "Synced or not."));
        let request = request.header("Idempotency-Key", &format!("row-{number}"));
        let mut answer = service.send(&request);
        for _ in 0..4 {
            if answer.status == 201 {
                break;
            }
            assert_eq!(answer.status, 503, "{answer:?}");
            refused += 1;
            answer = service.send(&request);
        }
        assert_eq!(answer.status, 201, "{answer:?}");
        ids.push(answer.json()["id"].as_str().unwrap().to_owned());
    }
    assert!(refused >= 10, "only {refused} were refused: the faults did not happen");
    drop(service);

    let service = Launch::new(dir.path()).start();
    let mut connection = Connection::open(service.address).unwrap();
    for (number, id) in ids.iter().enumerate() {
        connection.send(&get(id).bytes()).unwrap();
        let answer = connection.answer().unwrap();
        assert_eq!(answer.json()["name"], format!("row_{number}_"), "{answer:?}");
    }
    let findings = galley_json(dir.path(), &["doctor"]);
    let templates = findings.as_array().unwrap().iter().find(|it| it["subject"] == "templates");
    assert_eq!(templates.unwrap()["seen"], ids.len().to_string());
}
