//! Rendering a template with values into texts and the payload of a message.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{document::Document, render};

use super::read::at_version;
use crate::{
    api::{
        auth::{Caller, Read},
        body::JsonBody,
        json,
        problem::{Problem, ProblemKind},
    },
    app::App,
};

pub(super) async fn render(
    State(app): State<App>,
    caller: Caller<Read>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let values = Document::parse(&body)?;
    let stored = app.store().template(caller.account.id, caller.template_id()?).await?;
    let stored = stored.ok_or(Problem::of(ProblemKind::TemplateUnknown))?;
    let status = stored.state.status().as_str();
    let live = stored.state.live_version().ok_or_else(|| {
        let detail = format!("The template is {status} and has no live version. Wait until a version is approved, or until the hold ends.");
        Problem::of(ProblemKind::NotLive).detail(detail)
    })?;
    // A template keeps all its versions: if this one is missing, the template has just been deleted.
    let live = at_version(&app, &caller, stored, live).await?;
    let live = live.ok_or(Problem::of(ProblemKind::TemplateUnknown))?;
    let rendered = render::render(&live.template, caller.rulebook()?, &values)
        .map_err(Problem::invalid_values)?;
    Ok(json(StatusCode::OK, serde_json::to_string(&rendered).unwrap_or_default()))
}
