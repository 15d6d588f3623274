//! Several processes on one store: concurrent starts, concurrent writes, and changes made with the
//! command line.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use crate::{
    http::{Connection, Request},
    service::{
        GALLEY, KEY, Launch, PHONE, Service, command, document, galley_json, post, print_line,
        until,
    },
};

#[test]
fn only_one_of_several_concurrent_first_starts_creates_the_account() {
    let dir = tempfile::tempdir().unwrap();
    let mut services: Vec<Service> = std::thread::scope(|scope| {
        let start = || Launch::with(command(GALLEY), dir.path()).start();
        let starts: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
        starts.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(galley_json(dir.path(), &["account", "list"]).as_array().unwrap().len(), 1);
    services.iter_mut().for_each(Service::kill);
    // A process shows its credentials before it creates the account, and then whether it did.
    let printed: Vec<String> = services.iter().map(|it| it.printed.text()).collect();
    let count = |text: &str| printed.iter().filter(|it| it.contains(text)).count();
    assert_eq!(count("Created the account"), 1, "{printed:#?}");
    assert_eq!(count("API key"), 1 + count("The account was NOT created"), "{printed:#?}");
}

#[test]
fn two_processes_on_one_store_neither_lose_nor_duplicate_templates() {
    const WRITERS: usize = 8;
    const CREATES_PER_WRITER: usize = 40;
    let dir = tempfile::tempdir().unwrap();
    let services = [Launch::new(dir.path()).start(), Launch::new(dir.path()).start()];
    let (created, conflicts) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (service, created, conflicts) = (&services[writer % 2], &created, &conflicts);
            scope.spawn(move || {
                let mut connection = Connection::open(service.address).unwrap();
                for number in 0..CREATES_PER_WRITER {
                    let name = match number % 4 {
                        0 => format!("contested_{number}"),
                        _ => format!("writer_{writer}_{number}"),
                    };
                    connection.send(&post(&document(&name, "Shared.")).bytes()).unwrap();
                    let response = connection.read_response().unwrap();
                    let count = match (response.status, number % 4) {
                        (201, _) => created,
                        (409, 0) => conflicts,
                        _ => panic!("{name}: {response:?}"),
                    };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (created, conflicts) = (created.into_inner(), conflicts.into_inner());
    print_line(format_args!(
        "shared store: {created} created, {conflicts} refused because the name was in use"
    ));
    assert_eq!(created, WRITERS * CREATES_PER_WRITER * 3 / 4 + CREATES_PER_WRITER / 4);
    let findings = galley_json(dir.path(), &["doctor"]);
    let findings = findings.as_array().unwrap();
    assert!(findings.iter().all(|it| it["verdict"] == "good"), "{findings:?}");
    let templates = findings.iter().find(|it| it["subject"] == "templates").unwrap();
    assert_eq!(templates["seen"], created.to_string());
}

#[test]
fn a_revocation_takes_effect_in_every_process_within_five_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let services = [Launch::new(dir.path()).start(), Launch::new(dir.path()).start()];
    let token = galley_json(dir.path(), &["token", "create", "default"]);
    let path = format!("/api/v1.0/{PHONE}/{KEY}/message_templates/1");
    let bearer = format!("Bearer {}", token["token"].as_str().unwrap());
    let request = Request::get(path).header("Authorization", &bearer);
    for service in &services {
        service.send(&request).is_problem(404, "template-unknown");
    }
    galley_json(dir.path(), &["token", "revoke", &token["id"].to_string()]);
    until(Duration::from_secs(5), "all processes refuse the token", || {
        services.iter().all(|service| service.send(&request).status == 401)
    });
}
