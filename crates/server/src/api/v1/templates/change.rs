//! Editing, reviewing and deleting a template.

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use galley_domain::{
    document::Document,
    template::{edit::Edit, review::Decision, sample},
};
use galley_store::{Actor, ChangeOutcome, TemplateChange};

use super::{edit_rulebook, template_response};
use crate::{
    api::{
        add_warning_count,
        auth::{Caller, Review, Write},
        body::JsonBody,
        conditional::IfMatch,
        outcomes,
        problem::{Problem, ProblemKind},
        query::Parameters,
        samples,
    },
    app::App,
};

/// Maximum number of attempts of an edit that conflicts with concurrent edits.
const MAX_EDIT_ATTEMPTS: usize = 8;

/// Edits a template by the rulebook of its account. Some rules apply to the edit together with the
/// fields that it omits: such an edit is valid only for the revision that was read, and is tried again
/// if that has changed.
pub(super) async fn edit(
    State(app): State<App>,
    caller: Caller<Write>,
    IfMatch(expected): IfMatch,
    body: JsonBody,
) -> Result<Response, Problem> {
    if !caller.rulebook()?.merges_edits() {
        let read = read_edit(&app, &caller, &body).await?;
        drop(body);
        let change = change_of(&app, &caller, expected)?;
        let outcome = app.store().edit_template(change, read.edit).await?;
        return edited(&app, &caller, outcome, read.warnings, read.restores).await;
    }
    for _ in 0..MAX_EDIT_ATTEMPTS {
        let read = read_edit(&app, &caller, &body).await?;
        let is_expected = expected.as_ref().is_none_or(|it| it.contains(&read.revision));
        let revisions = if is_expected { Some(vec![read.revision]) } else { expected.clone() };
        let change = change_of(&app, &caller, revisions)?;
        match app.store().edit_template(change, read.edit).await? {
            ChangeOutcome::RevisionMismatch(_) if is_expected => {}
            outcome => return edited(&app, &caller, outcome, read.warnings, false).await,
        }
    }
    Err(Problem::of(ProblemKind::Busy)
        .detail("Nothing was done: other requests keep editing the template. Try again."))
}

/// An edit that was read from a body.
struct ReadEdit {
    edit: Edit,
    /// The revision of the template that it was compared with.
    revision: u64,
    /// Number of warnings.
    warnings: usize,
    /// Whether it restores a version.
    restores: bool,
}

async fn read_edit(
    app: &App,
    caller: &Caller<Write>,
    body: &JsonBody,
) -> Result<ReadEdit, Problem> {
    let mut document = body.process(app, Document::parse).await?;
    let account = caller.account.id;
    // The fields that an edit cannot change never change, so the transaction need not compare
    // them.
    let stored = app.store().template(account, caller.template_id()?).await?;
    let stored = stored.ok_or(Problem::of(ProblemKind::TemplateUnknown))?;
    let rulebook = caller.rulebook()?;
    let has_samples = rulebook.supports_translations;
    if has_samples {
        samples::replace_urls(app, document.root_mut());
    }
    let rulebook = edit_rulebook(&document, rulebook);
    let (edit, warnings) =
        body.process(app, |_| Edit::check(&document, rulebook, &stored.template)).await;
    let edit = if has_samples {
        samples::checked(app, account, &sample::references(document.root()), edit).await?
    } else {
        edit
    }?;
    let restores = matches!(edit, Edit::Restore(_));
    Ok(ReadEdit { edit, revision: stored.revision, warnings: warnings.count(), restores })
}

/// The response to an edit. The document of a restored version does not contain what WhatsApp
/// refuses: `counts_content` adds the warnings about it.
async fn edited(
    app: &App,
    caller: &Caller<Write>,
    outcome: ChangeOutcome,
    warnings: usize,
    counts_content: bool,
) -> Result<Response, Problem> {
    let changed = outcomes::changed(outcome, "edit")?;
    let restored =
        if counts_content { changed.template.whatsapp_content_warnings().count() } else { 0 };
    let mut response = template_response(app, &caller.account, &changed).await?;
    add_warning_count(&mut response, warnings + restored);
    Ok(response)
}

pub(super) async fn review(
    State(app): State<App>,
    caller: Caller<Review>,
    IfMatch(expected): IfMatch,
    parameters: Parameters,
    body: JsonBody,
) -> Result<Response, Problem> {
    // A version in the query must not approve another one.
    parameters.only(&[])?;
    let read = |bytes| Decision::read(&Document::parse(bytes)?).map_err(Problem::invalid_decision);
    let Decision { trigger, reason, version } = body.process(&app, read).await?;
    let change = TemplateChange { version, ..change_of(&app, &caller, expected)? };
    let changed = app.store().review_template(change, trigger, reason).await?;
    let changed = outcomes::changed(changed, trigger.as_str())?;
    template_response(&app, &caller.account, &changed).await
}

pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller<Write>,
    IfMatch(expected): IfMatch,
) -> Result<Response, Problem> {
    let change = change_of(&app, &caller, expected)?;
    outcomes::changed(app.store().delete_template(change).await?, "delete")?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A change of the template in the path. Its events get the trace of the request.
pub(in crate::api::v1) fn change_of<S>(
    app: &App,
    caller: &Caller<S>,
    expected: Option<Vec<u64>>,
) -> Result<TemplateChange, Problem> {
    Ok(TemplateChange {
        account: caller.account.id,
        id: caller.template_id()?,
        expected,
        version: None,
        review: caller.account.effective_review(),
        actor: Actor::Token(caller.token),
        trace: caller.trace,
        at: app.clock().now(),
    })
}
