//! SQL for reading templates.

mod create;

use std::{cmp::Reverse, sync::Arc};

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{
        Template,
        lifecycle::{Hold, State},
        message_text::MessageText,
        quality::Quality,
    },
};
use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

pub(super) use self::create::{conflict_in, create, insert};
use super::{
    SqliteStore,
    buffered_index::Hash,
    checksum::{self, template_columns},
    columns::{category, key, number, optional, status, template_id, timestamp},
    idempotency, translations, versions,
};
use crate::{
    CreateOutcome, IdempotencyRecord, LanguageSummary, ListQuery, NameConflict, NewTemplate,
    ReadKind, StoreError, StoredTemplate, TemplateStore, TranslationGroup, Version, VersionSummary,
    decisions::create::KeyOwner,
    encoding::{LookupKeys, actor_from_key, idempotency_hash, text_hash, unique_key_hash},
    engine::ReadTemplate,
    stored_row,
};

macro_rules! columns {
    () => {
        concat!(template_columns!(), ", checksum, announced_category, quality")
    };
}

/// The columns of a template's newest version.
pub(super) const COLUMNS: &str = columns!();

/// Number of columns that the checksum of a template covers.
const CHECKED_COLUMNS: usize = 21;

#[async_trait]
impl TemplateStore for SqliteStore {
    async fn create_template(&self, new: NewTemplate) -> Result<CreateOutcome, StoreError> {
        // Hashed on the calling thread, which runs in parallel, not on the single writer thread.
        let lookup_keys = LookupKeys::of(&new);
        self.writer.write(move |batch| create(batch, &new, &lookup_keys)).await
    }

    async fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<Arc<StoredTemplate>>, StoreError> {
        self.point_readers.template(account, id)
    }

    async fn version(
        &self,
        account: AccountId,
        id: TemplateId,
        number: u64,
    ) -> Result<Option<Version>, StoreError> {
        self.point_readers.read(|connection| versions::one(connection, account, id, number))
    }

    async fn versions(
        &self,
        account: AccountId,
        id: TemplateId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<VersionSummary>>, StoreError> {
        let read =
            move |connection: &Connection| versions::page(connection, account, id, before, limit);
        self.read_blocking(ReadKind::List, account, read).await
    }

    async fn translations(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<Vec<StoredTemplate>, StoreError> {
        let group = TranslationGroup::of(account, name);
        let read = move |connection: &Connection| translations::members(connection, account, group);
        self.read_blocking(ReadKind::List, account, read).await
    }

    async fn languages(
        &self,
        query: ListQuery,
        names: Vec<String>,
    ) -> Result<Vec<LanguageSummary>, StoreError> {
        let account = query.account;
        let read = move |connection: &Connection| {
            // All templates are read from one snapshot.
            let snapshot = connection.unchecked_transaction()?;
            let mut found = Vec::new();
            for name in &names {
                let group = TranslationGroup::of(account, name);
                for id in translations::ids(&snapshot, account, group)? {
                    let Some(stored) = one(&snapshot, account, id)? else { continue };
                    let mut summary = LanguageSummary::new(&query, stored);
                    summary.is_match = summary.is_match && is_wanted(&snapshot, &query, id)?;
                    found.push(summary);
                }
            }
            found.sort_unstable_by_key(|it| Reverse(it.id));
            Ok(found)
        };
        self.read_blocking(ReadKind::List, account, read).await
    }

    async fn name_conflict(
        &self,
        account: AccountId,
        unique_key: &str,
    ) -> Result<Option<NameConflict>, StoreError> {
        let lookup = self.indexes.names.lookup(unique_key_hash(unique_key));
        self.point_readers.read(|connection| {
            let id = lookup.finish(connection)?;
            name_conflict(connection, account, id, lookup.hash())
        })
    }

    async fn template_with_text(
        &self,
        account: AccountId,
        text: &MessageText,
        except: Option<TemplateId>,
    ) -> Result<Option<TemplateId>, StoreError> {
        self.point_readers.read(|connection| template_with_text(connection, account, text, except))
    }

    async fn idempotency_record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let lookup = self.indexes.idempotency_keys.lookup(idempotency_hash(account, key));
        self.point_readers.read(|connection| {
            let id = lookup.finish(connection)?;
            idempotency::record(connection, id, lookup.hash(), at)
        })
    }
}

/// Whether a template has the state at the provider that a list filters by.
fn is_wanted(
    connection: &Connection,
    query: &ListQuery,
    id: TemplateId,
) -> Result<bool, StoreError> {
    if !query.depends_on_provider() {
        return Ok(true);
    }
    let query = format!("SELECT 1 FROM template WHERE id = ?1 AND {}", query.upstream_condition());
    Ok(connection.prepare_cached(&query)?.exists([key(id.get())])?)
}

/// The oldest other template of the account with the same text.
pub(super) fn template_with_text(
    connection: &Connection,
    account: AccountId,
    text: &MessageText,
    except: Option<TemplateId>,
) -> Result<Option<TemplateId>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT id FROM template INDEXED BY template_with_message_text WHERE message_text = ?1 AND \
         account_id = ?2 AND id IS NOT ?3 AND unique_key IS NOT NULL ORDER BY id LIMIT 1",
    )?;
    let except = except.map(|id| key(id.get()));
    let mut rows = query.query(params![text_hash(account, text), key(account.get()), except])?;
    rows.next()?.map(|row| template_id(row, 0)).transpose()
}

/// The conflict with the template that the index of names has for the unique key, if it still holds
/// it. Its id is revealed only to its own account.
pub(super) fn name_conflict(
    connection: &Connection,
    account: AccountId,
    id: Option<TemplateId>,
    unique_key: Hash,
) -> Result<Option<NameConflict>, StoreError> {
    let Some(id) = id else { return Ok(None) };
    let mut query = connection
        .prepare_cached("SELECT id, account_id FROM template WHERE id = ?1 AND unique_key = ?2")?;
    let mut rows = query.query(params![key(id.get()), unique_key])?;
    let owner = rows.next()?.map(KeyOwner::read).transpose()?;
    Ok(owner.map(|owner| owner.conflict_for(account)))
}

/// The hash of the unique key that a template holds; deleted templates hold none.
pub(super) fn unique_key(
    connection: &Connection,
    id: TemplateId,
) -> Result<Option<Hash>, StoreError> {
    let mut query = connection.prepare_cached("SELECT unique_key FROM template WHERE id = ?1")?;
    Ok(query.query_row([key(id.get())], |row| row.get(0))?)
}

/// One template with its newest version; deleted templates are not found.
pub(super) fn one(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<StoredTemplate>, StoreError> {
    read(connection, account, id)?.map(ReadTemplate::into_intact).transpose()
}

/// One template like [`one`], even if it was deleted since.
pub(super) fn even_deleted(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<StoredTemplate>, StoreError> {
    let mut query = connection.prepare_cached(concat!(
        "SELECT ",
        columns!(),
        " FROM template WHERE id = ?1 AND account_id = ?2",
    ))?;
    let mut rows = query.query(params![key(id.get()), key(account.get())])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    if !checksum::is_intact(row, CHECKED_COLUMNS)? {
        return Err(checksum::damaged("template", id));
    }
    stored(row).map(Some)
}

/// Reads a template like [`one`], even if it is damaged.
pub(super) fn read(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<ReadTemplate>, StoreError> {
    let mut query = connection.prepare_cached(concat!(
        "SELECT ",
        columns!(),
        " FROM template WHERE id = ?1 AND account_id = ?2 AND unique_key IS NOT NULL",
    ))?;
    let mut rows = query.query(params![key(id.get()), key(account.get())])?;
    rows.next()?.map(|row| read_row(&stored_row::Row::Sqlite(row))).transpose()
}

/// Decodes a row with [`COLUMNS`], even if it is damaged.
pub(super) fn read_row(row: &stored_row::Row<'_>) -> Result<ReadTemplate, StoreError> {
    let stored_row::Row::Sqlite(row) = row else { unreachable!("a row of this engine") };
    let is_intact = checksum::is_intact(row, CHECKED_COLUMNS)?;
    match stored(row) {
        Ok(template) => Ok(ReadTemplate { template, is_intact }),
        Err(_) if !is_intact => Err(checksum::damaged("template", row.get::<_, i64>(0)?)),
        Err(error) => Err(error),
    }
}

/// Decodes [`COLUMNS`] by index, which is faster than by name.
#[expect(
    clippy::disallowed_methods,
    reason = "stored templates were validated when they were created"
)]
fn stored(row: &Row<'_>) -> Result<StoredTemplate, StoreError> {
    let template =
        Template::restore(row.get(3)?, row.get(4)?, category(row, 5)?, row.get(6)?, row.get(7)?);
    let state = State {
        version: number(row, 8)?,
        newest_status: status(row, 9)?,
        approved_version: optional(row, 10, |version: i64| u64::try_from(version).ok())?,
        hold: optional(row, 11, |value: String| Hold::parse(&value))?,
    };
    Ok(StoredTemplate {
        id: template_id(row, 0)?,
        phone: row.get(2)?,
        template,
        state,
        previous_category: optional(row, 12, |value: String| Category::parse(&value))?,
        announced_category: optional(row, CHECKED_COLUMNS + 1, |value: String| {
            Category::parse(&value)
        })?,
        quality: optional(row, CHECKED_COLUMNS + 2, |value: String| Quality::parse(&value))?
            .unwrap_or(Quality::Unknown),
        reason: row.get(13)?,
        decided_by: optional(row, 20, actor_from_key)?,
        revision: number(row, 14)?,
        created_at: timestamp(row, 15)?,
        updated_at: timestamp(row, 16)?,
    })
}
