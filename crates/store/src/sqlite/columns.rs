//! Decodes columns of a row into domain types.

use std::{fmt::Debug, sync::Arc};

use galley_domain::id::TemplateId;
use jiff::Timestamp;
use rusqlite::{Row, RowIndex, types::FromSql};

use super::checksum;
use crate::{
    StoreError,
    stored_row::{Column, StoredRow, StoredValue},
};

pub(super) use crate::encoding::{key, millis};

/// Reads a column by name or, which is faster, by index, and decodes it. An invalid value is an
/// error.
pub(super) fn column<T, K: FromSql>(
    row: &Row<'_>,
    column: impl RowIndex + Debug,
    decode: impl FnOnce(K) -> Option<T>,
) -> Result<T, StoreError> {
    let value: K = row.get(column)?;
    decode(value).ok_or_else(|| corrupt(column))
}

impl StoredRow for Row<'_> {
    fn matches_checksum(&self, checksum: impl Column) -> Result<bool, StoreError> {
        Ok(checksum::is_intact(self, index(self, checksum)?)?)
    }

    fn value<V: StoredValue>(&self, column: impl Column) -> Result<V, StoreError> {
        Ok(self.get(index(self, column)?)?)
    }

    fn decoded<T, V: StoredValue>(
        &self,
        column: impl Column,
        decode: impl FnOnce(V) -> Option<T>,
    ) -> Result<T, StoreError> {
        decode(self.value(column)?).ok_or_else(|| corrupt(column.name()))
    }

    fn parsed<T>(
        &self,
        column: impl Column,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        let stored = self.get_ref(index(self, column)?)?.as_str().ok();
        stored.and_then(parse).ok_or_else(|| corrupt(column.name()))
    }
}

fn index(row: &Row<'_>, column: impl Column) -> rusqlite::Result<usize> {
    match column.index() {
        Some(index) => Ok(index),
        None => row.as_ref().column_index(column.name()),
    }
}

fn corrupt(column: impl Debug) -> StoreError {
    StoreError::Damaged(Arc::new(CorruptRow { column: format!("{column:?}") }))
}

/// A row contains a value that no version of this program writes.
#[derive(Debug, thiserror::Error)]
#[error("the column {column} contains an invalid value")]
struct CorruptRow {
    column: String,
}

pub(super) fn timestamp(
    row: &Row<'_>,
    name: impl RowIndex + Debug,
) -> Result<Timestamp, StoreError> {
    column(row, name, |millis: i64| Timestamp::from_millisecond(millis).ok())
}

/// A count, a version or a sequence number.
pub(super) fn number(row: &Row<'_>, name: impl RowIndex + Debug) -> Result<u64, StoreError> {
    column(row, name, |value: i64| u64::try_from(value).ok())
}

pub(super) fn template_id(
    row: &Row<'_>,
    name: impl RowIndex + Debug,
) -> Result<TemplateId, StoreError> {
    column(row, name, |id: i64| TemplateId::new(u64::try_from(id).ok()?))
}
