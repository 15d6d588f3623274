//! Creates templates, and edits those that exist already (upserts). PostgreSQL creates most templates in
//! batches, with the same decision.

mod decisions;
mod upserts;

use galley_domain::{
    id::TemplateId,
    rulebook::Category,
    template::{Review, lifecycle::State},
};

pub(crate) use self::decisions::{Existing, KeyOwner};
use crate::{
    CreateOutcome, IdempotencyRecord, NameConflict, NewTemplate, Store, StoreError,
    decisions::stored_bytes::version_bytes,
    emulator::{self, Emulation},
    encoding::{LookupKeys, idempotency_cutoff},
    engine::{Tx, WriteKind, values},
    error::no_account,
    events::{self, created_event},
    limits,
    stored_row::StoredRow as _,
    template_rows::{created, insert},
    templates, upstream,
};

/// A template to create, with the hashes that find what it conflicts with. They are computed on the
/// calling thread, not on the writer thread of SQLite.
pub(crate) struct Create {
    pub(crate) new: NewTemplate,
    pub(crate) keys: LookupKeys,
}

impl Create {
    pub(crate) fn of(new: NewTemplate) -> Self {
        Self { keys: LookupKeys::of(&new), new }
    }

    /// Whether a script or a provider reviews it.
    fn is_reviewed_elsewhere(&self) -> bool {
        self.new.review == Review::Scripted || self.new.review.is_by_provider()
    }
}

impl Store {
    /// Creates a template, its `template.created` event and, if a key is given, its idempotency
    /// record.
    pub async fn create_template(&self, new: NewTemplate) -> Result<CreateOutcome, StoreError> {
        let create = Create::of(new);
        match self.engine.create_queue() {
            // Batches look for neither scripts nor connections to providers.
            Some(queue) if !create.is_reviewed_elsewhere() => {
                self.with_faults_of("create_template", queue.create(create.new, create.keys)).await
            }
            _ => {
                let (kind, method) = (WriteKind::AfterChecks, "create_template");
                self.write_as(kind, method, create, |create, tx| Box::pin(create_one(tx, create)))
                    .await
            }
        }
    }
}

async fn create_one(tx: &mut Tx<'_>, create: &Create) -> Result<CreateOutcome, StoreError> {
    let Create { new, .. } = create;
    if !tx.lock(new.account).await? {
        return Err(no_account());
    }
    let emulation = emulator::emulation(tx, new.account, new.review, new.at).await?;
    create_in(tx, create, emulation).await
}

/// Creates a template in a locked account.
async fn create_in(
    tx: &mut Tx<'_>,
    create: &Create,
    emulation: Option<Emulation>,
) -> Result<CreateOutcome, StoreError> {
    let Create { new, keys } = create;
    let quota_at = Emulation::quota_time(emulation, new.at);
    let (record, expired) = idempotency_record(tx, create).await?;
    let owner = key_owner(tx, keys).await?;
    let locked = emulator::locked_name(tx, new, emulation).await?;
    let group = group_category(tx, new).await?;
    let mut quota = limits::remaining_quota(tx, new.account, quota_at).await?;
    let bytes = version_bytes(new.template.content());
    let exceeded = tx.account(new.account)?.stored_bytes.refusal(bytes);
    let existing = Existing { record, owner, locked, group, quota: quota.as_mut(), exceeded };
    if let Some(outcome) = existing.outcome(new) {
        return Ok(outcome);
    }
    let state = State::initial(new.review);
    let Some(id) = insert(tx, new, keys, &state).await? else {
        return Ok(tx.refuse(CreateOutcome::NameInUse(NameConflict { existing_id: None })));
    };
    let mut template = created(new, id, &state);
    events::append(tx, &created_event(new, &template))?;
    if quota.is_some() {
        limits::count_create(tx, new.account, quota_at).await?;
    }
    if new.review.submits_at_once() {
        upstream::queue_submission(tx, new.account, id, state.version, new.at).await?;
    }
    if let Some(emulation) = emulation {
        template = emulator::run_first_script(tx, new, id, state, emulation).await?;
    }
    if let Some((idempotency, key)) = new.idempotency.zip(keys.idempotency) {
        if let Some(expired) = expired {
            let delete = "DELETE FROM idempotency WHERE template_id = $1 AND key = $2";
            tx.defer(delete, &values![expired, key])?;
        }
        let insert = "INSERT INTO idempotency (template_id, key, payload, category, status, \
                      created_at) VALUES ($1, $2, $3, $4, $5, $6)";
        let codes = (template.category.code(), template.status.code());
        let (category, status) = (u32::from(codes.0), u32::from(codes.1));
        let values = values![template.id, key, &idempotency.payload[..], category, status, new.at];
        tx.defer(insert, &values)?;
        tx.add_idempotency_key(key, template.id);
    }
    Ok(CreateOutcome::Created(template))
}

/// The record of an earlier request with the same Idempotency-Key, or the template of one that has
/// expired.
async fn idempotency_record(
    tx: &mut Tx<'_>,
    create: &Create,
) -> Result<(Option<IdempotencyRecord>, Option<TemplateId>), StoreError> {
    let Some(key) = create.keys.idempotency else { return Ok((None, None)) };
    let statement = format!(
        "SELECT payload, template_id, category, status, created_at > $2 AS is_valid \
         FROM idempotency WHERE {} = $1",
        tx.dialect().either("template_id", "key")
    );
    let values = [tx.record_parameter(key)?, idempotency_cutoff(create.new.at).into()];
    let found = tx.query_one(&statement, &values, |row| {
        if row.value("is_valid")? {
            Ok((Some(templates::record(row)?), None))
        } else {
            Ok((None, Some(row.template_id("template_id")?)))
        }
    });
    Ok(found.await?.unwrap_or_default())
}

/// The template of any account that has the unique key.
async fn key_owner(tx: &mut Tx<'_>, keys: &LookupKeys) -> Result<Option<KeyOwner>, StoreError> {
    let statement = tx.dialect().either(
        "SELECT id, account_id FROM template WHERE id = $1 AND unique_key IS NOT NULL",
        "SELECT id, account_id FROM template WHERE unique_key = $1",
    );
    let name = tx.name_parameter(keys.unique_key)?;
    tx.query_one(statement, &[name], |row| KeyOwner::read(row)).await
}

/// The category of the template's translation group, if it has one that is not empty.
async fn group_category(
    tx: &mut Tx<'_>,
    new: &NewTemplate,
) -> Result<Option<Category>, StoreError> {
    let Some(group) = new.translation_group else { return Ok(None) };
    let statement = format!(
        "SELECT category FROM template{} WHERE translation_group = $1 AND account_id = $2 AND \
         unique_key IS NOT NULL LIMIT 1",
        tx.dialect().either(" INDEXED BY template_of_translation_group", "")
    );
    tx.query_one(&statement, &values![group.0, new.account], |row| row.category("category")).await
}
