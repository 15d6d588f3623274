//! What the path names right behind the version: a template, the account or an upload; reading it,
//! changing it, ending its pause.

use axum::{
    extract::{FromRequest as _, Request, State},
    http::StatusCode,
    response::Response,
};
use galley_domain::{
    document::Document,
    id::TemplateId,
    rulebook::WHATSAPP,
    template::{edit::Edit, lifecycle::Trigger},
};
use galley_store::{ChangeOutcome, StoredTemplate, TemplateChange};

use super::samples;
use super::{
    body::JsonText,
    caller::{Caller, unknown},
    error::limited,
    parameters::Query,
    success, uploads,
    view::{self, Fields},
};
use crate::{
    api::{
        auth::{Read, Review, Write},
        json,
        problem::{Kind, Problem},
    },
    app::App,
};

/// How often an edit is judged anew that others have overtaken.
const MOST_TRIES: usize = 8;

pub(super) async fn show(
    State(app): State<App>,
    caller: Caller<Read>,
    query: Query,
) -> Result<Response, Problem> {
    if let Some(upload) = uploads::named(&caller.node) {
        return uploads::show(&app, &caller, upload).await;
    }
    // Accounts and templates count for themselves: an account's id may be that of a template, too.
    let template = match caller.template() {
        Ok(id) => app.store().template(caller.account.id, id).await?,
        Err(_) => None,
    };
    let fields = Fields::of(&query)?;
    match template {
        Some(template) => Ok(json(StatusCode::OK, view::template(&app, &template, &fields))),
        None if caller.is_account() => {
            Ok(json(StatusCode::OK, view::account(&caller.account, &fields)))
        }
        None => Err(unknown(&caller.node)),
    }
}

/// The same below the account's list.
pub(super) async fn show_below(
    State(app): State<App>,
    caller: Caller<Read>,
    query: Query,
) -> Result<Response, Problem> {
    let id = caller.item()?;
    let template = app.store().template(caller.account.id, id).await?;
    let template = template.ok_or_else(|| unknown(&id.to_string()))?;
    Ok(json(StatusCode::OK, view::template(&app, &template, &Fields::of(&query)?)))
}

/// An edit of a template, or bytes of an upload.
pub(super) async fn change(
    State(app): State<App>,
    caller: Caller<Write>,
    request: Request,
) -> Result<Response, Problem> {
    match uploads::named(&caller.node) {
        Some(upload) => uploads::append(&app, &caller, upload, request).await,
        None => edit(&app, &caller, request).await,
    }
}

/// What an edit leaves out is taken from the template, and the whole is judged: so it counts for
/// the revision that it was judged with. If that is over, the next one is looked at.
async fn edit(app: &App, caller: &Caller<Write>, request: Request) -> Result<Response, Problem> {
    let id = caller.template()?;
    let JsonText(body) = JsonText::from_request(request, app).await?;
    let body = samples::with_handles(app, body);
    for _ in 0..MOST_TRIES {
        let (edit, revision) = read(app, caller, id, &body).await?;
        let change = TemplateChange { expected: Some(vec![revision]), ..caller.change(app, id) };
        match app.store().edit_template(change, edit).await? {
            ChangeOutcome::Outdated(_) => {}
            changed => {
                let template = done(changed, id, "edit")?;
                return Ok(json(StatusCode::OK, view::edited(&template)));
            }
        }
    }
    Err(Problem::of(Kind::Busy).detail("Others edit the template all the time: try again."))
}

pub(super) async fn unpause(
    State(app): State<App>,
    caller: Caller<Review>,
) -> Result<Response, Problem> {
    let id = caller.template()?;
    let change = caller.change(&app, id);
    let changed = app.store().review_template(change, Trigger::Resume, None).await?;
    done(changed, id, Trigger::Resume.as_str())?;
    Ok(success())
}

/// The edit, and the revision of the template that it was read for.
async fn read(
    app: &App,
    caller: &Caller<Write>,
    id: TemplateId,
    body: &[u8],
) -> Result<(Edit, u64), Problem> {
    let stored = app.store().template(caller.account.id, id).await?;
    let stored = stored.ok_or_else(|| unknown(&caller.node))?;
    let edit = |document: &Document<'_>| Edit::read(document, &WHATSAPP, &stored.template);
    let edit = samples::judged(app, caller.account.id, body, edit).await?;
    Ok((edit, stored.revision))
}

/// The template as it is now, or why nothing was done.
pub(super) fn done(
    changed: ChangeOutcome,
    id: TemplateId,
    trigger: &'static str,
) -> Result<StoredTemplate, Problem> {
    match changed {
        ChangeOutcome::Done(template) => Ok(*template),
        ChangeOutcome::NoTemplate | ChangeOutcome::NoVersion | ChangeOutcome::Outdated(_) => {
            Err(unknown(&id.to_string()))
        }
        ChangeOutcome::CategoryLocked(category) => Err(Problem::category_locked(category)),
        ChangeOutcome::Limited(limit) => Err(limited(limit)),
        ChangeOutcome::FamilyCategory(category) => Err(Problem::family_category(category)),
        ChangeOutcome::LiveCategory(category) => Err(Problem::live_category(category)),
        ChangeOutcome::InvalidTransition(refusal) => Err(Problem::not_possible(trigger, &refusal)),
    }
}
