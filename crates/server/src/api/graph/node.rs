//! The node directly after the version in the path: a template, the account or an upload. Reads it,
//! changes it, or ends its pause.

use axum::{
    extract::{FromRequest as _, Request, State},
    http::StatusCode,
    response::Response,
};
use galley_domain::{
    emulator::faults::Call,
    id::TemplateId,
    rulebook::WHATSAPP,
    template::{edit::Edit, lifecycle::Trigger},
};
use galley_store::{ChangeOutcome, StoredTemplate, TemplateChange};

use super::{
    body::GraphBody,
    caller::{Caller, unknown},
    debug_token,
    faithful::Faithful,
    ids::ProviderIds,
    outcomes,
    parameters::Query,
    samples,
    submission::{Awaited, Submission},
    success, uploads,
    view::{self, Fields, View},
};
use crate::{
    api::{
        add_warning_count,
        auth::{Read, Review, Write},
        json,
        problem::{Problem, ProblemKind},
    },
    app::App,
};

/// Maximum number of attempts of an edit that conflicts with concurrent edits.
const MAX_EDIT_ATTEMPTS: usize = 8;

pub(super) async fn show(
    State(app): State<App>,
    caller: Caller<Read>,
    query: Query,
) -> Result<Response, Problem> {
    if let Some(upload) = uploads::upload_id(&caller.node) {
        return uploads::show(&app, &caller, upload).await;
    }
    if caller.node == debug_token::NODE && caller.account.emulator.is_some() {
        return debug_token::show(&app, &caller, &query).await;
    }
    // Accounts and templates are numbered separately, so both can have the same id.
    let template = match caller.template_id(&app).await {
        Ok(id) => app.store().template(caller.account.id, id).await?,
        Err(problem) if problem.kind() == ProblemKind::NotFound => None,
        Err(problem) => return Err(problem),
    };
    let fields = Fields::of(&query)?;
    match template {
        Some(template) => {
            caller.strike(&app, Call::Read, Some(template.template.name())).await?;
            shown(&app, &caller, &template, &fields).await
        }
        None if caller.is_account() => {
            Ok(json(StatusCode::OK, view::account(&caller.account, &fields)))
        }
        None => Err(unknown(&caller.node)),
    }
}

/// Shows a template below the list of the account.
pub(super) async fn show_template(
    State(app): State<App>,
    caller: Caller<Read>,
    query: Query,
) -> Result<Response, Problem> {
    let id = caller.item_id(&app).await?;
    let template = app.store().template(caller.account.id, id).await?;
    let template = template.ok_or_else(|| unknown(&id.to_string()))?;
    caller.strike(&app, Call::Read, Some(template.template.name())).await?;
    shown(&app, &caller, &template, &Fields::of(&query)?).await
}

/// The response with a template.
async fn shown(
    app: &App,
    caller: &Caller<Read>,
    template: &StoredTemplate,
    fields: &Fields,
) -> Result<Response, Problem> {
    let faithful = Faithful::of(app, &caller.account).await?;
    let ids = ProviderIds::of(app, &caller.account, [template.id].into_iter()).await?;
    let view = View { app, fields, faithful, ids };
    Ok(json(StatusCode::OK, view::template(&view, template)))
}

/// Edits a template, or appends bytes to an upload.
pub(super) async fn change(
    State(app): State<App>,
    caller: Caller<Write>,
    request: Request,
) -> Result<Response, Problem> {
    match uploads::upload_id(&caller.node) {
        Some(upload) => uploads::append(&app, &caller, upload, request).await,
        None => edit(&app, &caller, request).await,
    }
}

/// Edits a template. The rules apply to the edit together with the fields that it omits, so the
/// result is valid only for the revision that was read. If that has changed, tries again.
async fn edit(app: &App, caller: &Caller<Write>, request: Request) -> Result<Response, Problem> {
    let id = caller.template_id(app).await?;
    let (template, warnings) = edit_stored(app, caller, id, request).await?;
    let mut response = json(StatusCode::OK, submitted_edit(app, caller, template).await?);
    add_warning_count(&mut response, warnings);
    Ok(response)
}

/// Stores an edit. Returns the template and the number of warnings. Body and document are dropped here,
/// so that they take no memory while the request waits for the provider.
async fn edit_stored(
    app: &App,
    caller: &Caller<Write>,
    id: TemplateId,
    request: Request,
) -> Result<(StoredTemplate, usize), Problem> {
    let mut body = GraphBody::from_request(request, app).await?;
    caller.strike_template(app, Call::Edit, id).await?;
    let bytes = body.len();
    let parse = |_: &[u8], document: Result<_, Problem>| {
        document.map(|document| samples::with_handles(app, document))
    };
    let document = body.process(app.admission(), parse).await;
    for _ in 0..MAX_EDIT_ATTEMPTS {
        let stored = app.store().template(caller.account.id, id).await?;
        let stored = stored.ok_or_else(|| unknown(&caller.node))?;
        let document = document.as_ref().map_err(Problem::clone)?;
        let check = || Edit::check(document, &WHATSAPP, &stored.template);
        let (edit, warnings) = app.admission().process(bytes, check).await;
        let edit = samples::checked(app, caller.account.id, document, edit).await?;
        let expected = Some(vec![stored.revision]);
        let change = TemplateChange { expected, ..caller.change(app, id) };
        match app.store().edit_template(change, edit).await? {
            ChangeOutcome::RevisionMismatch(_) => {}
            outcome => return Ok((outcomes::changed(outcome, id, "edit")?, warnings.count())),
        }
    }
    Err(Problem::of(ProblemKind::Busy)
        .detail("Nothing was done: other requests keep editing the template. Try again."))
}

/// The response to an edit, after the provider of a connected account has made it.
async fn submitted_edit(
    app: &App,
    caller: &Caller<Write>,
    template: StoredTemplate,
) -> Result<String, Problem> {
    let awaited = Awaited::Version(template.id, template.state.version);
    let submission = caller.submitted_one(app, awaited).await?;
    let ids = ProviderIds::of(app, &caller.account, [template.id].into_iter()).await?;
    let current = match submission {
        Submission::Done(_) => app.store().template(caller.account.id, template.id).await?,
        Submission::NotConnected | Submission::Pending(_) => None,
    };
    let template = current.as_deref().unwrap_or(&template);
    Ok(view::edited(template, &ids, &submission))
}

pub(super) async fn unpause(
    State(app): State<App>,
    caller: Caller<Review>,
) -> Result<Response, Problem> {
    let id = caller.template_id(&app).await?;
    let change = caller.change(&app, id);
    let outcome = app.store().review_template(change, Trigger::Resume, None).await?;
    outcomes::changed(outcome, id, Trigger::Resume.as_str())?;
    Ok(success())
}
