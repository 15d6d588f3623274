//! The worker is killed at every write while responses of the provider are lost, and while the provider
//! throttles calls or does not accept the token: each operation is made once, and none is lost.

mod wanted;

use std::{collections::BTreeSet, time::Duration};

use galley_domain::upstream::{HeldReason, OperationState};
use galley_server::Clock as _;
use galley_store::{
    Author, ConnectionChange, DegradedReason,
    testing::{Fault, PlantedError},
};
use galley_upstream::Method;
use jiff::SignedDuration;
use serde_json::json;

use self::wanted::{Needed, Wanted};
use super::{
    connected::Connected,
    provider::Loss,
    rng::{Rng, scale},
};
use crate::sandbox::emulator::TOKEN;

/// The writes of the worker. It is killed before each of them begins, and after it is committed.
const WRITES: [&str; 19] = [
    "lease_connection",
    "extend_lease",
    "release_connection",
    "take_call",
    "set_degraded",
    "record_token_expiry",
    "begin_sweep",
    "record_page",
    "finish_sweep",
    "withdraw_approvals",
    "record_read",
    "record_absent",
    "begin_operation",
    "record_call",
    "record_probe",
    "release_operations",
    "skip_operation",
    "record_conflict",
    "rest_calls",
];

/// The writes around a call. Every other kill is at one of them.
const CALL_WRITES: [&str; 4] = ["take_call", "begin_operation", "record_call", "record_probe"];

/// How many rounds are added to kill the worker at every write.
const MAX_MORE_ROUNDS: usize = 40;

/// Longer than a lease.
const LEASE_EXPIRED: Duration = Duration::from_mins(3);

/// Operations that are not settled after this time never will be.
const MAX_SETTLE_TIME: Duration = Duration::from_hours(2);

/// Nor will those that are not settled after so many steps of the worker.
const MAX_SETTLE_STEPS: usize = 200;

/// How soon operations are settled after faults have ended.
const SETTLE_TIME: Duration = Duration::from_secs(90);

const SWEEP_INTERVAL: Duration = Duration::from_mins(15);

/// Where the worker is killed: before a write, or after it is committed.
type KillPoint = (&'static str, Fault);

/// What a run has done and found.
#[derive(Debug, Default)]
struct Report {
    kills: usize,
    /// The writes at which the worker was killed, and whether they were committed.
    points: BTreeSet<(&'static str, bool)>,
    operations: usize,
    /// The operations that were open when the faults ended.
    open: Vec<OperationState>,
    settled: Duration,
    violations: Vec<String>,
}

impl Report {
    /// The writes at which the worker was not killed.
    fn unkilled(&self) -> impl Iterator<Item = &'static str> {
        let is_killed = |write: &str| self.points.iter().any(|at| at.0 == write);
        WRITES.into_iter().filter(move |write| !is_killed(write))
    }
}

struct CrashTest {
    connected: Connected,
    rng: Rng,
    wanted: Wanted,
    /// The write at which the worker will be killed.
    armed: &'static str,
    report: Report,
}

impl CrashTest {
    /// Kills the worker so many times, ends the faults, and compares the provider with what was wanted.
    async fn run(kills: usize, planted: Option<PlantedError>) -> Report {
        let connected = Connected::start().await;
        if let Some(error) = planted {
            connected.store_faults.plant(error);
        }
        let (rng, wanted) = (Rng::new(21), Wanted::default());
        let report = Report::default();
        let mut test = Self { connected, rng, wanted, armed: "", report };
        test.add_faults().await;
        if let Err(violation) = test.kill_often(kills).await {
            test.report.violations.push(violation);
        }
        let repeated = test.connected.repeated_creates();
        if repeated > 0 {
            let violation = format!("{repeated} creates were made again without a look");
            test.report.violations.push(violation);
        }
        test.report.operations = test.wanted.operations();
        test.report
    }

    async fn kill_often(&mut self, kills: usize) -> Result<(), String> {
        let mut round = 0;
        while self.report.kills < kills {
            self.round(kill_point(round)).await?;
            round += 1;
        }
        // A round can settle before its write. What was left out has some more rounds.
        for _ in 0..MAX_MORE_ROUNDS {
            let Some(write) = self.report.unkilled().next() else { break };
            self.round((write, Fault::Hangs)).await?;
        }
        self.leave_open_operations().await;
        let open = self.connected.open_operations().await;
        self.report.open = open.iter().map(|it| it.operation.state).collect();
        self.end_faults().await;
        self.report.settled = self.settle().await?;
        if self.report.settled > SETTLE_TIME {
            let violation = format!("settled only after {:?}", self.report.settled);
            self.report.violations.push(violation);
        }
        let violations = self.wanted.violations(&self.connected).await;
        self.report.violations.extend(violations);
        Ok(())
    }

    /// Leaves operations whose outcome is unknown and that cannot be probed, because the provider does
    /// not accept the token, some that are held, and one whose worker is killed.
    async fn leave_open_operations(&mut self) {
        self.connected.lose(Method::Post, Loss::Response);
        self.wanted.change(&self.connected, &mut self.rng, Some(Needed::Create)).await;
        self.step().await;
        self.connected.advance(Duration::from_secs(2));
        for call in ["list", "create"] {
            let fault = json!({"call": call, "times": 1, "kind": "error", "code": 190});
            self.connected.emulator().add_fault(&fault).await;
        }
        self.step().await;
        self.wanted.change(&self.connected, &mut self.rng, Some(Needed::Create)).await;
        self.step().await;
        self.wanted.change(&self.connected, &mut self.rng, Some(Needed::Create)).await;
        self.arm(("record_call", Fault::Hangs));
        self.step().await;
    }

    async fn add_faults(&self) {
        let emulator = self.connected.emulator();
        for call in ["create", "edit", "delete"] {
            for (kind, share) in [("close_after_commit", 0.1), ("close_before", 0.05)] {
                emulator.add_fault(&json!({"call": call, "share": share, "kind": kind})).await;
            }
        }
        for call in ["create", "edit", "delete", "list", "read"] {
            for (code, share) in [(2, 0.05), (190, 0.01), (80_008, 0.01)] {
                let fault = json!({"call": call, "share": share, "kind": "error", "code": code});
                emulator.add_fault(&fault).await;
            }
        }
    }

    /// Changes templates, and kills the worker once while it makes the operations.
    async fn round(&mut self, point: KillPoint) -> Result<(), String> {
        let needed = match point.0 {
            "set_degraded" | "release_operations" => {
                let code = if self.rng.percent(50) { 190 } else { 80_008 };
                let code = if point.0 == "set_degraded" { code } else { 190 };
                let fault = json!({"call": "create", "times": 1, "kind": "error", "code": code});
                self.connected.emulator().add_fault(&fault).await;
                Some(Needed::Create)
            }
            // A create that is made again is told by the provider.
            "record_call" => Some(Needed::Create),
            "record_probe" => {
                self.connected.lose(Method::Post, Loss::Response);
                Some(Needed::Create)
            }
            "skip_operation" => Some(Needed::Revert),
            "record_absent" => Some(Needed::DeleteEdited),
            "record_conflict" => Some(Needed::Conflict),
            "rest_calls" => {
                self.connected.set_usage(95);
                None
            }
            "begin_sweep" | "record_page" | "finish_sweep" | "withdraw_approvals" => {
                self.connected.advance(SWEEP_INTERVAL);
                None
            }
            "record_token_expiry" => {
                self.connected.advance(Duration::from_hours(24));
                None
            }
            _ => None,
        };
        self.wanted.change(&self.connected, &mut self.rng, needed).await;
        self.arm(point);
        self.settle().await?;
        self.connected.store_faults.clear();
        self.connected.set_usage(0);
        if self.wanted.push_conflict(&self.connected).await {
            self.settle().await?;
        }
        Ok(())
    }

    /// Kills the worker at this point.
    fn arm(&mut self, (write, fault): KillPoint) {
        self.armed = write;
        self.connected.store_faults.set(write, fault);
    }

    /// Lets the worker make a step, in which it may be killed.
    async fn step(&mut self) {
        let faults = &self.connected.store_faults;
        let is_committed = tokio::select! {
            biased;
            () = faults.hanging(1) => false,
            () = faults.held() => true,
            () = self.connected.try_step() => return,
        };
        faults.clear();
        // The rest was asked for once.
        self.connected.set_usage(0);
        self.report.kills += 1;
        self.report.points.insert((self.armed, is_committed));
        self.connected.advance(LEASE_EXPIRED);
    }

    /// Lets the worker work until all operations are settled. Returns how long that took.
    async fn settle(&mut self) -> Result<Duration, String> {
        let (mut waited, mut steps) = (Duration::ZERO, 0);
        while !self.connected.open_operations().await.is_empty() {
            if waited > MAX_SETTLE_TIME || steps > MAX_SETTLE_STEPS {
                let open = self.connected.open_operations().await;
                return Err(format!("never settled: {open:?}"));
            }
            let wait = self.wait_for_work().await;
            if wait.is_zero() {
                self.step().await;
                steps += 1;
            }
            let wait = wait.max(Duration::from_secs(1));
            self.connected.advance(wait);
            waited += wait;
            // A person may replace the token before the next call shows that it is accepted, unless the
            // worker is to be killed when it continues by itself.
            let is_replaced = self.armed != "release_operations" && self.rng.percent(50);
            let is_rejected = self.degraded().await == Some(DegradedReason::Credentials);
            if (is_replaced && is_rejected) || self.is_forbidden().await {
                self.replace_token().await;
            }
        }
        Ok(waited)
    }

    /// How long the worker has nothing to do.
    async fn wait_for_work(&self) -> Duration {
        let (store, now) = (&self.connected.service.store, self.connected.service.clock.now());
        let interval = SignedDuration::try_from(SWEEP_INTERVAL).unwrap();
        let work = store.connections_with_work(now, interval, 5_000).await.unwrap();
        match work.next_at {
            _ if !work.now.is_empty() => Duration::ZERO,
            Some(next_at) => Duration::try_from(next_at.duration_since(now)).unwrap(),
            None => Duration::from_secs(1),
        }
    }

    async fn degraded(&self) -> Option<DegradedReason> {
        let connection = self.connected.service.store.connection(self.connected.account).await;
        connection.unwrap().unwrap().degraded.map(|it| it.reason)
    }

    /// Whether a call was not allowed although the account could be read, which is tried once a day.
    async fn is_forbidden(&self) -> bool {
        let open = self.connected.open_operations().await;
        open.iter().map(|it| &it.operation).any(|it| {
            it.state == OperationState::Held(HeldReason::Credentials) && it.held_until.is_some()
        })
    }

    async fn replace_token(&self) {
        let by = Author::operator(self.connected.service.clock.now());
        let change = ConnectionChange::Token(self.connected.sealed(TOKEN), None);
        let store = &self.connected.service.store;
        assert!(store.change_connection(self.connected.account, change, by).await.unwrap());
    }

    /// Ends all faults: the token is replaced, and the rest that the provider asked for is over.
    async fn end_faults(&mut self) {
        self.connected.store_faults.clear();
        self.connected.clear_faults().await;
        self.replace_token().await;
        let open = self.connected.open_operations().await;
        let throttled = open.iter().map(|it| &it.operation);
        let throttled =
            throttled.filter(|it| it.state == OperationState::Held(HeldReason::Throttle));
        let (store, now) = (&self.connected.service.store, self.connected.service.clock.now());
        let connection = store.connection(self.connected.account).await.unwrap().unwrap();
        let rests = throttled.map(|it| it.held_until).chain([connection.budget.rest_until]);
        if let Some(until) = rests.flatten().max().filter(|until| *until > now) {
            self.connected.advance(Duration::try_from(until.duration_since(now)).unwrap());
        }
    }
}

/// Where the worker is killed in a round: every other time around a call.
fn kill_point(round: usize) -> KillPoint {
    let writes = if round.is_multiple_of(2) { &CALL_WRITES[..] } else { &WRITES[..] };
    let turn = round / 2;
    let is_committed = (turn / writes.len()) % 2 == 1;
    (writes[turn % writes.len()], if is_committed { Fault::Held } else { Fault::Hangs })
}

/// `GALLEY_UPSTREAM_KILLS=500` makes it longer: more than 2,000 operations.
#[tokio::test]
async fn operations_are_made_once_although_the_worker_is_killed_and_responses_are_lost() {
    let report = CrashTest::run(scale("GALLEY_UPSTREAM_KILLS", 100), None).await;
    let never: Vec<_> = report.unkilled().collect();
    let Report { kills, points, operations, open, settled, violations } = report;
    let count = points.len();
    println!("{kills} kills at {count} points, {operations} operations");
    println!("{open:?} settled in {settled:?}");
    assert!(!open.is_empty(), "no operation was open when the faults ended");
    assert!(violations.is_empty(), "{violations:#?}");
    assert!(never.is_empty(), "never killed at {never:?}");
}

/// The provider has each template once, whatever is sent: a look before an edit and the provider's own
/// refusal of a second create hide the error from it, but not the repeated call.
async fn assert_found(planted: PlantedError) {
    let report = CrashTest::run(80, Some(planted)).await;
    let is_found = |it: &String| it.contains("made again without a look");
    assert!(report.violations.iter().any(is_found), "{report:#?}");
}

#[tokio::test]
async fn the_crash_test_finds_a_claim_that_is_committed_after_the_call() {
    assert_found(PlantedError::ClaimAfterCall).await;
}

#[tokio::test]
async fn the_crash_test_finds_a_call_that_is_made_again_without_a_probe() {
    assert_found(PlantedError::RetryWithoutProbe).await;
}
