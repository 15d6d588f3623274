//! Rendering a template with values into texts and the payload of a message.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    document::Document,
    render::{self, Message, Rendered, Texts},
    rulebook::{Rulebook, V1},
    template::Template,
    violation::Warning,
};
use serde::Serialize;

use super::read::at_version;
use crate::{
    api::{
        auth::{Caller, Read},
        body::JsonBody,
        json,
        problem::{Problem, ProblemKind},
        throttling::Admitted,
    },
    app::App,
};

pub(super) async fn render(
    State(app): State<App>,
    caller: Caller<Read>,
    admitted: Admitted,
    body: JsonBody,
) -> Result<Response, Problem> {
    let values = body.process(&app, Document::parse).await?;
    let stored = app.store().template(caller.account.id, caller.template_id()?).await?;
    let stored = stored.ok_or(Problem::of(ProblemKind::TemplateUnknown))?;
    let status = stored.state.status().as_str();
    let number = stored.state.live_version().ok_or_else(|| {
        let detail = format!("The template is {status} and has no live version. Wait until a version is approved, or until the hold ends.");
        Problem::of(ProblemKind::NotLive).detail(detail)
    })?;
    // The live version is never purged: if it is missing, the template has just been deleted.
    let live = at_version(&app, &caller, stored, number).await?;
    let live = live.ok_or(Problem::of(ProblemKind::TemplateUnknown))?;
    let bytes = live.template.content().len().max(body.len());
    admitted.take_turn(&app, bytes).await?;
    let rulebook = caller.rulebook()?;
    let work = || rendered(&app, &live.template, rulebook, &values);
    Ok(json(StatusCode::OK, app.admission().process(bytes, work).await?))
}

/// The body of the response.
fn rendered(
    app: &App,
    template: &Template,
    rulebook: &Rulebook,
    values: &Document<'_>,
) -> Result<String, Problem> {
    let Rendered { texts, payload } =
        render::render(template, rulebook, values).map_err(Problem::invalid_values)?;
    // A template of the rulebook `whatsapp` has met WhatsApp's rules.
    let found = (*rulebook == V1)
        .then(|| (template.whatsapp_identity_warnings(), app.render_warnings().of(template)));
    let warnings = found
        .iter()
        .flat_map(|(identity, content)| identity.listed().iter().chain(content.listed()));
    let warnings = warnings.collect();
    let response = RenderResponse { texts, payload, warnings };
    Ok(serde_json::to_string(&response).unwrap_or_default())
}

/// The rendered texts and the payload, and why WhatsApp cannot take it.
#[derive(Serialize)]
struct RenderResponse<'a> {
    texts: Texts<'a>,
    payload: Message<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<&'a Warning>,
}
