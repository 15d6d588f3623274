//! Templates, as SQL: how they are made and read.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{
        Template,
        lifecycle::{EventType, Hold, State},
        message_text::MessageText,
        sample,
    },
};
use jiff::Timestamp;
use rusqlite::{CachedStatement, Connection, Row, params};

use super::{
    columns::{actor_key, category, column, key, maybe, millis, number, status, template_id},
    events, idempotency, limits, media, translations,
    writer::Batch,
};
use crate::{
    AccountLimits, CreateOutcome, CreatedTemplate, NameConflict, NewTemplate, StoreError,
    StoredTemplate,
    encoding::{Hashes, wording_key},
};

/// The statements of a creation, prepared once for all the writes of a transaction.
pub(super) struct Statements<'c> {
    insert: CachedStatement<'c>,
    pub(super) append: CachedStatement<'c>,
    find_record: CachedStatement<'c>,
    keep_record: CachedStatement<'c>,
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, StoreError> {
        let insert = connection.prepare_cached(
            "INSERT INTO template (id, account_id, phone_id, claim, name, language, category, \
             allow_category_change, status, version, live_version, revision, created_at, \
             updated_at, content, actor, family, wording) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, 1, ?11, ?11, ?12, ?13, ?14, \
             ?15) \
             ON CONFLICT (claim) DO NOTHING",
        )?;
        Ok(Self {
            insert,
            append: connection.prepare_cached(events::APPEND)?,
            find_record: connection.prepare_cached(idempotency::FIND)?,
            keep_record: connection.prepare_cached(idempotency::KEEP)?,
        })
    }
}

/// Writes a template, its event and its record; refuses before it writes anything.
pub(super) fn create(
    batch: &mut Batch<'_>,
    new: &NewTemplate,
    hashes: &Hashes,
) -> Result<CreateOutcome, StoreError> {
    if let (Some(idempotency), Some(key)) = (&new.idempotency, hashes.record)
        && let Some(record) = idempotency::find(&mut batch.templates.find_record, key, new.at)?
    {
        return Ok(record.answer(idempotency.payload));
    }
    let limits = batch.limits(new.account)?;
    if let Some(refusal) = refusal(batch.connection(), new, hashes, limits)? {
        return Ok(refusal);
    }
    let id = batch.next_template(new.at)?;
    let template = &new.template;
    let state = State::first(new.review);
    let inserted = batch.templates.insert.execute(params![
        key(id.get()),
        key(new.account.get()),
        new.phone,
        hashes.claim,
        template.name(),
        template.language(),
        template.category().as_str(),
        template.allow_category_change(),
        state.newest.as_str(),
        state.approved.map(key),
        millis(new.at),
        template.content(),
        actor_key(new.actor),
        new.family.map(|family| family.0),
        hashes.wording,
    ])?;
    if inserted == 0 {
        let taken = taken(batch.connection(), new.account, &hashes.claim)?;
        return Ok(CreateOutcome::NameInUse(taken.unwrap_or(NameConflict { own: None })));
    }
    if hashes.names_samples {
        let named = sample::named_in(template.content());
        media::note_use(batch.connection(), new.account, named, new.at)?;
    }
    let receipt = CreatedTemplate { id, status: state.status(), category: template.category() };
    let created = events::NewEvent {
        account: new.account,
        kind: EventType::Created,
        template: id,
        version: state.version,
        at: new.at,
        actor: new.actor,
        category: receipt.category,
        status: receipt.status,
        reason: None,
    };
    events::append(batch, &created)?;
    if limits.is_some() {
        limits::count_creation(batch, new.account, new.at)?;
    }
    if let (Some(idempotency), Some(key)) = (&new.idempotency, hashes.record) {
        idempotency::keep(&mut batch.templates.keep_record, key, idempotency, &receipt, new.at)?;
    }
    Ok(CreateOutcome::Created(receipt))
}

/// What stands against a creation beyond a taken name, which the insert itself finds out. Where
/// something may, the name is looked at first: who has it already is told so, and nothing else.
fn refusal(
    connection: &Connection,
    new: &NewTemplate,
    hashes: &Hashes,
    limits: Option<AccountLimits>,
) -> Result<Option<CreateOutcome>, StoreError> {
    if new.family.is_none() && limits.is_none() {
        return Ok(None);
    }
    if let Some(taken) = taken(connection, new.account, &hashes.claim)? {
        return Ok(Some(CreateOutcome::NameInUse(taken)));
    }
    if let Some(family) = new.family
        && let Some(category) = translations::category(connection, new.account, family)?
        && category != new.template.category()
    {
        return Ok(Some(CreateOutcome::CategoryDiffers(category)));
    }
    let Some(limits) = limits else { return Ok(None) };
    let reached = limits::of_creations(connection, new.account, limits, new.at)?;
    Ok(reached.map(CreateOutcome::Limited))
}

/// The oldest other template of the account that has these words.
pub(super) fn template_with_text(
    connection: &Connection,
    account: AccountId,
    wording: &MessageText,
    except: Option<TemplateId>,
) -> Result<Option<TemplateId>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT id FROM template INDEXED BY template_of_wording WHERE wording = ?1 AND \
         account_id = ?2 AND id IS NOT ?3 AND claim IS NOT NULL ORDER BY id LIMIT 1",
    )?;
    let except = except.map(|id| key(id.get()));
    let mut rows =
        query.query(params![wording_key(account, wording), key(account.get()), except])?;
    rows.next()?.map(|row| template_id(row, 0)).transpose()
}

/// Who has the claim, if anybody; told by its id only to its account.
pub(super) fn taken(
    connection: &Connection,
    account: AccountId,
    claim: &[u8; 16],
) -> Result<Option<NameConflict>, StoreError> {
    let mut query =
        connection.prepare_cached("SELECT id, account_id FROM template WHERE claim = ?1")?;
    let mut rows = query.query([claim])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let own = number(row, "account_id")? == account.get();
    Ok(Some(NameConflict { own: own.then_some(template_id(row, "id")?) }))
}

/// One template with everything of its newest version; deleted ones are not found.
pub(super) fn one(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<StoredTemplate>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT id, phone_id, name, language, category, allow_category_change, content, version, \
         status, live_version, hold, previous_category, reason, revision, created_at, updated_at \
         FROM template WHERE id = ?1 AND account_id = ?2 AND claim IS NOT NULL",
    )?;
    let mut rows = query.query(params![key(id.get()), key(account.get())])?;
    rows.next()?.map(stored).transpose()
}

/// Reads the columns of [`one`]. By place, which is quicker than by name.
#[expect(clippy::disallowed_methods, reason = "this is the one place that trusts a row")]
fn stored(row: &Row<'_>) -> Result<StoredTemplate, StoreError> {
    let template =
        Template::restore(row.get(2)?, row.get(3)?, category(row, 4)?, row.get(5)?, row.get(6)?);
    let state = State {
        version: number(row, 7)?,
        newest: status(row, 8)?,
        approved: maybe(row, 9, |version: i64| u64::try_from(version).ok())?,
        hold: maybe(row, 10, |word: String| Hold::parse(&word))?,
    };
    Ok(StoredTemplate {
        id: template_id(row, 0)?,
        phone: row.get(1)?,
        template,
        state,
        previous_category: maybe(row, 11, |word: String| Category::parse(&word))?,
        reason: row.get(12)?,
        revision: number(row, 13)?,
        created_at: column(row, 14, |at: i64| Timestamp::from_millisecond(at).ok())?,
        updated_at: column(row, 15, |at: i64| Timestamp::from_millisecond(at).ok())?,
    })
}
