//! Holds a value against a schema, more strictly than the schema: nothing may be there that it
//! does not describe.

use serde_json::Value;

use crate::described::resolved;

/// What is wrong with a value.
pub(crate) fn misfit(document: &Value, schema: &Value, value: &Value) -> Option<String> {
    unmet(document, &[schema], value)
}

/// What is wrong with a value that all of these schemas describe.
fn unmet(document: &Value, schemas: &[&Value], value: &Value) -> Option<String> {
    let mut complaints = Vec::new();
    for reading in readings(document, schemas) {
        complaints.push(complaint(document, &reading, value)?);
    }
    Some(complaints.join("; or "))
}

/// The ways to meet all of these schemas: each is a list of plain ones.
fn readings<'d>(document: &'d Value, schemas: &[&'d Value]) -> Vec<Vec<&'d Value>> {
    let mut found = vec![Vec::new()];
    for schema in schemas {
        let schema = resolved(document, schema);
        let parts = |keyword: &str| schema[keyword].as_array().into_iter().flatten();
        let all: Vec<&Value> = parts("allOf").collect();
        let mut ways = readings(document, &all);
        let any: Vec<_> = parts("anyOf").flat_map(|it| readings(document, &[it])).collect();
        if !any.is_empty() {
            ways = both(&ways, &any);
        }
        for way in &mut ways {
            way.push(schema);
        }
        found = both(&found, &ways);
    }
    found
}

fn both<'d>(one: &[Vec<&'d Value>], other: &[Vec<&'d Value>]) -> Vec<Vec<&'d Value>> {
    one.iter().flat_map(|one| other.iter().map(|other| [&one[..], other].concat())).collect()
}

fn complaint(document: &Value, reading: &[&Value], value: &Value) -> Option<String> {
    for schema in reading {
        let kind = schema["type"].as_str();
        if kind.is_some_and(|kind| !is(kind, value)) {
            return Some(format!("{value} is not of type {}", schema["type"]));
        }
        let listed = schema["enum"].as_array().is_none_or(|words| words.contains(value));
        if !listed || schema.get("const").is_some_and(|only| only != value) {
            return Some(format!("{value} is not one of the values"));
        }
    }
    match value {
        Value::Array(items) => list(document, reading, items),
        Value::Object(_) => object(document, reading, value),
        _ => None,
    }
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    }
}

fn list(document: &Value, reading: &[&Value], items: &[Value]) -> Option<String> {
    for schema in reading {
        let count = items.len() as u64;
        let least = schema["minItems"].as_u64().unwrap_or(0);
        let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
        if !(least..=most).contains(&count) {
            return Some(format!("{count} items are not {least} to {most}"));
        }
    }
    let schemas: Vec<&Value> = reading.iter().filter_map(|schema| schema.get("items")).collect();
    if schemas.is_empty() && !items.is_empty() {
        return Some("nobody describes the items".to_owned());
    }
    items.iter().find_map(|item| unmet(document, &schemas, item))
}

fn object(document: &Value, reading: &[&Value], value: &Value) -> Option<String> {
    let named = |keyword: &'static str| {
        reading.iter().filter_map(move |schema| schema[keyword].as_array()).flatten()
    };
    let mut required = named("required").map(|name| name.as_str().unwrap());
    if let Some(missing) = required.find(|name| value.get(name).is_none()) {
        return Some(format!("`{missing}` is not there"));
    }
    for (name, member) in value.as_object().unwrap() {
        let schemas: Vec<&Value> =
            reading.iter().filter_map(|schema| schema["properties"].get(name)).collect();
        if schemas.is_empty() {
            if reading.iter().any(|schema| schema["additionalProperties"] == true) {
                continue;
            }
            return Some(format!("nobody describes `{name}`"));
        }
        if let Some(misfit) = unmet(document, &schemas, member) {
            return Some(format!("{name}: {misfit}"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_too_much_or_wrong_is_found_however_deep() {
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
            assert_eq!(misfit(&document, &schema, &good), None);
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
            assert!(misfit(&document, &schema, &bad).is_some(), "{bad}");
        }
    }
}
