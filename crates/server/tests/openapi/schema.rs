//! Compares a value with a schema, more strictly than the schema itself: members that it does not
//! describe are rejected.

use serde_json::Value;

use crate::harness::description::resolved;

/// The difference between a value and a schema; `None` if the value matches.
pub(crate) fn mismatch(document: &Value, schema: &Value, value: &Value) -> Option<String> {
    mismatch_all(document, &[schema], value)
}

/// The difference between a value and several schemas that all apply to it.
fn mismatch_all(document: &Value, schemas: &[&Value], value: &Value) -> Option<String> {
    let mut mismatches = Vec::new();
    for alternative in alternatives(document, schemas) {
        mismatches.push(alternative_mismatch(document, &alternative, value)?);
    }
    Some(mismatches.join("; or "))
}

/// Expands `allOf`, `anyOf` and `oneOf`: the alternatives for matching all schemas, each a list of schemas.
fn alternatives<'d>(document: &'d Value, schemas: &[&'d Value]) -> Vec<Vec<&'d Value>> {
    let mut found = vec![Vec::new()];
    for schema in schemas {
        let schema = resolved(document, schema);
        let parts = |keyword: &str| schema[keyword].as_array().into_iter().flatten();
        let all: Vec<&Value> = parts("allOf").collect();
        let mut expanded = alternatives(document, &all);
        for keyword in ["anyOf", "oneOf"] {
            let any: Vec<_> = parts(keyword).flat_map(|it| alternatives(document, &[it])).collect();
            if !any.is_empty() {
                expanded = combinations(&expanded, &any);
            }
        }
        for alternative in &mut expanded {
            alternative.push(schema);
        }
        found = combinations(&found, &expanded);
    }
    found
}

fn combinations<'d>(one: &[Vec<&'d Value>], other: &[Vec<&'d Value>]) -> Vec<Vec<&'d Value>> {
    one.iter().flat_map(|one| other.iter().map(|other| [&one[..], other].concat())).collect()
}

fn alternative_mismatch(document: &Value, alternative: &[&Value], value: &Value) -> Option<String> {
    for schema in alternative {
        let kind = schema["type"].as_str();
        if kind.is_some_and(|kind| !has_type(kind, value)) {
            return Some(format!("{value} is not of type {}", schema["type"]));
        }
        let listed = schema["enum"].as_array().is_none_or(|values| values.contains(value));
        if !listed || schema.get("const").is_some_and(|only| only != value) {
            return Some(format!("{value} is not one of the values"));
        }
    }
    match value {
        Value::Array(items) => array_mismatch(document, alternative, items),
        Value::Object(_) => object_mismatch(document, alternative, value),
        _ => None,
    }
}

fn has_type(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is not a type"),
    }
}

fn array_mismatch(document: &Value, alternative: &[&Value], items: &[Value]) -> Option<String> {
    for schema in alternative {
        let count = items.len() as u64;
        let min = schema["minItems"].as_u64().unwrap_or(0);
        let max = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
        if !(min..=max).contains(&count) {
            return Some(format!("{count} items are not {min} to {max}"));
        }
    }
    let schemas: Vec<&Value> =
        alternative.iter().filter_map(|schema| schema.get("items")).collect();
    if schemas.is_empty() && !items.is_empty() {
        return Some("the items are not described".to_owned());
    }
    items.iter().find_map(|item| mismatch_all(document, &schemas, item))
}

fn object_mismatch(document: &Value, alternative: &[&Value], value: &Value) -> Option<String> {
    let names = |keyword: &'static str| {
        alternative.iter().filter_map(move |schema| schema[keyword].as_array()).flatten()
    };
    let mut required = names("required").map(|name| name.as_str().unwrap());
    if let Some(missing) = required.find(|name| value.get(name).is_none()) {
        return Some(format!("`{missing}` is missing"));
    }
    for (name, member) in value.as_object().unwrap() {
        let mut schemas: Vec<&Value> =
            alternative.iter().filter_map(|schema| schema["properties"].get(name)).collect();
        if schemas.is_empty() {
            let others = alternative.iter().filter_map(|schema| schema.get("additionalProperties"));
            schemas.extend(others.filter(|schema| schema.is_object()));
        }
        if schemas.is_empty() {
            if alternative.iter().any(|schema| schema["additionalProperties"] == true) {
                continue;
            }
            return Some(format!("`{name}` is not described"));
        }
        if let Some(mismatch) = mismatch_all(document, &schemas, member) {
            return Some(format!("{name}: {mismatch}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_unknown_and_wrong_members_are_found_at_any_depth() {
        let document =
            json!({"named": {"type": "object", "properties": {"n": {"type": "integer"}}}});
        let schema = json!({
            "type": "object",
            "properties": {"list": {"type": "array", "minItems": 1, "items": {"anyOf": [
                {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
                {"$ref": "#/named"},
            ]}}},
            "required": ["list"],
            "allOf": [{"properties": {"word": {"enum": ["x", "y"]}}}],
        });
        for good in [json!({"list": [{"a": 1}]}), json!({"list": [{"n": 2}, {}], "word": "y"})] {
            assert_eq!(mismatch(&document, &schema, &good), None);
        }
        for bad in [
            json!([]),
            json!({}),
            json!({"list": []}),
            json!({"list": {}}),
            json!({"list": [{"a": 2}]}),
            json!({"list": [{"a": 1, "n": 2}]}),
            json!({"list": [{"n": "2"}]}),
            json!({"list": [{}], "word": "z"}),
            json!({"list": [{}], "other": 1}),
        ] {
            assert!(mismatch(&document, &schema, &bad).is_some(), "{bad}");
        }
    }
}
