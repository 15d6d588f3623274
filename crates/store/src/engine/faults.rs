//! Where tests inject faults into the operations of a store.

#[cfg(feature = "testing")]
mod injected;

#[cfg(feature = "testing")]
pub use self::injected::{Fault, Faults, PlantedError};
use crate::{Store, StoreError, StoreFuture};

/// The faults of a store; none, unless it is a store for tests.
#[derive(Default)]
pub(crate) struct FaultPoints {
    #[cfg(feature = "testing")]
    pub(crate) injected: Option<std::sync::Arc<Faults>>,
}

impl FaultPoints {
    /// The error with which the transaction of a method ends after its body.
    pub(crate) fn at_commit(&self, method: &str) -> Option<fn() -> StoreError> {
        #[cfg(feature = "testing")]
        if let Some(faults) = &self.injected {
            return faults.at_commit(method);
        }
        #[cfg(not(feature = "testing"))]
        let _ = (self, method);
        None
    }

    /// An error that is planted in how operations are stored.
    #[cfg(feature = "testing")]
    pub(crate) fn planted(&self) -> Option<PlantedError> {
        self.injected.as_ref()?.planted()
    }
}

impl Store {
    /// Runs a method with its faults.
    pub(crate) fn with_faults_of<'s, T: Send + 's>(
        &'s self,
        method: &'static str,
        run: StoreFuture<'s, T>,
    ) -> StoreFuture<'s, T> {
        #[cfg(feature = "testing")]
        if let Some(faults) = &self.faults.injected {
            return Box::pin(faults.around(method, run));
        }
        #[cfg(not(feature = "testing"))]
        let _ = (self, method);
        run
    }
}
