//! A full disk: the service refuses writes with `storage-full`, continues to serve reads and health
//! checks, and accepts writes again once there is space. Commands of the operator and a restart use
//! the reserve. Needs root to mount a small file system.

use std::{
    fs::File,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    http::{Request, Response},
    service::{Launch, Service, command, document, galley, galley_json, print_line, until},
};

/// A file system in memory, unmounted on drop.
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

    /// Fills the remaining space. Returns the path of the file that occupies it.
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

/// The results of the creates: ids and names of the acknowledged ones, names of the refused ones.
#[derive(Default)]
struct Creates {
    next: usize,
    acknowledged: Vec<(String, String)>,
    refused: Vec<String>,
}

impl Creates {
    /// Creates a template of about `size` bytes. The response must be 201, or 503 `storage-full`.
    fn create(&mut self, service: &Service, size: usize) -> Response {
        let name = format!("row_{}", self.next);
        self.next += 1;
        let response = service.create(&document(&name, &"\u{20ac}".repeat(size / 3)));
        if response.status == 201 {
            self.acknowledged.push((response.json()["id"].as_str().unwrap().to_owned(), name));
        } else {
            response.is_problem(503, "storage-full");
            assert!(response.header("retry-after").is_some(), "{response:?}");
            self.refused.push(name);
        }
        response
    }

    /// Checks that every acknowledged template can be read.
    fn check_acknowledged(&self, service: &Service) {
        for (id, name) in &self.acknowledged {
            let response = service.read(id);
            assert_eq!(response.status, 200, "{name}: {response:?}");
            assert_eq!(response.json()["name"], **name);
        }
    }
}

/// A service whose free-space mark suits a small disk.
fn launch(disk: &Disk) -> Launch {
    Launch::new(disk.path()).flags(&["--set", "min_free_disk_mib=6"])
}

/// Checks that health checks, metrics and reads work while the disk is full.
fn check_reads(service: &Service, creates: &Creates) {
    assert_eq!(service.send(&Request::get("/healthz")).status, 200);
    assert_eq!(service.send(&Request::get("/metrics")).status, 200);
    service.send(&Request::get("/readyz")).is_problem(503, "storage-full");
    creates.check_acknowledged(service);
}

/// Checks that writes succeed again without a restart, that every acknowledged template exists, and
/// that no refused one was stored.
fn check_recovered(disk: &Disk, service: Service, mut creates: Creates) {
    until(Duration::from_secs(10), "writes succeed again", || {
        creates.create(&service, 300).status == 201
    });
    for _ in 0..50 {
        assert_eq!(creates.create(&service, 300).status, 201);
    }
    creates.check_acknowledged(&service);
    for name in &creates.refused {
        let again = service.create(&document(name, "Refused before."));
        assert_eq!(again.status, 201, "{name} was stored although it was refused: {again:?}");
    }
    drop(service);
    let service = launch(disk).start();
    creates.check_acknowledged(&service);
    let findings = galley_json(disk.path(), &["doctor"]);
    assert!(findings.as_array().unwrap().iter().all(|it| it["verdict"] == "good"), "{findings}");
}

#[test]
fn a_disk_filled_by_another_process_stops_only_writes() {
    let disk = Disk::mount(24);
    let service = launch(&disk).start();
    let mut creates = Creates::default();
    for _ in 0..20 {
        assert_eq!(creates.create(&service, 300).status, 201);
    }
    let ballast = disk.fill();
    while creates.refused.len() < 10 {
        creates.create(&service, 3_000);
        assert!(creates.acknowledged.len() < 200, "writes succeed on a full disk");
    }
    check_reads(&service, &creates);
    std::fs::remove_file(ballast).unwrap();
    check_recovered(&disk, service, creates);
}

#[test]
fn a_disk_filled_by_the_service_itself_stops_only_writes() {
    let disk = Disk::mount(46);
    let service = launch(&disk).flags(&["--set", "access_log=false"]).start();
    let mut creates = Creates::default();
    while creates.refused.len() < 10 {
        creates.create(&service, 12_000);
    }
    print_line(format_args!("disk full after {} creates", creates.acknowledged.len()));
    check_reads(&service, &creates);
    disk.grow(80);
    check_recovered(&disk, service, creates);
}

/// Runs a command of the operator, which must succeed.
fn run(disk: &Disk, arguments: &[&str]) {
    let output = galley(disk.path(), arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {message}");
}

#[test]
fn on_a_full_disk_the_operator_can_lock_callers_out_and_restart_the_service() {
    let disk = Disk::mount(24);
    let service = launch(&disk).start();
    let mut creates = Creates::default();
    for _ in 0..20 {
        assert_eq!(creates.create(&service, 300).status, 201);
    }
    let tokens = galley_json(disk.path(), &["token", "list", "default"]);
    let token = tokens[0]["id"].to_string();
    disk.fill();
    run(&disk, &["account", "limit", "default", "250"]);
    run(&disk, &["account", "disable", "default"]);
    until(Duration::from_secs(5), "the account is disabled", || {
        service.read(&creates.acknowledged[0].0).status == 403
    });
    run(&disk, &["account", "enable", "default"]);
    assert!(service.end().0.success());
    // A restart on the full disk serves reads and refuses writes.
    let service = launch(&disk).start_listening();
    until(Duration::from_secs(5), "the account is enabled", || {
        service.read(&creates.acknowledged[0].0).status == 200
    });
    creates.check_acknowledged(&service);
    assert_eq!(creates.create(&service, 300).status, 503);
    run(&disk, &["token", "revoke", token.trim_matches('"')]);
    until(Duration::from_secs(5), "the token is revoked", || {
        service.read(&creates.acknowledged[0].0).status == 401
    });
}
