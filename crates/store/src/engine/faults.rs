//! Where tests inject faults into the operations of a store.

#[cfg(feature = "testing")]
mod injected;

#[cfg(feature = "testing")]
pub use self::injected::{Fault, Faults, PlantedError};
use crate::{Store, StoreError};

/// The faults of a store; none, unless it is a store for tests.
#[derive(Default)]
pub(crate) struct FaultPoints {
    #[cfg(feature = "testing")]
    faults: Option<std::sync::Arc<injected::Faults>>,
}

#[cfg(feature = "testing")]
impl FaultPoints {
    pub(crate) const fn of(faults: std::sync::Arc<injected::Faults>) -> Self {
        Self { faults: Some(faults) }
    }

    /// The error with which the transaction of a method ends after its body.
    pub(crate) fn at_commit(&self, method: &str) -> Option<fn() -> StoreError> {
        self.faults.as_ref()?.at_commit(method)
    }

    /// An error that is planted in how operations are stored.
    pub(crate) fn planted(&self) -> Option<injected::PlantedError> {
        self.faults.as_ref()?.planted()
    }
}

#[cfg(feature = "testing")]
impl Store {
    /// Runs a method with its faults.
    pub(crate) async fn with_faults_of<T>(
        &self,
        method: &'static str,
        run: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match &self.faults.faults {
            Some(faults) => faults.around(method, run).await,
            None => run.await,
        }
    }
}

#[cfg(not(feature = "testing"))]
impl FaultPoints {
    #[expect(clippy::unused_self, reason = "a store for tests has faults")]
    pub(crate) const fn at_commit(&self, _method: &str) -> Option<fn() -> StoreError> {
        None
    }
}

#[cfg(not(feature = "testing"))]
impl Store {
    #[expect(clippy::unused_self, reason = "a store for tests has faults")]
    pub(crate) fn with_faults_of<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        _method: &'static str,
        run: F,
    ) -> F {
        run
    }
}
