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
        at_provider::{AllAtProvider, AtProvider},
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
    let Some(number) = stored.state.live_version() else {
        let at_provider = [(stored.id, stored.state.version)];
        let at_provider = AllAtProvider::read(&app, &caller.account, &at_provider).await?;
        let remedy = remedy(stored.state.hold.is_some(), at_provider.get(stored.id));
        let status = stored.state.status().as_str();
        let detail = format!("The template is {status} and has no live version. {remedy}");
        return Err(Problem::of(ProblemKind::NotLive).detail(detail));
    };
    // The live version is never purged: if it is missing, the template has just been deleted.
    let live = at_version(&app, &caller, stored, number).await?;
    let live = live.ok_or(Problem::of(ProblemKind::TemplateUnknown))?;
    let bytes = live.template.content().len().max(body.len());
    admitted.take_turn(&app, bytes).await?;
    let rulebook = caller.rulebook()?;
    let work = || rendered(&app, &live.template, rulebook, &values);
    Ok(json(StatusCode::OK, app.admission().process(bytes, work).await?))
}

/// What makes a version of a template live. The live version of a connected account is the one that
/// the provider has approved and shows.
fn remedy(is_on_hold: bool, at_provider: Option<&AtProvider>) -> &'static str {
    let Some(at_provider) = at_provider else {
        return "Wait until a version is approved, or until the hold ends.";
    };
    match at_provider.state() {
        "missing" => {
            "The provider no longer has it. Push it to submit it there again, or delete it here."
        }
        _ if is_on_hold => "Wait until the hold ends.",
        _ if at_provider.is_drifted() => {
            "Its content was changed at the provider. Accept that content, or push the newest version."
        }
        "queued" | "sending" | "held" => {
            "The newest version is being submitted to the provider. Wait until the provider approves it."
        }
        "refused" => {
            "The provider refused the newest version. Edit the template, or retry the submission."
        }
        "conflict" => {
            "The provider has another template in its place, or none. Decide which one counts."
        }
        "local" => {
            "The provider does not have it. Submit it, after a reviewer has approved it if the review \
             is manual."
        }
        _ => {
            "The provider has not approved the version that it shows. Wait until it does, or edit the \
             template if it was rejected."
        }
    }
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
