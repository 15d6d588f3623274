//! Emulator accounts: what their clocks, review scripts, faults and sandbox messages write, and how
//! their rows are decoded.

mod faults;
mod messages;
mod script;
mod statuses;

use galley_domain::emulator::{EmulatorKind, clock::Clock};
use jiff::Timestamp;

pub(crate) use self::{
    faults::{FaultDecision, decide, fault},
    messages::{
        COLUMNS as MESSAGE_COLUMNS, MessageCounter, message, retention_cutoff, sent,
        stored_callback_data,
    },
    script::{LOCK_CLEANUP_ROWS, QueuedStep, ScriptRun, locked_name, name_lock},
    statuses::{
        EndpointStatuses, PendingStatuses, RECEIVES_STATUSES, SentMessage, latest_due_sends,
    },
};
use crate::{
    EmulatedApp, StoreError, StoredSecret,
    stored_row::{Row, StoredRow as _},
};

/// How an emulator account decides on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Emulation {
    pub(crate) kind: EmulatorKind,
    /// The time that the account's clock shows.
    pub(crate) now: Timestamp,
}

impl Emulation {
    /// Whether an edit replaces the version in its place, as Meta does.
    pub(crate) fn edits_in_place(emulation: Option<Self>) -> bool {
        emulation.is_some_and(|it| it.kind.faithful)
    }

    /// The time that quotas of creates and edits count with.
    pub(crate) fn quota_time(emulation: Option<Self>, real: Timestamp) -> Timestamp {
        emulation.map_or(real, |it| it.now)
    }
}

/// The clock in a row with the columns `at` and `since`.
pub(crate) fn clock(row: &Row<'_>) -> Result<Clock, StoreError> {
    Ok(Clock { at: row.timestamp("at")?, since: row.optional_timestamp("since")? })
}

/// The app in a row with the columns `secret` and `callback_override`.
pub(crate) fn app(row: &Row<'_>) -> Result<EmulatedApp, StoreError> {
    Ok(EmulatedApp {
        secret: row.value::<Option<Vec<u8>>>("secret")?.map(StoredSecret),
        callback_override: row.value("callback_override")?,
    })
}

#[cfg(test)]
mod tests {
    use galley_domain::id::AccountId;
    use jiff::SignedDuration;

    use super::*;
    use crate::DueWork;

    #[test]
    fn an_account_has_work_now_later_or_not_before_its_clock_moves() {
        let (at, second) = (Timestamp::UNIX_EPOCH, SignedDuration::from_secs(1));
        let [runs, stands] = [Some(at), None].map(|since| Clock { at, since });
        let steps = [
            (1, stands, at),
            (2, stands, at + second),
            (3, runs, at + second * 3),
            (4, runs, at + second * 2),
            (5, runs, at - second),
        ];
        let work = DueWork::at(
            at,
            steps.map(|(id, clock, due_at): (u64, Clock, Timestamp)| {
                (AccountId::new(id).unwrap(), clock.real_time_of(due_at, at))
            }),
        );
        let ids: Vec<u64> = work.now.iter().map(|id| id.get()).collect();
        assert_eq!((ids, work.next_at), (vec![1, 5], Some(at + second * 2)));
    }
}
