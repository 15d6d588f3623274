//! Outcomes of the store on this surface: the problems of both surfaces, some of them reworded for
//! clients that know ids and names, but no revisions and versions.

use galley_domain::id::TemplateId;
use galley_store::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, DeleteOutcome, StoredTemplate, UpsertOutcome,
};

use super::caller::unknown;
use crate::api::{
    outcomes::{self, Created},
    problem::{Problem, ProblemKind},
};

/// The created template, or the problem that prevented it.
pub(super) fn created(outcome: CreateOutcome) -> Result<Created, Problem> {
    outcomes::created(outcome).map_err(|problem| match problem.kind() {
        ProblemKind::NameTaken => problem.detail(
            "A template with this name and language already exists. Edit it, or choose another name.",
        ),
        _ => problem,
    })
}

/// The template after the change, or the problem that prevented it.
pub(super) fn changed(
    outcome: ChangeOutcome,
    id: TemplateId,
    trigger: &str,
) -> Result<StoredTemplate, Problem> {
    outcomes::changed(outcome, trigger).map_err(|problem| match problem.kind() {
        ProblemKind::TemplateUnknown
        | ProblemKind::VersionUnknown
        | ProblemKind::RevisionOutdated => unknown(&id.to_string()),
        _ => problem,
    })
}

/// The ids of the deleted templates, or the problem that prevented it.
pub(super) fn deleted(outcome: DeleteOutcome) -> Result<Vec<TemplateId>, Problem> {
    let (id, refusal) = match outcome {
        DeleteOutcome::Done(ids) => return Ok(ids),
        DeleteOutcome::NoTemplate(id) => (id, ChangeOutcome::NoTemplate),
        DeleteOutcome::InvalidTransition(id, refusal) => {
            (id, ChangeOutcome::InvalidTransition(refusal))
        }
    };
    changed(refusal, id, "delete").map(|_| Vec::new())
}

/// The created and edited templates, or the problem of the one that prevented it.
pub(super) fn upserted(outcome: UpsertOutcome) -> Result<Vec<CreatedTemplate>, Problem> {
    let refusal = match outcome {
        UpsertOutcome::Done(upserted) => return Ok(upserted),
        UpsertOutcome::NotCreated(outcome) => created(outcome).err(),
        UpsertOutcome::NotEdited(id, outcome) => changed(outcome, id, "edit").err(),
    };
    Err(refusal.unwrap_or(Problem::of(ProblemKind::Internal)))
}
