//! Outcomes of the store on this surface: the problems of both surfaces, some of them reworded for
//! clients that know ids and names, but no revisions and versions.

use galley_domain::{
    emulator::failures::{self, Failure},
    id::TemplateId,
    rulebook::graph_codes::GraphError,
};
use galley_store::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, DeleteOutcome, StoredTemplate, UpsertOutcome,
};
use jiff::Timestamp;

use super::caller::unknown;
use crate::api::{
    outcomes::{self, Created},
    problem::{Problem, ProblemKind},
};

/// Meta's subcode for a name whose former template is being deleted.
const NAME_LOCKED: u32 = 2_388_023;

/// The created template, or the problem that prevented it.
pub(super) fn created(outcome: CreateOutcome) -> Result<Created, Problem> {
    if let CreateOutcome::NameLocked { until } = outcome {
        return Err(name_locked(until));
    }
    outcomes::created(outcome).map_err(|problem| match problem.kind() {
        ProblemKind::NameTaken => problem.detail(
            "A template with this name and language already exists. Edit it, or choose another name.",
        ),
        _ => problem,
    })
}

/// The problem of a locked name, in Meta's words, and the time at which the lock ends.
fn name_locked(until: Timestamp) -> Problem {
    let problem = Problem::name_locked(until);
    let Some(failure) = failures::find(NAME_LOCKED) else { return problem };
    let Failure { code, subcode, title, message, .. } = failure;
    let detail = format!("{message} The name is free at {until:.3} on the clock of the account.");
    problem.detail(detail).graph(GraphError { code, subcode, title })
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

#[cfg(test)]
mod tests {
    use galley_domain::rulebook::Category;
    use galley_store::{Limit, NameConflict};

    use super::*;
    use crate::api::graph::error_body;

    /// Status, code, subcode, kind and text of an error response.
    fn shown(problem: &Problem) -> (u16, u64, u64, String, String) {
        let (status, body) = error_body(problem, "r");
        let error = serde_json::from_str::<serde_json::Value>(&body).unwrap()["error"].take();
        let number = |name: &str| error[name].as_u64().unwrap_or_default();
        let text = |name: &str| error[name].as_str().unwrap().to_owned();
        let (kind, message) = (text("galley_problem"), text("error_user_msg"));
        (status.as_u16(), number("code"), number("error_subcode"), kind, message)
    }

    #[test]
    fn a_refused_create_has_metas_code_and_a_text_for_this_surface() {
        let name_in_use = CreateOutcome::NameInUse(NameConflict { existing_id: None });
        for (outcome, code, subcode, kind, text) in [
            (CreateOutcome::KeyReused, 100, 0, "idempotency-key-reused", "Use a new key for a"),
            (name_in_use, 100, 2_388_024, "name-taken", "A template with this name and language"),
            (
                CreateOutcome::CategoryDiffers(Category::Utility),
                100,
                0,
                "category-locked",
                "The other languages of this name have the category UTILITY.",
            ),
            (
                CreateOutcome::NameLocked { until: Timestamp::UNIX_EPOCH },
                100,
                2_388_023,
                "name-locked",
                "New content for this language cannot be added while the existing content is being deleted.",
            ),
            (
                CreateOutcome::Limited(Limit::CreationsPerHour),
                80_008,
                0,
                "limit-reached",
                "The account has created the maximum number of templates per hour.",
            ),
            (
                CreateOutcome::Limited(Limit::Templates),
                100,
                2_388_019,
                "limit-reached",
                "The account has the maximum number of templates.",
            ),
        ] {
            let found = shown(&created(outcome).unwrap_err());
            assert_eq!((found.0, found.1, found.2, &*found.3), (400, code, subcode, kind));
            assert!(found.4.starts_with(text), "{found:?}");
        }
    }

    #[test]
    fn a_refused_change_has_metas_code_and_a_text_for_this_surface() {
        let unknown = "The id `7` does not exist, or the account of the token has no access to it.";
        let utility = Category::Utility;
        for (outcome, subcode, kind, text) in [
            (ChangeOutcome::NoTemplate, 33, "not-found", unknown),
            (ChangeOutcome::NoVersion, 33, "not-found", unknown),
            (ChangeOutcome::RevisionMismatch(3), 33, "not-found", unknown),
            (
                ChangeOutcome::CategoryLocked(utility),
                0,
                "category-locked",
                "The category is UTILITY, and `allow_category_change` is false.",
            ),
            (
                ChangeOutcome::LiveCategory(utility),
                0,
                "category-locked",
                "The template is live with the category UTILITY,",
            ),
            (
                ChangeOutcome::Limited(Limit::EditsPerDay),
                2_388_124,
                "limit-reached",
                "An approved template can be edited once in 24 hours.",
            ),
            (
                ChangeOutcome::Limited(Limit::EditsPerMonth),
                2_388_039,
                "limit-reached",
                "An approved template can be edited ten times in 30 days.",
            ),
        ] {
            let refusal = changed(outcome, TemplateId::new(7).unwrap(), "edit").unwrap_err();
            let found = shown(&refusal);
            assert_eq!((found.0, found.1, found.2, &*found.3), (400, 100, subcode, kind));
            assert!(found.4.starts_with(text), "{found:?}");
        }
    }
}
