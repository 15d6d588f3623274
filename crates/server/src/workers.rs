//! Background workers. Each is a step and a loop around it; tests call the step.

mod delivery;
mod delivery_scheduler;
mod maintenance;

pub use delivery::{Step, deliver_one};
pub use delivery_scheduler::deliver_webhooks_forever;
pub use maintenance::{
    run_event_poller, run_event_retention, run_record_retention, run_search_indexer,
};
