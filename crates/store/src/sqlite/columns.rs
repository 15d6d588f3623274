//! Decodes columns of a row into domain types.

use std::{fmt::Debug, sync::Arc};

use galley_domain::{id::TemplateId, rulebook::Category, template::Status};
use jiff::Timestamp;
use rusqlite::{Row, RowIndex, types::FromSql};

use crate::{
    StoreError,
    stored_row::{StoredRow, StoredValue},
};

pub(super) use crate::encoding::{actor_key, key, millis};

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
    fn value<V: StoredValue>(&self, column: &str) -> Result<V, StoreError> {
        Ok(self.get(column)?)
    }

    fn decoded<T, V: StoredValue>(
        &self,
        name: &str,
        decode: impl FnOnce(V) -> Option<T>,
    ) -> Result<T, StoreError> {
        column(self, name, decode)
    }

    fn parsed<T>(
        &self,
        column: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        text(self, column, parse)
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

/// A nullable column.
pub(super) fn optional<T, K: FromSql>(
    row: &Row<'_>,
    name: impl RowIndex + Debug,
    decode: impl FnOnce(K) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    column(row, name, |value: Option<K>| match value {
        Some(value) => decode(value).map(Some),
        None => Some(None),
    })
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

/// A text column, decoded without copying it.
fn text<T>(
    row: &Row<'_>,
    name: impl RowIndex + Debug,
    decode: impl FnOnce(&str) -> Option<T>,
) -> Result<T, StoreError> {
    row.get_ref(name)?.as_str().ok().and_then(decode).ok_or_else(|| corrupt(name))
}

pub(super) fn category(row: &Row<'_>, name: impl RowIndex + Debug) -> Result<Category, StoreError> {
    text(row, name, Category::parse)
}

pub(super) fn status(row: &Row<'_>, name: impl RowIndex + Debug) -> Result<Status, StoreError> {
    text(row, name, Status::parse)
}
