//! A template at the provider, with the provider's document.

use axum::{extract::State, http::StatusCode, response::Response};

use super::{ConnectedCaller, not_connected};
use crate::{
    api::{
        at_provider::AllAtProvider,
        json,
        problem::{Problem, ProblemKind},
        query::Parameters,
        view,
    },
    app::App,
};

pub(super) async fn show(
    State(app): State<App>,
    ConnectedCaller(caller): ConnectedCaller,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let (account, id) = (caller.account.id, caller.template_id()?);
    let stored = app.store().template(account, id).await?;
    let stored = stored.ok_or(Problem::of(ProblemKind::TemplateUnknown))?;
    let all =
        AllAtProvider::read(&app, &caller.account, &[(stored.id, stored.state.version)]).await?;
    let at = all.get(stored.id).ok_or_else(not_connected)?;
    let document = match &at.mirrored {
        Some(mirrored) => app.store().mirrored_document(account, mirrored.id.clone()).await?,
        None => None,
    };
    Ok(json(StatusCode::OK, view::template_at_provider(at, document.as_deref())))
}
