//! SQL for creating templates, on the path that every create takes.

use galley_domain::{
    id::{AccountId, TemplateId},
    template::{lifecycle::State, sample},
};
use rusqlite::{params, types::ValueRef};

use super::name_conflict;
use crate::{
    AccountLimits, CreateOutcome, Limit, NameConflict, NewTemplate, StoreError,
    decisions::{
        create::{category_refusal, created},
        stored_bytes::version_bytes,
    },
    emulator::{self, Emulation},
    encoding::LookupKeys,
    engine::Tx,
    events::{self, created_event},
    sqlite::{
        buffered_index::Hash,
        checksum::{Checksum, integer},
        columns::{actor_key, key, millis},
        idempotency::{self, Found},
        limits,
        statements::ready,
        translations,
        writer::Batch,
    },
    uploads, upstream,
};

const INSERT: &str = "INSERT INTO template (id, account_id, phone_id, unique_key, name, language, \
     category, allow_category_change, status, version, live_version, revision, created_at, \
     updated_at, content, actor, translation_group, message_text, checksum) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, ?10, 1, ?11, ?11, ?12, ?13, ?14, ?15, ?16)";

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
    batch: &mut Batch,
    new: &NewTemplate,
    lookup_keys: &LookupKeys,
) -> Result<CreateOutcome, StoreError> {
    let mut expired = None;
    if let (Some(idempotency), Some(key)) = (&new.idempotency, lookup_keys.idempotency) {
        match idempotency::find_in(batch, key, new.at)? {
            Found::Record(record) => return Ok(record.outcome_for(idempotency.payload)),
            Found::Expired(id) => expired = Some(id),
            Found::Nothing => {}
        }
    }
    let emulation =
        ready(emulator::emulation(&mut Tx::new(batch), new.account, new.review, new.at))?;
    let limits = batch.limits(new.account)?;
    let bytes = version_bytes(new.template.content());
    let exceeded = batch.account(new.account)?.stored_bytes.refusal(bytes);
    if let Some(refusal) = refusal(batch, new, lookup_keys, (limits, exceeded), emulation)? {
        return Ok(refusal);
    }
    let state = State::initial(new.review);
    let id = insert(batch, new, lookup_keys, &state)?;
    let mut template = created(new, id, &state);
    events::append(&mut Tx::new(batch), &created_event(new, &template))?;
    if new.review.submits_at_once() {
        let submitted = (new.account, id, state.version);
        ready(upstream::queue_submission(&mut Tx::new(batch), submitted, new.at))?;
    }
    if let Some(emulation) = emulation {
        let tx = &mut Tx::new(batch);
        template = ready(emulator::run_first_script(tx, new, id, state, emulation))?;
    }
    if limits.is_some() {
        let at = Emulation::quota_time(emulation, new.at);
        crate::limits::count_create(&mut Tx::new(batch), new.account, at)?;
    }
    if let (Some(idempotency), Some(key)) = (&new.idempotency, lookup_keys.idempotency) {
        if let Some(expired) = expired {
            idempotency::delete_expired(batch, expired, new.at)?;
        }
        idempotency::insert(batch, key, idempotency, &template, new.at)?;
    }
    Ok(CreateOutcome::Created(template))
}

/// Inserts a template in a state. Its unique key is free.
pub(in crate::sqlite) fn insert(
    batch: &mut Batch,
    new: &NewTemplate,
    lookup_keys: &LookupKeys,
    state: &State,
) -> Result<TemplateId, StoreError> {
    let id = batch.next_template(new.at)?;
    let template = &new.template;
    batch.connection().prepare_cached(INSERT)?.execute(params![
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
        checksum(id, new, state).stored(),
    ])?;
    batch.add_unique_key(lookup_keys.unique_key, id);
    if lookup_keys.references_media {
        let handles = sample::referenced_names(template.content());
        ready(uploads::mark_used(&mut Tx::new(batch), new.account, handles, new.at))?;
    }
    batch.account(new.account)?.stored_bytes.add(version_bytes(template.content()));
    Ok(id)
}

/// The conflict with the template that has the unique key, including those of this transaction.
pub(in crate::sqlite) fn conflict_in(
    batch: &Batch,
    account: AccountId,
    unique_key: Hash,
) -> Result<Option<NameConflict>, StoreError> {
    let id = batch.template_with_key(unique_key)?;
    name_conflict(batch.connection(), account, id, unique_key)
}

/// Why a template cannot be created; `exceeded` is the quota that it does not fit into.
fn refusal(
    batch: &mut Batch,
    new: &NewTemplate,
    lookup_keys: &LookupKeys,
    (limits, exceeded): (Option<AccountLimits>, Option<Limit>),
    emulation: Option<Emulation>,
) -> Result<Option<CreateOutcome>, StoreError> {
    if let Some(conflict) = conflict_in(batch, new.account, lookup_keys.unique_key)? {
        return Ok(Some(CreateOutcome::NameInUse(conflict)));
    }
    if let Some(refusal) = ready(emulator::locked_name(&mut Tx::new(batch), new, emulation))? {
        return Ok(Some(refusal));
    }
    let connection = batch.connection();
    if let Some(group) = new.translation_group {
        let group = translations::category(connection, new.account, group)?;
        if let Some(refusal) = category_refusal(new, group) {
            return Ok(Some(refusal));
        }
    }
    let reached = match limits {
        Some(limits) => {
            let quota_at = Emulation::quota_time(emulation, new.at);
            limits::reached_by_create(connection, new.account, limits, quota_at)?
        }
        None => None,
    };
    Ok(reached.or(exceeded).map(CreateOutcome::Limited))
}
