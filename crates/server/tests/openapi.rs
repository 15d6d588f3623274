//! Compares the OpenAPI documents with the responses of the router, in both directions.

mod renderings;
mod routes;
mod schema;
mod service;
mod structure;

use std::collections::{BTreeMap, BTreeSet};

use axum::{
    http::{Method, StatusCode, header},
    response::Response,
};
use galley_domain::{reference::json_schema, rulebook::Rulebook};
use serde_json::Value;

use crate::harness::{
    description::{GRAPH, Operation, V1, all_operations, operations, resolved, route},
    json_of,
};
use schema::mismatch;
use service::{AUTO_REVIEW, MANUAL_REVIEW, SHOP, Service};

#[tokio::test]
async fn every_operation_responds_as_described() {
    let service = Service::start().await;
    for operation in all_operations() {
        for example in operation.examples() {
            // Some decisions apply to approved templates, others to pending ones.
            let mut response = service.call(AUTO_REVIEW, &operation, &example).await;
            if response.status() == StatusCode::CONFLICT {
                response = service.call(MANUAL_REVIEW, &operation, &example).await;
            }
            // Some endpoints are only for accounts with the rulebook `whatsapp`.
            if response.status() == StatusCode::UNPROCESSABLE_ENTITY {
                response = service.call(SHOP, &operation, &example).await;
            }
            let place = format!("{} {}", operation.name(), example.name);
            assert_eq!(response.status(), operation.success(), "{place}");
            assert_described(&operation, response, &place).await;
        }
    }
}

#[tokio::test]
async fn a_not_modified_response_is_described() {
    let service = Service::start().await;
    let show = operations(&V1).find(|it| it.id() == "showTemplate").unwrap();
    let path = service.path(AUTO_REVIEW, &show, "").await;
    let known = Some(("if-none-match", "*"));
    let response = service.send(AUTO_REVIEW, &Method::GET, &path, None, known).await;
    assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
    assert_described(&show, response, "304").await;
}

/// Asserts that status, headers and every member of a response are described, and that the response
/// has everything that the description requires.
async fn assert_described(operation: &Operation<'_>, response: Response, place: &str) {
    let (document, status) = (operation.document, response.status());
    let described = &operation.description["responses"][status.as_str()];
    assert!(described.is_object(), "{place} returned {status}, which is not described");
    for (name, header) in described["headers"].as_object().unwrap() {
        let required = resolved(document, header)["required"] == true;
        assert!(!required || response.headers().contains_key(name), "{place} without {name}");
    }
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.map(|it| it.to_str().unwrap().to_owned());
    let body = json_of(response).await;
    let Some(content) = described.get("content") else {
        assert_eq!((content_type, body), (None, Value::from("")), "{place}");
        return;
    };
    let content_type = content_type.unwrap();
    let media_type = content_type.split(';').next().unwrap();
    let content = &content[media_type];
    assert!(content.is_object(), "{place} returned {media_type}, which is not described");
    if media_type == "application/json" {
        assert_eq!(mismatch(document, &content["schema"], &body), None, "{place}: {body}");
    }
}

#[tokio::test]
async fn every_path_supports_exactly_the_described_methods() {
    let service = Service::start().await;
    let mut described: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for operation in all_operations() {
        described.entry(operation.route()).or_default().insert(operation.method.to_string());
    }
    for operation in all_operations() {
        let place = operation.route();
        let path = service.path(AUTO_REVIEW, &operation, "").await;
        let brew = Method::from_bytes(b"BREW").unwrap();
        let response = service.send(AUTO_REVIEW, &brew, &path, None, None).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{place}");
        let allowed = response.headers()[header::ALLOW].to_str().unwrap().split(',').map(str::trim);
        // Every GET route supports HEAD, as HTTP requires; the description does not list it.
        let allowed: BTreeSet<String> =
            allowed.filter(|method| *method != "HEAD").map(str::to_owned).collect();
        assert_eq!(allowed, described[&place], "{place}");
    }
}

#[test]
fn every_route_is_described() {
    let described: BTreeSet<String> = all_operations().map(|it| it.route()).collect();
    let mut routes = routes::in_source();
    // What the console has of its own is for its pages only.
    routes.retain(|route| !route.starts_with("/console/"));
    assert!(routes.contains("/healthz"), "the routes were not found: {routes:?}");
    assert_eq!(routes.iter().map(|it| route(it)).collect::<BTreeSet<_>>(), described);
}

#[tokio::test]
async fn every_problem_has_a_page() {
    let service = Service::start().await;
    let types = &V1["components"]["schemas"]["ProblemType"]["enum"];
    for page in types.as_array().unwrap() {
        let response = service.get(page.as_str().unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK, "{page}");
    }
}

#[tokio::test]
async fn the_served_documents_are_the_described_ones() {
    let service = Service::start().await;
    assert_eq!(json_of(service.get("/openapi.json").await).await, *V1);
    assert_eq!(json_of(service.get("/openapi-graph.json").await).await, *GRAPH);
}

#[tokio::test]
async fn a_client_that_has_a_document_gets_304() {
    let service = Service::start().await;
    for (id, path) in [
        ("showOpenApiDocument", "/openapi.json"),
        ("showGraphDocument", "/openapi-graph.json"),
        ("showTemplateSchema", "/schemas/v1/template.json"),
        ("showTemplateSchema", "/schemas/whatsapp/template.json"),
        ("showDocs", "/docs"),
        ("showDocsFile", "/docs/index.html"),
        ("showDocsFile", "/docs/docs.css"),
        ("showDocsFile", "/docs/docs.js"),
        ("showDocsFile", "/docs/swagger-ui.css"),
        ("showDocsFile", "/docs/swagger-ui-bundle.js"),
    ] {
        let response = service.get(path).await;
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache", "{path}");
        let tag = response.headers()[header::ETAG].to_str().unwrap().to_owned();
        let operation = operations(&V1).find(|it| it.id() == id).unwrap();
        for (name, tags, status) in [
            ("if-none-match", &*tag, StatusCode::NOT_MODIFIED),
            ("if-none-match", "\"other\"", StatusCode::OK),
            ("if-match", &*tag, StatusCode::OK),
            ("if-match", "\"other\"", StatusCode::PRECONDITION_FAILED),
        ] {
            let condition = Some((name, tags));
            let again = service.send(AUTO_REVIEW, &Method::GET, path, None, condition).await;
            let place = format!("{path} with {name}: {tags}");
            assert_eq!(again.status(), status, "{place}");
            assert_eq!(again.headers()[header::ETAG], tag, "{place}");
            if status != StatusCode::OK {
                assert_described(&operation, again, &place).await;
            }
        }
    }
}

#[tokio::test]
async fn the_schema_of_each_rulebook_is_served_to_every_client() {
    let service = Service::start().await;
    for rulebook in Rulebook::ALL {
        let path = format!("/schemas/{}/template.json", rulebook.name);
        let response = service.get(&path).await;
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/schema+json");
        let schema = json_of(response).await;
        assert_eq!(schema, json_schema::template_document(rulebook, &path));
        assert_eq!(schema["$id"], path);
    }
    let response = service.get("/schemas/none/template.json").await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let detail = json_of(response).await["detail"].to_string();
    assert!(detail.contains("/schemas/v1/template.json"), "{detail}");
}
