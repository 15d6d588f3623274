//! The files of the store are deleted, replaced or damaged while the service runs, or are gone when
//! it starts.

use std::{fs, path::Path};

use crate::{
    http::Request,
    service::{Launch, document, galley, get},
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
