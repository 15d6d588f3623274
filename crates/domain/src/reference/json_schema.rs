//! JSON Schemas (draft 2020-12) of a rulebook, for the OpenAPI description.
//!
//! Galley rejects every document that violates the schema. It accepts every document that satisfies
//! the schema, except for rules that JSON Schema cannot express: the checks of a rulebook,
//! consecutive placeholder numbers, one sample per placeholder, IPv6 and non-ASCII hosts, the number
//! of days in a month, and the uniqueness of the name.

mod fields;
mod patterns;

use serde_json::{Map, Value, json};

use self::fields::field_schema;
use crate::rulebook::{
    Field, FieldType, ObjectSchema, Presence, Rulebook, StringFormat, StringRule,
};

/// The schema of a document that creates a template, as published at the path `id`: for editors and
/// other tools.
pub fn template_document(rulebook: &Rulebook, id: &str) -> Value {
    let schema = template_schema(rulebook);
    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": id,
        "title": format!("Message template, rulebook `{}`", rulebook.name),
        "description": "A template to create, with every rule that JSON Schema can express.",
    });
    if let (Some(document), Value::Object(schema)) = (document.as_object_mut(), schema) {
        document.extend(schema.into_iter().filter(|(key, _)| key != "title"));
    }
    document
}

/// The schema of a document that creates a template.
pub fn template_schema(rulebook: &Rulebook) -> Value {
    any_of(object_variants(Usage::Request, rulebook.template, &Map::new()))
}

/// The schema of a document that edits a template: components, category or both, or an earlier
/// version by itself.
pub fn edit_schema(rulebook: &Rulebook) -> Value {
    let restores = |field: &Field| matches!(field.field_type, FieldType::PositiveInteger);
    one_field_required(rulebook.edit, |required, other| restores(required) == restores(other))
}

/// The schema of a document with at least one of the fields.
pub fn patch_schema(object: &'static ObjectSchema) -> Value {
    one_field_required(object, |_, _| true)
}

/// The schema of a document with exactly one of the fields.
pub fn one_field_schema(object: &'static ObjectSchema) -> Value {
    one_field_required(object, |_, _| false)
}

/// One alternative for each field, in which it is required and other fields are optional if
/// `combines` allows both.
fn one_field_required(
    object: &'static ObjectSchema,
    combines: impl Fn(&Field, &Field) -> bool,
) -> Value {
    let alternative = |required: &'static Field| {
        let properties = object.fields.iter().map(|field| {
            let schema = if field.name == required.name {
                field_schema(Usage::Request, field, false)
            } else if combines(required, field) {
                or_null(&field_schema(Usage::Request, field, false))
            } else {
                json!({"type": "null"})
            };
            (field.name.to_owned(), schema)
        });
        let properties: Map<String, Value> = properties.collect();
        json!({"type": "object", "properties": properties, "required": [required.name]})
    };
    json!({"anyOf": object.fields.iter().map(alternative).collect::<Vec<_>>()})
}

/// The schema of any other request document.
pub fn object_schema(object: &'static ObjectSchema) -> Value {
    any_of(object_variants(Usage::Request, object, &Map::new()))
}

/// The schema of a stored document. It contains only what holds for all stored documents, because
/// documents that were valid under earlier rules are still returned.
pub fn stored_schema(rulebook: &Rulebook) -> Value {
    any_of(object_variants(Usage::Stored, rulebook.template, &Map::new()))
}

/// Where a described document is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Usage {
    /// In a request: enum values in any letter case, `null` for absent fields.
    Request,
    /// In the store and in responses: canonical enum values, known fields only.
    Stored,
}

/// The alternatives of an object: one, or two if placeholders in one field determine the other
/// fields.
fn object_variants(
    usage: Usage,
    object: &'static ObjectSchema,
    tags: &Map<String, Value>,
) -> Vec<Value> {
    let has_texts = object.fields.iter().any(|field| may_contain_placeholders(&field.field_type));
    if usage == Usage::Stored || !has_texts {
        let regular = object_variant(usage, object, tags, true, &capitalized(object.title));
        let inlined =
            (usage == Usage::Request).then(|| inlined_variant(object, &regular)).flatten();
        return [regular].into_iter().chain(inlined).collect();
    }
    let title = |how: &str| capitalized(&format!("{} {how} placeholders", object.title));
    vec![
        object_variant(usage, object, tags, false, &title("without")),
        object_variant(usage, object, tags, true, &title("with")),
    ]
}

/// The alternative in which the fields of a list's only item replace the list.
fn inlined_variant(object: &'static ObjectSchema, regular: &Value) -> Option<Value> {
    let field = object.fields.iter().find(|field| !field.inlined_fields().is_empty())?;
    let mut schema = regular.clone();
    schema["title"] = json!(capitalized(&format!("{} with inlined {}", object.title, field.name)));
    schema["properties"][field.name] = json!({"type": "null"});
    let required = schema["required"].as_array_mut()?;
    required.retain(|it| it != field.name);
    for inner in field.inlined_fields() {
        required.push(json!(inner.name));
    }
    for inner in field.inlined_fields() {
        schema["properties"][inner.name] = field_schema(Usage::Request, inner, false);
    }
    Some(schema)
}

fn may_contain_placeholders(field_type: &FieldType) -> bool {
    let FieldType::String(StringRule { format, .. }) = field_type else { return false };
    matches!(
        format,
        StringFormat::WithPlaceholders
            | StringFormat::UrlWithSuffix
            | StringFormat::Headline
            | StringFormat::Message
            | StringFormat::CardMessage
            | StringFormat::Link
    )
}

/// An object with its tags and its fields. Fields that are ignored are not mentioned, so they accept
/// any value.
fn object_variant(
    usage: Usage,
    object: &'static ObjectSchema,
    tags: &Map<String, Value>,
    placeholders: bool,
    title: &str,
) -> Value {
    let mut properties = tags.clone();
    let mut required: Vec<&str> = tags.keys().map(String::as_str).collect();
    for field in object.fields {
        let (is_used, is_required) = match field.presence {
            Presence::Required | Presence::RequiredOrInlined => (true, true),
            Presence::Forbidden(_) => (false, false),
            Presence::Optional => (true, false),
            Presence::DefaultsTo(_) => (true, usage == Usage::Stored),
            Presence::RequiredWithPlaceholders => (placeholders, usage == Usage::Request),
            Presence::OptionalWithPlaceholders => (placeholders, false),
            // `parameter_format`, elsewhere in the document, determines which samples are required.
            Presence::OnlyWithPlaceholders => {
                let is_single = !matches!(field.field_type, FieldType::Samples(_));
                (placeholders, usage == Usage::Request && is_single)
            }
        };
        if !is_used {
            if matches!(field.presence, Presence::OnlyWithPlaceholders | Presence::Forbidden(_)) {
                properties.insert(field.name.to_owned(), json!({"type": "null"}));
            }
            continue;
        }
        let schema = field_schema(usage, field, placeholders);
        let schema = if is_required || usage == Usage::Stored { schema } else { or_null(&schema) };
        properties.insert(field.name.to_owned(), schema);
        if is_required {
            required.push(field.name);
        }
    }
    let mut schema = json!({"type": "object", "title": title, "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn or_null(schema: &Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn any_of(mut schemas: Vec<Value>) -> Value {
    match schemas.len() {
        1 => schemas.swap_remove(0),
        _ => json!({"anyOf": schemas}),
    }
}

fn capitalized(title: &str) -> String {
    let mut letters = title.chars();
    letters
        .next()
        .map_or(String::new(), |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        rulebook::{V1, WHATSAPP},
        webhook,
    };

    #[test]
    fn texts_with_and_without_placeholders_are_separate_alternatives() {
        let schema = template_schema(&V1);
        let variants = schema["properties"]["components"]["items"]["anyOf"].as_array().unwrap();
        let needs_example = |variant: &Value| {
            let required = variant["required"].as_array().unwrap();
            required.contains(&json!("example"))
        };
        let found: Vec<(&str, bool)> = variants
            .iter()
            .map(|variant| (variant["title"].as_str().unwrap(), needs_example(variant)))
            .collect();
        assert_eq!(
            found,
            [
                ("A HEADER of format TEXT without placeholders", false),
                ("A HEADER of format TEXT with placeholders", false),
                ("A HEADER of format MEDIA", true),
                ("A BODY component without placeholders", false),
                ("A BODY component with placeholders", true),
                ("A FOOTER component", false),
                ("A BUTTONS component", false),
            ]
        );
    }

    #[test]
    fn the_published_schema_has_an_id_and_the_rules_of_the_table() {
        for rulebook in Rulebook::ALL {
            let id = format!("/schemas/{}/template.json", rulebook.name);
            let document = template_document(rulebook, &id);
            assert_eq!(document["$id"], id);
            assert!(document["title"].as_str().unwrap().contains(rulebook.name));
            let (rules, published) = (template_schema(rulebook), document["properties"].clone());
            assert_eq!(rules["properties"], published);
        }
    }

    #[test]
    fn each_component_type_is_counted() {
        let schema = template_schema(&V1);
        let components = &schema["properties"]["components"];
        assert_eq!((&components["minItems"], &components["maxItems"]), (&json!(1), &json!(4)));
        let counts: Vec<(i64, i64)> = components["allOf"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (it["minContains"].as_i64().unwrap(), it["maxContains"].as_i64().unwrap()))
            .collect();
        assert_eq!(counts, [(0, 1), (1, 1), (0, 1), (0, 1)], "HEADER, BODY, FOOTER, BUTTONS");
    }

    #[test]
    fn an_edit_either_replaces_or_restores() {
        let schema = edit_schema(&V1);
        let absent =
            |variant: &Value, field: &str| variant["properties"][field] == json!({"type": "null"});
        let variants: Vec<(&str, bool, bool)> = schema["anyOf"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                (
                    it["required"][0].as_str().unwrap(),
                    absent(it, "components"),
                    absent(it, "restore_version"),
                )
            })
            .collect();
        assert_eq!(
            variants,
            [
                ("category", false, true),
                ("components", false, true),
                ("restore_version", true, false)
            ]
        );
    }

    #[test]
    fn a_patch_requires_any_field_and_a_replay_exactly_one() {
        let null = json!({"type": "null"});
        let change = patch_schema(&webhook::CHANGE);
        let variants = change["anyOf"].as_array().unwrap();
        assert_eq!(variants.len(), webhook::CHANGE.fields.len());
        assert!(variants.iter().all(|variant| variant["properties"]["url"] != null));
        let replay = one_field_schema(&webhook::REPLAY);
        let variants = replay["anyOf"].as_array().unwrap();
        assert_eq!(
            (&variants[0]["required"], &variants[1]["required"]),
            (&json!(["event"]), &json!(["since"]))
        );
        assert_eq!(
            (&variants[0]["properties"]["since"], &variants[1]["properties"]["event"]),
            (&null, &null)
        );
    }

    #[test]
    fn samples_are_forbidden_without_placeholders() {
        let schema = template_schema(&WHATSAPP);
        let variants = schema["properties"]["components"]["items"]["anyOf"].as_array().unwrap();
        let variant =
            |title: &str| variants.iter().find(|variant| variant["title"] == title).unwrap();
        let without = variant("A BODY component without placeholders");
        assert_eq!(without["properties"]["example"], json!({"type": "null"}));
        let with = variant("A BODY component with placeholders");
        assert!(with["required"].as_array().unwrap().contains(&json!("example")));
        let stored = stored_schema(&WHATSAPP);
        assert!(stored["required"].as_array().unwrap().contains(&json!("parameter_format")));
        assert_eq!(edit_schema(&WHATSAPP)["anyOf"].as_array().unwrap().len(), 6);
    }

    #[test]
    fn a_dot_in_a_value_is_escaped() {
        let events = &object_schema(&webhook::REGISTRATION)["properties"]["events"]["anyOf"][0];
        let pattern = events["items"]["pattern"].as_str().unwrap();
        assert!(pattern.contains(r"[Tt][Ee]\.[Cc]"), "{pattern}");
    }
}
