//! Decodes columns of a row of SQLite.

use rusqlite::{Row, RowIndex as _};

use super::checksum;
use crate::{
    StoreError,
    error::cause,
    stored_row::{Column, StoredRow, StoredValue},
};

impl StoredRow for Row<'_> {
    fn matches_checksum(&self, checksum: impl Column) -> Result<bool, StoreError> {
        Ok(checksum::is_intact(self, checksum.in_sqlite().idx(self.as_ref())?)?)
    }

    fn value<V: StoredValue>(&self, column: impl Column) -> Result<V, StoreError> {
        Ok(self.get(column.in_sqlite())?)
    }

    fn text(&self, column: impl Column) -> Result<Option<&str>, StoreError> {
        Ok(self.get_ref(column.in_sqlite())?.as_str().ok())
    }

    fn corrupt(&self, column: impl Column) -> StoreError {
        StoreError::Damaged(cause(format!("the column {column:?} contains an invalid value")))
    }
}
