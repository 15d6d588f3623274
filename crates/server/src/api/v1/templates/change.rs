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
use galley_store::{Actor, TemplateChange};

use super::template_response;
use crate::{
    api::{
        add_warning_count,
        auth::{Caller, Review, Write},
        body::JsonBody,
        conditional::IfMatch,
        outcomes,
        problem::{Problem, ProblemKind},
    },
    app::App,
};

pub(super) async fn edit(
    State(app): State<App>,
    caller: Caller<Write>,
    IfMatch(expected): IfMatch,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    caller.require_v1_rulebook()?;
    let (edit, warnings) = {
        let document = Document::parse(&body)?;
        // The fields that an edit cannot change never change, so the transaction need not compare
        // them.
        let stored = app.store().template(caller.account.id, caller.template_id()?).await?;
        let stored = stored.ok_or(Problem::of(ProblemKind::TemplateUnknown))?;
        let (edit, warnings) = Edit::check(&document, caller.rulebook()?, &stored.template);
        (edit?, warnings.count())
    };
    drop(body);
    let changed = app.store().edit_template(change(&app, &caller, expected)?, edit).await?;
    let mut response = template_response(&outcomes::changed(changed, "edit")?);
    add_warning_count(&mut response, warnings);
    Ok(response)
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
    Ok(template_response(&outcomes::changed(changed, trigger.as_str())?))
}

pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller<Write>,
    IfMatch(expected): IfMatch,
) -> Result<Response, Problem> {
    let change = change(&app, &caller, expected)?;
    outcomes::changed(app.store().delete_template(change).await?, "delete")?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn change<S>(
    app: &App,
    caller: &Caller<S>,
    expected: Option<Vec<u64>>,
) -> Result<TemplateChange, Problem> {
    Ok(TemplateChange {
        account: caller.account.id,
        id: caller.template_id()?,
        expected,
        review: caller.account.review,
        actor: Actor::Token(caller.token),
        at: app.clock().now(),
    })
}
