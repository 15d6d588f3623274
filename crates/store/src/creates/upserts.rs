//! Creates or edits several templates in one transaction.

use galley_domain::template::edit::Edit;

use super::{Create, create_in};
use crate::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, NewTemplate, Store, StoreError, TemplateChange,
    UpsertOutcome, changes::edit_stored, emulator, engine::Tx, error::no_account, templates,
};

impl Store {
    /// Creates each of these templates, or edits the existing one with the same unique key to have
    /// this content and category: all of them, or none if one is refused. A template that needs no
    /// change stays as it is.
    pub async fn upsert_templates(
        &self,
        templates: Vec<NewTemplate>,
    ) -> Result<UpsertOutcome, StoreError> {
        let creates: Vec<_> = templates.into_iter().map(Create::of).collect();
        self.write("upsert_templates", creates, |creates, tx| Box::pin(all(tx, creates))).await
    }
}

async fn all(tx: &mut Tx<'_>, creates: &[Create]) -> Result<UpsertOutcome, StoreError> {
    let mut done = Vec::with_capacity(creates.len());
    for create in creates {
        match one(tx, create).await? {
            Ok(template) => done.push(template),
            Err(refusal) => return Ok(tx.refuse(*refusal)),
        }
    }
    Ok(UpsertOutcome::Done(done))
}

/// The result of one of several upserts. A refusal undoes those before it.
type UpsertResult = Result<CreatedTemplate, Box<UpsertOutcome>>;

async fn one(tx: &mut Tx<'_>, create: &Create) -> Result<UpsertResult, StoreError> {
    let Create { new, keys } = create;
    if !tx.lock(new.account).await? {
        return Err(no_account());
    }
    let emulation = emulator::emulation(tx, new.account, new.review, new.at).await?;
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
