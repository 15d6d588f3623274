//! When sessions of the console were last used: remembered in memory, and written to the store by a
//! background worker, so that no request waits for a write.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use galley_store::SecretHash;
use jiff::{SignedDuration, Timestamp};

/// How much later than the recorded use another one has to be.
const PRECISION: SignedDuration = SignedDuration::from_mins(1);

/// Maximum number of sessions whose use is remembered between two writes.
const MAX_USES: usize = 10_000;

/// The last uses of sessions that are not in the store yet.
#[derive(Default)]
pub(crate) struct SessionUses(Mutex<HashMap<SecretHash, Timestamp>>);

impl SessionUses {
    /// Remembers a use, unless the store knows one that is about as late.
    pub(crate) fn remember(&self, session: SecretHash, recorded: Timestamp, at: Timestamp) {
        if at.duration_since(recorded) < PRECISION {
            return;
        }
        let mut uses = self.uses();
        if uses.len() < MAX_USES || uses.contains_key(&session) {
            let last = uses.entry(session).or_insert(at);
            *last = at.max(*last);
        }
    }

    /// Takes all uses, to write them.
    pub(crate) fn take(&self) -> Vec<(SecretHash, Timestamp)> {
        self.uses().drain().collect()
    }

    /// Remembers uses again that could not be written.
    pub(crate) fn put_back(&self, uses: Vec<(SecretHash, Timestamp)>) {
        for (session, at) in uses {
            self.remember(session, Timestamp::MIN, at);
        }
    }

    fn uses(&self) -> MutexGuard<'_, HashMap<SecretHash, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_use_is_written_at_most_once_a_minute() {
        let (uses, session) = (SessionUses::default(), SecretHash::of("s"));
        uses.remember(session, second(0), second(59));
        assert_eq!(uses.take(), []);
        uses.remember(session, second(0), second(70));
        uses.remember(session, second(0), second(60));
        let taken = uses.take();
        assert_eq!(taken, [(session, second(70))]);
        assert_eq!(uses.take(), []);
        uses.put_back(taken.clone());
        assert_eq!(uses.take(), taken);
    }
}
