//! Decodes columns into domain types, and encodes parameters.

use std::{fmt::Display, sync::Arc};

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
};
use jiff::Timestamp;
use tokio_postgres::{Row, row::RowIndex, types::FromSqlOwned};

use crate::{
    StoreError,
    stored_row::{Column, StoredRow, StoredValue},
};

pub(super) use crate::encoding::{actor_key, key, millis, without_nul};

/// Reads a column, by name or by index, and decodes it; an invalid value is a [`CorruptRow`].
pub(super) fn decode<T, K: FromSqlOwned>(
    row: &Row,
    column: impl RowIndex + Display + Copy,
    decode: impl FnOnce(K) -> Option<T>,
) -> Result<T, StoreError> {
    let stored: K = row.try_get(column)?;
    decode(stored).ok_or_else(|| corrupt(column))
}

impl StoredRow for Row {
    fn matches_checksum(&self, _checksum: impl Column) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn value<V: StoredValue>(&self, column: impl Column) -> Result<V, StoreError> {
        get(self, column.name())
    }

    fn decoded<T, V: StoredValue>(
        &self,
        column: impl Column,
        decode: impl FnOnce(V) -> Option<T>,
    ) -> Result<T, StoreError> {
        self::decode(self, column.name(), decode)
    }

    fn parsed<T>(
        &self,
        column: impl Column,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        let stored: &str = self.try_get(column.name())?;
        parse(stored).ok_or_else(|| corrupt(column.name()))
    }
}

fn corrupt(column: impl Display) -> StoreError {
    StoreError::Damaged(Arc::new(CorruptRow(column.to_string())))
}

/// A value that no version of Galley writes.
#[derive(Debug, thiserror::Error)]
#[error("column {0} has an invalid value")]
struct CorruptRow(String);

/// Reads a column without decoding it.
pub(super) fn get<K: FromSqlOwned>(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<K, StoreError> {
    Ok(row.try_get(name)?)
}

/// A column that may be NULL.
pub(super) fn optional<T, K: FromSqlOwned>(
    row: &Row,
    name: impl RowIndex + Display + Copy,
    decode: impl FnOnce(K) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    self::decode(row, name, |stored: Option<K>| match stored {
        Some(stored) => decode(stored).map(Some),
        None => Some(None),
    })
}

/// A timestamp.
pub(super) fn timestamp(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<Timestamp, StoreError> {
    decode(row, name, |millis: i64| Timestamp::from_millisecond(millis).ok())
}

/// A timestamp that may be NULL.
pub(super) fn optional_timestamp(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<Option<Timestamp>, StoreError> {
    optional(row, name, |millis: i64| Timestamp::from_millisecond(millis).ok())
}

/// A count, a version or a sequence number.
pub(super) fn number(row: &Row, name: impl RowIndex + Display + Copy) -> Result<u64, StoreError> {
    decode(row, name, |stored: i64| u64::try_from(stored).ok())
}

pub(super) fn template_id(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<TemplateId, StoreError> {
    decode(row, name, |stored: i64| TemplateId::new(u64::try_from(stored).ok()?))
}

pub(super) fn account_id(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<AccountId, StoreError> {
    decode(row, name, |stored: i64| AccountId::new(u64::try_from(stored).ok()?))
}

pub(super) fn category(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<Category, StoreError> {
    decode(row, name, |text: String| Category::parse(&text))
}

/// A 16-byte hash.
pub(super) fn hash(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<[u8; 16], StoreError> {
    decode(row, name, |bytes: Vec<u8>| bytes.try_into().ok())
}
