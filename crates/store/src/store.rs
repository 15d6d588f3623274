//! The traits of the subjects that each engine implements itself.

mod changes;
mod list;
mod maintenance;
mod statistics;
mod templates;

pub use changes::ChangeStore;
pub use list::{ListStore, MAX_LIST_COUNT, MAX_SEARCH_COUNT};
pub use maintenance::MaintenanceStore;
pub use statistics::StatisticsStore;
pub use templates::{IDEMPOTENCY_HOURS, MAX_CREATES_PER_HOUR, TemplateStore};

/// The subjects that each engine implements itself.
pub trait EngineSubjects:
    TemplateStore + ChangeStore + ListStore + MaintenanceStore + StatisticsStore
{
}

impl<S> EngineSubjects for S where
    S: TemplateStore + ChangeStore + ListStore + MaintenanceStore + StatisticsStore
{
}
