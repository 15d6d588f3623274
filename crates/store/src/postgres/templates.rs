//! Templates, as SQL: how they are read.

use std::sync::Arc;

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{
        Template,
        lifecycle::{Hold, State},
        message_text::MessageText,
    },
};
use tokio_postgres::Row;

use super::{
    PostgresStore,
    columns::{account_id, at, category, column, key, maybe, number, plain, status, template_id},
    pool::Links,
    transaction::{Transaction, transact},
};
use crate::{
    CreatedTemplate, IdempotencyRecord, NameConflict, StoreError, StoredTemplate,
    encoding::{oldest_record, record_key, wording_key},
};

macro_rules! columns {
    () => {
        "id, phone_id, name, language, category, allow_category_change, content, version, status, \
         live_version, hold, previous_category, reason, revision, created_at, updated_at"
    };
}

/// Everything of a template's newest version.
pub(super) const COLUMNS: &str = columns!();

/// Deleted ones are not found.
const ONE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM template WHERE id = $1 AND account_id = $2 AND claim IS NOT NULL"
);

/// Several of them, whosever they are.
pub(super) const BY_IDS: &str = concat!(
    "SELECT account_id, ",
    columns!(),
    " FROM template WHERE id = ANY($1) AND claim IS NOT NULL"
);

pub(super) async fn one_in(
    transaction: &Transaction,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<StoredTemplate>, StoreError> {
    let row = transaction.query_one(ONE, &[&key(id.get()), &key(account.get())]).await?;
    row.as_ref().map(stored).transpose()
}

/// Reads the columns that [`COLUMNS`] names.
#[expect(clippy::disallowed_methods, reason = "this is the one place that trusts a row")]
pub(super) fn stored(row: &Row) -> Result<StoredTemplate, StoreError> {
    let template = Template::restore(
        plain(row, "name")?,
        plain(row, "language")?,
        category(row, "category")?,
        plain(row, "allow_category_change")?,
        plain(row, "content")?,
    );
    let state = State {
        version: number(row, "version")?,
        newest: status(row, "status")?,
        approved: maybe(row, "live_version", |version: i64| u64::try_from(version).ok())?,
        hold: maybe(row, "hold", |word: String| Hold::parse(&word))?,
    };
    Ok(StoredTemplate {
        id: template_id(row, "id")?,
        phone: plain(row, "phone_id")?,
        template,
        state,
        previous_category: maybe(row, "previous_category", |word: String| Category::parse(&word))?,
        reason: plain(row, "reason")?,
        revision: number(row, "revision")?,
        created_at: at(row, "created_at")?,
        updated_at: at(row, "updated_at")?,
    })
}

/// Who has the claim, if anybody; told by its id only to its account.
pub(super) async fn taken(
    links: &Links,
    account: AccountId,
    claim: [u8; 16],
) -> Result<Option<NameConflict>, StoreError> {
    let statement = "SELECT id, account_id FROM template WHERE claim = $1";
    let Some(row) = links.read_one(statement, &[&&claim[..]]).await? else { return Ok(None) };
    let own = account_id(&row, "account_id")? == account;
    Ok(Some(NameConflict { own: own.then_some(template_id(&row, "id")?) }))
}

/// The oldest other template of the account that has these words.
pub(super) async fn template_with_text(
    links: &Links,
    account: AccountId,
    wording: &MessageText,
    except: Option<TemplateId>,
) -> Result<Option<TemplateId>, StoreError> {
    let statement = "SELECT id FROM template WHERE wording = $1 AND account_id = $2 AND \
                     id IS DISTINCT FROM $3 AND claim IS NOT NULL ORDER BY id LIMIT 1";
    let (hash, except) = (wording_key(account, wording), except.map(|id| key(id.get())));
    let row = links.read_one(statement, &[&&hash[..], &key(account.get()), &except]).await?;
    row.map(|row| template_id(&row, 0)).transpose()
}

/// What an Idempotency-Key has made.
pub(super) async fn record(
    links: &Links,
    account: AccountId,
    idempotency_key: [u8; 16],
    at: jiff::Timestamp,
) -> Result<Option<IdempotencyRecord>, StoreError> {
    let statement = "SELECT payload, template_id, category, status FROM idempotency \
                     WHERE key = $1 AND created_at > $2";
    let hash = record_key(account, idempotency_key);
    let row = links.read_one(statement, &[&&hash[..], &oldest_record(at)]).await?;
    row.as_ref().map(record_of).transpose()
}

impl PostgresStore {
    /// Commits something of the account, so that what can be seen of it is as durable. A commit that
    /// was kept from waiting for its standby is seen as well: who tells of it has to wait instead.
    pub(super) async fn confirm(&self, account: AccountId) -> Result<(), StoreError> {
        let locked: Result<bool, StoreError> = transact!(self, tx => tx.lock(account));
        locked.map(drop)
    }
}

pub(super) fn record_of(row: &Row) -> Result<IdempotencyRecord, StoreError> {
    let numbered = |number: i16| u8::try_from(number).ok();
    let receipt = CreatedTemplate {
        id: template_id(row, "template_id")?,
        status: column(row, "status", |it| {
            numbered(it).and_then(galley_domain::template::Status::from_code)
        })?,
        category: column(row, "category", |it| numbered(it).and_then(Category::from_code))?,
    };
    Ok(IdempotencyRecord {
        payload: column(row, "payload", |it: Vec<u8>| it.try_into().ok())?,
        receipt,
    })
}

/// There are no more ids.
pub(super) fn out_of_ids() -> StoreError {
    StoreError::Failed(Arc::new(OutOfIds))
}

#[derive(Debug, thiserror::Error)]
#[error("there are no more ids")]
struct OutOfIds;
