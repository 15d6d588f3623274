//! The files of the store are deleted, replaced or damaged while the service runs, or are gone when
//! it starts.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _},
        process::CommandExt as _,
    },
    path::Path,
};

use crate::{
    http::Request,
    service::{GALLEY, Launch, command, document, galley, galley_at, get, store},
};

/// A service with one template, and the id of the template.
fn start(dir: &Path) -> (crate::service::Service, String) {
    let service = Launch::new(dir).start();
    let created = service.create(&document("kept", "Kept."));
    assert_eq!(created.status, 201, "{created:?}");
    let id = created.json()["id"].as_str().unwrap().to_owned();
    (service, id)
}

#[test]
fn a_deleted_store_acknowledges_nothing_and_is_not_ready() {
    let dir = tempfile::tempdir().unwrap();
    let (service, id) = start(dir.path());
    let (path, aside) = (dir.path().join("galley.db"), dir.path().join("aside"));
    fs::rename(&path, &aside).unwrap();
    for number in 0..13 {
        service
            .create(&document(&format!("lost_{number}"), "Lost."))
            .is_problem(503, "unavailable");
    }
    service.send(&Request::get("/readyz")).is_problem(503, "unavailable");
    service.send(&get(&id)).is_problem(503, "unavailable");
    assert_eq!(service.send(&Request::get("/healthz")).status, 200);
    fs::rename(&aside, &path).unwrap();
    assert_eq!(service.create(&document("lost_0", "Found.")).status, 201);
    assert_eq!(service.send(&Request::get("/readyz")).status, 200);
    assert_eq!(service.read(&id).status, 200);
}

#[test]
fn a_start_beside_the_files_of_a_deleted_store_creates_no_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    let (service, _) = start(dir.path());
    assert!(service.end().0.success());
    fs::write(dir.path().join("galley.db-search"), "").unwrap();
    fs::remove_file(dir.path().join("galley.db")).unwrap();
    let refused = galley(dir.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && message.contains("--new-store"), "{message}");
    assert!(!dir.path().join("galley.db").exists());
    let service = Launch::new(dir.path()).flags(&["--new-store"]).start();
    assert_eq!(service.create(&document("new", "New.")).status, 201);
}

#[test]
fn damaged_content_is_reported_and_never_served() {
    let dir = tempfile::tempdir().unwrap();
    let (service, id) = start(dir.path());
    assert!(service.end().0.success());
    let path = dir.path().join("galley.db");
    let mut bytes = fs::read(&path).unwrap();
    let text = b"Kept.";
    let place = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[place] ^= 1;
    fs::write(&path, bytes).unwrap();
    let service = Launch::new(dir.path()).start();
    service.send(&get(&id)).is_problem(500, "damaged-data");
    let row = format!("the row {id} of the table template");
    service.log.wait_for("the damaged row", |log| log.contains(&row));
    let doctor = galley(dir.path(), &["doctor"]);
    let report = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(!doctor.status.success() && report.contains(&id), "{report}");
}

/// The user of `galley` in tests of permissions, which do not apply to root.
const OTHER_USER: u32 = 65_534;

/// Runs `galley` without root's rights and returns its standard error.
fn refused_without_root(dir: &Path, store: &str, arguments: &[&str]) -> String {
    // The program can be in a directory that only root can enter.
    let program = dir.join("galley");
    let mut command = if is_root() {
        fs::copy(GALLEY, &program).unwrap();
        command(program.to_str().unwrap())
    } else {
        command(GALLEY)
    };
    if is_root() {
        command.uid(OTHER_USER);
    }
    let output = command.current_dir(dir).args(arguments).args(["--store", store]).output();
    let _ = fs::remove_file(program);
    let output = output.unwrap();
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn a_store_without_permission_is_reported_with_owner_and_mode() {
    let dir = tempfile::tempdir().unwrap();
    let (path, store) = (dir.path().join("galley.db"), store(dir.path()));
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let (user, owner) = if is_root() {
        (OTHER_USER, 0)
    } else {
        let user = fs::metadata("/proc/self").unwrap().uid();
        (user, user)
    };
    let assert_refusal = |message: &str, named: &Path, mode: &str| {
        let user = format!("galley runs as user {user} and may not");
        let facts =
            format!("{}, which belongs to user {owner} and has mode {mode}", named.display());
        let remedy = if is_root() { "Run galley as user" } else { "Run chmod u+" };
        for fact in ["permission denied", &user, &facts, remedy] {
            assert!(message.contains(fact), "no {fact:?} in {message}");
        }
    };
    let serve = ["serve", "--listen", "127.0.0.1:0"];

    // A directory in which no file can be created.
    set_mode(dir.path(), 0o555);
    let message = refused_without_root(dir.path(), &store, &serve);
    assert_refusal(&message, dir.path(), "0555");
    assert!(!path.exists());
    set_mode(dir.path(), 0o755);

    // A file that can be read and not written, and one that cannot be read.
    assert!(galley(dir.path(), &["account", "create", "shop"]).status.success());
    for (mode, shown) in [(0o444, "0444"), (0o000, "0000")] {
        set_mode(&path, mode);
        for arguments in [&serve[..], &["doctor"]] {
            assert_refusal(&refused_without_root(dir.path(), &store, arguments), &path, shown);
        }
    }

    // The same in a directory in which the user may create files.
    set_mode(dir.path(), 0o777);
    set_mode(&path, 0o444);
    assert_refusal(&refused_without_root(dir.path(), &store, &serve), &path, "0444");

    // A directory that cannot be entered hides the store; it is not reported as missing.
    let inner = dir.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::rename(&path, inner.join("galley.db")).unwrap();
    set_mode(&inner, 0o600);
    let url = format!("sqlite:{}", inner.join("galley.db").display());
    let message = refused_without_root(dir.path(), &url, &["doctor"]);
    set_mode(&inner, 0o700);
    assert_refusal(&message, &inner, "0600");
}

#[test]
fn a_created_store_is_reported_with_its_absolute_path() {
    let dir = tempfile::tempdir().unwrap();
    // The directory can be a link.
    let absolute = dir.path().canonicalize().unwrap().join("new.db");
    let line = format!("created the store {}", absolute.display());
    let create = |name| {
        let mut command = command(GALLEY);
        command.current_dir(dir.path()).args(["account", "create", name]);
        let output = command.args(["--store", "sqlite:new.db"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(create("first").contains(&line));
    assert!(!create("second").contains("created the store"));

    let service = Launch::new(dir.path()).start();
    let line = format!("created the store {}", dir.path().join("galley.db").display());
    assert!(service.log.text().contains(&line), "{}", service.log.text());
    assert!(service.end().0.success());
    let service = Launch::new(dir.path()).start();
    assert!(!service.log.text().contains("created the store"));
}

#[test]
fn a_store_in_memory_is_refused_and_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["account", "create", "shop"]] {
        let refused = galley_at("sqlite::memory:", dir.path(), arguments);
        let message = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && message.contains("name a file"), "{message}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "no file");
    }
}
