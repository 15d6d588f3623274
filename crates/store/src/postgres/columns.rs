//! Columns of a row as what they mean, and the other way round.

use std::{borrow::Cow, fmt::Display, sync::Arc};

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    rulebook::Category,
    template::Status,
};
use jiff::Timestamp;
use tokio_postgres::{Row, row::RowIndex, types::FromSqlOwned};

use crate::{Actor, StoreError};

pub(super) use crate::encoding::{actor_key, key, millis};

/// A text that is looked for, whatever somebody has written. PostgreSQL keeps no text with U+0000
/// and takes none: what is sought with one is not there, and neither is what this makes of it,
/// since ids, handles, languages and phone numbers hold no spaces.
pub(super) fn sought(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', " ")) } else { Cow::Borrowed(text) }
}

/// Reads a column, by name or by place, and turns it into what it means; a row that makes no
/// sense is damage.
pub(super) fn column<T, K: FromSqlOwned>(
    row: &Row,
    column: impl RowIndex + Display + Copy,
    meaning: impl FnOnce(K) -> Option<T>,
) -> Result<T, StoreError> {
    let kept: K = row.try_get(column)?;
    meaning(kept).ok_or_else(|| StoreError::Failed(Arc::new(Damaged(column.to_string()))))
}

/// A row holds what no version of this program writes.
#[derive(Debug, thiserror::Error)]
#[error("the column {0} holds something that makes no sense")]
struct Damaged(String);

/// A column as it is.
pub(super) fn plain<K: FromSqlOwned>(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<K, StoreError> {
    Ok(row.try_get(name)?)
}

/// A column that may be empty.
pub(super) fn maybe<T, K: FromSqlOwned>(
    row: &Row,
    name: impl RowIndex + Display + Copy,
    meaning: impl FnOnce(K) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    column(row, name, |kept: Option<K>| match kept {
        Some(kept) => meaning(kept).map(Some),
        None => Some(None),
    })
}

/// A moment.
pub(super) fn at(row: &Row, name: impl RowIndex + Display + Copy) -> Result<Timestamp, StoreError> {
    column(row, name, |millis: i64| Timestamp::from_millisecond(millis).ok())
}

/// A moment that may be missing.
pub(super) fn moment(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<Option<Timestamp>, StoreError> {
    maybe(row, name, |millis: i64| Timestamp::from_millisecond(millis).ok())
}

/// A count, a version or a sequence number.
pub(super) fn number(row: &Row, name: impl RowIndex + Display + Copy) -> Result<u64, StoreError> {
    column(row, name, |kept: i64| u64::try_from(kept).ok())
}

pub(super) fn template_id(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<TemplateId, StoreError> {
    column(row, name, |kept: i64| TemplateId::new(u64::try_from(kept).ok()?))
}

pub(super) fn account_id(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<AccountId, StoreError> {
    column(row, name, |kept: i64| AccountId::new(u64::try_from(kept).ok()?))
}

pub(super) fn webhook_id(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<WebhookId, StoreError> {
    column(row, name, |kept: i64| WebhookId::new(u64::try_from(kept).ok()?))
}

pub(super) fn category(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<Category, StoreError> {
    column(row, name, |word: String| Category::parse(&word))
}

pub(super) fn status(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<Status, StoreError> {
    column(row, name, |word: String| Status::parse(&word))
}

pub(super) fn actor(row: &Row, name: impl RowIndex + Display + Copy) -> Result<Actor, StoreError> {
    column(row, name, crate::encoding::actor)
}

/// A hash of sixteen bytes.
pub(super) fn hash(
    row: &Row,
    name: impl RowIndex + Display + Copy,
) -> Result<[u8; 16], StoreError> {
    column(row, name, |bytes: Vec<u8>| bytes.try_into().ok())
}
