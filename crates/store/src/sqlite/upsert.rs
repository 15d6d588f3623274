//! Creates or edits several templates atomically.

use galley_domain::template::edit::Edit;

use super::{
    changes,
    templates::{self, Prepared},
    writer::Batch,
};
use crate::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, NewTemplate, StoreError, TemplateChange,
    UpsertOutcome,
};

/// Creates or edits all of the templates, or none if one is refused.
pub(super) fn all(
    batch: &mut Batch<'_>,
    news: &[(Prepared, NewTemplate)],
) -> Result<UpsertOutcome, StoreError> {
    let outcome = batch.with_savepoint(|batch| {
        let mut receipts = Vec::with_capacity(news.len());
        for (prepared, new) in news {
            match one(batch, prepared, new)? {
                Ok(receipt) => receipts.push(receipt),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        Ok(Ok(receipts))
    })?;
    Ok(outcome.map_or_else(|refusal| *refusal, UpsertOutcome::Done))
}

fn one(
    batch: &mut Batch<'_>,
    prepared: &Prepared,
    new: &NewTemplate,
) -> Result<Result<CreatedTemplate, Box<UpsertOutcome>>, StoreError> {
    let unique_key = &prepared.lookup_keys.unique_key;
    let conflict = templates::name_conflict(batch.connection(), new.account, unique_key)?;
    let Some(id) = conflict.and_then(|conflict| conflict.existing_id) else {
        return Ok(match templates::create(batch, new, prepared)? {
            CreateOutcome::Created(receipt) | CreateOutcome::Replayed(receipt) => Ok(receipt),
            refusal => Err(Box::new(UpsertOutcome::NotCreated(refusal))),
        });
    };
    let (content, category) = (new.template.content(), new.template.category());
    if let Some(stored) = templates::one(batch.connection(), new.account, id)?
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
    Ok(match changes::edit(batch, &change, &edit)? {
        ChangeOutcome::Done(stored) => {
            Ok(CreatedTemplate { id, status: stored.state.status(), category })
        }
        refusal => Err(Box::new(UpsertOutcome::NotEdited(id, refusal))),
    })
}
