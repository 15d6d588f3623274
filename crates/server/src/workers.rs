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

pub use clock_guard::{observe_clock, run_clock_observer};
pub use delivery::{DeliveryStepOutcome, deliver_one};
pub use delivery_scheduler::run_delivery_scheduler;
pub use maintenance::{
    delete_expired_events, delete_expired_records, record_credential_use, run_credential_use,
    run_event_poller, run_event_retention, run_record_retention, run_search_indexer,
};
pub use script_runner::{apply_due_scripts, run_script_runner};
pub use statistics::{run_metrics_sampler, sample_statistics};
pub use status_sender::run_status_sender;
pub use statuses::{StatusStepOutcome, send_statuses};
pub use supervisor::{Worker, run_supervised};
pub use upstream_sync::run_upstream_sync;
