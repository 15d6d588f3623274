//! Maps refused creates and changes of templates to problems, for both surfaces. The Graph surface
//! rewords some of these problems.

use galley_store::{ChangeOutcome, CreateOutcome, CreatedTemplate, StoredTemplate};

use super::problem::{Problem, ProblemKind};

/// A template that this request has created, or an earlier one with the same `Idempotency-Key`.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) template: CreatedTemplate,
    pub(crate) replayed: bool,
}

/// The created template, or the problem that prevented it.
pub(crate) fn created(outcome: CreateOutcome) -> Result<Created, Problem> {
    match outcome {
        CreateOutcome::Created(template) => Ok(Created { template, replayed: false }),
        CreateOutcome::Replayed(template) => Ok(Created { template, replayed: true }),
        CreateOutcome::KeyReused => Err(Problem::of(ProblemKind::IdempotencyKeyReused)),
        CreateOutcome::NameInUse(conflict) => Err(Problem::name_taken(conflict.existing_id)),
        CreateOutcome::CategoryDiffers(category) => Err(Problem::translation_category(category)),
        CreateOutcome::NameLocked { until } => Err(Problem::name_locked(until)),
        CreateOutcome::Limited(limit) => Err(Problem::limit_reached(limit)),
    }
}

/// The template after the change, or the problem that prevented it.
pub(crate) fn changed(outcome: ChangeOutcome, trigger: &str) -> Result<StoredTemplate, Problem> {
    match outcome {
        ChangeOutcome::Done(template) => Ok(*template),
        ChangeOutcome::NoTemplate => Err(Problem::of(ProblemKind::TemplateUnknown)),
        ChangeOutcome::NoVersion => Err(Problem::of(ProblemKind::VersionUnknown)),
        ChangeOutcome::RevisionMismatch(revision) => Err(Problem::revision_outdated(revision)),
        ChangeOutcome::CategoryLocked(category) => Err(Problem::category_locked(category)),
        ChangeOutcome::GroupCategory(category) => Err(Problem::translation_category(category)),
        ChangeOutcome::LiveCategory(category) => Err(Problem::live_category_locked(category)),
        ChangeOutcome::Limited(limit) => Err(Problem::limit_reached(limit)),
        ChangeOutcome::FourEyes => Err(Problem::of(ProblemKind::FourEyes)),
        ChangeOutcome::InvalidTransition(refusal) => {
            Err(Problem::invalid_transition(trigger, &refusal))
        }
    }
}
