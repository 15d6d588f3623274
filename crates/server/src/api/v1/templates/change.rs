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
    body: JsonBody,
) -> Result<Response, Problem> {
    caller.require_v1_rulebook()?;
    let (edit, warnings) = {
        let document = body.process(&app, Document::parse).await?;
        // The fields that an edit cannot change never change, so the transaction need not compare
        // them.
        let stored = app.store().template(caller.account.id, caller.template_id()?).await?;
        let stored = stored.ok_or(Problem::of(ProblemKind::TemplateUnknown))?;
        let rulebook = caller.rulebook()?;
        let check = |_| Edit::check(&document, rulebook, &stored.template);
        let (edit, warnings) = body.process(&app, check).await;
        (edit?, warnings.count())
    };
    let is_restored = matches!(edit, Edit::Restore(_));
    drop(body);
    let changed = app.store().edit_template(change(&app, &caller, expected)?, edit).await?;
    let changed = outcomes::changed(changed, "edit")?;
    // The document of a restored version does not contain what WhatsApp refuses.
    let restored =
        if is_restored { changed.template.whatsapp_content_warnings().count() } else { 0 };
    let mut response = template_response(&changed);
    add_warning_count(&mut response, warnings + restored);
    Ok(response)
}

pub(super) async fn review(
    State(app): State<App>,
    caller: Caller<Review>,
    IfMatch(expected): IfMatch,
    body: JsonBody,
) -> Result<Response, Problem> {
    let read = |bytes| Decision::read(&Document::parse(bytes)?).map_err(Problem::invalid_decision);
    let Decision { trigger, reason } = body.process(&app, read).await?;
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

/// A change of the template in the path. Its events get the trace of the request.
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
        trace: caller.trace,
        at: app.clock().now(),
    })
}
