//! The API description is held against the router: what it describes is answered so, and what is
//! answered is described.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "api/described.rs"]
mod described;
#[path = "api/setup.rs"]
mod setup;

mod openapi {
    pub(crate) mod fits;
    pub(crate) mod renderings;
    pub(crate) mod routes;
    pub(crate) mod service;
}

use std::collections::{BTreeMap, BTreeSet};

use axum::{
    http::{Method, StatusCode, header},
    response::Response,
};
use galley_server::openapi::document;
use serde_json::Value;

use described::{Operation, operations, resolved};
use openapi::{
    fits::misfit,
    renderings, routes,
    service::{APPROVED_AT_ONCE, SHOP, Service, WAITING, json_of},
};

#[tokio::test]
async fn every_operation_is_answered_as_it_is_described() {
    let service = Service::start().await;
    let document = document();
    for operation in operations(&document) {
        for example in operation.examples() {
            // Some decisions are for templates in use, others for templates that wait.
            let mut response = service.call(APPROVED_AT_ONCE, &operation, &example).await;
            if response.status() == StatusCode::CONFLICT {
                response = service.call(WAITING, &operation, &example).await;
            }
            // Some endpoints are for accounts with another rulebook.
            if response.status() == StatusCode::UNPROCESSABLE_ENTITY {
                response = service.call(SHOP, &operation, &example).await;
            }
            let place = format!("{} {}", operation.name(), example.name);
            assert_eq!(response.status(), operation.success(), "{place}");
            is_as_described(&operation, response, &place).await;
        }
    }
}

#[tokio::test]
async fn whoever_knows_a_template_already_is_answered_as_described() {
    let service = Service::start().await;
    let document = document();
    let show = operations(&document).find(|it| it.id() == "showTemplate").unwrap();
    let path = service.path(APPROVED_AT_ONCE, &show, "").await;
    let known = Some(("if-none-match", "*"));
    let response = service.send(APPROVED_AT_ONCE, &Method::GET, &path, None, known).await;
    assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
    is_as_described(&show, response, "304").await;
}

/// The status, the headers and every member of an answer are described, and what is described as
/// being there is there.
async fn is_as_described(operation: &Operation<'_>, response: Response, place: &str) {
    let (document, status) = (operation.document, response.status());
    let described = &operation.description["responses"][status.as_str()];
    assert!(described.is_object(), "{place} answered {status}, which is not described");
    for (name, header) in described["headers"].as_object().unwrap() {
        let required = resolved(document, header)["required"] == true;
        assert!(!required || response.headers().contains_key(name), "{place} without {name}");
    }
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.map(|it| it.to_str().unwrap().to_owned());
    let answer = json_of(response).await;
    let Some(content) = described.get("content") else {
        assert_eq!((content_type, answer), (None, Value::from("")), "{place}");
        return;
    };
    let content_type = content_type.unwrap();
    let media_type = content_type.split(';').next().unwrap();
    let content = &content[media_type];
    assert!(content.is_object(), "{place} answered {media_type}, which is not described");
    if media_type == "application/json" && operation.pattern != "/openapi.json" {
        assert_eq!(misfit(document, &content["schema"], &answer), None, "{place}: {answer}");
    }
}

#[tokio::test]
async fn every_path_takes_exactly_the_methods_that_are_described() {
    let service = Service::start().await;
    let document = document();
    let mut described: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for operation in operations(&document) {
        described.entry(operation.pattern).or_default().insert(operation.method.to_string());
    }
    for operation in operations(&document) {
        let place = operation.pattern;
        let path = service.path(APPROVED_AT_ONCE, &operation, "").await;
        let brew = Method::from_bytes(b"BREW").unwrap();
        let response = service.send(APPROVED_AT_ONCE, &brew, &path, None, None).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{place}");
        let allowed = response.headers()[header::ALLOW].to_str().unwrap().split(',').map(str::trim);
        // Whoever answers GET answers HEAD: HTTP says so, and nobody describes it.
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
    let written = routes::in_the_source();
    assert!(written.contains("/healthz"), "the routes were not found: {written:?}");
    assert_eq!(written.iter().map(String::as_str).collect::<BTreeSet<_>>(), described);
}

#[test]
fn operations_have_distinct_ids_and_say_what_they_do() {
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
fn every_reference_leads_somewhere_and_every_component_is_used() {
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
fn every_example_of_an_answer_fits_its_schema() {
    let document = document();
    let mut seen = 0;
    for operation in operations(&document) {
        for (status, response) in operation.description["responses"].as_object().unwrap() {
            for content in response["content"].as_object().into_iter().flat_map(|it| it.values()) {
                let several =
                    content["examples"].as_object().into_iter().flat_map(|it| it.values());
                let several = several.map(|example| &resolved(&document, example)["value"]);
                for example in several.chain(content.get("example")) {
                    let misfit = misfit(&document, &content["schema"], example);
                    assert_eq!(misfit, None, "{} {status}: {example}", operation.name());
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 100, "{seen} examples");
}

#[test]
fn whatever_kind_of_message_is_rendered_is_described() {
    let document = document();
    let schema = &document["components"]["schemas"]["Rendered"];
    for rendered in renderings::all() {
        assert_eq!(misfit(&document, schema, &rendered), None, "{rendered}");
    }
}

#[test]
fn every_link_leads_to_an_operation_that_takes_what_it_hands_over() {
    let document = document();
    let mut seen = 0;
    for operation in operations(&document) {
        for response in operation.description["responses"].as_object().unwrap().values() {
            for (name, link) in response["links"].as_object().into_iter().flatten() {
                let place = format!("{name} of {}", operation.name());
                let target = operations(&document).find(|it| link["operationId"] == it.id());
                let target = target.unwrap_or_else(|| panic!("{place} leads nowhere"));
                let taken = target.description["parameters"].as_array().unwrap().iter();
                let taken: BTreeSet<String> = taken
                    .map(|it| resolved(&document, it))
                    .map(|it| {
                        format!("{}.{}", it["in"].as_str().unwrap(), it["name"].as_str().unwrap())
                    })
                    .collect();
                for handed in link["parameters"].as_object().unwrap().keys() {
                    assert!(taken.contains(handed), "{place} hands over {handed}");
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
