//! Editing, reviewing and deleting a template.

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use galley_domain::{
    document::Document,
    template::{edit::Edit, review::Decision},
};
use galley_store::{Actor, ChangeOutcome, StoredTemplate, TemplateChange};

use super::shown;
use crate::{
    api::{
        auth::{Caller, Review, Write},
        body::JsonBody,
        conditional::IfMatch,
        problem::{Kind, Problem},
    },
    app::App,
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
    Ok(shown(&done(changed, trigger.as_str())?))
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

fn change<S>(
    app: &App,
    caller: &Caller<S>,
    expected: Option<Vec<u64>>,
) -> Result<TemplateChange, Problem> {
    Ok(TemplateChange {
        account: caller.account.id,
        id: caller.item()?,
        expected,
        review: caller.account.review,
        actor: Actor::Token(caller.token),
        at: app.clock().now(),
    })
}

/// The template as it is now, or why nothing was done.
fn done(changed: ChangeOutcome, trigger: &'static str) -> Result<StoredTemplate, Problem> {
    match changed {
        ChangeOutcome::Done(template) => Ok(*template),
        ChangeOutcome::NoTemplate => Err(Problem::of(Kind::TemplateUnknown)),
        ChangeOutcome::NoVersion => Err(Problem::of(Kind::VersionUnknown)),
        ChangeOutcome::Outdated(revision) => Err(Problem::outdated(revision)),
        ChangeOutcome::CategoryLocked(category) => Err(Problem::category_locked(category)),
        ChangeOutcome::FamilyCategory(category) => Err(Problem::family_category(category)),
        ChangeOutcome::LiveCategory(category) => Err(Problem::live_category(category)),
        ChangeOutcome::Limited(limit) => Err(Problem::limited(limit)),
        ChangeOutcome::InvalidTransition(refusal) => Err(Problem::not_possible(trigger, &refusal)),
    }
}
