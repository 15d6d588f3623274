//! Works on the connections of accounts to providers, on several at a time.

use std::{collections::HashMap, sync::Arc, time::Duration};

use galley_domain::id::AccountId;
use jiff::SignedDuration;
use tokio::{
    task::{self, JoinError, JoinSet},
    time::Instant,
};

use super::{
    poll_interval::{pause_after_poll, wait_until_due},
    token_warnings::TokenWarnings,
};
use crate::{
    app::App,
    upstream::{SyncError, UpstreamContext, metered, sync_connection},
};

/// Maximum number of connections at a time.
const MAX_CONNECTIONS: usize = 16;

/// Pause of a connection after an error that is not recorded with it.
const ERROR_PAUSE: Duration = Duration::from_secs(30);

/// Works on connections until the service drains, then finishes the running steps.
pub async fn run_upstream_sync(app: App, mut context: UpstreamContext) {
    context.waker = app.upstream().clone();
    let mut draining = app.draining();
    let mut token_warnings = TokenWarnings::default();
    app.metrics().set_upstream_calls_per_hour(context.settings.calls_per_hour);
    let recorder = app.clone();
    context.transports = metered(context.transports, move |call, outcome| {
        recorder.metrics().record_upstream_call(call, outcome);
    });
    let recorder = app.clone();
    context.samples.record = Arc::new(move |is_kept| {
        recorder.metrics().record_upstream_sample(is_kept);
    });
    let (mut tasks, mut schedule) = (JoinSet::new(), Schedule::default());
    let sweep_interval =
        SignedDuration::try_from(context.settings.sweep_interval).unwrap_or(SignedDuration::MAX);
    while !app.is_draining() {
        while let Some(ended) = tasks.try_join_next_with_id() {
            schedule.finish(ended);
        }
        let (now, started) = (app.clock().now(), Instant::now());
        token_warnings.log_due(&context.store, now).await;
        let calls_per_hour = context.settings.calls_per_hour;
        let work = context.store.connections_with_work(now, sweep_interval, calls_per_hour);
        let next_at = match work.await {
            Ok(work) => {
                for account in schedule.in_turn(work.now) {
                    if schedule.is_ready(account) {
                        let context = context.clone();
                        let step =
                            async move { (account, sync_connection(&context, account).await) };
                        schedule.start(account, tasks.spawn(step).id());
                    }
                }
                work.next_at
            }
            Err(error) => {
                tracing::warn!(%error, "connections to providers could not be queried");
                None
            }
        };
        let min_pause = pause_after_poll(started.elapsed());
        tokio::select! {
            () = tokio::time::sleep(min_pause.max(wait_until_due(next_at, now))) => {}
            Some(ended) = tasks.join_next_with_id() => schedule.finish(ended),
            _ = draining.changed() => {}
            () = context.waker.woken() => {
                schedule.end_idle_pauses();
                tokio::time::sleep_until(started + min_pause).await;
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// Pause of a connection after a step without a call: its work waits for something else.
const IDLE_PAUSE: Duration = Duration::from_secs(1);

/// The result of a step on the connection of an account: how many calls it made.
type StepResult = (AccountId, Result<u32, SyncError>);

/// The connections that a task works on, and those that pause.
#[derive(Default)]
struct Schedule {
    active: HashMap<AccountId, task::Id>,
    paused_until: HashMap<AccountId, Instant>,
    /// Those that pause until there is new work, or until then.
    idle_until: HashMap<AccountId, Instant>,
    /// The connection that was started last.
    last_started: Option<AccountId>,
}

impl Schedule {
    /// Connections in the order in which they are started: those after the one that was started last
    /// come first, so that each has its turn if there are more than slots. `accounts` are in order.
    fn in_turn(&self, mut accounts: Vec<AccountId>) -> Vec<AccountId> {
        let next = accounts.partition_point(|account| Some(*account) <= self.last_started);
        accounts.rotate_left(next);
        accounts
    }

    fn start(&mut self, account: AccountId, task: task::Id) {
        self.active.insert(account, task);
        self.last_started = Some(account);
    }

    fn is_ready(&mut self, account: AccountId) -> bool {
        let now = Instant::now();
        for pauses in [&mut self.paused_until, &mut self.idle_until] {
            pauses.retain(|_, until| *until > now);
        }
        self.active.len() < MAX_CONNECTIONS
            && !self.active.contains_key(&account)
            && !self.paused_until.contains_key(&account)
            && !self.idle_until.contains_key(&account)
    }

    /// Ends the pauses of connections that had nothing to do.
    fn end_idle_pauses(&mut self) {
        self.idle_until.clear();
    }

    fn finish(&mut self, ended: Result<(task::Id, StepResult), JoinError>) {
        let (account, is_idle, pauses) = match ended {
            Ok((_, (account, result))) => {
                (Some(account), matches!(result, Ok(0)), report(account, result))
            }
            Err(error) => {
                tracing::error!(%error, "the task that works on a connection failed");
                let mut active = self.active.iter();
                (active.find(|it| *it.1 == error.id()).map(|it| *it.0), false, true)
            }
        };
        let Some(account) = account else { return };
        self.active.remove(&account);
        if is_idle {
            self.idle_until.insert(account, Instant::now() + IDLE_PAUSE);
        }
        if pauses {
            self.paused_until.insert(account, Instant::now() + ERROR_PAUSE);
        }
    }
}

/// Logs the result of a step. Returns whether the connection pauses.
fn report(account: AccountId, result: Result<u32, SyncError>) -> bool {
    match result {
        Ok(_) | Err(SyncError::NotBefore(_) | SyncError::LeaseLost | SyncError::Paused) => false,
        // The connection is degraded, which an event tells, and rests.
        Err(SyncError::Call(failure)) => {
            tracing::warn!(%account, %failure, "a call to the provider failed");
            false
        }
        Err(error) => {
            tracing::error!(%account, %error, "the connection to the provider does not work");
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(id: u64) -> AccountId {
        AccountId::new(id).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn one_task_works_on_a_connection_and_an_error_pauses_it() {
        let mut schedule = Schedule::default();
        let mut tasks = JoinSet::new();
        for result in [Ok(3), Err(SyncError::LeaseLost), Err(SyncError::Paused)] {
            assert!(schedule.is_ready(account(7)));
            let id = tasks.spawn(async move { (account(7), result) }).id();
            schedule.active.insert(account(7), id);
            assert!(!schedule.is_ready(account(7)));
            schedule.finish(tasks.join_next_with_id().await.unwrap());
        }
        let idle = tasks.spawn(async { (account(7), Ok(0)) }).id();
        schedule.active.insert(account(7), idle);
        schedule.finish(tasks.join_next_with_id().await.unwrap());
        assert!(!schedule.is_ready(account(7)), "it had nothing to do");
        schedule.end_idle_pauses();
        assert!(schedule.is_ready(account(7)));
        let id = tasks.spawn(async { panic!("a bug in the task") }).id();
        schedule.active.insert(account(7), id);
        schedule.finish(tasks.join_next_with_id().await.unwrap());
        assert!(!schedule.is_ready(account(7)) && schedule.is_ready(account(8)));
        tokio::time::advance(ERROR_PAUSE).await;
        assert!(schedule.is_ready(account(7)));
    }

    #[test]
    fn so_many_connections_are_worked_on_at_a_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let id = runtime.spawn(async {}).id();
        let mut schedule = Schedule::default();
        for number in 1..=MAX_CONNECTIONS as u64 {
            assert!(schedule.is_ready(account(number)));
            schedule.active.insert(account(number), id);
        }
        assert!(!schedule.is_ready(account(1_000)));
    }

    #[test]
    fn each_of_more_connections_than_slots_has_its_turn() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let id = runtime.spawn(async {}).id();
        let all: Vec<AccountId> = (1..=MAX_CONNECTIONS as u64 + 3).map(account).collect();
        let mut schedule = Schedule::default();
        let mut started = Vec::new();
        // All have work all the time, and each step ends before the next look for work.
        for _ in 0..2 {
            for account in schedule.in_turn(all.clone()) {
                if schedule.is_ready(account) {
                    schedule.start(account, id);
                    started.push(account);
                }
            }
            schedule.active.clear();
        }
        assert_eq!(started.len(), 2 * MAX_CONNECTIONS);
        let (first, second) = started.split_at(MAX_CONNECTIONS);
        assert_eq!(first, &all[..MAX_CONNECTIONS]);
        assert_eq!(second[..3], all[MAX_CONNECTIONS..], "those that had to wait come first");
        assert_eq!(second[3], all[0]);
        // The one that was started last may have no work, or no connection any more.
        schedule.last_started = Some(account(5));
        let in_turn = schedule.in_turn(vec![account(2), account(4), account(7)]);
        assert_eq!(in_turn, [account(7), account(2), account(4)]);
    }
}
