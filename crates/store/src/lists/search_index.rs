//! How far the search index is behind the writes of an account.

use jiff::Timestamp;

use crate::Unindexed;

/// How far the search index is behind an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexBacklog {
    /// The account's newest event.
    pub(crate) newest: u64,
    /// The last event that is indexed.
    pub(crate) indexed: u64,
    /// The time of the first event that is not indexed; `None` if there is none, or if retention
    /// has deleted it.
    pub(crate) next_event_at: Option<Timestamp>,
    /// While all templates are scanned: the last one that is; 0 for none.
    pub(crate) scanned: Option<u64>,
}

impl IndexBacklog {
    /// After which template a scan of all templates continues, if one is running. If retention has
    /// deleted the next event, the indexer is about to begin a new one.
    pub(crate) fn scan_after(&self) -> Option<u64> {
        let has_gap = self.indexed < self.newest && self.next_event_at.is_none();
        if has_gap { Some(0) } else { self.scanned }
    }
}

/// The progress of the search index for one account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexState {
    pub(crate) backlog: IndexBacklog,
    /// While all templates are scanned: when the first one changed that is not scanned yet.
    pub(crate) unscanned_since: Option<Timestamp>,
}

impl IndexState {
    /// Whether the index contains the account's events up to number `seq`.
    pub(crate) fn contains(self, seq: u64) -> bool {
        self.backlog.indexed >= seq && self.unscanned_since.is_none()
    }

    /// What is not indexed, if anything.
    pub(crate) fn unindexed(self) -> Option<Unindexed> {
        let IndexBacklog { newest, indexed, next_event_at, .. } = self.backlog;
        if self.contains(newest) {
            return None;
        }
        let since = self.unscanned_since.into_iter().chain(next_event_at).min()?;
        // A scan may not have come to templates of earlier events.
        let indexed = if self.unscanned_since.is_none() { indexed } else { 0 };
        Some(Unindexed { newest, indexed, since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_oldest_write_that_is_not_indexed_counts() {
        let indexed = IndexBacklog { newest: 7, indexed: 7, ..IndexBacklog::default() };
        let current = IndexState { backlog: indexed, unscanned_since: None };
        let backlog = IndexBacklog { indexed: 5, next_event_at: Some(at(50)), ..indexed };
        let behind = IndexState { backlog, unscanned_since: None };
        let scanning = IndexState { unscanned_since: Some(at(30)), ..current };
        let both = IndexState { unscanned_since: Some(at(60)), ..behind };
        for (state, since) in [
            (current, None),
            (IndexState::default(), None),
            (behind, Some(50)),
            (scanning, Some(30)),
            (both, Some(50)),
        ] {
            let IndexBacklog { newest, indexed, .. } = state.backlog;
            let indexed = if state.unscanned_since.is_none() { indexed } else { 0 };
            let since = since.map(at);
            let expected = since.map(|since| Unindexed { newest, indexed, since });
            assert_eq!(state.unindexed(), expected, "{state:?}");
            assert_eq!(state.contains(newest), since.is_none(), "{state:?}");
        }
        let gap = IndexBacklog { scanned: Some(9), next_event_at: None, ..behind.backlog };
        assert_eq!(gap.scan_after(), Some(0), "the scan that runs has passed older templates");
        assert!(behind.contains(5) && !behind.contains(6), "only what is indexed");
        assert!(!scanning.contains(1), "templates that are not scanned may be missing");
    }
}
