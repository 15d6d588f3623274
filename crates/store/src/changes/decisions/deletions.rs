//! The deletion of several templates: all of them, or none.

use std::collections::HashMap;

use galley_domain::{id::TemplateId, template::lifecycle::Trigger};

use super::plan;
use crate::{
    ChangeOutcome, DeleteOutcome, Initiator, StoredTemplate, TemplateChange, emulator::Emulation,
    template_rows::Planned,
};

/// One of several deletions.
pub(crate) type PlannedDeletion = (TemplateChange, Planned);

/// Plans the deletion of each of these templates once, or refuses all of them.
pub(crate) fn plan_deletions(
    initiator: Initiator,
    ids: &[TemplateId],
    stored: Vec<StoredTemplate>,
    emulation: Option<Emulation>,
) -> Result<Vec<PlannedDeletion>, DeleteOutcome> {
    let Initiator { account, review, actor, trace, at } = initiator;
    let mut stored: HashMap<TemplateId, StoredTemplate> =
        stored.into_iter().map(|template| (template.id, template)).collect();
    let mut planned: Vec<PlannedDeletion> = Vec::with_capacity(ids.len());
    for id in ids {
        if planned.iter().any(|(change, _)| change.id == *id) {
            continue;
        }
        let change = TemplateChange {
            account,
            id: *id,
            expected: None,
            version: None,
            review,
            actor,
            trace,
            at,
        };
        match plan(&change, Trigger::Delete, stored.remove(id), emulation) {
            Ok(plan) => planned.push((change, plan)),
            Err(ChangeOutcome::InvalidTransition(refusal)) => {
                return Err(DeleteOutcome::InvalidTransition(*id, refusal));
            }
            Err(_) => return Err(DeleteOutcome::NoTemplate(*id)),
        }
    }
    Ok(planned)
}

/// The outcome after all planned deletions.
pub(crate) fn deleted(planned: &[PlannedDeletion]) -> DeleteOutcome {
    DeleteOutcome::Done(planned.iter().map(|(change, _)| change.id).collect())
}
