//! Decodes the rows of the clock guard.

use jiff::SignedDuration;

use crate::{StoreError, clock_guard::ObservedTime, encoding::millis, stored_row::StoredRow};

impl ObservedTime {
    /// The time in a row.
    pub(crate) fn read(row: &impl StoredRow) -> Result<Self, StoreError> {
        let observed = SignedDuration::from_millis(row.value("observed_ms")?);
        Ok(Self { at: row.timestamp("at")?, observed })
    }

    /// The columns `at` and `observed_ms` of its row.
    pub(crate) fn stored(self) -> (i64, i64) {
        (millis(self.at), i64::try_from(self.observed.as_millis()).unwrap_or(i64::MAX))
    }
}
