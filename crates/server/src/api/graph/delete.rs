//! Deleting: all languages of a name, one of them, or several templates by their ids.

use axum::{extract::State, response::Response};
use galley_domain::{id::TemplateId, rulebook::WHATSAPP};
use galley_store::{Actor, DeleteOutcome};

use super::{
    caller::{Caller, unknown},
    node::done,
    parameters::{Query, bad},
    success,
};
use crate::{
    api::{
        auth::Write,
        problem::{Kind, Problem},
    },
    app::App,
};

/// How many templates one call deletes: they go together, and others wait as long.
const MOST_AT_ONCE: usize = 100;

pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller<Write>,
    query: Query,
) -> Result<Response, Problem> {
    // Whoever names one and leaves the place empty does not mean all.
    if let Some(empty) = ["hsm_ids", "hsm_id", "language"].iter().find(|it| query.is_empty(it)) {
        return Err(bad(empty, "empty: name what to delete, or leave it out"));
    }
    let name = query.text("name");
    match (query.list("hsm_ids")?, query.text("hsm_id"), name) {
        (Some(ids), _, _) => several(&app, &caller, &ids).await?,
        (None, Some(id), name) => one(&app, &caller, id, name).await?,
        (None, None, Some(name)) => match query.text("language") {
            Some(language) => one_language(&app, &caller, name, language).await?,
            None => all_languages(&app, &caller, name).await?,
        },
        (None, None, None) => {
            return Err(bad("name", "needed, unless `hsm_ids` names templates by their ids"));
        }
    }
    Ok(success())
}

async fn several(app: &App, caller: &Caller<Write>, ids: &[String]) -> Result<(), Problem> {
    if !(1..=MOST_AT_ONCE).contains(&ids.len()) {
        return Err(bad("hsm_ids", &format!("a list of 1 to {MOST_AT_ONCE} ids")));
    }
    let ids: Result<Vec<TemplateId>, Problem> =
        ids.iter().map(|id| id.parse().map_err(|_| unknown(id))).collect();
    let (account, actor, at) = (&caller.account, Actor::Token(caller.token), app.clock().now());
    let gone = app.store().delete_templates(account.id, ids?, account.review, actor, at).await?;
    deleted(gone).map(drop)
}

async fn one(
    app: &App,
    caller: &Caller<Write>,
    id: &str,
    name: Option<&str>,
) -> Result<(), Problem> {
    let id: TemplateId = id.parse().map_err(|_| unknown(id))?;
    let stored = app.store().template(caller.account.id, id).await?;
    let stored = stored.ok_or_else(|| unknown(&id.to_string()))?;
    // Name and id have to mean the same: one of them may be a slip.
    if name.is_some_and(|name| name != stored.template.name()) {
        return Err(bad("name", "not the name of the template that `hsm_id` names"));
    }
    let changed = app.store().delete_template(caller.change(app, id)).await?;
    done(changed, id, "delete").map(drop)
}

/// The Graph API knows no such parameter and would delete all languages: more than whoever sends it
/// has asked for, and at least one published client does.
async fn one_language(
    app: &App,
    caller: &Caller<Write>,
    name: &str,
    language: &str,
) -> Result<(), Problem> {
    let account = caller.account.id;
    let claim = (WHATSAPP.claim)(account, name, language);
    let taken = app.store().taken(account, &claim).await?;
    let Some(id) = taken.and_then(|taken| taken.own) else { return Err(nothing_named()) };
    let changed = app.store().delete_template(caller.change(app, id)).await?;
    done(changed, id, "delete").map(drop)
}

async fn all_languages(app: &App, caller: &Caller<Write>, name: &str) -> Result<(), Problem> {
    let (account, actor, at) = (&caller.account, Actor::Token(caller.token), app.clock().now());
    let gone = app.store().delete_translations(account.id, name, account.review, actor, at).await?;
    if deleted(gone)?.is_empty() {
        return Err(nothing_named());
    }
    Ok(())
}

fn nothing_named() -> Problem {
    Problem::of(Kind::TemplateUnknown).detail("No template has that name.")
}

fn deleted(deletion: DeleteOutcome) -> Result<Vec<TemplateId>, Problem> {
    match deletion {
        DeleteOutcome::Done(gone) => Ok(gone),
        DeleteOutcome::NoTemplate(id) => Err(unknown(&id.to_string())),
        DeleteOutcome::InvalidTransition(_, refusal) => {
            Err(Problem::not_possible("delete", &refusal))
        }
    }
}
