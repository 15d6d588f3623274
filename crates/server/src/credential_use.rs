//! When credentials were last used: remembered in memory, and written to the store by a background
//! worker, so that no request waits for a write.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use galley_store::CredentialId;
use jiff::Timestamp;

/// How much later a use has to be to be remembered, in milliseconds. Most requests only read the
/// shared value, so that cores do not contend for it.
const PRECISION_MS: i64 = 1_000;

/// The last use of one credential, in milliseconds since 1970; 0 if it is not known to be used.
#[derive(Debug, Default)]
pub(crate) struct LastUse {
    used: AtomicI64,
    recorded: AtomicI64,
}

impl LastUse {
    /// Remembers a use.
    pub(crate) fn remember(&self, at: Timestamp) {
        let at = at.as_millisecond();
        if at >= self.used.load(Ordering::Relaxed).saturating_add(PRECISION_MS) {
            self.used.store(at, Ordering::Relaxed);
        }
    }

    /// The last use, if it is later than the recorded one.
    fn unrecorded(&self) -> Option<Timestamp> {
        let used = self.used.load(Ordering::Relaxed);
        let is_later = used > self.recorded.load(Ordering::Relaxed);
        is_later.then(|| Timestamp::from_millisecond(used).ok()).flatten()
    }
}

/// The last uses of all credentials that were used since the process started.
#[derive(Default)]
pub(crate) struct CredentialUses(Mutex<HashMap<CredentialId, Arc<LastUse>>>);

impl CredentialUses {
    /// The last use of a credential.
    pub(crate) fn of(&self, id: CredentialId) -> Arc<LastUse> {
        Arc::clone(self.uses().entry(id).or_default())
    }

    /// The uses that are not in the store yet. Forgets credentials that no cache refers to and that
    /// have none.
    pub(crate) fn unrecorded(&self) -> Vec<(CredentialId, Timestamp)> {
        let mut uses = self.uses();
        uses.retain(|_, last| Arc::strong_count(last) > 1 || last.unrecorded().is_some());
        uses.iter().filter_map(|(id, last)| Some((*id, last.unrecorded()?))).collect()
    }

    /// Marks uses as stored.
    pub(crate) fn mark_recorded(&self, recorded: &[(CredentialId, Timestamp)]) {
        let uses = self.uses();
        for (id, at) in recorded {
            if let Some(last) = uses.get(id) {
                last.recorded.store(at.as_millisecond(), Ordering::Relaxed);
            }
        }
    }

    fn uses(&self) -> MutexGuard<'_, HashMap<CredentialId, Arc<LastUse>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(1_790_000_000_000 + millis).unwrap()
    }

    #[test]
    fn a_use_is_recorded_once_and_again_after_a_second() {
        let (uses, id) = (CredentialUses::default(), CredentialId(4));
        let last = uses.of(id);
        assert_eq!(uses.unrecorded(), []);
        last.remember(at(0));
        last.remember(at(999));
        assert_eq!(uses.unrecorded(), [(id, at(0))]);
        assert_eq!(uses.unrecorded(), [(id, at(0))], "until the store has it");
        uses.mark_recorded(&[(id, at(0))]);
        assert_eq!(uses.unrecorded(), []);
        last.remember(at(1_000));
        assert_eq!(uses.unrecorded(), [(id, at(1_000))]);
    }

    #[test]
    fn a_credential_that_no_cache_refers_to_is_forgotten_once_its_use_is_recorded() {
        let (uses, id) = (CredentialUses::default(), CredentialId(4));
        uses.of(id).remember(at(0));
        assert_eq!(uses.unrecorded(), [(id, at(0))]);
        uses.mark_recorded(&[(id, at(0))]);
        assert_eq!(uses.unrecorded(), []);
        assert!(uses.uses().is_empty());
    }
}
