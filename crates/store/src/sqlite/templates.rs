//! SQL for creating and reading templates.

use std::sync::Arc;

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{
        Template,
        lifecycle::{Hold, State},
        message_text::MessageText,
        sample,
    },
};
use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, Row, params, types::ValueRef};

use super::{
    SqliteStore,
    checksum::{self, Checksum, template_checksum, template_columns},
    columns::{
        account_id, actor_key, category, key, millis, number, optional, status, template_id,
        timestamp,
    },
    events, idempotency, limits, media, translations, versions,
    writer::Batch,
};
use crate::{
    AccountLimits, CreateOutcome, IdempotencyRecord, NameConflict, NewTemplate, StoreError,
    StoredTemplate, TemplateStore, TranslationGroup, Version,
    decisions::create::{KeyOwner, category_refusal, created, created_event},
    encoding::{LookupKeys, text_hash, unique_key_hash},
};

#[async_trait]
impl TemplateStore for SqliteStore {
    async fn create_template(&self, new: NewTemplate) -> Result<CreateOutcome, StoreError> {
        let prepared = Prepared::new(&new);
        self.writer.write(move |batch| create(batch, &new, &prepared)).await
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
    ) -> Result<Option<Vec<Version>>, StoreError> {
        self.read_blocking(move |connection| versions::page(connection, account, id, before, limit))
            .await
    }

    async fn translations(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<Vec<StoredTemplate>, StoreError> {
        let group = TranslationGroup::of(account, name);
        self.read_blocking(move |connection| translations::members(connection, account, group))
            .await
    }

    async fn name_conflict(
        &self,
        account: AccountId,
        unique_key: &str,
    ) -> Result<Option<NameConflict>, StoreError> {
        let hash = unique_key_hash(unique_key);
        self.point_readers.read(|connection| name_conflict(connection, account, &hash))
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
        self.point_readers.read(|connection| idempotency::record(connection, account, key, at))
    }
}

/// The statements of a create, prepared once per transaction.
pub(super) struct Statements<'c> {
    insert: CachedStatement<'c>,
    pub(super) append: CachedStatement<'c>,
    find_record: CachedStatement<'c>,
    insert_record: CachedStatement<'c>,
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, StoreError> {
        let insert = connection.prepare_cached(
            "INSERT INTO template (id, account_id, phone_id, claim, name, language, category, \
             allow_category_change, status, version, live_version, revision, created_at, \
             updated_at, content, actor, family, wording, checksum) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, 1, ?11, ?11, ?12, ?13, ?14, \
             ?15, ?16) \
             ON CONFLICT (claim) DO NOTHING",
        )?;
        Ok(Self {
            insert,
            append: connection.prepare_cached(events::APPEND)?,
            find_record: connection.prepare_cached(idempotency::FIND)?,
            insert_record: connection.prepare_cached(idempotency::INSERT)?,
        })
    }
}

/// What [`create`] needs and the calling thread computes: those threads run in parallel, and there
/// is only one writer.
pub(super) struct Prepared {
    pub(super) lookup_keys: LookupKeys,
    /// The checksum of all columns except the id.
    checksum: Checksum,
}

impl Prepared {
    pub(super) fn new(new: &NewTemplate) -> Self {
        Self { lookup_keys: LookupKeys::of(new), checksum: checksum_without_id(new) }
    }
}

/// The checksum of a new template without its id, in the order of [`template_columns`].
fn checksum_without_id(new: &NewTemplate) -> Checksum {
    let (template, state) = (&new.template, State::initial(new.review));
    Checksum::of([
        ValueRef::Integer(key(new.account.get())),
        new.phone.as_deref().map_or(ValueRef::Null, Into::into),
        template.name().into(),
        template.language().into(),
        template.category().as_str().into(),
        ValueRef::Integer(template.allow_category_change().into()),
        template.content().into(),
        ValueRef::Integer(1),
        state.newest_status.as_str().into(),
        checksum::integer(state.approved_version.map(key)),
        ValueRef::Null,
        ValueRef::Null,
        ValueRef::Null,
        ValueRef::Integer(1),
        ValueRef::Integer(millis(new.at)),
        ValueRef::Integer(millis(new.at)),
        ValueRef::Integer(actor_key(new.actor)),
        ValueRef::Null,
        ValueRef::Null,
        ValueRef::Null,
    ])
}

/// Creates a template with its event and idempotency record. Checks everything before the first
/// write.
pub(super) fn create(
    batch: &mut Batch<'_>,
    new: &NewTemplate,
    Prepared { lookup_keys, checksum }: &Prepared,
) -> Result<CreateOutcome, StoreError> {
    if let (Some(idempotency), Some(key)) = (&new.idempotency, lookup_keys.idempotency)
        && let Some(record) = idempotency::find(&mut batch.templates.find_record, key, new.at)?
    {
        return Ok(record.outcome_for(idempotency.payload));
    }
    let limits = batch.limits(new.account)?;
    if let Some(refusal) = refusal(batch.connection(), new, lookup_keys, limits)? {
        return Ok(refusal);
    }
    let id = batch.next_template(new.at)?;
    let template = &new.template;
    let state = State::initial(new.review);
    let inserted = batch.templates.insert.execute(params![
        key(id.get()),
        key(new.account.get()),
        new.phone,
        lookup_keys.unique_key,
        template.name(),
        template.language(),
        template.category().as_str(),
        template.allow_category_change(),
        state.newest_status.as_str(),
        state.approved_version.map(key),
        millis(new.at),
        template.content(),
        actor_key(new.actor),
        new.translation_group.map(|group| group.0),
        lookup_keys.text,
        checksum.with(ValueRef::Integer(key(id.get()))).stored(),
    ])?;
    if inserted == 0 {
        let conflict = name_conflict(batch.connection(), new.account, &lookup_keys.unique_key)?;
        return Ok(CreateOutcome::NameInUse(
            conflict.unwrap_or(NameConflict { existing_id: None }),
        ));
    }
    if lookup_keys.references_media {
        let handles = sample::referenced_names(template.content());
        media::mark_used(batch.connection(), new.account, handles, new.at)?;
    }
    let receipt = created(new, id, &state);
    events::append(batch, &created_event(new, &receipt))?;
    if limits.is_some() {
        limits::count_create(batch, new.account, new.at)?;
    }
    if let (Some(idempotency), Some(key)) = (&new.idempotency, lookup_keys.idempotency) {
        idempotency::insert(
            &mut batch.templates.insert_record,
            key,
            idempotency,
            &receipt,
            new.at,
        )?;
    }
    Ok(CreateOutcome::Created(receipt))
}

/// Why a template cannot be created. The insert itself detects a name in use; it is checked here
/// only to report it before a mismatching category or a reached limit.
fn refusal(
    connection: &Connection,
    new: &NewTemplate,
    lookup_keys: &LookupKeys,
    limits: Option<AccountLimits>,
) -> Result<Option<CreateOutcome>, StoreError> {
    if new.translation_group.is_none() && limits.is_none() {
        return Ok(None);
    }
    if let Some(conflict) = name_conflict(connection, new.account, &lookup_keys.unique_key)? {
        return Ok(Some(CreateOutcome::NameInUse(conflict)));
    }
    if let Some(group) = new.translation_group {
        let group = translations::category(connection, new.account, group)?;
        if let Some(refusal) = category_refusal(new, group) {
            return Ok(Some(refusal));
        }
    }
    let Some(limits) = limits else { return Ok(None) };
    let reached = limits::reached_by_create(connection, new.account, limits, new.at)?;
    Ok(reached.map(CreateOutcome::Limited))
}

/// The oldest other template of the account with the same text.
pub(super) fn template_with_text(
    connection: &Connection,
    account: AccountId,
    text: &MessageText,
    except: Option<TemplateId>,
) -> Result<Option<TemplateId>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT id FROM template INDEXED BY template_of_wording WHERE wording = ?1 AND \
         account_id = ?2 AND id IS NOT ?3 AND claim IS NOT NULL ORDER BY id LIMIT 1",
    )?;
    let except = except.map(|id| key(id.get()));
    let mut rows = query.query(params![text_hash(account, text), key(account.get()), except])?;
    rows.next()?.map(|row| template_id(row, 0)).transpose()
}

/// The template that holds the unique key, if any. Its id is revealed only to its own account.
pub(super) fn name_conflict(
    connection: &Connection,
    account: AccountId,
    unique_key: &[u8; 16],
) -> Result<Option<NameConflict>, StoreError> {
    let mut query =
        connection.prepare_cached("SELECT id, account_id FROM template WHERE claim = ?1")?;
    let mut rows = query.query([unique_key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let owner = KeyOwner { id: template_id(row, "id")?, account: account_id(row, "account_id")? };
    Ok(Some(owner.conflict_for(account)))
}

/// One template with its newest version; deleted templates are not found.
pub(super) fn one(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<StoredTemplate>, StoreError> {
    match read(connection, account, id)? {
        Some(read) if !read.is_intact => Err(checksum::damaged("template", id)),
        read => Ok(read.map(|it| it.template)),
    }
}

/// Number of columns that the checksum of a template covers.
const CHECKED_COLUMNS: usize = 21;

/// A template as it was read, and whether it matches its checksum.
pub(super) struct ReadTemplate {
    pub(super) template: StoredTemplate,
    pub(super) is_intact: bool,
}

/// Reads a template like [`one`], even if it is damaged.
pub(super) fn read(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<ReadTemplate>, StoreError> {
    let mut query = connection.prepare_cached(concat!(
        "SELECT ",
        template_columns!(),
        ", checksum FROM template WHERE id = ?1 AND account_id = ?2 AND claim IS NOT NULL",
    ))?;
    let mut rows = query.query(params![key(id.get()), key(account.get())])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let is_intact = checksum::is_intact(row, CHECKED_COLUMNS)?;
    match stored(row) {
        Ok(template) => Ok(Some(ReadTemplate { template, is_intact })),
        Err(_) if !is_intact => Err(checksum::damaged("template", id)),
        Err(error) => Err(error),
    }
}

/// Updates the checksum of a template after other statements have changed its row.
pub(super) fn update_checksum(connection: &Connection, id: TemplateId) -> Result<(), StoreError> {
    connection
        .prepare_cached(concat!(
            "UPDATE template SET checksum = ",
            template_checksum!(),
            " WHERE id = ?1"
        ))?
        .execute([key(id.get())])?;
    Ok(())
}

/// Decodes the columns of [`read`], by index, which is faster than by name.
#[expect(
    clippy::disallowed_methods,
    reason = "stored templates were validated when they were created"
)]
fn stored(row: &Row<'_>) -> Result<StoredTemplate, StoreError> {
    let template =
        Template::restore(row.get(2)?, row.get(3)?, category(row, 4)?, row.get(5)?, row.get(6)?);
    let state = State {
        version: number(row, 7)?,
        newest_status: status(row, 8)?,
        approved_version: optional(row, 9, |version: i64| u64::try_from(version).ok())?,
        hold: optional(row, 10, |value: String| Hold::parse(&value))?,
    };
    Ok(StoredTemplate {
        id: template_id(row, 20)?,
        phone: row.get(1)?,
        template,
        state,
        previous_category: optional(row, 11, |value: String| Category::parse(&value))?,
        reason: row.get(12)?,
        revision: number(row, 13)?,
        created_at: timestamp(row, 14)?,
        updated_at: timestamp(row, 15)?,
    })
}
