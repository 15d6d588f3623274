//! What a person can do about a template at the provider.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_store::{UpstreamAction, UpstreamActionOutcome};

use super::{ConnectedCaller, not_connected};
use crate::{
    api::{
        conditional::IfMatch,
        json,
        problem::{Problem, ProblemKind},
        v1::templates::{change_of, template_response},
        view,
    },
    app::App,
};

/// Submits the newest version, which the provider does not have.
pub(super) async fn submit(
    State(app): State<App>,
    caller: ConnectedCaller,
    expected: IfMatch,
) -> Result<Response, Problem> {
    act(&app, caller, expected, UpstreamAction::Submit).await
}

/// Makes the provider's content a new version.
pub(super) async fn accept(
    State(app): State<App>,
    caller: ConnectedCaller,
    expected: IfMatch,
) -> Result<Response, Problem> {
    act(&app, caller, expected, UpstreamAction::Accept).await
}

/// Replaces the provider's content by the newest version.
pub(super) async fn push(
    State(app): State<App>,
    caller: ConnectedCaller,
    expected: IfMatch,
) -> Result<Response, Problem> {
    act(&app, caller, expected, UpstreamAction::Push).await
}

/// Queues the newest operation again.
pub(super) async fn retry(
    State(app): State<App>,
    caller: ConnectedCaller,
    expected: IfMatch,
) -> Result<Response, Problem> {
    act(&app, caller, expected, UpstreamAction::Retry).await
}

async fn act(
    app: &App,
    ConnectedCaller(caller): ConnectedCaller,
    IfMatch(expected): IfMatch,
    action: UpstreamAction,
) -> Result<Response, Problem> {
    let change = change_of(app, &caller, expected)?;
    match app.store().act_upstream(change, action).await? {
        UpstreamActionOutcome::Queued(operation) => {
            Ok(json(StatusCode::ACCEPTED, view::operation(&operation)))
        }
        UpstreamActionOutcome::Changed(template) => {
            template_response(app, &caller.account, &template).await
        }
        UpstreamActionOutcome::NoTemplate => Err(Problem::of(ProblemKind::TemplateUnknown)),
        UpstreamActionOutcome::NotConnected => Err(not_connected()),
        UpstreamActionOutcome::RevisionMismatch(revision) => {
            Err(Problem::revision_outdated(revision))
        }
        UpstreamActionOutcome::NotPossible(reason) => {
            Err(Problem::of(ProblemKind::UpstreamAction).detail(reason))
        }
    }
}
