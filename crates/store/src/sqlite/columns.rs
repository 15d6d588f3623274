//! Columns of a row as what they mean, and the other way round.

use std::{fmt::Debug, sync::Arc};

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::{Category, Status},
};
use jiff::Timestamp;
use rusqlite::{Row, RowIndex, types::FromSql};

use crate::{Actor, CredentialId, StoreError};

/// A moment as it is kept: whole milliseconds.
pub(super) fn millis(at: Timestamp) -> i64 {
    at.as_millisecond()
}

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

/// An id for a statement.
pub(super) fn key(id: u64) -> i64 {
    i64::try_from(id).expect("ids are below 2^53")
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
    word(row, name, Category::named)
}

pub(super) fn status(row: &Row<'_>, name: impl RowIndex + Debug) -> Result<Status, StoreError> {
    word(row, name, Status::named)
}

/// Credentials have numbers from 1.
const OPERATOR: i64 = 0;
const SERVICE: i64 = -1;

pub(super) fn actor(row: &Row<'_>, name: impl RowIndex + Debug) -> Result<Actor, StoreError> {
    column(row, name, |kept: i64| match kept {
        OPERATOR => Some(Actor::Operator),
        SERVICE => Some(Actor::Service),
        id => Some(Actor::Token(CredentialId(u64::try_from(id).ok()?))),
    })
}

pub(super) fn actor_key(actor: Actor) -> i64 {
    match actor {
        Actor::Token(CredentialId(id)) => key(id),
        Actor::Operator => OPERATOR,
        Actor::Service => SERVICE,
    }
}

/// As much of a hash as an index needs.
pub(super) fn head(hash: [u8; 32]) -> [u8; 16] {
    *hash.first_chunk().expect("32 bytes begin with 16")
}
