//! The supervisor of background workers: restarts a worker that panics or ends, with backoff, and
//! reports it in the log, the metrics and `/readyz`.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
    time::Instant,
};

use crate::{
    app::App,
    observability::{
        conditions::{Conditions, Severity},
        metrics::Metrics,
    },
};

/// Pause before the first restart. Doubles with every further one.
const MIN_RESTART_DELAY: Duration = Duration::from_millis(100);

/// Longest pause before a restart.
const MAX_RESTART_DELAY: Duration = Duration::from_secs(30);

/// A worker that has run for this long is healthy: its failures are forgotten.
const HEALTHY_AFTER: Duration = Duration::from_mins(1);

/// A background worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// Records the time.
    ClockObserver,
    /// Records when credentials were last used.
    CredentialUse,
    /// Delivers events to webhook endpoints.
    DeliveryScheduler,
    /// Polls for events of other processes.
    EventPoller,
    /// Deletes expired events.
    EventRetention,
    /// Reads the totals that the metrics report.
    MetricsSampler,
    /// Deletes expired idempotency records.
    RecordRetention,
    /// Applies the steps of review scripts of emulator accounts.
    ScriptRunner,
    /// Updates the search index.
    SearchIndexer,
    /// Sends statuses of sandbox messages.
    StatusSender,
    /// Works on connections to providers.
    UpstreamSync,
}

impl Worker {
    /// The value of the metric label `worker`.
    fn as_str(self) -> &'static str {
        match self {
            Self::ClockObserver => "clock_observer",
            Self::CredentialUse => "credential_use",
            Self::DeliveryScheduler => "delivery_scheduler",
            Self::EventPoller => "event_poller",
            Self::EventRetention => "event_retention",
            Self::MetricsSampler => "metrics_sampler",
            Self::RecordRetention => "record_retention",
            Self::ScriptRunner => "script_runner",
            Self::SearchIndexer => "search_indexer",
            Self::StatusSender => "status_sender",
            Self::UpstreamSync => "upstream_sync",
        }
    }

    /// The name of the worker's condition in `/readyz`.
    fn condition(self) -> &'static str {
        match self {
            Self::ClockObserver => "worker-clock-observer",
            Self::CredentialUse => "worker-credential-use",
            Self::DeliveryScheduler => "worker-delivery-scheduler",
            Self::EventPoller => "worker-event-poller",
            Self::EventRetention => "worker-event-retention",
            Self::MetricsSampler => "worker-metrics-sampler",
            Self::RecordRetention => "worker-record-retention",
            Self::ScriptRunner => "worker-script-runner",
            Self::SearchIndexer => "worker-search-indexer",
            Self::StatusSender => "worker-status-sender",
            Self::UpstreamSync => "worker-upstream-sync",
        }
    }

    /// What does not happen while the worker is down.
    fn effect(self) -> &'static str {
        match self {
            Self::ClockObserver => "jumps of the clock are noticed late",
            Self::CredentialUse => "the last use of credentials is not recorded",
            Self::DeliveryScheduler => "webhook events are not delivered",
            Self::EventPoller => "events of other processes are noticed late",
            Self::EventRetention => "expired events are not deleted",
            Self::MetricsSampler => "metrics about the store are outdated",
            Self::RecordRetention => "expired idempotency records are not deleted",
            Self::ScriptRunner => "scripts do not review templates of emulator accounts",
            Self::SearchIndexer => "searches do not find new templates",
            Self::StatusSender => "statuses of sandbox messages are not sent",
            Self::UpstreamSync => "templates at providers are not mirrored",
        }
    }
}

/// Runs a worker, and restarts it until the service drains. `start` is called for every start of the worker.
pub async fn run_supervised(app: App, worker: Worker, start: Start) {
    let (metrics, conditions) = (app.metrics(), app.conditions());
    let supervisor = Supervisor { worker, metrics, conditions, draining: app.draining() };
    supervisor.run(|| start(app.clone())).await;
}

/// Starts a worker. Tasks are boxed, so that the runtime is compiled for one type of worker.
pub type Start = Box<dyn Fn(App) -> BoxFuture<'static, ()> + Send + Sync>;

struct Supervisor<'a> {
    worker: Worker,
    metrics: &'a Metrics,
    conditions: &'a Conditions,
    draining: watch::Receiver<bool>,
}

impl Supervisor<'_> {
    async fn run(mut self, start: impl Fn() -> BoxFuture<'static, ()>) {
        // The series exists before the first restart, so that an increase is visible.
        let restarts = self.metrics.worker_restarts(self.worker.as_str());
        let mut failures = 0;
        loop {
            // Dropping the set, and thus the supervisor, stops the worker.
            let mut running = JoinSet::new();
            running.spawn(start());
            let ended = self.watch(&mut running, &mut failures).await;
            if *self.draining.borrow() || ended.as_ref().is_err_and(JoinError::is_cancelled) {
                return;
            }
            failures += 1;
            let delay = restart_delay(failures);
            self.report(failures, delay);
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                _ = self.draining.wait_for(|draining| *draining) => return,
            }
            restarts.inc();
        }
    }

    /// Waits for the end of the worker. Resets its failures once it is healthy.
    async fn watch(&self, running: &mut JoinSet<()>, failures: &mut u32) -> Result<(), JoinError> {
        if *failures > 0 {
            let healthy_at = Instant::now() + HEALTHY_AFTER;
            tokio::select! {
                ended = running.join_next() => return ended.unwrap_or(Ok(())),
                () = tokio::time::sleep_until(healthy_at) => {}
            }
            *failures = 0;
            if self.conditions.clear(self.worker.condition()) {
                tracing::info!(worker = self.worker.as_str(), "a background worker has recovered");
            }
        }
        running.join_next().await.unwrap_or(Ok(()))
    }

    /// Logs a failure, and reports it in `/readyz` until the worker is healthy again. The panic
    /// hook has logged the cause.
    fn report(&self, failures: u32, delay: Duration) {
        let worker = self.worker.as_str();
        tracing::error!(
            worker,
            failures,
            restart_in = ?delay,
            "a background worker stopped unexpectedly and will be restarted"
        );
        let times = if failures == 1 { "once".to_owned() } else { format!("{failures} times") };
        let detail = format!(
            "The background worker {worker} stopped unexpectedly {times} and is restarted; while \
             it is down, {}. The log has the cause.",
            self.worker.effect()
        );
        self.conditions.set(self.worker.condition(), Severity::Warning, detail);
    }
}

/// The pause before the restart after this many failures in a row.
fn restart_delay(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    (MIN_RESTART_DELAY * 2_u32.pow(doublings)).min(MAX_RESTART_DELAY)
}

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::Arc};

    use futures_util::FutureExt as _;
    use tokio::sync::mpsc;

    use super::*;
    use crate::observability::log_writer::LostLines;

    const WORKER: Worker = Worker::SearchIndexer;

    struct Rig {
        metrics: Metrics,
        conditions: Conditions,
        draining: watch::Sender<bool>,
    }

    impl Rig {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                metrics: Metrics::new(&LostLines::default()),
                conditions: Conditions::default(),
                draining: watch::Sender::new(false),
            })
        }

        /// Supervises a worker; returns the instants of its starts.
        fn supervise<F>(
            self: &Arc<Self>,
            worker: impl Fn(usize) -> F + Send + Sync + 'static,
        ) -> (mpsc::UnboundedReceiver<Instant>, tokio::task::JoinHandle<()>)
        where
            F: Future<Output = ()> + Send + 'static,
        {
            let (sender, starts) = mpsc::unbounded_channel();
            let rig = Arc::clone(self);
            let supervised = tokio::spawn(async move {
                let supervisor = Supervisor {
                    worker: WORKER,
                    metrics: &rig.metrics,
                    conditions: &rig.conditions,
                    draining: rig.draining.subscribe(),
                };
                let count = std::sync::atomic::AtomicUsize::new(0);
                let start = || {
                    let _ = sender.send(Instant::now());
                    let started = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    worker(started).boxed()
                };
                supervisor.run(start).await;
            });
            (starts, supervised)
        }

        fn restarts(&self) -> u64 {
            self.metrics.worker_restarts(WORKER.as_str()).get()
        }

        fn warnings(&self) -> Vec<String> {
            let warnings = self.conditions.all(Severity::Warning);
            warnings.into_iter().map(|it| format!("{}: {}", it.name, it.detail)).collect()
        }
    }

    #[test]
    fn the_pause_before_a_restart_doubles_up_to_30_seconds() {
        let delays: Vec<_> = (1..=11).map(|it| restart_delay(it).as_millis()).collect();
        let doubled = [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000];
        assert_eq!(delays, doubled);
        assert_eq!(restart_delay(u32::MAX), MAX_RESTART_DELAY);
    }

    #[tokio::test(start_paused = true)]
    async fn a_panicking_worker_is_restarted_with_backoff_and_reported_until_it_is_healthy() {
        let rig = Rig::new();
        // The fourth start works.
        let (mut starts, _supervised) = rig.supervise(|count| async move {
            assert!(count >= 3, "a bug in a worker");
            pending::<()>().await;
        });
        let mut instants = Vec::new();
        for restarts in 0..4 {
            instants.extend(starts.recv().await);
            assert_eq!(rig.restarts(), restarts);
        }
        let pauses: Vec<_> = instants.windows(2).map(|it| (it[1] - it[0]).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400]);
        let warnings = rig.warnings();
        assert!(warnings[0].starts_with("worker-search-indexer: "), "{warnings:?}");
        assert!(warnings[0].contains("unexpectedly 3 times"), "{warnings:?}");
        assert!(!warnings[0].contains("a bug"), "/readyz needs no credentials: {warnings:?}");

        tokio::time::advance(HEALTHY_AFTER / 2).await;
        tokio::task::yield_now().await;
        assert_eq!(rig.warnings().len(), 1);
        tokio::time::advance(HEALTHY_AFTER / 2).await;
        tokio::task::yield_now().await;
        assert_eq!(rig.warnings(), [""; 0]);
        assert_eq!(rig.restarts(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_healthy_minute_resets_the_backoff() {
        let rig = Rig::new();
        let (mut starts, _supervised) = rig.supervise(|count| async move {
            match count {
                0..3 => {}
                3 => tokio::time::sleep(HEALTHY_AFTER + Duration::from_secs(1)).await,
                _ => pending().await,
            }
        });
        let mut instants = Vec::new();
        for _ in 0..5 {
            instants.extend(starts.recv().await);
        }
        let ended = instants[3] + HEALTHY_AFTER + Duration::from_secs(1);
        let pause = instants[4] - ended;
        assert_eq!(pause, MIN_RESTART_DELAY, "after three failures it would be 800 ms");
        assert!(rig.warnings()[0].contains("unexpectedly once"), "{:?}", rig.warnings());
    }

    #[tokio::test(start_paused = true)]
    async fn a_draining_service_restarts_no_worker() {
        let rig = Rig::new();
        let draining = rig.draining.subscribe();
        let (mut starts, supervised) = rig.supervise(move |_| {
            let mut draining = draining.clone();
            async move { drop(draining.wait_for(|draining| *draining).await) }
        });
        assert!(starts.recv().await.is_some());
        rig.draining.send_replace(true);
        supervised.await.expect("the supervisor ends");
        assert_eq!((rig.restarts(), rig.warnings().len()), (0, 0));

        // Also during the pause before a restart.
        let rig = Rig::new();
        let (mut starts, supervised) = rig.supervise(|_| async { panic!("a bug in a worker") });
        assert!(starts.recv().await.is_some());
        tokio::task::yield_now().await;
        rig.draining.send_replace(true);
        supervised.await.expect("the supervisor ends");
        assert!(starts.recv().await.is_none(), "it was started once");
    }
}
