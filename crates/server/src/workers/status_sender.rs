//! The status sender: sends statuses of sandbox messages to all endpoints of emulator accounts
//! concurrently, one request at a time to each endpoint.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use galley_domain::id::AccountId;
use galley_store::{FairSlots, KeyShare, WebhookKey};
use jiff::Timestamp;
use tokio::{
    task::{self, JoinError, JoinSet},
    time::Instant,
};

use super::{
    endpoint_pace::{EndpointPace, Paces},
    poll_interval::{MAX_POLL_INTERVAL, pause_after_poll},
    statuses::{StatusStepOutcome, send_paced},
};
use crate::app::App;

/// Maximum concurrent requests to all endpoints together; the accounts share them.
const MAX_REQUESTS: usize = 128;

/// Pause of an endpoint after its first failure. Doubles with every further one.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_mins(1);

/// Sends due statuses until the service drains, then finishes the running requests.
pub async fn run_status_sender(app: App) {
    let (mut statuses, mut draining) = (app.emulator().subscribe(), app.draining());
    let slots = FairSlots::new(MAX_REQUESTS, KeyShare::HalfOfFree);
    let mut tasks = JoinSet::new();
    let mut schedule = Schedule::default();
    let per_second = app.webhooks().per_second;
    while !app.is_draining() {
        while let Some(ended) = tasks.try_join_next_with_id() {
            schedule.finish(ended);
        }
        if statuses.has_changed().unwrap_or_default() {
            statuses.mark_unchanged();
            schedule.wake();
        }
        let started = Instant::now();
        match app.store().endpoints_with_statuses(app.clock().now()).await {
            Ok(endpoints) => {
                schedule.forget_ended_pauses(&endpoints.iter().copied().collect());
                for endpoint in endpoints {
                    if !schedule.is_ready(endpoint) {
                        continue;
                    }
                    let failures = schedule.pauses.remove(&endpoint).map_or(0, |it| it.failures);
                    let pace = schedule.paces.take(endpoint);
                    let pace = pace.unwrap_or_else(|| EndpointPace::rested(per_second));
                    let sending = send_to(app.clone(), endpoint, failures, pace, slots.clone());
                    schedule.begin(endpoint, tasks.spawn(sending).id());
                }
            }
            Err(error) => tracing::warn!(%error, "due statuses could not be queried"),
        }
        let pause = pause_after_poll(started.elapsed());
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = draining.changed() => continue,
        }
        let next = schedule.next_at(Instant::now() + MAX_POLL_INTERVAL.saturating_sub(pause));
        tokio::select! {
            _ = statuses.changed() => schedule.wake(),
            () = tokio::time::sleep_until(next) => {}
            _ = draining.changed() => {}
            Some(ended) = tasks.join_next_with_id() => schedule.finish(ended),
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// Why nothing is sent to an endpoint at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pause {
    until: Instant,
    /// The number of failures in a row; 0 if nothing was due.
    failures: u32,
    /// Whether it lasts. A signal ends it, unless the endpoint has failed; the time of the next
    /// status stays known.
    lasts: bool,
}

/// The endpoints that get statuses now, and those that wait.
#[derive(Default)]
struct Schedule {
    active: HashMap<WebhookKey, Active>,
    pauses: HashMap<WebhookKey, Pause>,
    /// How fast the endpoints get requests that are not active.
    paces: Paces,
    /// The number of signals so far.
    signals: u64,
}

/// What a task that sends to an endpoint returns.
struct Finished {
    endpoint: WebhookKey,
    pause: Pause,
    pace: EndpointPace,
}

/// A task that sends to an endpoint.
struct Active {
    task: task::Id,
    /// The number of signals when it began.
    signals: u64,
}

impl Schedule {
    fn is_ready(&self, endpoint: WebhookKey) -> bool {
        let now = Instant::now();
        let is_paused = self.pauses.get(&endpoint).is_some_and(|it| it.lasts && it.until > now);
        !is_paused && !self.active.contains_key(&endpoint)
    }

    fn begin(&mut self, endpoint: WebhookKey, task: task::Id) {
        self.active.insert(endpoint, Active { task, signals: self.signals });
    }

    /// Lets all endpoints try again, except those that have failed.
    fn wake(&mut self) {
        self.signals += 1;
        for pause in self.pauses.values_mut() {
            pause.lasts = pause.failures > 0;
        }
    }

    /// Forgets pauses that have ended, except of the endpoints that have due statuses.
    fn forget_ended_pauses(&mut self, endpoints: &HashSet<WebhookKey>) {
        let now = Instant::now();
        self.pauses.retain(|endpoint, pause| pause.until > now || endpoints.contains(endpoint));
    }

    /// When the first pause ends, at most `latest`.
    fn next_at(&self, latest: Instant) -> Instant {
        self.pauses.values().map(|pause| pause.until).min().map_or(latest, |it| it.min(latest))
    }

    fn finish(&mut self, ended: Result<(task::Id, Finished), JoinError>) {
        match ended {
            Ok((_, Finished { endpoint, pause, pace })) => {
                let active = self.active.remove(&endpoint);
                // A signal during the task may concern what it did not find due.
                let is_current = active.is_some_and(|it| it.signals == self.signals);
                let lasts = is_current || pause.failures > 0;
                self.pauses.insert(endpoint, Pause { lasts, ..pause });
                self.paces.put(endpoint, pace);
            }
            // The task panicked. The next one may panic as well, so it waits.
            Err(error) => {
                let mut active = self.active.iter();
                let endpoint = active.find(|it| it.1.task == error.id()).map(|it| *it.0);
                tracing::error!(%error, "the task that sends statuses to an endpoint failed");
                if let Some(endpoint) = endpoint {
                    self.active.remove(&endpoint);
                    self.pauses.insert(endpoint, Pause::after_failure(0));
                }
            }
        }
    }
}

impl Pause {
    /// The pause after one more failure than so many.
    fn after_failure(failures: u32) -> Self {
        let backoff = MIN_BACKOFF * 2_u32.saturating_pow(failures.min(6));
        Self {
            until: Instant::now() + backoff.min(MAX_BACKOFF),
            failures: failures.saturating_add(1),
            lasts: true,
        }
    }

    /// The pause until a status may be due.
    fn until_due(next: Option<Timestamp>, now: Timestamp) -> Self {
        let wait = next.map_or(MAX_POLL_INTERVAL, |next| {
            Duration::try_from(next.duration_since(now)).unwrap_or_default().min(MAX_POLL_INTERVAL)
        });
        Self { until: Instant::now() + wait, failures: 0, lasts: true }
    }
}

/// Sends to one endpoint as long as statuses are due.
async fn send_to(
    app: App,
    endpoint: WebhookKey,
    mut failures: u32,
    mut pace: EndpointPace,
    slots: FairSlots<AccountId>,
) -> Finished {
    let WebhookKey { account, id: webhook } = endpoint;
    loop {
        let _slot = slots.acquire(account).await;
        if app.is_draining() {
            let pause = Pause::until_due(None, app.clock().now());
            return Finished { endpoint, pause, pace };
        }
        let pause = match send_paced(&app, webhook, &mut pace).await {
            Ok(StatusStepOutcome::Sent(_)) => {
                failures = 0;
                continue;
            }
            Ok(StatusStepOutcome::Idle(next)) => Pause::until_due(next, app.clock().now()),
            Ok(StatusStepOutcome::LeaseLost) => Pause::until_due(None, app.clock().now()),
            Ok(StatusStepOutcome::Failed | StatusStepOutcome::SigningFailed) => {
                Pause::after_failure(failures)
            }
            Err(error) => {
                tracing::warn!(%account, %webhook, %error, "statuses could not be leased or recorded");
                Pause::after_failure(failures)
            }
        };
        return Finished { endpoint, pause, pace };
    }
}

#[cfg(test)]
mod tests {
    use galley_domain::id::WebhookId;

    use super::*;

    fn endpoint() -> WebhookKey {
        WebhookKey { account: AccountId::new(1).unwrap(), id: WebhookId::new(7).unwrap() }
    }

    #[tokio::test(start_paused = true)]
    async fn the_pause_after_a_failure_doubles_up_to_a_minute() {
        let seconds = |failures| {
            let pause = Pause::after_failure(failures);
            assert_eq!(pause.failures, failures.saturating_add(1));
            (pause.until - Instant::now()).as_secs()
        };
        let pauses: Vec<u64> = (0..8).map(seconds).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(seconds(u32::MAX), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_send_wakes_an_endpoint_that_waits_but_not_one_that_fails() {
        let mut schedule = Schedule::default();
        let now = Timestamp::from_second(1_000).unwrap();
        let next = Timestamp::from_millisecond(1_000_300).unwrap();
        schedule.pauses.insert(endpoint(), Pause::until_due(Some(next), now));
        assert!(!schedule.is_ready(endpoint()));
        let far = Instant::now() + MAX_POLL_INTERVAL;
        assert_eq!(schedule.next_at(far), Instant::now() + Duration::from_millis(300));
        schedule.wake();
        assert!(schedule.is_ready(endpoint()));
        schedule.forget_ended_pauses(&HashSet::new());
        let due = Instant::now() + Duration::from_millis(300);
        assert_eq!(schedule.next_at(far), due, "the next status is sent in time");
        tokio::time::advance(Duration::from_millis(300)).await;
        schedule.forget_ended_pauses(&HashSet::new());
        assert_eq!(schedule.next_at(far), far);
        schedule.pauses.insert(endpoint(), Pause::after_failure(0));
        schedule.wake();
        assert!(!schedule.is_ready(endpoint()));
        tokio::time::advance(MIN_BACKOFF).await;
        assert!(schedule.is_ready(endpoint()));
    }

    #[tokio::test]
    async fn a_signal_during_a_task_lets_the_endpoint_try_again_at_once() {
        let mut schedule = Schedule::default();
        for (is_woken, failures, is_ready) in
            [(false, 0, false), (true, 0, true), (false, 1, false), (true, 1, false)]
        {
            schedule.pauses.clear();
            let until = Instant::now() + MAX_POLL_INTERVAL;
            let pause = Pause { until, failures, lasts: true };
            let mut tasks = JoinSet::new();
            let pace = EndpointPace::rested(50);
            let finished = Finished { endpoint: endpoint(), pause, pace };
            schedule.begin(endpoint(), tasks.spawn(async move { finished }).id());
            if is_woken {
                schedule.wake();
            }
            assert!(!schedule.is_ready(endpoint()), "one task at a time");
            schedule.finish(tasks.join_next_with_id().await.unwrap());
            assert_eq!(schedule.is_ready(endpoint()), is_ready, "{is_woken} {failures}");
        }
    }

    #[tokio::test]
    async fn an_endpoint_whose_task_panics_is_freed_and_paused() {
        let mut tasks = JoinSet::<Finished>::new();
        let task = tasks.spawn(async { panic!("a bug in the task") });
        let mut schedule = Schedule::default();
        schedule.begin(endpoint(), task.id());
        schedule.finish(tasks.join_next_with_id().await.unwrap());
        assert!(schedule.active.is_empty() && !schedule.is_ready(endpoint()));
    }
}
