//! Deleting templates: all languages of a name, one of them, or several templates by their ids.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{emulator::faults::Call, id::TemplateId, rulebook::WHATSAPP};

use super::{
    caller::{Caller, unknown},
    outcomes,
    parameters::{Query, invalid_parameter},
    submission::{Awaited, Submission},
    success,
};
use crate::{
    api::{
        auth::Write,
        json,
        problem::{Problem, ProblemKind},
    },
    app::App,
    json_writer::ObjectWriter,
};

/// Maximum number of ids in one call. One transaction deletes all of them and delays other writes.
const MAX_DELETE_IDS: usize = 100;

pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller<Write>,
    query: Query,
) -> Result<Response, Problem> {
    // A client that sends an empty filter does not mean to delete everything.
    if let Some(empty) = ["hsm_ids", "hsm_id", "language"].iter().find(|it| query.is_empty(it)) {
        return Err(invalid_parameter(empty, "must not be empty: name what to delete, or omit it"));
    }
    let name = query.text("name");
    let deleted = match (query.list("hsm_ids")?, query.text("hsm_id"), name) {
        (Some(ids), _, _) => delete_by_ids(&app, &caller, &ids).await?,
        (None, Some(id), name) => delete_by_id(&app, &caller, id, name).await?,
        (None, None, Some(name)) => match query.text("language") {
            Some(language) => delete_language(&app, &caller, name, language).await?,
            None => delete_all_languages(&app, &caller, name).await?,
        },
        (None, None, None) => {
            return Err(invalid_parameter("name", "is required unless `hsm_ids` lists ids"));
        }
    };
    let deletions: Vec<Awaited> = deleted.into_iter().map(Awaited::Deletion).collect();
    let submissions = caller.submitted(&app, &deletions).await?;
    let Some(pending) = submissions.iter().find(|it| matches!(it, Submission::Pending(_))) else {
        return Ok(success());
    };
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object.raw("success", "true");
    pending.write(&mut object);
    object.close();
    Ok(json(StatusCode::OK, out))
}

async fn delete_by_ids(
    app: &App,
    caller: &Caller<Write>,
    texts: &[String],
) -> Result<Vec<TemplateId>, Problem> {
    if !(1..=MAX_DELETE_IDS).contains(&texts.len()) {
        let problem = format!("must be a list of 1 to {MAX_DELETE_IDS} ids");
        return Err(invalid_parameter("hsm_ids", &problem));
    }
    let mut ids = Vec::with_capacity(texts.len());
    for id in texts {
        ids.push(caller.resolve(app, id).await?);
    }
    caller.strike_template(app, Call::Delete, ids[0]).await?;
    outcomes::deleted(app.store().delete_templates(caller.initiator(app), ids).await?)
}

async fn delete_by_id(
    app: &App,
    caller: &Caller<Write>,
    id: &str,
    name: Option<&str>,
) -> Result<Vec<TemplateId>, Problem> {
    let id = caller.resolve(app, id).await?;
    caller.strike_template(app, Call::Delete, id).await?;
    let stored = app.store().template(caller.account.id, id).await?;
    let stored = stored.ok_or_else(|| unknown(&id.to_string()))?;
    // If name and id do not match, one of them is probably a mistake.
    if name.is_some_and(|name| name != stored.template.name()) {
        return Err(invalid_parameter(
            "name",
            "is not the name of the template with this `hsm_id`",
        ));
    }
    let outcome = app.store().delete_template(caller.change(app, id)).await?;
    outcomes::changed(outcome, id, "delete").map(|_| vec![id])
}

/// Deletes one language of a name. The Graph API ignores `language` and would delete all languages,
/// but at least one published client sends it.
async fn delete_language(
    app: &App,
    caller: &Caller<Write>,
    name: &str,
    language: &str,
) -> Result<Vec<TemplateId>, Problem> {
    caller.strike(app, Call::Delete, Some(name)).await?;
    let account = caller.account.id;
    let unique_key = (WHATSAPP.unique_key)(account, name, language);
    let existing = app.store().name_conflict(account, &unique_key).await?;
    let Some(id) = existing.and_then(|existing| existing.existing_id) else {
        let detail = "The account has no template with this name in this language. Check both.";
        return Err(name_unknown(detail));
    };
    let outcome = app.store().delete_template(caller.change(app, id)).await?;
    outcomes::changed(outcome, id, "delete").map(|_| vec![id])
}

async fn delete_all_languages(
    app: &App,
    caller: &Caller<Write>,
    name: &str,
) -> Result<Vec<TemplateId>, Problem> {
    caller.strike(app, Call::Delete, Some(name)).await?;
    let deleted = app.store().delete_translations(caller.initiator(app), name).await?;
    let deleted = outcomes::deleted(deleted)?;
    if deleted.is_empty() {
        let detail = "The account has no template with this name. Check the name.";
        return Err(name_unknown(detail));
    }
    Ok(deleted)
}

fn name_unknown(detail: &str) -> Problem {
    Problem::of(ProblemKind::TemplateUnknown).detail(detail)
}
