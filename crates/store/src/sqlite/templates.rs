//! Templates, their events and their idempotency records, as SQL.

use std::fmt::Debug;

use galley_domain::{
    id::{AccountId, TemplateId},
    template::{Category, Status, Template},
};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row, RowIndex, params};
use sha2::{Digest, Sha256};

use super::{column, key, millis, moment, number, writer::Batch};
use crate::{
    Creation, CredentialId, Event, EventType, IDEMPOTENCY_HOURS, NewTemplate, Receipt, Record,
    StoreError, StoredTemplate,
};

/// The statements of a creation, prepared once for all the writes of a transaction.
pub(super) struct Statements<'c> {
    insert: CachedStatement<'c>,
    append: CachedStatement<'c>,
    find_record: CachedStatement<'c>,
    keep_record: CachedStatement<'c>,
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self, StoreError> {
        let insert = connection.prepare_cached(
            "INSERT INTO template (id, account_id, phone_id, claim, name, language, category, \
             allow_category_change, status, version, live_version, revision, created_at, \
             updated_at, content) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, 1, ?11, ?11, ?12) \
             ON CONFLICT (claim) DO NOTHING",
        )?;
        let append = connection.prepare_cached(
            "INSERT INTO event (account_id, seq, type, template_id, version, at, actor, category, \
             status) VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8)",
        )?;
        let find_record = connection.prepare_cached(FIND_RECORD)?;
        // An older record under this key has run out, or the creation had ended with it.
        let keep_record = connection.prepare_cached(
            "INSERT OR REPLACE INTO idempotency (key, payload, template_id, category, status, \
             created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        Ok(Self { insert, append, find_record, keep_record })
    }
}

/// Writes a template, its event and its record; refuses before it writes anything.
pub(super) fn create(
    batch: &mut Batch<'_>,
    new: &NewTemplate,
    hashes: &Hashes,
) -> Result<Creation, StoreError> {
    if let (Some(idempotency), Some(key)) = (&new.idempotency, hashes.record)
        && let Some(record) = find_record(&mut batch.templates.find_record, key, new.at)?
    {
        return Ok(record.answer(idempotency.payload));
    }
    let id = batch.next_template(new.at)?;
    let template = &new.template;
    let live = (new.status == Status::Approved).then_some(1);
    let inserted = batch.templates.insert.execute(params![
        key(id.get()),
        key(new.account.get()),
        new.phone,
        hashes.claim,
        template.name(),
        template.language(),
        template.category().word(),
        template.allow_category_change(),
        new.status.word(),
        live,
        millis(new.at),
        template.content(),
    ])?;
    if inserted == 0 {
        return taken(batch.connection(), &hashes.claim, new.account);
    }
    let receipt = Receipt { id, status: new.status, category: template.category() };
    append_event(batch, new, &receipt)?;
    keep_record(batch, new, hashes, &receipt)?;
    Ok(Creation::Created(receipt))
}

/// What a creation is found by: short, whatever the length of names and keys.
pub(super) struct Hashes {
    claim: [u8; 16],
    record: Option<[u8; 16]>,
}

impl Hashes {
    pub(super) fn of(new: &NewTemplate) -> Self {
        let record = new.idempotency.map(|idempotency| record_key(new.account, idempotency.key));
        Self { claim: head(Sha256::digest(new.claim.as_bytes()).into()), record }
    }
}

/// Keys of different accounts are strangers.
fn record_key(account: AccountId, idempotency_key: [u8; 16]) -> [u8; 16] {
    let hash =
        Sha256::new().chain_update(account.get().to_be_bytes()).chain_update(idempotency_key);
    head(hash.finalize().into())
}

fn head(hash: [u8; 32]) -> [u8; 16] {
    *hash.first_chunk().expect("32 bytes begin with 16")
}

fn taken(
    connection: &Connection,
    claim: &[u8; 16],
    account: AccountId,
) -> Result<Creation, StoreError> {
    let mut query = connection
        .prepare_cached("SELECT id FROM template WHERE claim = ?1 AND account_id = ?2")?;
    let own: Option<i64> =
        query.query_row(params![claim, key(account.get())], |row| row.get(0)).optional()?;
    let own = own.and_then(|id| TemplateId::new(u64::try_from(id).ok()?));
    Ok(Creation::NameTaken(own))
}

fn append_event(
    batch: &mut Batch<'_>,
    new: &NewTemplate,
    receipt: &Receipt,
) -> Result<(), StoreError> {
    let seq = batch.next_seq(new.account)?;
    batch.templates.append.execute(params![
        key(new.account.get()),
        key(seq),
        EventType::Created.word(),
        key(receipt.id.get()),
        millis(new.at),
        key(new.actor.0),
        receipt.category.word(),
        receipt.status.word(),
    ])?;
    Ok(())
}

fn keep_record(
    batch: &mut Batch<'_>,
    new: &NewTemplate,
    hashes: &Hashes,
    receipt: &Receipt,
) -> Result<(), StoreError> {
    let Some(idempotency) = &new.idempotency else { return Ok(()) };
    batch.templates.keep_record.execute(params![
        hashes.record,
        idempotency.payload,
        key(receipt.id.get()),
        receipt.category.number(),
        receipt.status.number(),
        millis(new.at),
    ])?;
    Ok(())
}

pub(super) fn record(
    connection: &Connection,
    account: AccountId,
    idempotency_key: [u8; 16],
    at: Timestamp,
) -> Result<Option<Record>, StoreError> {
    let key = record_key(account, idempotency_key);
    find_record(&mut connection.prepare_cached(FIND_RECORD)?, key, at)
}

const FIND_RECORD: &str = "SELECT payload, template_id, category, status FROM idempotency \
     WHERE key = ?1 AND created_at > ?2";

fn find_record(
    find: &mut CachedStatement<'_>,
    record_key: [u8; 16],
    at: Timestamp,
) -> Result<Option<Record>, StoreError> {
    let mut rows = find.query(params![record_key, oldest_record(at)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let receipt = Receipt {
        id: template_id(row, "template_id")?,
        status: column(row, "status", Status::numbered)?,
        category: column(row, "category", Category::numbered)?,
    };
    Ok(Some(Record { payload: row.get("payload")?, receipt }))
}

/// Records made at or before this moment have run out.
pub(super) fn oldest_record(at: Timestamp) -> i64 {
    millis(
        at.saturating_sub(SignedDuration::from_hours(IDEMPOTENCY_HOURS)).unwrap_or(Timestamp::MIN),
    )
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that trusts a row")]
pub(super) fn template(
    connection: &Connection,
    account: AccountId,
    id: TemplateId,
) -> Result<Option<StoredTemplate>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT phone_id, name, language, category, allow_category_change, content, \
         coalesce(hold, status), version, live_version, revision, created_at, updated_at \
         FROM template WHERE id = ?1 AND account_id = ?2 AND claim IS NOT NULL",
    )?;
    let mut rows = query.query(params![key(id.get()), key(account.get())])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let template =
        Template::restore(row.get(1)?, row.get(2)?, category(row, 3)?, row.get(4)?, row.get(5)?);
    Ok(Some(StoredTemplate {
        id,
        phone: row.get(0)?,
        template,
        status: status(row, 6)?,
        version: number(row, 7)?,
        live_version: column(row, 8, |kept: Option<i64>| match kept {
            Some(version) => u64::try_from(version).ok().map(Some),
            None => Some(None),
        })?,
        revision: number(row, 9)?,
        created_at: moment(row, 10)?.unwrap_or_default(),
        updated_at: moment(row, 11)?.unwrap_or_default(),
    }))
}

pub(super) fn events(
    connection: &Connection,
    account: AccountId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT e.seq, e.type, e.template_id, e.version, e.at, e.actor, t.name, t.language, \
         e.category, e.status FROM event e JOIN template t ON t.id = e.template_id \
         WHERE e.account_id = ?1 AND e.seq > ?2 ORDER BY e.seq LIMIT ?3",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = query.query(params![
        key(account.get()),
        i64::try_from(after).unwrap_or(i64::MAX),
        limit
    ])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(Event {
            seq: number(row, "seq")?,
            kind: column(row, "type", |word: String| EventType::named(&word))?,
            template: template_id(row, "template_id")?,
            version: number(row, "version")?,
            at: moment(row, "at")?.unwrap_or_default(),
            actor: CredentialId(number(row, "actor")?),
            name: row.get("name")?,
            language: row.get("language")?,
            category: category(row, "category")?,
            status: status(row, "status")?,
        });
    }
    Ok(events)
}

fn template_id(row: &Row<'_>, name: &'static str) -> Result<TemplateId, StoreError> {
    column(row, name, |kept: i64| TemplateId::new(u64::try_from(kept).ok()?))
}

fn category(row: &Row<'_>, name: impl RowIndex + Debug) -> Result<Category, StoreError> {
    column(row, name, |word: String| Category::named(&word))
}

fn status(row: &Row<'_>, name: impl RowIndex + Debug) -> Result<Status, StoreError> {
    column(row, name, |word: String| Status::named(&word))
}
