//! Decodes columns of a row of PostgreSQL.

use std::sync::Arc;

use tokio_postgres::Row;

use crate::{
    StoreError,
    stored_row::{Column, StoredRow, StoredValue},
};

impl StoredRow for Row {
    fn matches_checksum(&self, _checksum: impl Column) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn value<V: StoredValue>(&self, column: impl Column) -> Result<V, StoreError> {
        Ok(self.try_get(column.in_postgres())?)
    }

    fn text(&self, column: impl Column) -> Result<Option<&str>, StoreError> {
        Ok(Some(self.try_get(column.in_postgres())?))
    }

    fn corrupt(&self, column: impl Column) -> StoreError {
        StoreError::Damaged(Arc::new(CorruptRow(column.in_postgres().to_string())))
    }
}

/// A value that no version of Galley writes.
#[derive(Debug, thiserror::Error)]
#[error("column {0} has an invalid value")]
struct CorruptRow(String);
