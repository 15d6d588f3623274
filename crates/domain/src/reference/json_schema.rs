//! The JSON Schema (draft 2020-12) of the documents that create a template, from the table of a
//! rulebook.
//!
//! Galley rejects every document that violates the schema. It accepts every document that satisfies
//! the schema, except for the checks of a rulebook, the uniqueness of the name, and what a pattern
//! does not express: consecutive placeholder numbers, one sample per placeholder, formatting, emoji
//! and words, some notations of hosts, and the number of days in a month.

mod fields;
mod patterns;

use serde_json::{Map, Value, json};

use self::fields::field_schema;
use crate::rulebook::{FieldType, ObjectSchema, Presence, Rulebook, StringFormat, StringRule};

/// The schema of a document that creates a template, as published at the path `id`: for editors and
/// other tools.
pub fn template_document(rulebook: &Rulebook, id: &str) -> Value {
    let schema = template_schema(rulebook);
    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": id,
        "title": format!("Message template, rulebook `{}`", rulebook.name),
        "description": "A template to create, with the rules of the rulebook's table. `galley lint` knows all rules.",
    });
    if let (Some(document), Value::Object(schema)) = (document.as_object_mut(), schema) {
        document.extend(schema.into_iter().filter(|(key, _)| key != "title"));
    }
    document
}

/// The schema of a document that creates a template.
fn template_schema(rulebook: &Rulebook) -> Value {
    any_of(object_variants(rulebook.template, &Map::new()))
}

/// The alternatives of an object: one, or two if placeholders in one field determine the other
/// fields.
fn object_variants(object: &'static ObjectSchema, tags: &Map<String, Value>) -> Vec<Value> {
    let has_texts = object.fields.iter().any(|field| may_contain_placeholders(&field.field_type));
    if !has_texts {
        let regular = object_variant(object, tags, true, &capitalized(object.title));
        let inlined = inlined_variant(object, &regular);
        return [regular].into_iter().chain(inlined).collect();
    }
    let title = |how: &str| capitalized(&format!("{} {how} placeholders", object.title));
    vec![
        object_variant(object, tags, false, &title("without")),
        object_variant(object, tags, true, &title("with")),
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
        schema["properties"][inner.name] = field_schema(inner, false);
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
            | StringFormat::Link
    )
}

/// An object with its tags and its fields. Fields that are ignored are not mentioned, so they accept
/// any value.
fn object_variant(
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
            Presence::Optional | Presence::DefaultsTo(_) => (true, false),
            Presence::RequiredWithPlaceholders => (placeholders, true),
            Presence::OptionalWithPlaceholders => (placeholders, false),
            // `parameter_format`, elsewhere in the document, determines which samples are required.
            Presence::OnlyWithPlaceholders => {
                let is_single = !matches!(field.field_type, FieldType::Samples(_));
                (placeholders, is_single)
            }
        };
        if !is_used {
            if matches!(field.presence, Presence::OnlyWithPlaceholders | Presence::Forbidden(_)) {
                properties.insert(field.name.to_owned(), json!({"type": "null"}));
            }
            continue;
        }
        let schema = field_schema(field, placeholders);
        let schema = if is_required { schema } else { or_null(&schema) };
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
    use crate::rulebook::{V1, WHATSAPP};

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
    fn samples_are_forbidden_without_placeholders() {
        let schema = template_schema(&WHATSAPP);
        let variants = schema["properties"]["components"]["items"]["anyOf"].as_array().unwrap();
        let variant =
            |title: &str| variants.iter().find(|variant| variant["title"] == title).unwrap();
        let without = variant("A BODY component without placeholders");
        assert_eq!(without["properties"]["example"], json!({"type": "null"}));
        let with = variant("A BODY component with placeholders");
        assert!(with["required"].as_array().unwrap().contains(&json!("example")));
    }

    #[test]
    fn the_handle_of_a_new_template_is_not_a_url() {
        let schema = template_schema(&WHATSAPP);
        let variants = schema["properties"]["components"]["items"]["anyOf"].as_array().unwrap();
        let image = variants.iter().find(|it| it["title"] == "A HEADER of format IMAGE").unwrap();
        let handle = &image["properties"]["example"]["properties"]["header_handle"];
        let not = json!({"pattern": "^[Hh][Tt][Tt][Pp][Ss]?://"});
        assert_eq!(handle["anyOf"][0]["not"], not);
        assert_eq!(handle["anyOf"][1]["items"]["not"], not);
    }

    #[test]
    fn a_dot_in_a_value_is_escaped() {
        assert_eq!(patterns::any_case(&["a.b"]), r"^(?:[Aa]\.[Bb])$");
    }
}
