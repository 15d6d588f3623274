//! The review rules of an emulator account.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{document::Document, emulator::rules::ReviewRules};

use super::{EmulatorCaller, not_an_emulator};
use crate::{
    api::{body::JsonBody, json, problem::Problem, query::Parameters},
    app::App,
};

pub(super) async fn show(
    State(app): State<App>,
    caller: EmulatorCaller,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let rules = app.store().review_rules(caller.account).await?;
    Ok(json(StatusCode::OK, rules.as_json().to_owned()))
}

pub(super) async fn replace(
    State(app): State<App>,
    caller: EmulatorCaller,
    body: JsonBody,
) -> Result<Response, Problem> {
    let read = |bytes: &[u8]| {
        ReviewRules::read(&Document::parse(bytes)?).map_err(Problem::invalid_emulator_document)
    };
    let rules = body.process(&app, read).await?;
    drop(body);
    let shown = rules.as_json().to_owned();
    if !app.store().set_review_rules(caller.account, rules).await? {
        return Err(not_an_emulator());
    }
    Ok(json(StatusCode::OK, shown))
}
