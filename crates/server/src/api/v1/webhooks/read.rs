//! Reading endpoints.

use axum::{extract::State, http::StatusCode, response::Response};

use crate::{
    api::{
        auth::{Caller, Webhooks},
        json,
        problem::{Problem, ProblemKind},
        query::Parameters,
        view,
    },
    app::App,
};

pub(super) async fn list(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let webhooks = app.store().webhooks(caller.account.id).await?;
    Ok(json(StatusCode::OK, view::webhooks(&webhooks, app.clock().now())))
}

pub(super) async fn show(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let webhook = app.store().webhook(caller.account.id, caller.webhook_id()?).await?;
    let webhook = webhook.ok_or(Problem::of(ProblemKind::WebhookUnknown))?;
    Ok(json(StatusCode::OK, view::webhook(&webhook, app.clock().now())))
}
