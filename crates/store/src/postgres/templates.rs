//! Reads of templates and idempotency records, as SQL.

use std::sync::Arc;

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{
        Review, Template,
        lifecycle::{Hold, State},
        message_text::MessageText,
        quality::Quality,
    },
};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::{
    PostgresStore,
    columns::{category, decode, get, key, number, optional, status, template_id, timestamp},
    pool::{PgPools, Values},
    transaction::{Transaction, transact},
    translations, upsert, versions,
};
use crate::{
    CreateOutcome, CreatedTemplate, IdempotencyRecord, LanguageSummary, ListQuery, NameConflict,
    NewTemplate, ReadKind, StoreError, StoredTemplate, TemplateStore, TranslationGroup, Version,
    VersionSummary,
    decisions::create::KeyOwner,
    encoding::{
        LookupKeys, actor_from_key, idempotency_cutoff, idempotency_hash, text_hash,
        unique_key_hash,
    },
    engine::ReadTemplate,
    lists::MAX_PAGE_BYTES,
    stored_row,
};

#[async_trait]
impl TemplateStore for PostgresStore {
    async fn create_template(&self, new: NewTemplate) -> Result<CreateOutcome, StoreError> {
        if new.review == Review::Scripted || new.review.is_by_provider() {
            let lookup_keys = LookupKeys::of(&new);
            return transact!(self, tx => upsert::create_alone(tx, &lookup_keys, &new));
        }
        self.create_queue.create(new).await
    }

    async fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<Arc<StoredTemplate>>, StoreError> {
        self.reader.one(account, id).await
    }

    async fn version(
        &self,
        account: AccountId,
        id: TemplateId,
        number: u64,
    ) -> Result<Option<Version>, StoreError> {
        versions::one(&self.pools, account, id, number).await
    }

    async fn versions(
        &self,
        account: AccountId,
        id: TemplateId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<VersionSummary>>, StoreError> {
        let connection = self.acquire_for(ReadKind::List, account).await?;
        let page = versions::page(&connection, account, id, before, limit).await?;
        drop(connection);
        let exists = !page.is_empty() || self.reader.one(account, id).await?.is_some();
        Ok(exists.then_some(page))
    }

    async fn translations(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<Vec<StoredTemplate>, StoreError> {
        translations::members(&self.pools, account, TranslationGroup::of(account, name)).await
    }

    async fn languages(
        &self,
        query: ListQuery,
        names: Vec<String>,
    ) -> Result<Vec<LanguageSummary>, StoreError> {
        let connection = self.acquire_for(ReadKind::List, query.account).await?;
        translations::languages(&connection, &query, &names).await
    }

    async fn name_conflict(
        &self,
        account: AccountId,
        unique_key: &str,
    ) -> Result<Option<NameConflict>, StoreError> {
        name_conflict(&self.pools, account, unique_key_hash(unique_key)).await
    }

    async fn template_with_text(
        &self,
        account: AccountId,
        text: &MessageText,
        except: Option<TemplateId>,
    ) -> Result<Option<TemplateId>, StoreError> {
        template_with_text(&self.pools, account, text, except).await
    }

    async fn idempotency_record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let found = record(&self.pools, account, key, at).await?;
        if found.is_some() {
            self.confirm(account).await?;
        }
        Ok(found)
    }
}

macro_rules! columns {
    () => {
        "id, phone_id, name, language, category, allow_category_change, content, version, status, \
         live_version, hold, previous_category, announced_category, quality, reason, revision, \
         created_at, updated_at, decided_by"
    };
}

pub(super) use columns;

/// All columns of a template's newest version.
pub(super) const COLUMNS: &str = columns!();

/// The columns of a page in this order of ids. Rows after the maximum content of a page come without
/// content, so that the page takes little memory; see [`has_content`].
pub(super) fn page_columns(order: &str) -> String {
    let content = format!(
        "CASE WHEN sum(octet_length(content)) OVER (ORDER BY id {order}) - octet_length(content) \
         < {MAX_PAGE_BYTES} THEN content END AS content"
    );
    COLUMNS.replace("content", &content)
}

/// Whether a row of a page came with its content.
pub(super) fn has_content(row: &Row) -> Result<bool, StoreError> {
    Ok(row.try_get::<_, Option<&str>>("content")?.is_some())
}

/// One template, unless it is deleted.
const ONE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM template WHERE id = $1 AND account_id = $2 AND unique_key IS NOT NULL"
);

/// One template of an account, even if it was deleted.
const EVEN_DELETED: &str =
    concat!("SELECT ", columns!(), " FROM template WHERE id = $1 AND account_id = $2");

/// Several templates of an account, except deleted ones.
const SEVERAL: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM template WHERE id = ANY($1) AND account_id = $2 AND unique_key IS NOT NULL"
);

/// The account's template that has a unique key.
const WITH_UNIQUE_KEY: &str =
    concat!("SELECT ", columns!(), " FROM template WHERE unique_key = $1 AND account_id = $2");

/// Several templates of any account, except deleted ones.
pub(super) const BY_IDS: &str = concat!(
    "SELECT account_id, ",
    columns!(),
    " FROM template WHERE id = ANY($1) AND unique_key IS NOT NULL"
);

pub(super) async fn one_in(
    transaction: &Transaction,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<StoredTemplate>, StoreError> {
    let row = transaction.query_one(ONE, &[&key(id.get()), &key(account.get())]).await?;
    row.as_ref().map(stored).transpose()
}

/// One template like [`one_in`], even if it was deleted since.
pub(super) async fn even_deleted(
    pools: &PgPools,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<StoredTemplate>, StoreError> {
    let row = pools.read_one(EVEN_DELETED, &[&key(id.get()), &key(account.get())]).await?;
    row.as_ref().map(stored).transpose()
}

pub(super) async fn several_in(
    transaction: &Transaction,
    account: AccountId,
    ids: &[TemplateId],
) -> Result<Vec<StoredTemplate>, StoreError> {
    let ids: Vec<i64> = ids.iter().map(|id| key(id.get())).collect();
    let rows = transaction.query(SEVERAL, &[&ids, &key(account.get())]).await?;
    rows.iter().map(stored).collect()
}

pub(super) async fn with_unique_key(
    transaction: &Transaction,
    account: AccountId,
    unique_key: &[u8; 16],
) -> Result<Option<StoredTemplate>, StoreError> {
    let values: Values<'_> = &[&&unique_key[..], &key(account.get())];
    let row = transaction.query_one(WITH_UNIQUE_KEY, values).await?;
    row.as_ref().map(stored).transpose()
}

/// Decodes a row with [`COLUMNS`].
pub(super) fn read_row(row: &stored_row::Row<'_>) -> Result<ReadTemplate, StoreError> {
    let stored_row::Row::Postgres(row) = row else { unreachable!("a row of this engine") };
    Ok(ReadTemplate { template: stored(row)?, is_intact: true })
}

/// Decodes a row with [`COLUMNS`].
#[expect(clippy::disallowed_methods, reason = "the only function that trusts stored rows")]
pub(super) fn stored(row: &Row) -> Result<StoredTemplate, StoreError> {
    let template = Template::restore(
        get(row, "name")?,
        get(row, "language")?,
        category(row, "category")?,
        get(row, "allow_category_change")?,
        get(row, "content")?,
    );
    let state = State {
        version: number(row, "version")?,
        newest_status: status(row, "status")?,
        approved_version: optional(row, "live_version", |version: i64| {
            u64::try_from(version).ok()
        })?,
        hold: optional(row, "hold", |text: String| Hold::parse(&text))?,
    };
    Ok(StoredTemplate {
        id: template_id(row, "id")?,
        phone: get(row, "phone_id")?,
        template,
        state,
        previous_category: optional(row, "previous_category", |text: String| {
            Category::parse(&text)
        })?,
        announced_category: optional(row, "announced_category", |text: String| {
            Category::parse(&text)
        })?,
        quality: optional(row, "quality", |text: String| Quality::parse(&text))?
            .unwrap_or(Quality::Unknown),
        reason: get(row, "reason")?,
        decided_by: optional(row, "decided_by", actor_from_key)?,
        revision: number(row, "revision")?,
        created_at: timestamp(row, "created_at")?,
        updated_at: timestamp(row, "updated_at")?,
    })
}

/// The conflict with the template that has a unique key. Only its own account learns its id.
pub(super) async fn name_conflict(
    pools: &PgPools,
    account: AccountId,
    unique_key: [u8; 16],
) -> Result<Option<NameConflict>, StoreError> {
    let statement = "SELECT id, account_id FROM template WHERE unique_key = $1";
    let row = pools.read_one(statement, &[&&unique_key[..]]).await?;
    let owner = row.as_ref().map(KeyOwner::read).transpose()?;
    Ok(owner.map(|owner| owner.conflict_for(account)))
}

/// The oldest other template of the account with this text.
pub(super) async fn template_with_text(
    pools: &PgPools,
    account: AccountId,
    text: &MessageText,
    except: Option<TemplateId>,
) -> Result<Option<TemplateId>, StoreError> {
    let statement = "SELECT id FROM template WHERE message_text = $1 AND account_id = $2 AND \
                     id IS DISTINCT FROM $3 AND unique_key IS NOT NULL ORDER BY id LIMIT 1";
    let (hash, except) = (text_hash(account, text), except.map(|id| key(id.get())));
    let row = pools.read_one(statement, &[&&hash[..], &key(account.get()), &except]).await?;
    row.map(|row| template_id(&row, 0)).transpose()
}

/// The unexpired record with the hash of an Idempotency-Key.
const RECORD: &str = "SELECT payload, template_id, category, status FROM idempotency \
     WHERE key = $1 AND created_at > $2";

/// The unexpired record with the hash of an Idempotency-Key, in a transaction.
pub(super) async fn record_in(
    transaction: &Transaction,
    hash: [u8; 16],
    at: Timestamp,
) -> Result<Option<IdempotencyRecord>, StoreError> {
    let row = transaction.query_one(RECORD, &[&&hash[..], &idempotency_cutoff(at)]).await?;
    row.as_ref().map(record_of).transpose()
}

/// The unexpired record of an Idempotency-Key.
pub(super) async fn record(
    pools: &PgPools,
    account: AccountId,
    idempotency_key: [u8; 16],
    at: jiff::Timestamp,
) -> Result<Option<IdempotencyRecord>, StoreError> {
    let hash = idempotency_hash(account, idempotency_key);
    let row = pools.read_one(RECORD, &[&&hash[..], &idempotency_cutoff(at)]).await?;
    row.as_ref().map(record_of).transpose()
}

impl PostgresStore {
    /// Commits a transaction that locks the account, which makes all its earlier commits durable. A
    /// commit whose wait for the standby was interrupted is visible but may not be replicated, so
    /// it has to be confirmed before it is reported to a client.
    pub(super) async fn confirm(&self, account: AccountId) -> Result<(), StoreError> {
        let locked: Result<bool, StoreError> = transact!(self, tx => tx.lock(account));
        locked.map(drop)
    }
}

pub(super) fn record_of(row: &Row) -> Result<IdempotencyRecord, StoreError> {
    let code = |number: i16| u8::try_from(number).ok();
    let created = CreatedTemplate {
        id: template_id(row, "template_id")?,
        status: decode(row, "status", |it| {
            code(it).and_then(galley_domain::template::Status::from_code)
        })?,
        category: decode(row, "category", |it| code(it).and_then(Category::from_code))?,
    };
    Ok(IdempotencyRecord {
        payload: decode(row, "payload", |it: Vec<u8>| it.try_into().ok())?,
        created,
    })
}

pub(super) fn ids_exhausted() -> StoreError {
    StoreError::Failed(Arc::new(IdsExhausted))
}

#[derive(Debug, thiserror::Error)]
#[error("no template or account ids are left")]
struct IdsExhausted;
