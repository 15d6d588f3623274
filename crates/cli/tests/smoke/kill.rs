//! The kill harness: writers create, change and delete templates while subscribers receive the
//! events. `kill -9` stops the service after a seeded number of acknowledgements. After a restart
//! the harness checks that every acknowledged change is there, completely and once.
//!
//! `GALLEY_KILL_SEED` replays the kill points and documents of a run; each run prints its seed.
//! `GALLEY_KILL_CYCLES` sets the number of kills; `scripts/soak` repeats longer runs.

mod deliveries;
mod expected_template;
mod feed_reader;
mod model;
mod planted_delivery_errors;
mod planted_store_errors;
mod receiver;
mod requests;
mod rng;
mod store_checks;
mod subscribers;
mod tenant;
mod writer;

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    path::Path,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::channel,
    },
    time::{Duration, Instant},
};

use rusqlite::OpenFlags;

use self::{
    deliveries::DeliveryReport,
    model::StoreModel,
    requests::{Outcome, SentRequest},
    rng::{Rng, cycles, seed},
    subscribers::Subscribers,
    tenant::TENANTS,
    writer::{Writer, WriterResult},
};
use crate::{
    http::{Connection, TIMEOUT},
    service::{Launch, Service, print_line},
};

const WRITERS: usize = 8;

/// Results of a run.
#[derive(Debug, Default)]
struct Report {
    kills: u32,
    idle_kills: u32,
    acknowledged: Count,
    refused: Count,
    unknown: Count,
    /// Requests of unknown outcome that took effect.
    applied: Count,
    /// Changes of shared templates that lost against another writer's change.
    conflicts: usize,
    /// From the start of the process until it is ready, after each kill.
    restarts: Vec<Duration>,
    violations: Vec<String>,
}

impl Report {
    fn has_violation(&self, parts: &[&str]) -> bool {
        self.violations.iter().any(|it| parts.iter().all(|part| it.contains(part)))
    }

    fn count(&mut self, sent: &[Vec<SentRequest>], killed_at: Instant) {
        let mut in_flight = false;
        for it in sent.iter().flatten() {
            match &it.outcome {
                Outcome::Acknowledged(_) => self.acknowledged.add(it.label()),
                Outcome::Refused(response) => {
                    self.refused.add(it.label());
                    let shared = it.change().is_some_and(|change| change.contested);
                    self.conflicts += usize::from(shared && response.status == 412);
                }
                Outcome::Unknown => {
                    self.unknown.add(it.label());
                    in_flight |= it.at < killed_at;
                }
            }
        }
        self.kills += u32::from(in_flight);
        self.idle_kills += u32::from(!in_flight);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, idle_kills, acknowledged, refused, unknown, .. } = self;
        writeln!(f, "{kills} kills under load ({idle_kills} of an idle service not counted)")?;
        writeln!(f, "  acknowledged: {acknowledged}")?;
        writeln!(f, "  refused:      {refused}; {} of them conflicts", self.conflicts)?;
        writeln!(f, "  unknown:      {unknown}")?;
        writeln!(f, "  of these applied: {}", self.applied)?;
        let mut restarts: Vec<u128> = self.restarts.iter().map(Duration::as_millis).collect();
        restarts.sort_unstable();
        let (median, slowest) = (restarts.get(restarts.len() / 2), restarts.last());
        let (median, slowest) = (median.unwrap_or(&0), slowest.unwrap_or(&0));
        writeln!(f, "  restarts:     median {median} ms, slowest {slowest} ms")?;
        write!(f, "  violations: {}", self.violations.len())
    }
}

/// Number of requests by kind.
#[derive(Debug, Default)]
struct Count(BTreeMap<&'static str, usize>);

impl Count {
    fn add(&mut self, label: &'static str) {
        *self.0.entry(label).or_default() += 1;
    }

    fn of(&self, label: &str) -> usize {
        self.0.get(label).copied().unwrap_or_default()
    }

    fn total(&self) -> usize {
        self.0.values().sum()
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.total())?;
        for (index, (label, number)) in self.0.iter().enumerate() {
            write!(f, "{}{number} {label}", if index == 0 { " (" } else { ", " })?;
        }
        f.write_str(if self.0.is_empty() { "" } else { ")" })
    }
}

/// The service, the expected content of its store, and its subscribers, across all kills.
struct Harness<'a> {
    dir: &'a Path,
    variables: &'a [(&'a str, &'a str)],
    rng: Rng,
    model: StoreModel,
    /// The ids of each writer's own templates.
    own: Vec<Vec<String>>,
    subscribers: Subscribers,
    report: Report,
}

impl<'a> Harness<'a> {
    fn new(dir: &'a Path, seed: u64, variables: &'a [(&str, &str)]) -> Self {
        // Create the accounts before the first kill: the runs test templates.
        drop(Launch::new(dir).start());
        TENANTS[1].create(dir);
        let mut rng = Rng::new(seed);
        let subscriber_rng = Rng::new(rng.next());
        let subscribers = Subscribers::subscribe(&launch(dir, variables).start(), subscriber_rng);
        subscribers.service_killed();
        let (model, own) = (StoreModel::default(), vec![Vec::new(); WRITERS]);
        Self { dir, variables, rng, model, own, subscribers, report: Report::default() }
    }

    /// Kills the service repeatedly until `enough`, then checks the whole store.
    fn run(&mut self, enough: impl Fn(&Report) -> bool) {
        for cycle in 0..2 * cycles() {
            let kill_after = 40 + self.rng.below(260);
            self.cycle(cycle, kill_after);
            if enough(&self.report) {
                break;
            }
        }
        self.report.violations.extend(self.check_store(""));
    }

    /// Runs the writers until `kill_after` acknowledgements, kills the service, and checks the
    /// store after a restart.
    fn cycle(&mut self, cycle: u32, kill_after: u64) {
        let mut service = self.start();
        let writers = (0..WRITERS).map(|number| self.writer(cycle, number)).collect();
        let (results, killed_at) =
            write_then_kill(writers, service.address, kill_after, || service.kill());
        let mut sent = Vec::new();
        for (number, result) in results.into_iter().enumerate() {
            self.own[number] = result.own;
            self.report.violations.extend(result.violations);
            sent.push(result.sent);
        }
        self.report.count(&sent, killed_at);
        self.subscribers.service_killed();

        let restarted = Instant::now();
        let service = self.start();
        self.report.restarts.push(restarted.elapsed());
        let mut calls = Connection::open(service.address).unwrap();
        let reconciled = self.model.reconcile(&sent, &mut calls, &self.store());
        reconciled.applied.into_iter().for_each(|label| self.report.applied.add(label));
        self.report.violations.extend(reconciled.violations);
        // Dropping the service kills it too, while it delivers.
        drop(service);
        self.subscribers.service_killed();
    }

    /// Lets the service send the remaining deliveries, then checks that the subscribers received
    /// every event.
    fn finish_deliveries(self) -> DeliveryReport {
        let service = self.start();
        let failed = self.subscribers.drain(&service);
        drop(service);
        self.subscribers.service_killed();
        let store = self.store();
        self.subscribers.check(&failed, &store)
    }

    fn writer(&mut self, cycle: u32, number: usize) -> Writer {
        let tenant = &TENANTS[number % TENANTS.len()];
        Writer {
            cycle,
            number,
            tenant,
            rng: Rng::new(self.rng.next()),
            own: self.model.existing(&self.own[number]),
            shared: self.model.shared(tenant),
            created: 0,
            freed_name: None,
        }
    }

    fn start(&self) -> Service {
        let service = launch(self.dir, self.variables).start();
        self.subscribers.service_started(service.address);
        service
    }

    /// A connection to the service's database file.
    fn store(&self) -> rusqlite::Connection {
        let (file, flags) = (self.dir.join("galley.db"), OpenFlags::SQLITE_OPEN_READ_WRITE);
        rusqlite::Connection::open_with_flags(file, flags).unwrap()
    }

    /// Checks the store as it would be after `planted`; rolls `planted` back.
    fn check_store(&self, planted: &str) -> Vec<String> {
        let mut store = self.store();
        let transaction = store.transaction().unwrap();
        transaction.execute_batch(planted).unwrap();
        let is_changed = transaction.total_changes() > 0;
        assert_eq!(is_changed, !planted.is_empty(), "no row changed: {planted}");
        store_checks::check(&transaction, &self.model)
    }
}

fn launch(dir: &Path, variables: &[(&str, &str)]) -> Launch {
    let launch = Launch::new(dir).flags(&["--set", "access_log=false"]);
    let launch = launch.flags(&subscribers::SETTINGS);
    variables.iter().fold(launch, |launch, (name, value)| launch.variable(name, value))
}

/// Runs the writers until `kill_after` acknowledgements, then kills the service. Returns what the
/// writers did, and when the kill began.
fn write_then_kill(
    writers: Vec<Writer>,
    address: SocketAddr,
    kill_after: u64,
    kill: impl FnOnce(),
) -> (Vec<WriterResult>, Instant) {
    let ended = &AtomicBool::new(false);
    let (acknowledge, acknowledged) = channel();
    std::thread::scope(|scope| {
        let start = |writer: Writer| {
            let acknowledge = acknowledge.clone();
            scope.spawn(move || writer.run(address, &acknowledge, ended))
        };
        let writers: Vec<_> = writers.into_iter().map(start).collect();
        for _ in 0..kill_after {
            acknowledged.recv_timeout(TIMEOUT).expect("no acknowledgement in time");
        }
        let killed_at = Instant::now();
        kill();
        ended.store(true, Ordering::Relaxed);
        (writers.into_iter().map(|writer| writer.join().unwrap()).collect(), killed_at)
    })
}

/// The first violations: one often causes many others.
fn summary(violations: &[String]) -> String {
    format!(
        "{} violations, such as {:#?}",
        violations.len(),
        &violations[..violations.len().min(8)]
    )
}

#[test]
fn acknowledged_writes_of_8_writers_survive_kills_completely() {
    let (dir, seed) = (tempfile::tempdir().unwrap(), seed());
    print_line(format_args!("kill harness: GALLEY_KILL_SEED={seed} replays this run"));
    let cycles = cycles();
    let mut harness = Harness::new(dir.path(), seed, &[]);
    harness.run(|report| report.kills == cycles || !report.violations.is_empty());
    let Report { kills, acknowledged, unknown, conflicts, violations, .. } = &harness.report;
    print_line(format_args!("kill harness: {}", harness.report));
    assert!(violations.is_empty(), "seed {seed}: {}", summary(violations));
    assert_eq!(*kills, cycles, "seed {seed}: too many kills hit an idle service");
    assert!(unknown.total() >= cycles as usize, "{unknown}");
    assert!(unknown.total() > unknown.of("create"), "no change was in flight: {unknown}");
    assert!(*conflicts > 0, "no change of a shared template conflicted");
    for label in ["create", "edit", "category edit", "restore", "approve", "reject"] {
        assert!(acknowledged.of(label) > 0, "no {label}: {acknowledged}");
    }
    for label in ["pause", "resume", "disable", "delete"] {
        assert!(acknowledged.of(label) > 0, "no {label}: {acknowledged}");
    }

    let delivered = harness.finish_deliveries();
    print_line(format_args!("kill harness, webhooks: {delivered}"));
    let DeliveryReport { failed, requests, duplicates, violations, .. } = &delivered;
    assert!(violations.is_empty(), "seed {seed}: {}", summary(violations));
    assert!(*failed > 0, "no delivery failed: {delivered}");
    assert!(*duplicates > 0, "no kill interrupted a delivery: {delivered}");
    for label in ["200", "500", "reset", "no response"] {
        assert!(requests.of(label) > 0, "no request ended with {label}: {delivered}");
    }
}

/// Only debug builds have the switch.
#[cfg(debug_assertions)]
#[test]
fn the_harness_detects_a_service_that_responds_before_its_commit() {
    let (dir, seed) = (tempfile::tempdir().unwrap(), seed());
    let early = [("GALLEY_TEST_ACKNOWLEDGE", "before-commit")];
    let mut harness = Harness::new(dir.path(), seed, &early);
    let lost_create = |report: &Report| report.has_violation(&["is missing"]);
    let lost_change = |report: &Report| report.has_violation(&["an acknowledged", "is lost"]);
    harness.run(|report| lost_create(report) && lost_change(report));
    print_line(format_args!("kill harness, responding before the commit: {}", harness.report));
    let violations = summary(&harness.report.violations);
    assert!(lost_create(&harness.report), "seed {seed}: no create was lost: {violations}");
    assert!(lost_change(&harness.report), "seed {seed}: no change was lost: {violations}");
}
