//! The OpenAPI documents of both surfaces. `v1.yaml` and `graph.yaml` are their sources; limits, enums,
//! problems and links are generated from the code when a document is first requested.

mod assembly;
mod generated;
mod links;
mod problems;
mod tree;

use std::sync::LazyLock;

use axum::{http::HeaderMap, response::Response};
use serde_json::Value;

use crate::api::static_document::StaticDocument;
use tree::Node;

const V1: &str = include_str!("openapi/v1.yaml");
const GRAPH: &str = include_str!("openapi/graph.yaml");

static V1_DOCUMENT: LazyLock<StaticDocument> =
    LazyLock::new(|| served(&assembly::assemble(Node::parse(V1))));

static GRAPH_DOCUMENT: LazyLock<StaticDocument> = LazyLock::new(|| {
    let document = assembly::copy_shared(Node::parse(GRAPH), &Node::parse(V1));
    served(&assembly::assemble(document))
});

/// The document of API v1.0 and the public pages.
pub fn document() -> Value {
    parsed(&V1_DOCUMENT)
}

/// The document of the Graph surface.
pub fn graph_document() -> Value {
    parsed(&GRAPH_DOCUMENT)
}

pub(super) async fn show(headers: HeaderMap) -> Response {
    V1_DOCUMENT.respond(&headers)
}

pub(super) async fn show_graph(headers: HeaderMap) -> Response {
    GRAPH_DOCUMENT.respond(&headers)
}

fn served(document: &Node) -> StaticDocument {
    let text = serde_json::to_string(document).expect("keys are strings");
    StaticDocument::new("application/json", text)
}

fn parsed(document: &StaticDocument) -> Value {
    serde_json::from_slice(document.bytes()).expect("the document is JSON")
}
