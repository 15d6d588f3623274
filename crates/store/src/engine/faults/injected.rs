//! Faults that tests inject, by the name of the method.

use std::{
    collections::HashMap,
    future::{Future, pending},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, watch};

use crate::StoreError;

/// A fault in a method of the store.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The method returns this error.
    Fails(fn() -> StoreError),
    /// The method never returns.
    Hangs,
    /// The method panics.
    Panics,
    /// The result is held back until [`Faults::release`], which also removes the fault.
    Held,
    /// The transaction of the method ends with this error when all its statements have run. Only for
    /// methods that are written once for both engines.
    FailsAtCommit(fn() -> StoreError),
}

/// The active faults by method.
#[derive(Default)]
pub struct Faults {
    active: Mutex<HashMap<&'static str, Fault>>,
    /// Number of calls of each method.
    calls: Mutex<HashMap<&'static str, usize>>,
    held: Notify,
    released: Notify,
    /// Number of calls that hang.
    hanging: watch::Sender<usize>,
    planted: Mutex<Option<PlantedError>>,
}

/// A call that hangs, and is counted until it is dropped.
struct HangingCall<'f>(&'f Faults);

impl Drop for HangingCall<'_> {
    fn drop(&mut self) {
        self.0.hanging.send_modify(|count| *count -= 1);
    }
}

impl Faults {
    fn active(&self) -> MutexGuard<'_, HashMap<&'static str, Fault>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<&'static str, usize>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the fault of a method, by its name.
    pub fn set(&self, method: &'static str, fault: Fault) {
        self.active().insert(method, fault);
    }

    /// Plants an error for as long as the store is in use.
    pub fn plant(&self, error: PlantedError) {
        *self.planted.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub(crate) fn planted(&self) -> Option<PlantedError> {
        *self.planted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often a method was called.
    pub fn calls(&self, method: &str) -> usize {
        self.counts().get(method).copied().unwrap_or(0)
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.active().clear();
    }

    /// Waits until a result is held back.
    pub async fn held(&self) {
        self.held.notified().await;
    }

    /// Returns the result that is held back.
    pub fn release(&self) {
        self.released.notify_one();
    }

    /// Waits until this many calls hang. A call that was dropped does not.
    pub async fn hanging(&self, count: usize) {
        let mut hanging = self.hanging.subscribe();
        let _ = hanging.wait_for(|hanging| *hanging == count).await;
    }

    fn of(&self, method: &str) -> Option<Fault> {
        self.active().get(method).copied()
    }

    /// Runs a method with its faults.
    pub(crate) async fn around<T>(
        &self,
        method: &'static str,
        run: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        *self.counts().entry(method).or_default() += 1;
        match self.of(method) {
            None | Some(Fault::Held | Fault::FailsAtCommit(_)) => {}
            Some(Fault::Fails(error)) => return Err(error()),
            Some(Fault::Hangs) => {
                self.hanging.send_modify(|count| *count += 1);
                let _hanging = HangingCall(self);
                pending::<()>().await;
            }
            Some(Fault::Panics) => panic!("a fault was injected into {method}"),
        }
        let result = run.await;
        if matches!(self.of(method), Some(Fault::Held)) {
            self.active().remove(method);
            self.held.notify_one();
            self.released.notified().await;
        }
        result
    }

    pub(crate) fn at_commit(&self, method: &str) -> Option<fn() -> StoreError> {
        match self.of(method) {
            Some(Fault::FailsAtCommit(error)) => Some(error),
            _ => None,
        }
    }
}

/// An error in how the work on operations is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedError {
    /// The beginning of a call is committed only after the call.
    ClaimAfterCall,
    /// A call whose outcome is unknown is made again without a probe.
    RetryWithoutProbe,
}
