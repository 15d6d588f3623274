//! SQL for creating templates, on the path that every create takes.

use galley_domain::{
    id::TemplateId,
    template::{lifecycle::State, sample},
};
use rusqlite::{CachedStatement, Connection, params, types::ValueRef};

use super::name_conflict;
use crate::{
    AccountLimits, CreateOutcome, Limit, NameConflict, NewTemplate, StoreError,
    decisions::{
        create::{category_refusal, created, created_event},
        stored_bytes::version_bytes,
    },
    encoding::LookupKeys,
    sqlite::{
        checksum::{Checksum, integer},
        columns::{actor_key, key, millis},
        events, idempotency, limits, media, translations,
        writer::Batch,
    },
};

/// The statements of a create, prepared once per transaction.
pub(in crate::sqlite) struct Statements<'c> {
    insert: CachedStatement<'c>,
    pub(in crate::sqlite) append: CachedStatement<'c>,
    find_record: CachedStatement<'c>,
    insert_record: CachedStatement<'c>,
}

impl<'c> Statements<'c> {
    pub(in crate::sqlite) fn prepare(connection: &'c Connection) -> Result<Self, StoreError> {
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

/// The checksum of a new template, in the order of the columns in `template_columns`. Computed here,
/// because an SQL function would copy each value again.
fn checksum(id: TemplateId, new: &NewTemplate, state: &State) -> Checksum {
    let template = &new.template;
    Checksum::of([
        ValueRef::Integer(key(id.get())),
        ValueRef::Integer(key(new.account.get())),
        new.phone.as_deref().map_or(ValueRef::Null, Into::into),
        template.name().into(),
        template.language().into(),
        template.category().as_str().into(),
        ValueRef::Integer(template.allow_category_change().into()),
        template.content().into(),
        ValueRef::Integer(1),
        state.newest_status.as_str().into(),
        integer(state.approved_version.map(key)),
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
pub(in crate::sqlite) fn create(
    batch: &mut Batch<'_>,
    new: &NewTemplate,
    lookup_keys: &LookupKeys,
) -> Result<CreateOutcome, StoreError> {
    if let (Some(idempotency), Some(key)) = (&new.idempotency, lookup_keys.idempotency)
        && let Some(record) = idempotency::find(&mut batch.templates.find_record, key, new.at)?
    {
        return Ok(record.outcome_for(idempotency.payload));
    }
    let limits = batch.limits(new.account)?;
    let bytes = version_bytes(new.template.content());
    let exceeded = batch.stored_bytes(new.account)?.refusal(bytes);
    if let Some(refusal) = refusal(batch.connection(), new, lookup_keys, limits, exceeded)? {
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
        checksum(id, new, &state).stored(),
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
    batch.add_stored_bytes(new.account, bytes)?;
    let template = created(new, id, &state);
    events::append(batch, &created_event(new, &template))?;
    if limits.is_some() {
        limits::count_create(batch, new.account, new.at)?;
    }
    if let (Some(idempotency), Some(key)) = (&new.idempotency, lookup_keys.idempotency) {
        idempotency::insert(
            &mut batch.templates.insert_record,
            key,
            idempotency,
            &template,
            new.at,
        )?;
    }
    Ok(CreateOutcome::Created(template))
}

/// Why a template cannot be created; `exceeded` is the quota that it does not fit into. The insert itself detects a name in use; it is checked here
/// only to report it before a mismatching category or a reached limit.
fn refusal(
    connection: &Connection,
    new: &NewTemplate,
    lookup_keys: &LookupKeys,
    limits: Option<AccountLimits>,
    exceeded: Option<Limit>,
) -> Result<Option<CreateOutcome>, StoreError> {
    if new.translation_group.is_none() && limits.is_none() && exceeded.is_none() {
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
    let reached = match limits {
        Some(limits) => limits::reached_by_create(connection, new.account, limits, new.at)?,
        None => None,
    };
    Ok(reached.or(exceeded).map(CreateOutcome::Limited))
}
