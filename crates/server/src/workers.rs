//! Background workers. Each is a single step and a loop around it; tests call the step. The
//! supervisor restarts a loop that ends.

mod clock_guard;
mod delivery;
mod delivery_scheduler;
mod endpoint_pace;
mod maintenance;
mod poll_interval;
mod script_runner;
mod statistics;
mod status_sender;
mod statuses;
mod supervisor;
mod token_warnings;
mod upstream_sync;
mod webhook_faults;

use std::time::Duration;

use tokio::task::JoinHandle;

pub use self::{
    clock_guard::observe_clock,
    delivery::{DeliveryStepOutcome, deliver_one},
    delivery_scheduler::run_delivery_scheduler,
    maintenance::{delete_expired_events, delete_expired_records, record_credential_use},
    script_runner::{apply_due_scripts, run_script_runner},
    statistics::sample_statistics,
    status_sender::run_status_sender,
    statuses::{StatusStepOutcome, send_statuses},
    supervisor::{Start, Worker, run_supervised},
    upstream_sync::run_upstream_sync,
};
use self::{
    clock_guard::run_clock_observer,
    maintenance::{
        run_credential_use, run_event_poller, run_event_retention, run_record_retention,
        run_search_indexer,
    },
    statistics::run_metrics_sampler,
};
use crate::{app::App, upstream::UpstreamContext};

/// Which workers run, and what they need besides the service.
pub struct WorkerOptions {
    /// How long events are kept.
    pub events_kept: Duration,
    /// Whether webhooks are delivered.
    pub deliver: bool,
    /// Whether there are emulator accounts.
    pub emulator: bool,
    /// The connections to providers, unless this process leaves them to others.
    pub upstream: Option<UpstreamContext>,
}

/// Starts the background workers. They hold the store open until the runtime shuts down. Returns
/// those that end when the service drains: the senders of webhooks, and what runs the emulator.
pub fn start(app: &App, options: WorkerOptions) -> Vec<JoinHandle<()>> {
    let start = |worker, start: Start| tokio::spawn(run_supervised(app.clone(), worker, start));
    let kept = options.events_kept;
    start(Worker::ClockObserver, Box::new(|app| Box::pin(run_clock_observer(app))));
    start(Worker::CredentialUse, Box::new(|app| Box::pin(run_credential_use(app))));
    start(Worker::RecordRetention, Box::new(|app| Box::pin(run_record_retention(app))));
    start(Worker::SearchIndexer, Box::new(|app| Box::pin(run_search_indexer(app))));
    start(Worker::EventPoller, Box::new(|app| Box::pin(run_event_poller(app))));
    start(Worker::EventRetention, Box::new(move |app| Box::pin(run_event_retention(app, kept))));
    start(Worker::MetricsSampler, Box::new(|app| Box::pin(run_metrics_sampler(app))));
    let mut draining = Vec::new();
    if options.deliver {
        let deliver: Start = Box::new(|app| Box::pin(run_delivery_scheduler(app)));
        draining.push(start(Worker::DeliveryScheduler, deliver));
    }
    if options.deliver && options.emulator {
        let send: Start = Box::new(|app| Box::pin(run_status_sender(app)));
        draining.push(start(Worker::StatusSender, send));
    }
    if let Some(upstream) = options.upstream {
        let sync: Start = Box::new(move |app| Box::pin(run_upstream_sync(app, upstream.clone())));
        draining.push(start(Worker::UpstreamSync, sync));
    }
    if options.emulator {
        let run_scripts: Start = Box::new(|app| Box::pin(run_script_runner(app)));
        draining.push(start(Worker::ScriptRunner, run_scripts));
    }
    draining
}
