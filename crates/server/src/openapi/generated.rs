//! The values that the rulebooks' tables, the enums of the domain and the limits of the service
//! determine. `x-generated: NAME` in a document is replaced by the members that NAME stands for.

use galley_domain::{
    account::Scope,
    emulator::{
        faults::{Call, FAULT, FaultKind, MAX_FAULTS},
        messages::MessageStatus,
        rules::{Outcome, REVIEW_RULE, REVIEW_RULES},
    },
    rulebook::{
        Category, Field, FieldType, ObjectSchema, Rulebook, StringRule, TaggedObject,
        VariantContent,
    },
    template::{
        Status,
        lifecycle::{EventType, Trigger},
        review::DECISION,
    },
    token::TOKEN,
    upstream::{HeldReason, OperationKind},
    violation::{MAX_LISTED, Rule, WarningRule},
    webhook::{REGISTRATION, RejectionReason, SUBSCRIPTION},
};
use galley_store::{AuditKind, MAX_UPLOAD_BYTES, MAX_WEBHOOKS};
use serde_json::Value;

use super::tree::Node;
use crate::api::{at_provider, graph, problem::ProblemKind, query, v1::events::MAX_WAIT_SECONDS};

/// Sets the members that `name` stands for.
pub(super) fn fill(node: &mut Node, name: &str) {
    match name.split_once(':') {
        Some(("limit", path)) => {
            let keyword = match node.get("type").and_then(Node::as_str) {
                Some("array") => "maxItems",
                Some("integer") => "maximum",
                _ => "maxLength",
            };
            *node.entry(keyword) = Node::Scalar(Value::from(limit(path)));
        }
        Some(("enum", name)) => {
            let values = values(name);
            if name == "problem-types" {
                let names = ProblemKind::ALL.iter().map(|kind| kind.slug());
                let names = names.map(|slug| slug.replace('-', "_").to_uppercase());
                *node.entry("x-enum-varnames") = Node::strings(names);
            }
            *node.entry("enum") = Node::strings(values);
        }
        Some(("mapping", "event-types")) => {
            let schema = |event: &str| {
                let kind = match event.split_once('.') {
                    Some(("template", _)) => "Template",
                    Some(("webhook", _)) => "Webhook",
                    Some(("upstream", _)) => "Upstream",
                    _ => panic!("`{event}` has no schema"),
                };
                Node::string(format!("#/components/schemas/{kind}Event"))
            };
            let mapping = EventType::VALUES.iter().map(|it| ((*it).to_owned(), schema(it)));
            *node.entry("mapping") = Node::Object(mapping.collect());
        }
        None if name == "version" => {
            *node.entry("version") = Node::string(env!("CARGO_PKG_VERSION"));
        }
        _ => panic!("nothing is generated for `{name}`"),
    }
}

/// The values of an enum.
fn values(name: &str) -> Vec<String> {
    let slugs = ProblemKind::ALL.iter().map(|kind| kind.slug());
    let owned = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    match name {
        "actions" => Trigger::VALUES
            .iter()
            .filter(|it| Trigger::parse(it).is_some_and(Trigger::is_action))
            .map(|&it| it.to_owned())
            .collect(),
        "categories" => owned(Category::VALUES),
        "decisions" => owned(choices(&DECISION, "decision")),
        "event-types" => owned(EventType::VALUES),
        "fault-calls" => owned(Call::VALUES),
        "fault-kinds" => owned(FaultKind::VALUES),
        "held-reasons" => owned(HeldReason::VALUES),
        "message-statuses" => owned(MessageStatus::VALUES),
        "operation-kinds" => owned(OperationKind::VALUES),
        "rejection-reasons" => owned(RejectionReason::VALUES),
        "review-outcomes" => owned(Outcome::VALUES),
        "problem-slugs" => slugs.map(str::to_owned).collect(),
        "problem-types" => slugs.map(|slug| format!("/problems/{slug}")).collect(),
        "audit-types" => AuditKind::ALL
            .iter()
            .filter(|kind| **kind != AuditKind::StoreMigrated)
            .map(|kind| kind.as_str().to_owned())
            .collect(),
        "scopes" => owned(Scope::VALUES),
        "rulebooks" => Rulebook::ALL.iter().map(|it| it.name.to_owned()).collect(),
        "rules" => Rule::ALL.iter().map(|rule| rule.id().to_owned()).collect(),
        "sample-types" => owned(&graph::SAMPLE_TYPES),
        "template-event-types" => EventType::VALUES
            .iter()
            .filter(|it| is_of_template(it))
            .map(|&it| it.to_owned())
            .collect(),
        "template-statuses" => owned(Status::VALUES),
        "upstream-states" => owned(at_provider::STATES),
        "version-statuses" => {
            owned(&[Status::Pending, Status::Approved, Status::Rejected].map(Status::as_str))
        }
        "warnings" => WarningRule::ALL.iter().map(|rule| rule.id().to_owned()).collect(),
        _ => panic!("there is no enum `{name}`"),
    }
}

fn is_of_template(event: &str) -> bool {
    event.starts_with("template.")
}

fn choices(object: &ObjectSchema, name: &str) -> &'static [&'static str] {
    let field = object.fields.iter().find(|field| field.name == name);
    match field.map(|field| &field.field_type) {
        Some(FieldType::Choice(values)) => values,
        _ => panic!("`{name}` is not a choice"),
    }
}

/// The largest number of characters, items or units: of the service, or of a field in a table. Both
/// rulebooks share the schemas of the documents, so the larger limit counts.
fn limit(path: &str) -> u64 {
    let number = |limit: usize| u64::try_from(limit).expect("a limit is small");
    match path {
        "page" => number(query::MAX_PAGE_ITEMS),
        "faults" => number(MAX_FAULTS),
        "graph.page" => number(graph::MAX_PAGE_ITEMS),
        "upload.file_length" => MAX_UPLOAD_BYTES,
        "violations" => number(MAX_LISTED),
        "wait" => MAX_WAIT_SECONDS,
        "webhooks" => number(MAX_WEBHOOKS),
        _ => number(table_limit(path)),
    }
}

fn table_limit(path: &str) -> usize {
    let mut limits = Vec::new();
    for rulebook in Rulebook::ALL {
        collect("template", rulebook.template, &mut limits);
    }
    for (owner, object) in [
        ("decision", &DECISION),
        ("webhook", &REGISTRATION),
        ("token", &TOKEN),
        ("subscription", &SUBSCRIPTION),
        ("review_rules", &REVIEW_RULES),
        ("review_rule", &REVIEW_RULE),
        ("fault", &FAULT),
    ] {
        collect(owner, object, &mut limits);
    }
    let found = limits.iter().filter(|(it, _)| it == path).map(|(_, limit)| *limit).max();
    found.unwrap_or_else(|| panic!("no table has a limit for `{path}`"))
}

/// Adds the limits of an object's fields, as `owner.field`. The owner of a component or a button is
/// the value of its innermost tag.
fn collect(owner: &str, object: &ObjectSchema, limits: &mut Vec<(String, usize)>) {
    for Field { name, field_type, .. } in object.fields {
        let path = format!("{owner}.{name}");
        match field_type {
            FieldType::String(StringRule { max, .. })
            | FieldType::Id(StringRule { max, .. })
            | FieldType::SingleString(StringRule { max, .. }) => limits.push((path, *max)),
            FieldType::Object(object) => collect(&path, object, limits),
            FieldType::TaggedList(list) => {
                limits.push((path, list.max));
                collect_variants(list.item, limits);
            }
            FieldType::ObjectList(list) => {
                limits.push((path, list.max));
                collect(list.title, list.item, limits);
            }
            FieldType::TaggedObject(object) => collect_variants(object, limits),
            _ => {}
        }
    }
}

fn collect_variants(object: &TaggedObject, limits: &mut Vec<(String, usize)>) {
    for variant in object.variants {
        match variant.content {
            VariantContent::Fields(object) => collect(variant.value, object, limits),
            VariantContent::Tagged(object) => collect_variants(object, limits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_the_larger_ones_of_both_rulebooks() {
        assert_eq!(limit("template.name"), 512);
        assert_eq!(limit("BODY.text"), 4_096, "1,024 in the rulebook `whatsapp`");
        assert_eq!(limit("MEDIA.example.media_url"), 2_000);
        assert_eq!(limit("decision.reason"), 1_024);
    }

    #[test]
    fn the_type_of_a_schema_decides_which_keyword_limits_it() {
        for (schema, expected) in [
            ("{type: array}", "{type: array, maxItems: 20}"),
            ("{type: integer, maximum: 1}", "{type: integer, maximum: 20}"),
            ("{type: string}", "{type: string, maxLength: 20}"),
        ] {
            let mut schema = Node::parse(schema);
            fill(&mut schema, "limit:webhooks");
            assert_eq!(schema, Node::parse(expected));
        }
    }
}
