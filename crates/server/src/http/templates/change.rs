//! Editing, reviewing and deleting a template.

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use galley_domain::{edit::Edit, json::Document, review::Decision};
use galley_store::{Actor, Change, Changed, StoredTemplate};

use super::shown;
use crate::{
    App,
    http::{
        body::JsonBody,
        caller::{Caller, Review, Write},
        preconditions::IfMatch,
        problem::{Kind, Problem},
    },
};

pub(super) async fn edit(
    State(app): State<App>,
    caller: Caller<Write>,
    IfMatch(expected): IfMatch,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    caller.may_make()?;
    let edit = {
        let document = Document::parse(&body)?;
        // What an edit may not touch never changes: it can be compared before the transaction.
        let stored = app.store().template(caller.account.id, caller.item()?).await?;
        let stored = stored.ok_or(Problem::of(Kind::TemplateUnknown))?;
        Edit::read(&document, caller.rulebook()?, &stored.template)?
    };
    let changed = app.store().edit_template(change(&app, &caller, expected)?, edit).await?;
    Ok(shown(&done(changed, "edit")?))
}

pub(super) async fn review(
    State(app): State<App>,
    caller: Caller<Review>,
    IfMatch(expected): IfMatch,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let decision = Decision::read(&Document::parse(&body)?);
    let Decision { trigger, reason } = decision.map_err(Problem::invalid_decision)?;
    let change = change(&app, &caller, expected)?;
    let changed = app.store().review_template(change, trigger, reason).await?;
    Ok(shown(&done(changed, trigger.word())?))
}

pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller<Write>,
    IfMatch(expected): IfMatch,
) -> Result<Response, Problem> {
    let change = change(&app, &caller, expected)?;
    done(app.store().delete_template(change).await?, "delete")?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn change<S>(app: &App, caller: &Caller<S>, expected: Option<Vec<u64>>) -> Result<Change, Problem> {
    Ok(Change {
        account: caller.account.id,
        id: caller.item()?,
        expected,
        review: caller.account.review,
        actor: Actor::Token(caller.token),
        at: app.clock().now(),
    })
}

/// The template as it is now, or why nothing was done.
fn done(changed: Changed, trigger: &'static str) -> Result<StoredTemplate, Problem> {
    match changed {
        Changed::Done(template) => Ok(*template),
        Changed::NoTemplate => Err(Problem::of(Kind::TemplateUnknown)),
        Changed::NoVersion => Err(Problem::of(Kind::VersionUnknown)),
        Changed::Outdated(revision) => Err(Problem::outdated(revision)),
        Changed::CategoryLocked(category) => Err(Problem::category_locked(category)),
        Changed::FamilyCategory(category) => Err(Problem::family_category(category)),
        Changed::LiveCategory(category) => Err(Problem::live_category(category)),
        Changed::Limited(limit) => Err(Problem::limited(limit)),
        Changed::NotPossible(refusal) => Err(Problem::not_possible(trigger, &refusal)),
    }
}
