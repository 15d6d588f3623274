//! Proofs: how a document or a stored version looks to its recipient, whatever its status.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{document::Document, proof::Proof, rulebook::Rulebook, template::Status};

use super::read::{VERSION_NUMBER, at_version, version_number};
use crate::{
    api::{
        auth::{Caller, Read},
        body::JsonBody,
        json,
        problem::{Problem, ProblemKind},
        query::Parameters,
        samples,
        throttling::Admitted,
    },
    app::App,
};

/// A proof costs as much as checking so many times the bytes of its document: each placeholder and each
/// run of formatted text becomes an object of the response.
const COST_FACTOR: usize = 8;

/// The proof of a document that is not stored.
pub(super) async fn preview(
    State(app): State<App>,
    caller: Caller<Read>,
    admitted: Admitted,
    parameters: Parameters,
    body: JsonBody,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let rulebook = caller.rulebook()?;
    let cost = COST_FACTOR * body.len();
    admitted.take_turn(&app, cost).await?;
    let proof = body.process_as(&app, cost, |bytes| read(&app, rulebook, bytes)).await?;
    Ok(json(StatusCode::OK, proof))
}

fn read(app: &App, rulebook: &Rulebook, body: &[u8]) -> Result<String, Problem> {
    let mut request = Document::parse(body)?;
    if rulebook.supports_translations {
        samples::replace_urls(app, request.root_mut());
    }
    Ok(serialized(&Proof::read(request, rulebook)?))
}

/// The proof of a stored version; of the newest one if the request names none.
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller<Read>,
    admitted: Admitted,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["version"])?;
    let number = parameters.parse("version", VERSION_NUMBER, version_number)?;
    let stored = app.store().template(caller.account.id, caller.template_id()?).await?;
    let stored = stored.ok_or(Problem::of(ProblemKind::TemplateUnknown))?;
    let number = number.unwrap_or(stored.state.version);
    let version = at_version(&app, &caller, stored, number).await?;
    let version = version.ok_or(Problem::of(ProblemKind::VersionUnknown))?;
    let cost = COST_FACTOR * version.template.content().len();
    admitted.take_turn(&app, cost).await?;
    let rulebook = caller.rulebook()?;
    let is_approved = version.state.newest_status == Status::Approved;
    let work = || serialized(&Proof::of_template(&version.template, rulebook, is_approved));
    Ok(json(StatusCode::OK, app.admission().process(cost, work).await))
}

fn serialized(proof: &Proof) -> String {
    serde_json::to_string(proof).unwrap_or_default()
}
