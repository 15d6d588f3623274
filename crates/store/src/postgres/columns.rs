//! Decodes columns of a row of PostgreSQL.

use std::error::Error;

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
        let cause = format!("column {} has an invalid value", column.in_postgres());
        StoreError::Damaged(Box::<dyn Error + Send + Sync>::from(cause).into())
    }
}
