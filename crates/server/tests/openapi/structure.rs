//! Properties of the OpenAPI documents that people and generators rely on.

use std::collections::BTreeSet;

use galley_domain::{
    rulebook::Category,
    template::{Status, lifecycle::EventType},
    violation::{Rule, WarningRule},
};
use serde_json::{Value, json};

use crate::harness::description::{GRAPH, V1, all_operations, operations, resolved};

use super::{renderings, schema::mismatch};

/// Maximum size of a document.
const MAX_BYTES: usize = 400 * 1_024;

#[test]
fn a_document_is_small_and_completely_assembled() {
    for document in [&*V1, &*GRAPH] {
        let text = document.to_string();
        assert!(text.len() <= MAX_BYTES, "{} bytes", text.len());
        for marker in ["\"x-generated\"", "\"x-problems\"", "\"x-links\"", "v1.yaml"] {
            assert!(!text.contains(marker), "{marker} is left");
        }
        assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    }
}

#[test]
fn schemas_use_only_keywords_that_generators_understand() {
    for document in [&*V1, &*GRAPH] {
        let mut schemas: Vec<&Value> =
            document["components"]["schemas"].as_object().unwrap().values().collect();
        let mut seen = 0;
        while let Some(schema) = schemas.pop() {
            seen += 1;
            for keyword in ["not", "patternProperties", "if", "dependentSchemas"] {
                assert!(schema.get(keyword).is_none(), "{keyword}: {schema}");
            }
            assert!(schema["type"].is_null() || schema["type"].is_string(), "{schema}");
            assert_ne!(schema["type"], "null", "{schema}");
            schemas.extend(schema["properties"].as_object().into_iter().flat_map(|it| it.values()));
            for keyword in ["oneOf", "anyOf", "allOf"] {
                schemas.extend(schema[keyword].as_array().into_iter().flatten());
            }
            for keyword in ["items", "additionalProperties"] {
                schemas.extend(schema.get(keyword).filter(|it| it.is_object()));
            }
        }
        assert!(seen > 300, "{seen} schemas");
    }
}

#[test]
fn listed_values_are_those_of_the_domain() {
    let schemas = &V1["components"]["schemas"];
    let rules: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    let warnings: Vec<&str> = WarningRule::ALL.iter().map(|rule| rule.id()).collect();
    for (name, expected) in [
        ("RuleId", &rules[..]),
        ("WarningId", &warnings),
        ("Category", Category::VALUES),
        ("TemplateStatus", Status::VALUES),
        ("EventType", EventType::VALUES),
    ] {
        assert_eq!(schemas[name]["enum"], json!(expected), "{name}");
    }
    let mapping = schemas["Event"]["discriminator"]["mapping"].as_object().unwrap();
    assert_eq!(mapping.len(), EventType::VALUES.len());
    assert_eq!(schemas["BodyComponent"]["properties"]["text"]["maxLength"], 4_096);
}

#[test]
fn operations_have_unique_ids_and_descriptions() {
    let mut ids = BTreeSet::new();
    for operation in all_operations() {
        let place = operation.name();
        let tags: Vec<&Value> =
            operation.document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
        let id = operation.id().to_owned();
        assert!(ids.insert(id), "{place}: the id is used twice");
        for text in ["summary", "description"] {
            let text = operation.description[text].as_str().unwrap();
            assert!(!text.is_empty(), "{place}");
        }
        assert!(tags.contains(&&operation.description["tags"][0]), "{place}");
    }
}

#[test]
fn every_reference_resolves_and_every_component_is_used() {
    for document in [&*V1, &*GRAPH] {
        let mut references = BTreeSet::new();
        collect_references(document, &mut references);
        for reference in &references {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
        }
        for section in ["schemas", "parameters", "headers", "responses", "examples"] {
            for name in document["components"][section].as_object().unwrap().keys() {
                let reference = format!("#/components/{section}/{name}");
                assert!(references.contains(&reference), "{reference} is not used");
            }
        }
    }
}

#[test]
fn every_example_response_matches_its_schema() {
    let mut seen = 0;
    for operation in all_operations() {
        let document = operation.document;
        for (status, response) in operation.description["responses"].as_object().unwrap() {
            for content in response["content"].as_object().into_iter().flat_map(|it| it.values()) {
                let several =
                    content["examples"].as_object().into_iter().flat_map(|it| it.values());
                let several = several.map(|example| &resolved(document, example)["value"]);
                for example in several.chain(content.get("example")) {
                    let mismatch = mismatch(document, &content["schema"], example);
                    assert_eq!(mismatch, None, "{} {status}: {example}", operation.name());
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 400, "{seen} examples");
}

#[test]
fn every_kind_of_rendered_message_is_described() {
    let schema = &V1["components"]["schemas"]["RenderedTemplate"];
    for rendered in renderings::all() {
        assert_eq!(mismatch(&V1, schema, &rendered), None, "{rendered}");
    }
}

#[test]
fn every_link_passes_parameters_that_its_operation_accepts() {
    let mut seen = 0;
    for operation in operations(&V1) {
        for response in operation.description["responses"].as_object().unwrap().values() {
            for (name, link) in response["links"].as_object().into_iter().flatten() {
                let place = format!("{name} of {}", operation.name());
                let target = operations(&V1).find(|it| link["operationId"] == it.id());
                let target = target.unwrap_or_else(|| panic!("{place} has no target"));
                let accepted = target.description["parameters"].as_array().unwrap().iter();
                let accepted: BTreeSet<String> = accepted
                    .map(|it| resolved(&V1, it))
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

/// Collects the targets of `$ref` and of discriminators.
fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            members.values().for_each(|member| collect_references(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        Value::String(text) if text.starts_with("#/") => {
            found.insert(text.clone());
        }
        _ => {}
    }
}
