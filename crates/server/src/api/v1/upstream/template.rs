//! The templates at the provider, and one of them with the provider's document.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::upstream::{RemoteId, TemplateSource};
use galley_store::MirrorFilter;

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

/// Lists what the provider has, also what is no template of the account.
pub(super) async fn list(
    State(app): State<App>,
    ConnectedCaller(caller): ConnectedCaller,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["after", "limit", "source"])?;
    let after =
        parameters.parse("after", "the id of a template at the provider", RemoteId::parse)?;
    let source = parameters.text("source").map(TemplateSource::parse);
    let limit = parameters.limit()?;
    // One more than the page, to know whether another page follows.
    let filter = MirrorFilter::Present(source);
    let mut rows = app.store().mirrored(caller.account.id, filter, after, limit + 1).await?;
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().filter(|_| has_more);
    let next = last.map(|last| parameters.next_page_with("after", last.id.as_str()));
    Ok(json(StatusCode::OK, view::provided(&rows, next.as_deref())))
}

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
