//! Puts templates aside, and takes them back.

use std::collections::BTreeMap;

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{document::Json, id::TemplateId, template::lifecycle::Trigger};
use galley_store::{StoredOperation, UpstreamAction, UpstreamActionOutcome};

use super::{
    body::GraphBody,
    caller::{Caller, unknown},
    outcomes,
    parameters::{invalid_parameter, items},
    submission::{Awaited, Outcome, Submission},
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

/// A list of templates, each with what became of it.
type Results<'a> = Vec<(&'a String, Result<(), String>)>;

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
    drop(body);
    let results = if caller.account.is_connected {
        change_at_provider(app, caller, &ids, trigger).await
    } else {
        change_here(app, caller, &ids, trigger).await
    };
    let mut done: Vec<&str> = Vec::new();
    let mut failed = BTreeMap::new();
    for (id, result) in results {
        match result {
            Ok(()) => done.push(id),
            Err(reason) => drop(failed.insert(id, reason)),
        }
    }
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object.raw(changed, &serde_json::to_string(&done).unwrap_or_default());
    object.raw("failed_templates", &serde_json::to_string(&failed).unwrap_or_default());
    object.close();
    Ok(json(StatusCode::OK, out))
}

/// Others may have been changed already: the response has to name them, whatever happens to one.
async fn change_here<'a>(
    app: &App,
    caller: &Caller<Write>,
    ids: &'a [String],
    trigger: Trigger,
) -> Results<'a> {
    let mut results = Vec::with_capacity(ids.len());
    for id in ids {
        let changed = change_one(app, caller, id, trigger).await;
        results.push((id, changed.map_err(|problem| problem.detail_text().to_owned())));
    }
    results
}

/// The provider of the account changes the templates. All are queued before the request waits for the
/// first one.
async fn change_at_provider<'a>(
    app: &App,
    caller: &Caller<Write>,
    ids: &'a [String],
    trigger: Trigger,
) -> Results<'a> {
    let mut queued: Vec<(TemplateId, StoredOperation)> = Vec::new();
    let mut awaited = Vec::with_capacity(ids.len());
    for id in ids {
        let operation = queue_one(app, caller, id, trigger, &mut queued).await;
        awaited.push((id, operation.map_err(|problem| problem.detail_text().to_owned())));
    }
    app.upstream().wake();
    let deadline = caller.begin_wait(app);
    let mut results = Vec::with_capacity(ids.len());
    for (id, awaited) in awaited {
        let result = match awaited {
            Ok(awaited) => match caller.outcome(app, awaited, deadline).await {
                Ok(outcome) => changed_at_provider(&outcome),
                Err(problem) => Err(problem.detail_text().to_owned()),
            },
            Err(reason) => Err(reason),
        };
        results.push((id, result));
    }
    results
}

/// Queues the change of one template. A template that was listed with its other id is queued once.
async fn queue_one(
    app: &App,
    caller: &Caller<Write>,
    id: &str,
    trigger: Trigger,
    queued: &mut Vec<(TemplateId, StoredOperation)>,
) -> Result<Awaited, Problem> {
    let template = caller.resolve(app, id).await?;
    let awaited = |operation: &StoredOperation| Awaited::Archiving(template, operation.id);
    if let Some((_, operation)) = queued.iter().find(|(it, _)| *it == template) {
        return Ok(awaited(operation));
    }
    let action = match trigger {
        Trigger::Unarchive => UpstreamAction::Unarchive,
        _ => UpstreamAction::Archive,
    };
    match app.store().act_upstream(caller.change(app, template), action).await? {
        UpstreamActionOutcome::Queued(operation) => {
            let awaited = awaited(&operation);
            queued.push((template, *operation));
            Ok(awaited)
        }
        UpstreamActionOutcome::NotPossible(reason) => {
            Err(Problem::of(ProblemKind::UpstreamAction).detail(reason))
        }
        _ => Err(unknown(id)),
    }
}

/// Whether the provider has changed the template, or why not.
fn changed_at_provider(outcome: &Outcome) -> Result<(), String> {
    match outcome {
        Outcome::Settled(Submission::Done(_)) => Ok(()),
        Outcome::Settled(Submission::Pending(state)) => Err(format!(
            "The provider has not answered yet. Galley continues; the state is `{state}`."
        )),
        Outcome::Settled(Submission::NotConnected) => {
            Err("The account is not connected to a provider any more.".to_owned())
        }
        Outcome::Failed(operation) => Err(match &operation.operation.error {
            Some(error) => error.message.clone(),
            None => "The provider does not have the template any more.".to_owned(),
        }),
    }
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
