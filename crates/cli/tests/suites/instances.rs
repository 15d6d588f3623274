//! Instances that share a PostgreSQL database: they start together, return the same responses, and
//! see each other's changes in time.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    http::{Connection, Request},
    listener::Listener,
    postgres::{Database, migrations},
    service::{KEY, PHONE, Service, TOKEN, document, post, print_line, until},
};

/// Allows endpoints on this machine, over HTTP.
const ALLOW_PRIVATE: [&str; 2] = ["--set", "webhooks_allow_private=true"];

/// Instances see each other's changes within about a second. This limit is well above that, and well
/// below a wait of 25 seconds.
const PROPAGATION_LIMIT: Duration = Duration::from_secs(3);

/// A request with this key and this token.
fn request(method: &'static str, key: &str, token: &str, path: &str) -> Request {
    Request::new(method, format!("/api/v1.0/{PHONE}/{key}{path}"))
        .header("Authorization", &format!("Bearer {token}"))
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_else(|| panic!("no {member} in {value}"))
}

/// The value after a label in the output of the first start.
fn printed_value<'t>(printed: &'t str, label: &str) -> &'t str {
    let (_, rest) = printed.split_once(label).unwrap_or_else(|| panic!("no {label}: {printed}"));
    rest.split_whitespace().next().unwrap()
}

#[test]
fn ten_instances_starting_together_create_the_schema_once_and_serve_the_same_data() {
    const INSTANCES: usize = 10;
    let database = Database::fresh();
    let started = Instant::now();
    let services: Vec<Service> = std::thread::scope(|scope| {
        let starts: Vec<_> =
            (0..INSTANCES).map(|_| scope.spawn(|| database.launch().start())).collect();
        starts.into_iter().map(|it| it.join().unwrap()).collect()
    });
    print_line(format_args!("{INSTANCES} instances are ready after {:?}", started.elapsed()));

    let applied = database.sql("SELECT version FROM galley_schema ORDER BY version");
    assert_eq!(applied, migrations());
    let transactions = "SELECT count(DISTINCT at) FROM galley_schema";
    assert_eq!(database.sql(transactions), ["1"], "one instance applies all migrations");
    assert_eq!(database.galley_json(&["account", "list"]).as_array().unwrap().len(), 1);

    let printed: Vec<String> = services.iter().map(|it| it.printed.text()).collect();
    // Each instance shows its credentials before it creates the account; only one of them does.
    let created = |it: &&String| it.contains("Created the account");
    let printed: Vec<&String> = printed.iter().filter(created).collect();
    let [printed] = printed[..] else { panic!("{} instances created the account", printed.len()) };
    let (key, token) = (printed_value(printed, "API key"), printed_value(printed, "Access token"));
    for (number, service) in services.iter().enumerate() {
        let body = document(&format!("created_by_{number}"), "The same everywhere.").to_string();
        let created = service.send(&request("POST", key, token, "/message_templates").body(body));
        assert_eq!(created.status, 201, "{created:?}");
    }
    for path in ["/message_templates", "/events?after=0"] {
        let request = request("GET", key, token, path);
        let responses: Vec<Value> = services.iter().map(|it| it.send(&request).json()).collect();
        assert_eq!(responses[0]["data"].as_array().unwrap().len(), INSTANCES, "{}", responses[0]);
        assert!(responses.iter().all(|it| *it == responses[0]), "{responses:#?}");
    }
    std::thread::scope(|scope| {
        for service in services {
            scope.spawn(|| assert_eq!(service.end().0.code(), Some(0)));
        }
    });
}

#[test]
fn commands_that_need_a_store_leave_an_empty_database_empty() {
    let database = Database::fresh();
    for arguments in [["account", "list"], ["review", "list"]] {
        let output = database.galley(&arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("schema 0") && message.contains("`galley serve`"), "{message}");
    }
    let doctor = database.galley(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
    let message = String::from_utf8(doctor.stdout).unwrap();
    assert!(message.contains("version 0 of"), "{message}");
    assert_eq!(database.sql("SELECT count(*) FROM pg_stat_user_tables"), ["0"]);
}

/// Stops the client threads when it is dropped, also if the test fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn every_instance_refuses_a_revoked_credential_within_five_seconds_and_accepts_the_others() {
    let database = Database::fresh();
    let services = [(); 2].map(|()| database.launch().canaries().start());
    let (stopped, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let stop = StopOnDrop(&stopped);
        for service in &services {
            let (stopped, calls) = (&stopped, &calls);
            scope.spawn(move || {
                let request = request("GET", KEY, TOKEN, "/message_templates").bytes();
                let mut connection = Connection::open(service.address).unwrap();
                while !stopped.load(Ordering::Relaxed) {
                    connection.send(&request).unwrap();
                    let response = connection.read_response().unwrap();
                    assert_eq!(response.status, 200, "these are not revoked: {response:?}");
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for kind in ["key", "token"] {
            let created = database.galley_json(&[kind, "create", "default"]);
            let (key, token) = match kind {
                "key" => (text(&created, kind), TOKEN),
                _ => (KEY, text(&created, kind)),
            };
            let request = request("GET", key, token, "/message_templates");
            for service in &services {
                assert_eq!(service.send(&request).status, 200);
            }
            database.galley_json(&[kind, "revoke", &created["id"].to_string()]);
            let revoked = Instant::now();
            until(Duration::from_secs(5), "both instances refuse it", || {
                services.iter().all(|service| service.send(&request).status == 401)
            });
            print_line(format_args!(
                "all instances refuse a revoked {kind} after {:?}",
                revoked.elapsed()
            ));
            for service in services.iter().cycle().take(100) {
                service.send(&request).is_problem(401, &format!("{kind}-revoked"));
            }
        }
        drop(stop);
    });
    assert!(calls.into_inner() > 100, "too few requests with the other credentials");
}

#[test]
fn a_write_on_one_instance_ends_a_wait_for_events_on_another() {
    let database = Database::fresh();
    let [reader, writer] = [(); 2].map(|()| database.launch().canaries().start());
    for number in 1..=4 {
        let path = format!("/events?after={}&wait=25", number - 1);
        let mut waiting = Connection::open(reader.address).unwrap();
        waiting.send(&request("GET", KEY, TOKEN, &path).bytes()).unwrap();
        // Once this response arrives, the wait has begun.
        assert_eq!(reader.send(&request("GET", KEY, TOKEN, "/message_templates")).status, 200);

        let name = format!("elsewhere_{number}");
        let created = writer.create(&document(&name, "Hello!"));
        assert_eq!(created.status, 201, "{created:?}");
        let written = Instant::now();
        let page = waiting.read_response().unwrap().json();
        assert!(written.elapsed() < PROPAGATION_LIMIT, "it took {:?}", written.elapsed());
        assert_eq!(page["data"].as_array().unwrap().len(), 1, "{page}");
        assert_eq!(
            (&page["data"][0]["seq"], &page["data"][0]["data"]["name"]),
            (&json!(number), &json!(name))
        );
    }
}

#[test]
fn an_endpoint_registered_with_one_instance_receives_the_events_of_another() {
    let database = Database::fresh();
    let deliverer = database.launch().canaries().flags(&ALLOW_PRIVATE).start();
    let no_delivery = ["--set", "webhooks_deliver=false"];
    let writer = database.launch().canaries().flags(&ALLOW_PRIVATE).flags(&no_delivery).start();
    let listener = Listener::start(database.dir(), &["--json"]);
    let endpoint = json!({"url": listener.url}).to_string();
    let added = deliverer.send(&request("POST", KEY, TOKEN, "/webhooks").body(endpoint));
    assert_eq!(added.status, 201, "{added:?}");
    for number in 1..=3 {
        let name = format!("elsewhere_{number}");
        assert_eq!(writer.send(&post(&document(&name, "Hello!"))).status, 201);
        let written = Instant::now();
        let received = listener.received(number);
        assert!(written.elapsed() < PROPAGATION_LIMIT, "it took {:?}", written.elapsed());
        assert_eq!(received.len(), number, "{received:?}");
        assert_eq!(received[number - 1]["body"]["data"]["name"], name);
    }
}
