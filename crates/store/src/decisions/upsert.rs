//! Whether an upsert creates a template, edits the existing one or keeps it.

use galley_domain::{id::TemplateId, template::edit::Edit};

use crate::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, NewTemplate, StoredTemplate, TemplateChange,
    UpsertOutcome,
};

/// What an upsert does.
pub(crate) enum Upsert {
    /// No template of the account has the unique key: creates one.
    Create,
    /// The template has the content and category already.
    Keep(CreatedTemplate),
    /// Edits the stored template.
    Edit(Box<StoredTemplate>, TemplateChange, Edit),
}

/// The result of one of several upserts. A refusal undoes those before it.
pub(crate) type UpsertResult = Result<CreatedTemplate, Box<UpsertOutcome>>;

/// Plans an upsert; `stored` is the account's template that has the unique key.
pub(crate) fn plan(new: &NewTemplate, stored: Option<StoredTemplate>) -> Upsert {
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
pub(crate) fn created(outcome: CreateOutcome) -> UpsertResult {
    match outcome {
        CreateOutcome::Created(created) | CreateOutcome::Replayed(created) => Ok(created),
        refusal => Err(Box::new(UpsertOutcome::NotCreated(refusal))),
    }
}

/// The result of an upsert that edited a template, or could not.
pub(crate) fn edited(id: TemplateId, outcome: ChangeOutcome) -> UpsertResult {
    match outcome {
        ChangeOutcome::Done(stored) => Ok(CreatedTemplate {
            id,
            status: stored.state.status(),
            category: stored.template.category(),
        }),
        refusal => Err(Box::new(UpsertOutcome::NotEdited(id, refusal))),
    }
}
