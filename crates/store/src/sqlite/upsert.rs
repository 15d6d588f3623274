//! Making or editing several templates at once, as SQL.

use galley_domain::edit::Edit;

use super::{changes, templates, writer::Batch};
use crate::{Change, Changed, Creation, NewTemplate, Receipt, StoreError, Upsertion, kept::Hashes};

/// All of them, or none.
pub(super) fn all(
    batch: &mut Batch<'_>,
    news: &[(Hashes, NewTemplate)],
) -> Result<Upsertion, StoreError> {
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
    Ok(done.map_or_else(|refusal| *refusal, Upsertion::Done))
}

fn one(
    batch: &mut Batch<'_>,
    hashes: &Hashes,
    new: &NewTemplate,
) -> Result<Result<Receipt, Box<Upsertion>>, StoreError> {
    let taken = templates::taken(batch.connection(), new.account, &hashes.claim)?;
    let Some(id) = taken.and_then(|taken| taken.own) else {
        return Ok(match templates::create(batch, new, hashes)? {
            Creation::Created(receipt) | Creation::Replayed(receipt) => Ok(receipt),
            refusal => Err(Box::new(Upsertion::NotCreated(refusal))),
        });
    };
    let (content, category) = (new.template.content(), new.template.category());
    if let Some(stored) = templates::one(batch.connection(), new.account, id)?
        && (stored.template.content(), stored.template.category()) == (content, category)
    {
        return Ok(Ok(Receipt { id, status: stored.state.status(), category }));
    }
    let edit = Edit::Replace { content: Some(content.to_owned()), category: Some(category) };
    let change = Change {
        account: new.account,
        id,
        expected: None,
        review: new.review,
        actor: new.actor,
        at: new.at,
    };
    Ok(match changes::edit(batch, &change, &edit)? {
        Changed::Done(stored) => Ok(Receipt { id, status: stored.state.status(), category }),
        refusal => Err(Box::new(Upsertion::NotEdited(id, refusal))),
    })
}
