//! Background workers. Each is a single step and a loop around it; tests call the step. The
//! supervisor restarts a loop that ends.

mod delivery;
mod delivery_scheduler;
mod maintenance;
mod supervisor;

pub use delivery::{DeliveryStepOutcome, deliver_one};
pub use delivery_scheduler::run_delivery_scheduler;
pub use maintenance::{
    run_event_poller, run_event_retention, run_record_retention, run_search_indexer,
};
pub use supervisor::{Worker, run_supervised};
