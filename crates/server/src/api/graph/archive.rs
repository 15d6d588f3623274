//! Puts templates aside, and takes them back.

use std::collections::BTreeMap;

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{document::Json, template::lifecycle::Trigger};

use super::{
    body::GraphBody,
    caller::Caller,
    outcomes,
    parameters::{invalid_parameter, items},
};
use crate::{
    api::{auth::Write, json, problem::Problem},
    app::App,
    json_writer::ObjectWriter,
};

/// Maximum number of ids in one call.
const MAX_IDS: usize = 100;

pub(super) async fn archive(
    State(app): State<App>,
    caller: Caller<Write>,
    body: GraphBody,
) -> Result<Response, Problem> {
    change(&app, &caller, body, Trigger::Archive, "archived_templates").await
}

pub(super) async fn unarchive(
    State(app): State<App>,
    caller: Caller<Write>,
    body: GraphBody,
) -> Result<Response, Problem> {
    change(&app, &caller, body, Trigger::Unarchive, "unarchived_templates").await
}

/// Changes each template on its own. The response lists those that were changed, and why the others
/// were not.
async fn change(
    app: &App,
    caller: &Caller<Write>,
    mut body: GraphBody,
    trigger: Trigger,
    changed: &str,
) -> Result<Response, Problem> {
    let ids = body.process(app.admission(), |_, document| read_ids(document?.root())).await?;
    let mut done: Vec<&str> = Vec::new();
    let mut failed = BTreeMap::new();
    for id in &ids {
        match change_one(app, caller, id, trigger).await {
            Ok(()) => done.push(id),
            // Others may have been changed already: the response has to name them.
            Err(problem) => drop(failed.insert(id, problem.detail_text().to_owned())),
        }
    }
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object.raw(changed, &serde_json::to_string(&done).unwrap_or_default());
    object.raw("failed_templates", &serde_json::to_string(&failed).unwrap_or_default());
    object.close();
    Ok(json(StatusCode::OK, out))
}

async fn change_one(
    app: &App,
    caller: &Caller<Write>,
    id: &str,
    trigger: Trigger,
) -> Result<(), Problem> {
    let id = caller.resolve(app, id).await?;
    let change = caller.change(app, id);
    let outcome = app.store().review_template(change, trigger, None).await?;
    outcomes::changed(outcome, id, trigger.as_str()).map(drop)
}

/// The distinct ids of `hsm_ids`: a list, or a text with commas.
fn read_ids(root: &Json<'_>) -> Result<Vec<String>, Problem> {
    let listed = match root.get("hsm_ids") {
        Some(Json::String(text)) => {
            let ids = text.split(',').map(|id| id.trim().to_owned());
            Some(ids.filter(|id| !id.is_empty()).collect())
        }
        Some(number @ Json::Number(_)) => {
            number.as_positive_integer().map(|id| vec![id.to_string()])
        }
        Some(list) => items(list),
        None => None,
    };
    let mut ids: Vec<String> = Vec::new();
    for id in listed.unwrap_or_default() {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if (1..=MAX_IDS).contains(&ids.len()) {
        return Ok(ids);
    }
    let problem = format!("must be a list of 1 to {MAX_IDS} ids of templates");
    Err(invalid_parameter("hsm_ids", &problem))
}
