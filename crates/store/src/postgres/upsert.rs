//! Making or editing several templates at once, as SQL.

use galley_domain::{
    id::TemplateId,
    rulebook::Category,
    template::{
        edit::Edit,
        lifecycle::{EventType, State},
        sample,
    },
};

use super::{
    changes,
    columns::{actor_key, category, key, millis, number, template_id},
    events,
    ids::Ids,
    limits::{self, Room},
    media,
    pool::Values,
    templates::{self, out_of_ids},
    transaction::Transaction,
};
use crate::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, NameConflict, NewTemplate, StoreError,
    TemplateChange, UpsertOutcome, encoding::Hashes,
};

/// All of them, or none.
pub(super) async fn all(
    transaction: &mut Transaction,
    ids: &Ids,
    news: &[(Hashes, NewTemplate)],
) -> Result<UpsertOutcome, StoreError> {
    let mut receipts = Vec::with_capacity(news.len());
    for (hashes, new) in news {
        match one(transaction, ids, hashes, new).await? {
            Ok(receipt) => receipts.push(receipt),
            Err(refusal) => {
                transaction.undo();
                return Ok(*refusal);
            }
        }
    }
    Ok(UpsertOutcome::Done(receipts))
}

async fn one(
    transaction: &mut Transaction,
    ids: &Ids,
    hashes: &Hashes,
    new: &NewTemplate,
) -> Result<Result<CreatedTemplate, Box<UpsertOutcome>>, StoreError> {
    transaction.lock(new.account).await?;
    let own = "SELECT id FROM template WHERE claim = $1 AND account_id = $2";
    let row = transaction.query_one(own, &[&&hashes.claim[..], &key(new.account.get())]).await?;
    let Some(row) = row else {
        return Ok(match create(transaction, ids, hashes, new).await? {
            CreateOutcome::Created(receipt) => Ok(receipt),
            refusal => Err(Box::new(UpsertOutcome::NotCreated(refusal))),
        });
    };
    let id = template_id(&row, 0)?;
    let (content, category) = (new.template.content(), new.template.category());
    if let Some(stored) = templates::one_in(transaction, new.account, id).await?
        && (stored.template.content(), stored.template.category()) == (content, category)
    {
        return Ok(Ok(CreatedTemplate { id, status: stored.state.status(), category }));
    }
    let edit = Edit::Replace { content: Some(content.to_owned()), category: Some(category) };
    let change = TemplateChange {
        account: new.account,
        id,
        expected: None,
        review: new.review,
        actor: new.actor,
        at: new.at,
    };
    Ok(match changes::edit(transaction, &change, &edit).await? {
        ChangeOutcome::Done(stored) => {
            Ok(CreatedTemplate { id, status: stored.state.status(), category })
        }
        refusal => Err(Box::new(UpsertOutcome::NotEdited(id, refusal))),
    })
}

/// Makes one template of an account that is locked.
async fn create(
    transaction: &mut Transaction,
    ids: &Ids,
    hashes: &Hashes,
    new: &NewTemplate,
) -> Result<CreateOutcome, StoreError> {
    if let Some(known) = category_of_family(transaction, new).await?
        && known != new.template.category()
    {
        return Ok(CreateOutcome::CategoryDiffers(known));
    }
    let mut room = Room::of(transaction.link(), new.account, new.at).await?;
    if let Some(limit) = room.as_mut().and_then(Room::take) {
        return Ok(CreateOutcome::Limited(limit));
    }
    let state = State::first(new.review);
    let Some(id) = insert(transaction, ids, hashes, new, &state).await? else {
        return Ok(CreateOutcome::NameInUse(NameConflict { own: None }));
    };
    let (status, category) = (state.status(), new.template.category());
    let created = events::NewEvent {
        account: new.account,
        kind: EventType::Created,
        template: id,
        version: state.version,
        at: new.at,
        actor: new.actor,
        category,
        status,
        reason: None,
    };
    events::append(transaction, &created).await?;
    if room.is_some() {
        let seq = key(transaction.newest_seq(new.account));
        limits::count_creation(transaction.link(), new.account, seq, new.at).await?;
    }
    let samples = sample::named_in(new.template.content());
    media::note_use(transaction.link(), new.account, samples, new.at).await?;
    Ok(CreateOutcome::Created(CreatedTemplate { id, status, category }))
}

async fn category_of_family(
    transaction: &Transaction,
    new: &NewTemplate,
) -> Result<Option<Category>, StoreError> {
    let Some(family) = new.family else { return Ok(None) };
    let statement = "SELECT category FROM template WHERE family = $1 AND claim IS NOT NULL LIMIT 1";
    let row = transaction.query_one(statement, &[&&family.0[..]]).await?;
    row.map(|row| category(&row, 0)).transpose()
}

/// None if somebody else has the claim.
async fn insert(
    transaction: &Transaction,
    ids: &Ids,
    hashes: &Hashes,
    new: &NewTemplate,
    state: &State,
) -> Result<Option<TemplateId>, StoreError> {
    let account = key(new.account.get());
    let last = "SELECT last_template FROM account WHERE id = $1";
    let last = transaction.query_one(last, &[&account]).await?;
    let mut last = last.map_or(Ok(0), |row| number(&row, 0))?;
    loop {
        let id = TemplateId::new(ids.next(last, new.at)).ok_or_else(out_of_ids)?;
        if insert_as(transaction, id, hashes, new, state).await? {
            let raise = "UPDATE account SET last_template = $2 WHERE id = $1";
            transaction.execute(raise, &[&account, &key(id.get())]).await?;
            return Ok(Some(id));
        }
        let taken = "SELECT 1 FROM template WHERE claim = $1";
        if transaction.query_one(taken, &[&&hashes.claim[..]]).await?.is_some() {
            return Ok(None);
        }
        // Another instance has the id: one behind it will do.
        last = id.get();
    }
}

/// Whether neither the claim nor the id was taken.
async fn insert_as(
    transaction: &Transaction,
    id: TemplateId,
    hashes: &Hashes,
    new: &NewTemplate,
    state: &State,
) -> Result<bool, StoreError> {
    let statement = "INSERT INTO template (id, account_id, phone_id, claim, name, language, \
         category, allow_category_change, status, version, live_version, revision, created_at, \
         updated_at, content, actor, family, wording) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, \
         1, $10, 1, $11, $11, $12, $13, $14, $15) ON CONFLICT DO NOTHING";
    let template = &new.template;
    let values: Values<'_> = &[
        &key(id.get()),
        &key(new.account.get()),
        &new.phone,
        &&hashes.claim[..],
        &template.name(),
        &template.language(),
        &template.category().as_str(),
        &template.allow_category_change(),
        &state.newest.as_str(),
        &state.approved.map(key),
        &millis(new.at),
        &template.content(),
        &actor_key(new.actor),
        &new.family.map(|family| family.0.to_vec()),
        &hashes.wording.map(|wording| wording.to_vec()),
    ];
    Ok(transaction.execute(statement, values).await? > 0)
}
