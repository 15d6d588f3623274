//! Creates templates, and edits those that exist already (upserts). PostgreSQL creates most templates in
//! batches, with the same decision.

mod decisions;

use galley_domain::{
    id::TemplateId,
    rulebook::Category,
    template::{Review, edit::Edit, lifecycle::State},
};

pub(crate) use self::decisions::{Existing, KeyOwner};
use crate::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, IdempotencyRecord, NameConflict, NewTemplate,
    Store, StoreError, StoreFuture, TemplateChange, UpsertOutcome,
    changes::edit_stored,
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
}

impl Store {
    /// Creates a template, its `template.created` event and, if a key is given, its idempotency
    /// record.
    pub fn create_template(&self, new: NewTemplate) -> StoreFuture<'_, CreateOutcome> {
        Box::pin(async move {
            let create = Create::of(new);
            let is_reviewed_here =
                create.new.review != Review::Scripted && !create.new.review.is_by_provider();
            match self.engine.create_queue() {
                // Batches look for neither scripts nor connections to providers.
                Some(queue) if is_reviewed_here => {
                    self.with_faults_of("create_template", queue.create(create.new, create.keys))
                        .await
                }
                _ => {
                    let (kind, method) = (WriteKind::AfterChecks, "create_template");
                    self.write_as(kind, method, create, |create, tx| {
                        Box::pin(async move {
                            let emulation = lock(tx, &create.new).await?;
                            create_in(tx, create, emulation).await
                        })
                    })
                    .await
                }
            }
        })
    }

    /// Creates each of these templates, or edits the existing one with the same unique key to have
    /// this content and category: all of them, or none if one is refused. A template that needs no
    /// change stays as it is.
    pub fn upsert_templates(&self, templates: Vec<NewTemplate>) -> StoreFuture<'_, UpsertOutcome> {
        let creates: Vec<_> = templates.into_iter().map(Create::of).collect();
        self.write("upsert_templates", creates, |creates, tx| {
            Box::pin(async move {
                let mut done = Vec::with_capacity(creates.len());
                for create in creates {
                    match upsert(tx, create).await? {
                        Ok(template) => done.push(template),
                        Err(refusal) => return Ok(tx.refuse(*refusal)),
                    }
                }
                Ok(UpsertOutcome::Done(done))
            })
        })
    }
}

/// Locks the account of a new template; returns how an emulator account decides on it.
async fn lock(tx: &mut Tx<'_>, new: &NewTemplate) -> Result<Option<Emulation>, StoreError> {
    if !tx.lock(new.account).await? {
        return Err(no_account());
    }
    emulator::emulation(tx, new.account, new.review, new.at).await
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

/// The result of one of several upserts. A refusal undoes those before it.
type UpsertResult = Result<CreatedTemplate, Box<UpsertOutcome>>;

async fn upsert(tx: &mut Tx<'_>, create: &Create) -> Result<UpsertResult, StoreError> {
    let Create { new, keys } = create;
    let emulation = lock(tx, new).await?;
    let mut stored = templates::with_key(tx, new.account, keys.unique_key).await?;
    if let Some(id) = stored.as_ref().map(|stored| stored.id)
        && emulator::apply_due_of(tx, new.account, id, emulation, new.at).await?
    {
        stored = templates::with_key(tx, new.account, keys.unique_key).await?;
    }
    let Some(stored) = stored else {
        return Ok(match create_in(tx, create, emulation).await? {
            CreateOutcome::Created(created) | CreateOutcome::Replayed(created) => Ok(created),
            refusal => Err(Box::new(UpsertOutcome::NotCreated(refusal))),
        });
    };
    let (id, content, category) = (stored.id, new.template.content(), new.template.category());
    if (stored.template.content(), stored.template.category()) == (content, category) {
        return Ok(Ok(CreatedTemplate { id, status: stored.state.status(), category }));
    }
    let edit = Edit::Replace { content: Some(content.to_owned()), category: Some(category) };
    let NewTemplate { account, review, actor, trace, at, .. } = *new;
    let change =
        TemplateChange { account, id, expected: None, version: None, review, actor, trace, at };
    Ok(match edit_stored(tx, &change, Some(stored), &edit, emulation).await? {
        ChangeOutcome::Done(edited) => {
            let (status, category) = (edited.state.status(), edited.template.category());
            Ok(CreatedTemplate { id, status, category })
        }
        refusal => Err(Box::new(UpsertOutcome::NotEdited(id, refusal))),
    })
}
