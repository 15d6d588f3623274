//! `/schemas/{rulebook}/template.json`: the JSON Schema of the documents that create a template.

use std::sync::LazyLock;

use axum::{
    Router,
    extract::{Path, rejection::PathRejection},
    http::HeaderMap,
    response::Response,
    routing::get,
};
use galley_domain::{reference::json_schema, rulebook::Rulebook};

use super::{
    problem::{Problem, ProblemKind},
    static_document::StaticDocument,
};
use crate::app::App;

pub(crate) const TEMPLATE: &str = "/schemas/{rulebook}/template.json";

/// The rulebooks with their schemas.
static SCHEMAS: LazyLock<Vec<(&str, StaticDocument)>> = LazyLock::new(|| {
    let schema = |rulebook: &&'static Rulebook| {
        let path = TEMPLATE.replace("{rulebook}", rulebook.name);
        let schema = json_schema::template_document(rulebook, &path).to_string();
        (rulebook.name, StaticDocument::new("application/schema+json", schema))
    };
    Rulebook::ALL.iter().map(schema).collect()
});

pub(crate) fn routes() -> Router<App> {
    Router::new().route(TEMPLATE, get(show))
}

async fn show(
    rulebook: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let rulebook = rulebook.map_err(|_| not_found())?;
    let schema = SCHEMAS.iter().find(|(name, _)| *name == *rulebook);
    schema.map(|(_, schema)| schema.respond(&headers)).ok_or_else(not_found)
}

fn not_found() -> Problem {
    let paths = Rulebook::ALL.iter().map(|it| TEMPLATE.replace("{rulebook}", it.name));
    let detail = format!(
        "There is no such rulebook. The schemas are at `{}`.",
        paths.collect::<Vec<_>>().join("` and `")
    );
    Problem::of(ProblemKind::NotFound).detail(detail)
}
