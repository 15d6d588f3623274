//! Compares the API description with the responses of the router, in both directions.

mod renderings;
mod routes;
mod schema;
mod service;

use std::collections::{BTreeMap, BTreeSet};

use axum::{
    http::{Method, StatusCode, header},
    response::Response,
};
use galley_server::openapi::document;
use serde_json::Value;

use crate::harness::{
    description::{Operation, operations, resolved},
    json_of,
};
use schema::mismatch;
use service::{AUTO_REVIEW, MANUAL_REVIEW, SHOP, Service};

#[tokio::test]
async fn every_operation_responds_as_described() {
    let service = Service::start().await;
    let document = document();
    for operation in operations(&document) {
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
    let document = document();
    let show = operations(&document).find(|it| it.id() == "showTemplate").unwrap();
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
    if media_type == "application/json" && operation.pattern != "/openapi.json" {
        assert_eq!(mismatch(document, &content["schema"], &body), None, "{place}: {body}");
    }
}

#[tokio::test]
async fn every_path_supports_exactly_the_described_methods() {
    let service = Service::start().await;
    let document = document();
    let mut described: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for operation in operations(&document) {
        described.entry(operation.pattern).or_default().insert(operation.method.to_string());
    }
    for operation in operations(&document) {
        let place = operation.pattern;
        let path = service.path(AUTO_REVIEW, &operation, "").await;
        let brew = Method::from_bytes(b"BREW").unwrap();
        let response = service.send(AUTO_REVIEW, &brew, &path, None, None).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{place}");
        let allowed = response.headers()[header::ALLOW].to_str().unwrap().split(',').map(str::trim);
        // Every GET route supports HEAD, as HTTP requires; the description does not list it.
        let allowed: BTreeSet<String> =
            allowed.filter(|method| *method != "HEAD").map(str::to_owned).collect();
        assert_eq!(allowed, described[place], "{place}");
    }
}

#[test]
fn every_route_is_described() {
    let document = document();
    let described: BTreeSet<&str> =
        document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    let routes = routes::in_source();
    assert!(routes.contains("/healthz"), "the routes were not found: {routes:?}");
    assert_eq!(routes.iter().map(String::as_str).collect::<BTreeSet<_>>(), described);
}

#[test]
fn operations_have_unique_ids_and_descriptions() {
    let document = document();
    let tags: Vec<&Value> =
        document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    let mut ids = BTreeSet::new();
    for operation in operations(&document) {
        let place = operation.name();
        let id = operation.description["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{place}: {id} is used twice");
        for text in ["summary", "description"] {
            let text = operation.description[text].as_str().unwrap();
            assert!(!text.is_empty(), "{place}");
        }
        assert!(tags.contains(&&operation.description["tags"][0]), "{place}");
    }
}

#[test]
fn every_reference_resolves_and_every_component_is_used() {
    let document = document();
    let mut references = BTreeSet::new();
    collect_references(&document, &mut references);
    for reference in &references {
        assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
    }
    for section in ["schemas", "parameters", "headers", "examples"] {
        for name in document["components"][section].as_object().unwrap().keys() {
            let reference = format!("#/components/{section}/{name}");
            assert!(references.contains(&reference), "{reference} is not used");
        }
    }
}

#[test]
fn every_example_response_matches_its_schema() {
    let document = document();
    let mut seen = 0;
    for operation in operations(&document) {
        for (status, response) in operation.description["responses"].as_object().unwrap() {
            for content in response["content"].as_object().into_iter().flat_map(|it| it.values()) {
                let several =
                    content["examples"].as_object().into_iter().flat_map(|it| it.values());
                let several = several.map(|example| &resolved(&document, example)["value"]);
                for example in several.chain(content.get("example")) {
                    let mismatch = mismatch(&document, &content["schema"], example);
                    assert_eq!(mismatch, None, "{} {status}: {example}", operation.name());
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 100, "{seen} examples");
}

#[test]
fn every_kind_of_rendered_message_is_described() {
    let document = document();
    let schema = &document["components"]["schemas"]["Rendered"];
    for rendered in renderings::all() {
        assert_eq!(mismatch(&document, schema, &rendered), None, "{rendered}");
    }
}

#[test]
fn every_link_passes_parameters_that_its_operation_accepts() {
    let document = document();
    let mut seen = 0;
    for operation in operations(&document) {
        for response in operation.description["responses"].as_object().unwrap().values() {
            for (name, link) in response["links"].as_object().into_iter().flatten() {
                let place = format!("{name} of {}", operation.name());
                let target = operations(&document).find(|it| link["operationId"] == it.id());
                let target = target.unwrap_or_else(|| panic!("{place} has no target"));
                let accepted = target.description["parameters"].as_array().unwrap().iter();
                let accepted: BTreeSet<String> = accepted
                    .map(|it| resolved(&document, it))
                    .map(|it| {
                        format!("{}.{}", it["in"].as_str().unwrap(), it["name"].as_str().unwrap())
                    })
                    .collect();
                for passed in link["parameters"].as_object().unwrap().keys() {
                    assert!(accepted.contains(passed), "{place} passes {passed}");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 50, "{seen} parameters");
}

#[tokio::test]
async fn every_problem_has_a_page() {
    let service = Service::start().await;
    let document = document();
    let types = &document["components"]["schemas"]["Problem"]["properties"]["type"]["enum"];
    for page in types.as_array().unwrap() {
        let response = service.get(page.as_str().unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK, "{page}");
    }
}

#[tokio::test]
async fn the_served_description_is_the_document() {
    let service = Service::start().await;
    assert_eq!(json_of(service.get("/openapi.json").await).await, document());
}

fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| collect_references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        _ => {}
    }
}
