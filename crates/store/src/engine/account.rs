//! What a write transaction keeps of an account in memory.

use galley_domain::id::AccountId;

use super::{Dialect, Value, values};
use crate::{
    AccountLimits, StoreError, decisions::stored_bytes::StoredBytes, stored_row::StoredRow,
};

/// The columns that [`AccountState::read`] reads.
macro_rules! account_state_columns {
    ($last_template:literal) => {
        concat!(
            $last_template,
            " AS last_template, last_seq, CAST(template_limit AS bigint) AS template_limit, four_eyes, \
             deleted_at IS NOT NULL AS is_deleted, ",
            $crate::decisions::stored_bytes::stored_bytes_columns!(),
        )
    };
}
pub(crate) use account_state_columns;

macro_rules! select {
    ($last_template:literal, $lock:literal) => {
        concat!(
            "SELECT ",
            account_state_columns!($last_template),
            " FROM account WHERE id = $1",
            $lock
        )
    };
}

/// The row of an account with the changes of a transaction, which writes them once, at its end.
#[derive(Clone, Debug)]
pub(crate) struct AccountState {
    last_seq: u64,
    has_new_events: bool,
    /// The id of its newest template. SQLite numbers the templates of all accounts together.
    pub(crate) last_template: u64,
    pub(crate) limits: Option<AccountLimits>,
    pub(crate) stored_bytes: StoredBytes,
    /// Whether a second person decides on its versions.
    pub(crate) has_four_eyes: bool,
    /// Whether the account is deleted. Its events, versions and files still expire.
    pub(crate) is_deleted: bool,
}

impl AccountState {
    /// Selects what [`AccountState::read`] reads, and locks the row.
    pub(crate) const fn select(dialect: Dialect) -> &'static str {
        dialect.either(select!("0", ""), select!("last_template", " FOR NO KEY UPDATE"))
    }

    /// Writes the [`changes`](AccountState::changes) of a transaction.
    pub(crate) const UPDATE: &str = "UPDATE account SET last_seq = $2, \
         template_bytes = template_bytes + $3 WHERE id = $1";

    pub(crate) fn read(row: &impl StoredRow) -> Result<Self, StoreError> {
        Ok(Self {
            last_seq: row.number("last_seq")?,
            has_new_events: false,
            last_template: row.number("last_template")?,
            limits: row.account_limits()?,
            stored_bytes: StoredBytes::read(row)?,
            has_four_eyes: row.value("four_eyes")?,
            is_deleted: row.value("is_deleted")?,
        })
    }

    /// Takes the settings of a row that was read later, and whether the account is deleted.
    pub(crate) fn set_settings_of(&mut self, later: &Self) {
        self.limits = later.limits;
        self.stored_bytes.set_max_of(&later.stored_bytes);
        self.has_four_eyes = later.has_four_eyes;
        self.is_deleted = later.is_deleted;
    }

    /// The number of the newest event, including those of the transaction.
    pub(crate) fn newest_event(&self) -> u64 {
        self.last_seq
    }

    /// Assigns the number of the next event.
    pub(crate) fn next_event(&mut self) -> u64 {
        self.last_seq += 1;
        self.has_new_events = true;
        self.last_seq
    }

    /// The number of the newest event, if the transaction has appended it.
    pub(crate) fn new_event(&self) -> Option<u64> {
        self.has_new_events.then_some(self.last_seq)
    }

    /// The parameters of [`AccountState::UPDATE`]; `None` if nothing has changed.
    pub(crate) fn changes(&self, account: AccountId) -> Option<[Value<'static>; 3]> {
        let bytes = self.stored_bytes.change();
        let is_changed = self.has_new_events || bytes != 0;
        is_changed.then(|| values![account, self.last_seq, bytes])
    }
}
