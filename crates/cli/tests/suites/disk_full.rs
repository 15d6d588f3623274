//! A full disk: writes are refused as such, reads and health go on, and writes go on by themselves
//! when there is room again. Needs root, for a small file system of its own.

use std::{
    fs::File,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    http::{Answer, Request},
    service::{Launch, Service, command, document, galley_json, tell, until},
};

/// A file system in memory, taken down when it is dropped.
struct Disk {
    dir: TempDir,
}

impl Disk {
    fn mount(megabytes: u32) -> Self {
        let disk = Self { dir: tempfile::tempdir().unwrap() };
        disk.run("mount", &["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"]);
        disk
    }

    fn grow(&self, megabytes: u32) {
        self.run("mount", &["-o", &format!("remount,size={megabytes}m")]);
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let status = command(program).args(arguments).arg(self.path()).status().unwrap();
        assert!(status.success(), "{program} {arguments:?}: {status}; this suite needs root");
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Fills all the room there is; answers the file that took it.
    fn fill(&self) -> PathBuf {
        let path = self.path().join("ballast");
        let mut ballast = File::create(&path).unwrap();
        for size in [64 * 1_024, 1] {
            let chunk = vec![0; size];
            loop {
                match ballast.write_all(&chunk) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let umount = command("umount").arg("-l").arg(self.path()).status();
        assert!(std::thread::panicking() || umount.unwrap().success());
    }
}

/// What was answered to creates: the ids of those kept, the names of those refused.
#[derive(Default)]
struct Tally {
    next: usize,
    kept: Vec<(String, String)>,
    refused: Vec<String>,
}

impl Tally {
    /// Creates one template of about `size` bytes; demands 201, or 503 for want of room.
    fn create(&mut self, service: &Service, size: usize) -> Answer {
        let name = format!("row_{}", self.next);
        self.next += 1;
        let answer = service.create(&document(&name, &"\u{20ac}".repeat(size / 3)));
        if answer.status == 201 {
            self.kept.push((answer.json()["id"].as_str().unwrap().to_owned(), name));
        } else {
            answer.is_problem(503, "storage-full");
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
            self.refused.push(name);
        }
        answer
    }

    /// Everything acknowledged is there and reads back.
    fn check_kept(&self, service: &Service) {
        for (id, name) in &self.kept {
            let answer = service.read(id);
            assert_eq!(answer.status, 200, "{name}: {answer:?}");
            assert_eq!(answer.json()["name"], **name);
        }
    }
}

/// Health and reads go on while nothing can be written.
fn check_alive(service: &Service, tally: &Tally) {
    assert_eq!(service.send(&Request::get("/healthz")).status, 200);
    assert_eq!(service.send(&Request::get("/metrics")).status, 200);
    tally.check_kept(service);
}

/// Writes go on without a restart, nothing acknowledged is lost, and nothing refused was kept.
fn check_recovered(disk: &Disk, service: Service, mut tally: Tally) {
    until(Duration::from_secs(10), "writes go on", || tally.create(&service, 300).status == 201);
    for _ in 0..50 {
        assert_eq!(tally.create(&service, 300).status, 201);
    }
    tally.check_kept(&service);
    for name in &tally.refused {
        let again = service.create(&document(name, "Refused before."));
        assert_eq!(again.status, 201, "{name} was kept although it was refused: {again:?}");
    }
    drop(service);
    let service = Launch::new(disk.path()).start();
    tally.check_kept(&service);
    let findings = galley_json(disk.path(), &["doctor"]);
    assert!(findings.as_array().unwrap().iter().all(|it| it["verdict"] == "good"), "{findings}");
}

#[test]
fn a_disk_that_something_else_fills_stops_writes_and_nothing_more() {
    let disk = Disk::mount(8);
    let service = Launch::new(disk.path()).start();
    let mut tally = Tally::default();
    for _ in 0..20 {
        assert_eq!(tally.create(&service, 300).status, 201);
    }
    let ballast = disk.fill();
    while tally.refused.len() < 10 {
        tally.create(&service, 3_000);
        assert!(tally.kept.len() < 200, "writes go on although there is no room");
    }
    check_alive(&service, &tally);
    std::fs::remove_file(ballast).unwrap();
    check_recovered(&disk, service, tally);
}

#[test]
fn a_disk_that_the_service_itself_fills_stops_writes_and_nothing_more() {
    let disk = Disk::mount(40);
    let service = Launch::new(disk.path()).flags(&["--set", "access_log=false"]).start();
    let mut tally = Tally::default();
    while tally.refused.len() < 10 {
        tally.create(&service, 12_000);
    }
    tell(format_args!("disk full: {} kept until it was", tally.kept.len()));
    check_alive(&service, &tally);
    disk.grow(80);
    check_recovered(&disk, service, tally);
}
