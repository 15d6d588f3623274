//! A store for tests: faults are injected into a real one.

use std::sync::Arc;

pub use crate::engine::{Fault, Faults, PlantedError};
use crate::{Store, engine::FaultPoints};

impl Store {
    /// The same store with faults, which can be changed while the store is in use.
    #[must_use]
    pub fn with_faults(&self, faults: Arc<Faults>) -> Self {
        Self { engine: Arc::clone(&self.engine), faults: FaultPoints { injected: Some(faults) } }
    }
}
