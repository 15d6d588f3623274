//! Creates or edits several templates in one transaction.

use galley_domain::{id::TemplateId, template::edit::Edit};

use super::{Create, create_in};
use crate::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, NewTemplate, Store, StoreError, StoredTemplate,
    TemplateChange, UpsertOutcome, changes::edit_stored, emulator, engine::Tx, error::no_account,
    templates,
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
    Ok(match plan(new, stored) {
        Upsert::Create => created(create_in(tx, create, emulation).await?),
        Upsert::Keep(template) => Ok(template),
        Upsert::Edit(stored, change, edit) => {
            let edited = edit_stored(tx, &change, Some(*stored), &edit, emulation).await?;
            self::edited(change.id, edited)
        }
    })
}

/// What an upsert does.
enum Upsert {
    /// No template of the account has the unique key: creates one.
    Create,
    /// The template has the content and category already.
    Keep(CreatedTemplate),
    /// Edits the stored template.
    Edit(Box<StoredTemplate>, TemplateChange, Edit),
}

/// Plans an upsert; `stored` is the account's template that has the unique key.
fn plan(new: &NewTemplate, stored: Option<StoredTemplate>) -> Upsert {
    let Some(stored) = stored else { return Upsert::Create };
    let (id, content, category) = (stored.id, new.template.content(), new.template.category());
    if (stored.template.content(), stored.template.category()) == (content, category) {
        return Upsert::Keep(CreatedTemplate { id, status: stored.state.status(), category });
    }
    let edit = Edit::Replace { content: Some(content.to_owned()), category: Some(category) };
    let NewTemplate { account, review, actor, trace, at, .. } = *new;
    let change =
        TemplateChange { account, id, expected: None, version: None, review, actor, trace, at };
    Upsert::Edit(Box::new(stored), change, edit)
}

/// The result of an upsert that created a template, or could not.
fn created(outcome: CreateOutcome) -> UpsertResult {
    match outcome {
        CreateOutcome::Created(created) | CreateOutcome::Replayed(created) => Ok(created),
        refusal => Err(Box::new(UpsertOutcome::NotCreated(refusal))),
    }
}

/// The result of an upsert that edited a template, or could not.
fn edited(id: TemplateId, outcome: ChangeOutcome) -> UpsertResult {
    match outcome {
        ChangeOutcome::Done(stored) => Ok(CreatedTemplate {
            id,
            status: stored.state.status(),
            category: stored.template.category(),
        }),
        refusal => Err(Box::new(UpsertOutcome::NotEdited(id, refusal))),
    }
}
