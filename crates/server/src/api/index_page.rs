//! `/`: what runs here, and where to go on.

use axum::{Router, http::HeaderMap, response::Response, routing::get};
use serde::Serialize;

use super::negotiation::{html, page_or_json};
use crate::app::App;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Path, name in JSON, and what is there.
type Link = (&'static str, &'static str, &'static str);

const CONSOLE: Link = ("/console", "console", "see, edit and review templates in a browser");

const LINKS: [Link; 9] = [
    ("/docs", "docs", "the API, browsable"),
    ("/openapi.json", "openapi", "the API as an OpenAPI document"),
    ("/openapi-graph.json", "openapi_graph", "the Graph surface as an OpenAPI document"),
    ("/schemas/v1/template.json", "schema_v1", "the rules for templates as a JSON Schema"),
    (
        "/schemas/whatsapp/template.json",
        "schema_whatsapp",
        "the rules for WhatsApp templates as a JSON Schema",
    ),
    ("/problems", "problems", "all problems that a response can have"),
    ("/healthz", "healthz", "is the process alive?"),
    ("/readyz", "readyz", "does this instance take requests?"),
    ("/metrics", "metrics", "metrics for Prometheus"),
];

pub(crate) fn routes(has_console: bool) -> Router<App> {
    Router::new().route("/", get(async move |headers: HeaderMap| show(&headers, has_console)))
}

fn show(headers: &HeaderMap, has_console: bool) -> Response {
    let links: Vec<Link> = has_console.then_some(CONSOLE).into_iter().chain(LINKS).collect();
    page_or_json(headers, || page(&links), &document(&links))
}

#[derive(Serialize)]
struct Index {
    service: &'static str,
    version: &'static str,
    api: &'static str,
    links: serde_json::Map<String, serde_json::Value>,
}

fn document(links: &[Link]) -> Index {
    let links = links.iter().map(|(path, name, _)| ((*name).to_owned(), (*path).into()));
    Index { service: "galley", version: VERSION, api: API, links: links.collect() }
}

const API: &str = "/api/v1.0/{phone_number_id}/{key}/message_templates";

fn page(links: &[Link]) -> String {
    use std::fmt::Write as _;
    let mut body = format!(
        "<h1>Galley {VERSION}</h1>\n<p>A message template service. Templates are at\n\
         <code>{API}</code>.</p>\n<ul>\n"
    );
    for (path, _, about) in links {
        let _ = writeln!(body, "<li><a href=\"{path}\">{path}</a>: {about}</li>");
    }
    body.push_str("</ul>\n");
    html("Galley", &body)
}
