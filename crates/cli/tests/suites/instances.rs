//! Instances that share a PostgreSQL: they start together, serve the same, and each notices what
//! happens by way of another, in time.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    http::{Connection, Request},
    listener::Listener,
    postgres::{Database, migrations},
    service::{KEY, PHONE, Service, TOKEN, document, post, tell, until},
};

/// Tests receive on this machine, over http.
const NEARBY: [&str; 2] = ["--set", "webhooks_allow_private=true"];

/// What one instance does is known to the others within about a second; this is well behind that,
/// and well before a wait of 25 seconds runs out.
const SHORTLY: Duration = Duration::from_secs(3);

/// A call of whoever has this key and this token.
fn call(method: &'static str, key: &str, token: &str, path: &str) -> Request {
    Request::new(method, format!("/api/v1.0/{PHONE}/{key}{path}"))
        .header("Authorization", &format!("Bearer {token}"))
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_else(|| panic!("no {member} in {value}"))
}

/// What stands behind a label in what the first start shows.
fn shown<'t>(printed: &'t str, label: &str) -> &'t str {
    let (_, rest) = printed.split_once(label).unwrap_or_else(|| panic!("no {label}: {printed}"));
    rest.split_whitespace().next().unwrap()
}

#[test]
fn ten_that_start_together_on_an_empty_database_make_it_once_and_serve_the_same() {
    const INSTANCES: usize = 10;
    let database = Database::fresh();
    let begun = Instant::now();
    let services: Vec<Service> = std::thread::scope(|scope| {
        let starts: Vec<_> =
            (0..INSTANCES).map(|_| scope.spawn(|| database.launch().start())).collect();
        starts.into_iter().map(|it| it.join().unwrap()).collect()
    });
    tell(format_args!("{INSTANCES} instances are ready after {:?}", begun.elapsed()));

    let applied = database.sql("SELECT version FROM galley_schema ORDER BY version");
    assert_eq!(applied, migrations());
    let transactions = "SELECT count(DISTINCT at) FROM galley_schema";
    assert_eq!(database.sql(transactions), ["1"], "one of them has done all of it");
    assert_eq!(database.galley_json(&["account", "list"]).as_array().unwrap().len(), 1);

    let printed: Vec<String> = services.iter().map(|it| it.printed.text()).collect();
    let printed: Vec<&String> = printed.iter().filter(|it| it.contains("API key")).collect();
    let [printed] = printed[..] else { panic!("{} have shown a key", printed.len()) };
    let (key, token) = (shown(printed, "API key"), shown(printed, "Access token"));
    for (number, service) in services.iter().enumerate() {
        let body = document(&format!("made_by_{number}"), "The same everywhere.").to_string();
        let made = service.send(&call("POST", key, token, "/message_templates").body(body));
        assert_eq!(made.status, 201, "{made:?}");
    }
    for path in ["/message_templates", "/events?after=0"] {
        let request = call("GET", key, token, path);
        let answers: Vec<Value> = services.iter().map(|it| it.send(&request).json()).collect();
        assert_eq!(answers[0]["data"].as_array().unwrap().len(), INSTANCES, "{}", answers[0]);
        assert!(answers.iter().all(|it| *it == answers[0]), "{answers:#?}");
    }
    std::thread::scope(|scope| {
        for service in services {
            scope.spawn(|| assert_eq!(service.end().0.code(), Some(0)));
        }
    });
}

#[test]
fn commands_that_make_no_store_leave_an_empty_database_empty() {
    let database = Database::fresh();
    for arguments in [["account", "list"], ["review", "list"]] {
        let output = database.galley(&arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("schema 0") && said.contains("`galley serve`"), "{said}");
    }
    let doctor = database.galley(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1), "{doctor:?}");
    let said = String::from_utf8(doctor.stdout).unwrap();
    assert!(said.contains("version 0 of"), "{said}");
    assert_eq!(database.sql("SELECT count(*) FROM pg_stat_user_tables"), ["0"]);
}

/// Tells others to stop when it is dropped, also by a test that has failed.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_revoked_credential_ends_in_every_instance_within_five_seconds_and_no_other_does() {
    let database = Database::fresh();
    let services = [(); 2].map(|()| database.launch().canaries().start());
    let (stopped, calls) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let stop = Stop(&stopped);
        for service in &services {
            let (stopped, calls) = (&stopped, &calls);
            scope.spawn(move || {
                let request = call("GET", KEY, TOKEN, "/message_templates").bytes();
                let mut connection = Connection::open(service.address).unwrap();
                while !stopped.load(Ordering::Relaxed) {
                    connection.send(&request).unwrap();
                    let answer = connection.answer().unwrap();
                    assert_eq!(answer.status, 200, "nobody has revoked these: {answer:?}");
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for kind in ["key", "token"] {
            let made = database.galley_json(&[kind, "create", "default"]);
            let (key, token) = match kind {
                "key" => (text(&made, kind), TOKEN),
                _ => (KEY, text(&made, kind)),
            };
            let request = call("GET", key, token, "/message_templates");
            for service in &services {
                assert_eq!(service.send(&request).status, 200);
            }
            database.galley_json(&[kind, "revoke", &made["id"].to_string()]);
            let revoked = Instant::now();
            until(Duration::from_secs(5), "both of them refuse it", || {
                services.iter().all(|service| service.send(&request).status == 401)
            });
            tell(format_args!(
                "a revoked {kind} has ended everywhere after {:?}",
                revoked.elapsed()
            ));
            for service in services.iter().cycle().take(100) {
                service.send(&request).is_problem(401, &format!("{kind}-revoked"));
            }
        }
        drop(stop);
    });
    assert!(calls.into_inner() > 100, "the others were in use all the time");
}

#[test]
fn a_wait_for_events_on_one_instance_ends_with_a_write_on_another() {
    let database = Database::fresh();
    let [waits, writes] = [(); 2].map(|()| database.launch().canaries().start());
    for number in 1..=4 {
        let path = format!("/events?after={}&wait=25", number - 1);
        let mut waiting = Connection::open(waits.address).unwrap();
        waiting.send(&call("GET", KEY, TOKEN, &path).bytes()).unwrap();
        // By the time it has answered this, it has long begun to wait.
        assert_eq!(waits.send(&call("GET", KEY, TOKEN, "/message_templates")).status, 200);

        let name = format!("elsewhere_{number}");
        let made = writes.create(&document(&name, "Hello!"));
        assert_eq!(made.status, 201, "{made:?}");
        let written = Instant::now();
        let heard = waiting.answer().unwrap().json();
        assert!(written.elapsed() < SHORTLY, "only after {:?}", written.elapsed());
        assert_eq!(heard["data"].as_array().unwrap().len(), 1, "{heard}");
        assert_eq!(
            (&heard["data"][0]["seq"], &heard["data"][0]["data"]["name"]),
            (&json!(number), &json!(name))
        );
    }
}

#[test]
fn an_endpoint_registered_with_one_instance_is_sent_what_another_writes() {
    let database = Database::fresh();
    let delivers = database.launch().canaries().flags(&NEARBY).start();
    let silent = ["--set", "webhooks_deliver=false"];
    let writes = database.launch().canaries().flags(&NEARBY).flags(&silent).start();
    let listener = Listener::start(database.dir(), &["--json"]);
    let endpoint = json!({"url": listener.url}).to_string();
    let added = delivers.send(&call("POST", KEY, TOKEN, "/webhooks").body(endpoint));
    assert_eq!(added.status, 201, "{added:?}");
    for number in 1..=3 {
        let name = format!("elsewhere_{number}");
        assert_eq!(writes.send(&post(&document(&name, "Hello!"))).status, 201);
        let written = Instant::now();
        let heard = listener.heard(number);
        assert!(written.elapsed() < SHORTLY, "only after {:?}", written.elapsed());
        assert_eq!(heard.len(), number, "{heard:?}");
        assert_eq!(heard[number - 1]["body"]["data"]["name"], name);
    }
}
