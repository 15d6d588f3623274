//! Columns of a row as what they mean, and the other way round.

use std::{fmt::Debug, sync::Arc};

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    rulebook::Category,
    template::Status,
};
use jiff::Timestamp;
use rusqlite::{Row, RowIndex, types::FromSql};

use crate::{Actor, StoreError};

pub(super) use crate::encoding::{actor_key, key, millis};

/// Reads a column, by name or (quicker) by place, and turns it into what it means; a row that
/// makes no sense is damage.
pub(super) fn column<T, K: FromSql>(
    row: &Row<'_>,
    column: impl RowIndex + Debug,
    meaning: impl FnOnce(K) -> Option<T>,
) -> Result<T, StoreError> {
    let kept: K = row.get(column)?;
    meaning(kept).ok_or_else(|| damaged(column))
}

fn damaged(column: impl Debug) -> StoreError {
    StoreError::Failed(Arc::new(Damaged { column: format!("{column:?}") }))
}

/// A moment that may be missing.
pub(super) fn moment(
    row: &Row<'_>,
    name: impl RowIndex + Debug,
) -> Result<Option<Timestamp>, StoreError> {
    maybe(row, name, |millis: i64| Timestamp::from_millisecond(millis).ok())
}

/// A count, a version or a sequence number.
pub(super) fn number(row: &Row<'_>, name: impl RowIndex + Debug) -> Result<u64, StoreError> {
    column(row, name, |kept: i64| u64::try_from(kept).ok())
}

/// A row holds what no version of this program writes.
#[derive(Debug, thiserror::Error)]
#[error("the column {column} holds something that makes no sense")]
struct Damaged {
    column: String,
}

/// A column that may be empty.
pub(super) fn maybe<T, K: FromSql>(
    row: &Row<'_>,
    name: impl RowIndex + Debug,
    meaning: impl FnOnce(K) -> Option<T>,
) -> Result<Option<T>, StoreError> {
    column(row, name, |kept: Option<K>| match kept {
        Some(kept) => meaning(kept).map(Some),
        None => Some(None),
    })
}

pub(super) fn template_id(
    row: &Row<'_>,
    name: impl RowIndex + Debug,
) -> Result<TemplateId, StoreError> {
    column(row, name, |kept: i64| TemplateId::new(u64::try_from(kept).ok()?))
}

pub(super) fn account_id(
    row: &Row<'_>,
    name: impl RowIndex + Debug,
) -> Result<AccountId, StoreError> {
    column(row, name, |kept: i64| AccountId::new(u64::try_from(kept).ok()?))
}

pub(super) fn webhook_id(
    row: &Row<'_>,
    name: impl RowIndex + Debug,
) -> Result<WebhookId, StoreError> {
    column(row, name, |kept: i64| WebhookId::new(u64::try_from(kept).ok()?))
}

/// A word, read where it stands.
fn word<T>(
    row: &Row<'_>,
    name: impl RowIndex + Debug,
    meaning: impl FnOnce(&str) -> Option<T>,
) -> Result<T, StoreError> {
    row.get_ref(name)?.as_str().ok().and_then(meaning).ok_or_else(|| damaged(name))
}

pub(super) fn category(row: &Row<'_>, name: impl RowIndex + Debug) -> Result<Category, StoreError> {
    word(row, name, Category::parse)
}

pub(super) fn status(row: &Row<'_>, name: impl RowIndex + Debug) -> Result<Status, StoreError> {
    word(row, name, Status::parse)
}

pub(super) fn actor(row: &Row<'_>, name: impl RowIndex + Debug) -> Result<Actor, StoreError> {
    column(row, name, crate::encoding::actor)
}
