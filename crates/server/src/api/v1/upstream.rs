//! `{base}/upstream` and `{base}/message_templates/{id}/upstream`: the connection of an account to its
//! provider, its operations, and the templates there.

mod actions;
mod connection;
mod template;

use axum::{
    Router,
    extract::FromRequestParts,
    http::request::Parts,
    routing::{get, post},
};

use crate::{
    api::{
        auth::{Caller, Upstream},
        base_path::BasePath,
        problem::{Problem, ProblemKind},
    },
    app::App,
};

pub(crate) const CONNECTION: &str = "/api/v1.0/{phone_number_id}/{key}/upstream";
pub(crate) const OPERATIONS: &str = "/api/v1.0/{phone_number_id}/{key}/upstream/operations";
pub(crate) const TEMPLATES: &str = "/api/v1.0/{phone_number_id}/{key}/upstream/templates";
pub(crate) const TEMPLATE: &str =
    "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/upstream";
pub(crate) const SUBMIT: &str =
    "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/upstream/submit";
pub(crate) const ACCEPT: &str =
    "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/upstream/accept";
pub(crate) const PUSH: &str =
    "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/upstream/push";
pub(crate) const RETRY: &str =
    "/api/v1.0/{phone_number_id}/{key}/message_templates/{id}/upstream/retry";

pub(crate) fn routes(base: BasePath) -> Router<App> {
    Router::new()
        .route(&base.at(CONNECTION), get(connection::show))
        .route(&base.at(OPERATIONS), get(connection::operations))
        .route(&base.at(TEMPLATES), get(template::list))
        .route(&base.at(TEMPLATE), get(template::show))
        .route(&base.at(SUBMIT), post(actions::submit))
        .route(&base.at(ACCEPT), post(actions::accept))
        .route(&base.at(PUSH), post(actions::push))
        .route(&base.at(RETRY), post(actions::retry))
}

/// A caller with the scope `upstream` whose account is connected. The scope is checked first, so that
/// a token without it does not find out whether the account is connected.
struct ConnectedCaller(Caller<Upstream>);

impl FromRequestParts<App> for ConnectedCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = Caller::<Upstream>::from_request_parts(parts, app).await?;
        if !caller.account.is_connected {
            return Err(not_connected());
        }
        Ok(Self(caller))
    }
}

fn not_connected() -> Problem {
    Problem::of(ProblemKind::NotConnected)
}
