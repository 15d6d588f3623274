//! The kill harness: writers at work on the whole life of templates, subscribers who are told of
//! it, `kill -9` after a seeded number of acknowledgements, a restart, and a look whether every
//! promise was kept.
//!
//! `GALLEY_KILL_SEED` replays the kill points and documents of a run; its seed is printed.

mod deliveries;
mod dice;
mod feed;
mod file;
mod ledger;
mod life;
mod planted;
mod planted_deliveries;
mod receiver;
mod sent;
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
    time::Instant,
};

use rusqlite::OpenFlags;

use self::{
    deliveries::Tally,
    dice::{Dice, seed},
    ledger::Ledger,
    sent::{Outcome, Sent},
    subscribers::Subscribers,
    tenant::TENANTS,
    writer::{Worked, Writer},
};
use crate::{
    http::{BOUND, Connection},
    service::{Launch, Service, tell},
};

const CYCLES: u32 = 25;
const WRITERS: usize = 8;

/// What came of a run.
#[derive(Debug, Default)]
struct Report {
    kills: u32,
    idle_kills: u32,
    acknowledged: Count,
    refused: Count,
    unknown: Count,
    /// What of the unknown has happened.
    happened: Count,
    /// How often somebody else had changed a template that several writers fight over.
    fights_lost: usize,
    faults: Vec<String>,
}

impl Report {
    fn is_found_out(&self, words: &[&str]) -> bool {
        self.faults.iter().any(|fault| words.iter().all(|word| fault.contains(word)))
    }

    fn note(&mut self, sent: &[Vec<Sent>], killed_at: Instant) {
        let mut in_flight = false;
        for it in sent.iter().flatten() {
            match &it.outcome {
                Outcome::Acknowledged(_) => self.acknowledged.add(it.label()),
                Outcome::Refused(answer) => {
                    self.refused.add(it.label());
                    let fought = it.change().is_some_and(|change| change.contested);
                    self.fights_lost += usize::from(fought && answer.status == 412);
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
        writeln!(f, "{kills} kills at work ({idle_kills} at rest not counted)")?;
        writeln!(f, "  acknowledged: {acknowledged}")?;
        writeln!(f, "  refused:      {refused}; {} of them lost a fight", self.fights_lost)?;
        writeln!(f, "  unknown:      {unknown}")?;
        writeln!(f, "  of these done: {}", self.happened)?;
        write!(f, "  faults: {}", self.faults.len())
    }
}

/// How often each kind of request.
#[derive(Debug, Default)]
struct Count(BTreeMap<&'static str, usize>);

impl Count {
    fn add(&mut self, label: &'static str) {
        *self.0.entry(label).or_default() += 1;
    }

    fn of(&self, label: &str) -> usize {
        self.0.get(label).copied().unwrap_or_default()
    }

    fn all(&self) -> usize {
        self.0.values().sum()
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.all())?;
        for (index, (label, number)) in self.0.iter().enumerate() {
            write!(f, "{}{number} {label}", if index == 0 { " (" } else { ", " })?;
        }
        f.write_str(if self.0.is_empty() { "" } else { ")" })
    }
}

/// The service, its accounts and what is known of them, from kill to kill.
struct Harness<'a> {
    dir: &'a Path,
    variables: &'a [(&'a str, &'a str)],
    dice: Dice,
    ledger: Ledger,
    /// The ids of the templates that each writer leads.
    own: Vec<Vec<String>>,
    subscribers: Subscribers,
    report: Report,
}

impl<'a> Harness<'a> {
    fn new(dir: &'a Path, seed: u64, variables: &'a [(&str, &str)]) -> Self {
        // The accounts are made in peace: the runs are about templates.
        drop(Launch::new(dir).start());
        TENANTS[1].found(dir);
        let mut dice = Dice::new(seed);
        let theirs = Dice::new(dice.next());
        let subscribers = Subscribers::subscribe(&launch(dir, variables).start(), theirs);
        subscribers.mourn();
        let (ledger, own) = (Ledger::default(), vec![Vec::new(); WRITERS]);
        Self { dir, variables, dice, ledger, own, subscribers, report: Report::default() }
    }

    /// Kills the service again and again until that is enough.
    fn run(&mut self, enough: impl Fn(&Report) -> bool) {
        for cycle in 0..2 * CYCLES {
            let aim = 40 + self.dice.below(260);
            self.cycle(cycle, aim);
            if enough(&self.report) {
                break;
            }
        }
        self.report.faults.extend(self.examine(""));
    }

    /// Lets the writers work until they have been acknowledged `aim` times, kills, and looks.
    fn cycle(&mut self, cycle: u32, aim: u64) {
        let mut service = self.start();
        let writers = (0..WRITERS).map(|number| self.writer(cycle, number)).collect();
        let (worked, killed_at) = work_until(writers, service.address, aim, || service.kill());
        let mut sent = Vec::new();
        for (number, worked) in worked.into_iter().enumerate() {
            self.own[number] = worked.own;
            self.report.faults.extend(worked.faults);
            sent.push(worked.sent);
        }
        self.report.note(&sent, killed_at);
        self.subscribers.mourn();

        let service = self.start();
        let mut calls = Connection::open(service.address).unwrap();
        let settled = self.ledger.settle(&sent, &mut calls, &self.store());
        settled.happened.into_iter().for_each(|label| self.report.happened.add(label));
        self.report.faults.extend(settled.faults);
        // That is a kill as well, of a service that delivers.
        drop(service);
        self.subscribers.mourn();
    }

    /// Lets the service deliver what is left, and looks whether the subscribers know everything.
    fn deliver_the_rest(self) -> Tally {
        let service = self.start();
        let failed = self.subscribers.wait_for_the_rest(&service);
        drop(service);
        self.subscribers.mourn();
        let store = self.store();
        self.subscribers.examine(&failed, &store)
    }

    fn writer(&mut self, cycle: u32, number: usize) -> Writer {
        let tenant = &TENANTS[number % TENANTS.len()];
        Writer {
            cycle,
            number,
            tenant,
            dice: Dice::new(self.dice.next()),
            own: self.ledger.alive(&self.own[number]),
            fought: self.ledger.fought(tenant),
            made: 0,
            freed: None,
        }
    }

    fn start(&self) -> Service {
        let service = launch(self.dir, self.variables).start();
        self.subscribers.meet(service.address);
        service
    }

    /// The service's file, behind its back.
    fn store(&self) -> rusqlite::Connection {
        let (file, flags) = (self.dir.join("galley.db"), OpenFlags::SQLITE_OPEN_READ_WRITE);
        rusqlite::Connection::open_with_flags(file, flags).unwrap()
    }

    /// Looks into the file as if `planted` had been done to it before.
    fn examine(&self, planted: &str) -> Vec<String> {
        let mut store = self.store();
        let looked = store.transaction().unwrap();
        looked.execute_batch(planted).unwrap();
        assert_eq!(looked.total_changes() > 0, !planted.is_empty(), "nothing to spoil: {planted}");
        file::examine(&looked, &self.ledger)
    }
}

fn launch(dir: &Path, variables: &[(&str, &str)]) -> Launch {
    let launch = Launch::new(dir).flags(&["--set", "access_log=false"]);
    let launch = launch.flags(&subscribers::SETTINGS);
    variables.iter().fold(launch, |launch, (name, value)| launch.variable(name, value))
}

/// Lets the writers work until they have been acknowledged `aim` times, then kills. Answers what
/// they did, and when the kill began.
fn work_until(
    writers: Vec<Writer>,
    address: SocketAddr,
    aim: u64,
    kill: impl FnOnce(),
) -> (Vec<Worked>, Instant) {
    let ended = &AtomicBool::new(false);
    let (acknowledge, acknowledged) = channel();
    std::thread::scope(|scope| {
        let start = |writer: Writer| {
            let news = acknowledge.clone();
            scope.spawn(move || writer.work(address, &news, ended))
        };
        let writers: Vec<_> = writers.into_iter().map(start).collect();
        for _ in 0..aim {
            acknowledged.recv_timeout(BOUND).expect("acknowledgements keep coming");
        }
        let killed_at = Instant::now();
        kill();
        ended.store(true, Ordering::Relaxed);
        (writers.into_iter().map(|writer| writer.join().unwrap()).collect(), killed_at)
    })
}

/// The first faults: one often brings many others with it.
fn brief(faults: &[String]) -> String {
    format!("{} faults, such as {:#?}", faults.len(), &faults[..faults.len().min(8)])
}

#[test]
fn nothing_acknowledged_is_lost_or_half_made_in_25_kills_under_8_writers() {
    let (dir, seed) = (tempfile::tempdir().unwrap(), seed());
    tell(format_args!("kill harness: GALLEY_KILL_SEED={seed} replays this run"));
    let mut harness = Harness::new(dir.path(), seed, &[]);
    harness.run(|report| report.kills == CYCLES || !report.faults.is_empty());
    let Report { kills, acknowledged, unknown, fights_lost, faults, .. } = &harness.report;
    tell(format_args!("kill harness: {}", harness.report));
    assert!(faults.is_empty(), "seed {seed}: {}", brief(faults));
    assert_eq!(*kills, CYCLES, "seed {seed}: too many kills hit a service at rest");
    assert!(unknown.all() >= CYCLES as usize, "{unknown}");
    assert!(unknown.all() > unknown.of("create"), "no change was in flight: {unknown}");
    assert!(*fights_lost > 0, "nobody fought");
    for label in ["create", "edit", "edit of the category", "restore", "approve", "reject"] {
        assert!(acknowledged.of(label) > 0, "no {label}: {acknowledged}");
    }
    for label in ["pause", "resume", "disable", "delete"] {
        assert!(acknowledged.of(label) > 0, "no {label}: {acknowledged}");
    }

    let tally = harness.deliver_the_rest();
    tell(format_args!("kill harness, webhooks: {tally}"));
    let Tally { failed, requests, duplicates, faults, .. } = &tally;
    assert!(faults.is_empty(), "seed {seed}: {}", brief(faults));
    assert!(*failed > 0, "everything was delivered: {tally}");
    assert!(*duplicates > 0, "no kill hit a delivery: {tally}");
    for label in ["200", "500", "reset", "not answered"] {
        assert!(requests.of(label) > 0, "nothing was answered {label}: {tally}");
    }
}

/// The switch is there in debug builds only.
#[cfg(debug_assertions)]
#[test]
fn a_service_that_answers_before_its_commit_is_found_out() {
    let (dir, seed) = (tempfile::tempdir().unwrap(), seed());
    let early = [("GALLEY_TEST_ACKNOWLEDGE", "before-commit")];
    let mut harness = Harness::new(dir.path(), seed, &early);
    let creation = |report: &Report| report.is_found_out(&["is gone"]);
    let change = |report: &Report| report.is_found_out(&["an acknowledged", "is lost"]);
    harness.run(|report| creation(report) && change(report));
    tell(format_args!("kill harness, answering before the commit: {}", harness.report));
    let faults = brief(&harness.report.faults);
    assert!(creation(&harness.report), "seed {seed}: no creation was lost: {faults}");
    assert!(change(&harness.report), "seed {seed}: no change was lost: {faults}");
}
