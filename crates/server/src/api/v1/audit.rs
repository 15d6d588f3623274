//! `{base}/audit`: the audit feed of an account.

use axum::{Router, extract::State, http::StatusCode, response::Response, routing::get};
use galley_domain::document::MAX_SAFE_INTEGER;

use crate::{
    api::{
        auth::{Audit, Caller},
        base_path::BasePath,
        json,
        problem::Problem,
        query::{Parameters, parse_digits},
        view::{self, Paging},
    },
    app::App,
};

pub(crate) const FEED: &str = "/api/v1.0/{phone_number_id}/{key}/audit";

pub(crate) fn routes(base: BasePath) -> Router<App> {
    Router::new().route(&base.at(FEED), get(list))
}

async fn list(
    State(app): State<App>,
    caller: Caller<Audit>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only(&["after", "limit"])?;
    let expected = "the `seq` of an entry, or 0 for the beginning";
    let after = parameters.parse("after", expected, |text| {
        parse_digits(text).filter(|seq| *seq <= MAX_SAFE_INTEGER)
    })?;
    let (after, limit) = (after.unwrap_or(0), parameters.limit()?);
    let entries = app.store().audit_entries(Some(caller.account.id), after, limit).await?;
    // An empty page ends where it began, so that a client that continues there misses nothing.
    let position = entries.last().map_or(after, |entry| entry.seq).to_string();
    let next = (entries.len() == limit).then(|| parameters.next_page(&position));
    let paging = Paging { after: Some(position), next };
    Ok(json(StatusCode::OK, view::audit_entries(&entries, &paging)))
}
