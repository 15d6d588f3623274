//! Several processes on one store: they start together, write together, and all of them notice
//! what the command line changes.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use crate::{
    http::{Connection, Request},
    service::{
        GALLEY, KEY, Launch, PHONE, Service, command, document, galley_json, post, tell, until,
    },
};

#[test]
fn of_several_that_start_together_on_an_empty_store_one_makes_the_account() {
    let dir = tempfile::tempdir().unwrap();
    let mut services: Vec<Service> = std::thread::scope(|scope| {
        let start = || Launch::with(command(GALLEY), dir.path()).start();
        let starts: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
        starts.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(galley_json(dir.path(), &["account", "list"]).as_array().unwrap().len(), 1);
    services.iter_mut().for_each(Service::kill);
    let shown = services.iter().filter(|it| it.printed.text().contains("API key"));
    assert_eq!(shown.count(), 1);
}

#[test]
fn two_processes_write_to_one_store_without_losing_or_doubling_anything() {
    const WRITERS: usize = 8;
    const EACH: usize = 40;
    let dir = tempfile::tempdir().unwrap();
    let services = [Launch::new(dir.path()).start(), Launch::new(dir.path()).start()];
    let (made, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (service, made, taken) = (&services[writer % 2], &made, &taken);
            scope.spawn(move || {
                let mut connection = Connection::open(service.address).unwrap();
                for number in 0..EACH {
                    let name = match number % 4 {
                        0 => format!("everybody_wants_{number}"),
                        _ => format!("writer_{writer}_{number}"),
                    };
                    connection.send(&post(&document(&name, "Shared.")).bytes()).unwrap();
                    let answer = connection.answer().unwrap();
                    let count = match (answer.status, number % 4) {
                        (201, _) => made,
                        (409, 0) => taken,
                        _ => panic!("{name}: {answer:?}"),
                    };
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (made, taken) = (made.into_inner(), taken.into_inner());
    tell(format_args!("shared store: {made} made, {taken} refused because their name was taken"));
    assert_eq!(made, WRITERS * EACH * 3 / 4 + EACH / 4);
    let findings = galley_json(dir.path(), &["doctor"]);
    let findings = findings.as_array().unwrap();
    assert!(findings.iter().all(|it| it["verdict"] == "good"), "{findings:?}");
    let templates = findings.iter().find(|it| it["subject"] == "templates").unwrap();
    assert_eq!(templates["seen"], made.to_string());
}

#[test]
fn a_revocation_counts_in_every_process_within_five_seconds() {
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
    until(Duration::from_secs(5), "all of them refuse it", || {
        services.iter().all(|service| service.send(&request).status == 401)
    });
}
