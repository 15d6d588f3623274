//! Upserts of several templates in one transaction, as SQL.

use async_trait::async_trait;
use galley_domain::{
    id::TemplateId,
    rulebook::Category,
    template::{lifecycle::State, sample},
};

use super::{
    PostgresStore,
    batch::{INSERT_RECORDS, no_account},
    columns::{actor_key, category, key, millis, number},
    limits,
    pool::Values,
    templates::{ids_exhausted, record_in, with_unique_key},
    transaction::{Transaction, transact},
};
use crate::{
    ChangeStore, CreateOutcome, NameConflict, NewTemplate, StoreError, UpsertOutcome,
    changes::edit_stored,
    decisions::{
        create::{KeyOwner, category_refusal, created},
        limits::RemainingQuota,
        stored_bytes::version_bytes,
        upsert::{self, Upsert, UpsertResult, plan},
    },
    emulator::{self, Emulation},
    encoding::LookupKeys,
    engine::Tx,
    events::{self, created_event},
    uploads, upstream,
};

#[async_trait]
impl ChangeStore for PostgresStore {
    async fn upsert_templates(
        &self,
        templates: Vec<NewTemplate>,
    ) -> Result<UpsertOutcome, StoreError> {
        let templates: Vec<_> =
            templates.into_iter().map(|new| (LookupKeys::of(&new), new)).collect();
        transact!(self, tx => all(tx, &templates))
    }
}

/// Upserts all of the templates, or none.
async fn all(
    transaction: &mut Transaction,
    templates: &[(LookupKeys, NewTemplate)],
) -> Result<UpsertOutcome, StoreError> {
    let mut done = Vec::with_capacity(templates.len());
    for (lookup_keys, new) in templates {
        match one(transaction, lookup_keys, new).await? {
            Ok(template) => done.push(template),
            Err(refusal) => {
                transaction.set_rollback_only();
                return Ok(*refusal);
            }
        }
    }
    Ok(UpsertOutcome::Done(done))
}

async fn one(
    transaction: &mut Transaction,
    lookup_keys: &LookupKeys,
    new: &NewTemplate,
) -> Result<UpsertResult, StoreError> {
    if !transaction.lock(new.account).await? {
        return Err(no_account());
    }
    let tx = &mut Tx::new(transaction);
    let emulation = emulator::emulation(tx, new.account, new.review, new.at).await?;
    let mut stored = with_unique_key(transaction, new.account, &lookup_keys.unique_key).await?;
    if let Some(id) = stored.as_ref().map(|stored| stored.id)
        && let tx = &mut Tx::new(transaction)
        && emulator::apply_due_of(tx, new.account, id, emulation, new.at).await?
    {
        stored = with_unique_key(transaction, new.account, &lookup_keys.unique_key).await?;
    }
    Ok(match plan(new, stored) {
        Upsert::Create => upsert::created(create(transaction, lookup_keys, new, emulation).await?),
        Upsert::Keep(template) => Ok(template),
        Upsert::Edit(stored, change, edit) => {
            let stored = Some(*stored);
            let tx = &mut Tx::new(transaction);
            let edited = edit_stored(tx, &change, stored, &edit, emulation).await?;
            upsert::edited(change.id, edited)
        }
    })
}

/// Creates a template that a script or a provider reviews, with its idempotency record. Such creates
/// do not join the batches of the create queue, so that other creates need not look for scripts and
/// connections.
pub(super) async fn create_alone(
    transaction: &mut Transaction,
    lookup_keys: &LookupKeys,
    new: &NewTemplate,
) -> Result<CreateOutcome, StoreError> {
    if !transaction.lock(new.account).await? {
        return Err(no_account());
    }
    let idempotency = new.idempotency.zip(lookup_keys.idempotency);
    if let Some((idempotency, key)) = idempotency
        && let Some(record) = record_in(transaction, key, new.at).await?
    {
        return Ok(record.outcome_for(idempotency.payload));
    }
    let statement = "SELECT id, account_id FROM template WHERE unique_key = $1";
    let row = transaction.query_one(statement, &[&&lookup_keys.unique_key[..]]).await?;
    if let Some(owner) = row.as_ref().map(KeyOwner::read).transpose()? {
        return Ok(CreateOutcome::NameInUse(owner.conflict_for(new.account)));
    }
    let tx = &mut Tx::new(transaction);
    let emulation = emulator::emulation(tx, new.account, new.review, new.at).await?;
    let outcome = create(transaction, lookup_keys, new, emulation).await?;
    if let (Some((idempotency, record_key)), CreateOutcome::Created(created)) =
        (idempotency, outcome)
    {
        let values: Values<'_> = &[
            &vec![&record_key[..]],
            &vec![&idempotency.payload[..]],
            &vec![key(created.id.get())],
            &vec![i16::from(created.category.code())],
            &vec![i16::from(created.status.code())],
            &vec![millis(new.at)],
        ];
        transaction.execute(INSERT_RECORDS, values).await?;
    }
    Ok(outcome)
}

/// Creates a template in a locked account.
async fn create(
    transaction: &mut Transaction,
    lookup_keys: &LookupKeys,
    new: &NewTemplate,
    emulation: Option<Emulation>,
) -> Result<CreateOutcome, StoreError> {
    let tx = &mut Tx::new(transaction);
    if let Some(refusal) = emulator::locked_name(tx, new, emulation).await? {
        return Ok(refusal);
    }
    if let Some(refusal) = category_refusal(new, group_category(transaction, new).await?) {
        return Ok(refusal);
    }
    let quota_at = Emulation::quota_time(emulation, new.at);
    let mut quota = limits::read_quota(transaction.connection(), new.account, quota_at).await?;
    let bytes = version_bytes(new.template.content());
    let exceeded = transaction.account(new.account).stored_bytes.refusal(bytes);
    if let Some(limit) = quota.as_mut().and_then(RemainingQuota::take).or(exceeded) {
        return Ok(CreateOutcome::Limited(limit));
    }
    let state = State::initial(new.review);
    let Some(id) = insert(transaction, lookup_keys, new, &state).await? else {
        return Ok(CreateOutcome::NameInUse(NameConflict { existing_id: None }));
    };
    transaction.account(new.account).stored_bytes.add(bytes);
    let mut template = created(new, id, &state);
    events::append(&mut Tx::new(transaction), &created_event(new, &template))?;
    if new.review.submits_at_once() {
        let submitted = (new.account, id, state.version);
        upstream::queue_submission(&mut Tx::new(transaction), submitted, new.at).await?;
    }
    if let Some(emulation) = emulation {
        let tx = &mut Tx::new(transaction);
        template = emulator::run_first_script(tx, new, id, state, emulation).await?;
    }
    if quota.is_some() {
        let seq = key(transaction.account(new.account).newest_event());
        limits::count_create(transaction.connection(), new.account, seq, quota_at).await?;
    }
    let samples = sample::referenced_names(new.template.content());
    uploads::mark_used(&mut Tx::new(transaction), new.account, samples, new.at).await?;
    Ok(CreateOutcome::Created(template))
}

async fn group_category(
    transaction: &Transaction,
    new: &NewTemplate,
) -> Result<Option<Category>, StoreError> {
    let Some(group) = new.translation_group else { return Ok(None) };
    let statement = "SELECT category FROM template WHERE translation_group = $1 AND \
                     unique_key IS NOT NULL LIMIT 1";
    let row = transaction.query_one(statement, &[&&group.0[..]]).await?;
    row.map(|row| category(&row, 0)).transpose()
}

/// Inserts the template of a locked account and counts what it stores; `None` if its unique key is in
/// use.
pub(crate) async fn insert_counted(
    transaction: &mut Transaction,
    lookup_keys: &LookupKeys,
    new: &NewTemplate,
    state: &State,
) -> Result<Option<TemplateId>, StoreError> {
    let id = insert(transaction, lookup_keys, new, state).await?;
    if id.is_some() {
        let content = new.template.content();
        transaction.account(new.account).stored_bytes.add(version_bytes(content));
        let samples = sample::referenced_names(content);
        uploads::mark_used(&mut Tx::new(transaction), new.account, samples, new.at).await?;
    }
    Ok(id)
}

/// Inserts the template under a new id; `None` if its unique key is in use.
pub(super) async fn insert(
    transaction: &Transaction,
    lookup_keys: &LookupKeys,
    new: &NewTemplate,
    state: &State,
) -> Result<Option<TemplateId>, StoreError> {
    let account = key(new.account.get());
    let last = "SELECT last_template FROM account WHERE id = $1";
    let last = transaction.query_one(last, &[&account]).await?;
    let mut last = last.map_or(Ok(0), |row| number(&row, 0))?;
    let ids = transaction.ids();
    loop {
        let id = TemplateId::new(ids.next(last, new.at)).ok_or_else(ids_exhausted)?;
        if insert_with_id(transaction, id, lookup_keys, new, state).await? {
            let update = "UPDATE account SET last_template = $2 WHERE id = $1";
            transaction.execute(update, &[&account, &key(id.get())]).await?;
            return Ok(Some(id));
        }
        let existing = "SELECT 1 FROM template WHERE unique_key = $1";
        if transaction.query_one(existing, &[&&lookup_keys.unique_key[..]]).await?.is_some() {
            return Ok(None);
        }
        // Another instance has the id: continue after it.
        last = id.get();
    }
}

/// Inserts the template; `false` if its unique key or the id is in use.
async fn insert_with_id(
    transaction: &Transaction,
    id: TemplateId,
    lookup_keys: &LookupKeys,
    new: &NewTemplate,
    state: &State,
) -> Result<bool, StoreError> {
    let statement = "INSERT INTO template (id, account_id, phone_id, unique_key, name, language, \
         category, allow_category_change, status, version, live_version, revision, created_at, \
         updated_at, content, actor, translation_group, message_text) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, \
         1, $10, 1, $11, $11, $12, $13, $14, $15) ON CONFLICT DO NOTHING";
    let template = &new.template;
    let values: Values<'_> = &[
        &key(id.get()),
        &key(new.account.get()),
        &new.phone,
        &&lookup_keys.unique_key[..],
        &template.name(),
        &template.language(),
        &template.category().as_str(),
        &template.allow_category_change(),
        &state.newest_status.as_str(),
        &state.approved_version.map(key),
        &millis(new.at),
        &template.content(),
        &actor_key(new.actor),
        &new.translation_group.map(|group| group.0.to_vec()),
        &lookup_keys.text.map(|text| text.to_vec()),
    ];
    Ok(transaction.execute(statement, values).await? > 0)
}
