//! The traits of the subjects that each engine implements itself.

mod changes;
mod templates;

pub use changes::ChangeStore;
pub use templates::{IDEMPOTENCY_HOURS, MAX_CREATES_PER_HOUR, TemplateStore};

/// The subjects that each engine implements itself.
pub trait EngineSubjects: TemplateStore + ChangeStore {}

impl<S> EngineSubjects for S where S: TemplateStore + ChangeStore {}
