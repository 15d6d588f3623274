//! Making or editing several templates at once, as SQL.

use galley_domain::template::edit::Edit;

use super::{changes, templates, writer::Batch};
use crate::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, NewTemplate, StoreError, TemplateChange,
    UpsertOutcome, encoding::Hashes,
};

/// All of them, or none.
pub(super) fn all(
    batch: &mut Batch<'_>,
    news: &[(Hashes, NewTemplate)],
) -> Result<UpsertOutcome, StoreError> {
    let done = batch.all_or_none(|batch| {
        let mut receipts = Vec::with_capacity(news.len());
        for (hashes, new) in news {
            match one(batch, hashes, new)? {
                Ok(receipt) => receipts.push(receipt),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        Ok(Ok(receipts))
    })?;
    Ok(done.map_or_else(|refusal| *refusal, UpsertOutcome::Done))
}

fn one(
    batch: &mut Batch<'_>,
    hashes: &Hashes,
    new: &NewTemplate,
) -> Result<Result<CreatedTemplate, Box<UpsertOutcome>>, StoreError> {
    let taken = templates::taken(batch.connection(), new.account, &hashes.claim)?;
    let Some(id) = taken.and_then(|taken| taken.own) else {
        return Ok(match templates::create(batch, new, hashes)? {
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
