//! JSON Schemas (draft 2020-12) of a rulebook, for the OpenAPI description.
//!
//! Galley rejects every document that violates the schema. It accepts every document that satisfies
//! the schema, except for rules that JSON Schema cannot express: the checks of a rulebook,
//! consecutive placeholder numbers, one sample per placeholder, IPv6 and non-ASCII hosts, the number
//! of days in a month, and the uniqueness of the name.

mod patterns;

use serde_json::{Map, Value, json};

use crate::{
    document::MAX_SAFE_INTEGER,
    rulebook::{
        Field, FieldType, ObjectList, ObjectSchema, ParameterFormat, Presence, Rulebook,
        SampleFormat, StringFormat, StringRule, TaggedList, TaggedObject, VariantContent,
    },
};
use patterns::{any_case, text, visible};

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

fn field_schema(usage: Usage, field: &'static Field, placeholders: bool) -> Value {
    let mut schema = match &field.field_type {
        FieldType::String(rule) if usage == Usage::Request => text(rule, placeholders),
        FieldType::Choice(values) => choice(usage, values),
        FieldType::ChoiceList(values) => {
            json!({"type": "array", "maxItems": values.len(), "items": choice(usage, values)})
        }
        FieldType::Bool => json!({"type": "boolean"}),
        FieldType::ParameterFormat => choice(usage, ParameterFormat::VALUES),
        FieldType::PositiveInteger => {
            json!({"type": "integer", "minimum": 1, "maximum": MAX_SAFE_INTEGER})
        }
        FieldType::Integer(min, max) => {
            json!({"type": "integer", "minimum": min, "maximum": max})
        }
        FieldType::Id(rule) if usage == Usage::Request => {
            let number = json!({"type": "integer", "minimum": 1, "maximum": MAX_SAFE_INTEGER});
            json!({"anyOf": [text(rule, placeholders), number]})
        }
        FieldType::String(_) | FieldType::Id(_) => json!({"type": "string"}),
        FieldType::SingleString(rule) => single_string(usage, rule),
        FieldType::Object(object) => any_of(object_variants(usage, object, &Map::new())),
        FieldType::Map(object) => map(usage, object),
        FieldType::AnyJson(_) => json!({}),
        FieldType::TaggedObject(tagged) => any_of(tagged_variants(usage, tagged, &Map::new())),
        FieldType::TaggedList(list) => tagged_list(usage, list),
        FieldType::ObjectList(list) => object_list(usage, list),
        FieldType::Samples(format) => samples(usage, *format),
    };
    schema["description"] = match &field.field_type {
        FieldType::Choice(values) | FieldType::ChoiceList(values) if usage == Usage::Request => {
            json!(format!("{} One of {}; case-insensitive.", field.about, values.join(", ")))
        }
        _ => json!(field.about),
    };
    schema
}

/// A string, or a list with one string; stored as a list.
fn single_string(usage: Usage, rule: &StringRule) -> Value {
    let value = match usage {
        Usage::Request => text(rule, false),
        Usage::Stored => json!({"type": "string"}),
    };
    let list = json!({"type": "array", "items": value, "minItems": 1, "maxItems": 1});
    if usage == Usage::Stored { list } else { json!({"anyOf": [value, list]}) }
}

/// An object, or a list of its members as keys and values; stored as an object.
fn map(usage: Usage, object: &'static ObjectSchema) -> Value {
    let as_object = any_of(object_variants(usage, object, &Map::new()));
    if usage == Usage::Stored {
        return as_object;
    }
    let known: Vec<&str> = object.fields.iter().map(|field| field.name).collect();
    let values: Vec<Value> =
        object.fields.iter().map(|field| field_schema(usage, field, false)).collect();
    let entry = |(name, value): (&&str, &Value)| json!({"type": "object", "properties": {"key": {"const": name}, "value": value}, "required": ["key", "value"]});
    let mut entries: Vec<Value> = known.iter().zip(&values).map(entry).collect();
    entries.push(json!({
        "type": "object",
        "description": "Unknown keys are ignored.",
        "properties": {"key": {"type": "string", "not": {"enum": known}}, "value": {"not": {"type": "null"}}},
        "required": ["key", "value"],
    }));
    json!({"anyOf": [as_object, {"type": "array", "items": {"anyOf": entries}}]})
}

fn object_list(usage: Usage, list: &'static ObjectList) -> Value {
    let items = any_of(object_variants(usage, list.item, &Map::new()));
    if usage == Usage::Stored {
        return json!({"type": "array", "items": items});
    }
    json!({"type": "array", "minItems": list.min, "maxItems": list.max, "items": items})
}

fn choice(usage: Usage, values: &[&'static str]) -> Value {
    match usage {
        Usage::Request => {
            json!({"type": "string", "pattern": any_case(values), "examples": values})
        }
        Usage::Stored => json!({"type": "string", "enum": values}),
    }
}

fn tagged_variants(
    usage: Usage,
    tagged: &'static TaggedObject,
    outer_tags: &Map<String, Value>,
) -> Vec<Value> {
    let variants = tagged.variants.iter().flat_map(|variant| {
        let mut tags = outer_tags.clone();
        let mut tag = choice(usage, &[variant.value]);
        tag["description"] = json!(tagged.about);
        tags.insert(tagged.tag.to_owned(), tag);
        match &variant.content {
            VariantContent::Fields(object) => object_variants(usage, object, &tags),
            VariantContent::Tagged(inner) => tagged_variants(usage, inner, &tags),
        }
    });
    variants.collect()
}

fn tagged_list(usage: Usage, list: &'static TaggedList) -> Value {
    let items = any_of(tagged_variants(usage, list.item, &Map::new()));
    if usage == Usage::Stored {
        return json!({"type": "array", "items": items});
    }
    // If tag values are unique, there are no more items than variants.
    let max = if list.unique { list.max.min(list.item.variants.len()) } else { list.max };
    let min = list.min.max(usize::from(list.required.is_some()));
    let mut schema = json!({"type": "array", "minItems": min, "maxItems": max, "items": items});
    let counts: Vec<Value> =
        list.item.tag_values().filter_map(|value| tag_count(list, value)).collect();
    if !counts.is_empty() {
        schema["allOf"] = json!(counts);
    }
    schema
}

/// How often a tag value may appear in a list, if the list restricts it.
fn tag_count(list: &'static TaggedList, value: &'static str) -> Option<Value> {
    let is_required = list.required == Some(value);
    if !is_required && !list.unique {
        return None;
    }
    let tag = list.item.tag;
    let item = json!({
        "type": "object",
        "properties": {tag: {"type": "string", "pattern": any_case(&[value])}},
        "required": [tag],
    });
    let mut schema = json!({"contains": item, "minContains": u8::from(is_required)});
    if list.unique {
        schema["maxContains"] = json!(1);
    }
    Some(schema)
}

fn samples(usage: Usage, format: SampleFormat) -> Value {
    let value = match usage {
        Usage::Request => json!({"type": "string", "minLength": 1, "pattern": visible(false)}),
        Usage::Stored => json!({"type": "string"}),
    };
    let flat = |min: usize| json!({"type": "array", "items": value, "minItems": min});
    let nested = || json!({"type": "array", "items": flat(1), "minItems": 1, "maxItems": 1});
    match format {
        SampleFormat::LenientNested if usage == Usage::Request => {
            json!({"anyOf": [nested(), flat(1), value]})
        }
        SampleFormat::LenientFlat if usage == Usage::Request => json!({"anyOf": [flat(1), value]}),
        SampleFormat::Named => {
            let named = json!({
                "type": "object",
                "properties": {"param_name": {"type": "string"}, "example": value},
                "required": ["param_name", "example"],
            });
            json!({"type": "array", "items": named, "minItems": 1})
        }
        SampleFormat::Flat | SampleFormat::LenientFlat => flat(1),
        SampleFormat::Nested | SampleFormat::LenientNested => nested(),
        SampleFormat::Single => {
            let list = json!({"type": "array", "items": value, "minItems": 1, "maxItems": 1});
            json!({"anyOf": [value, list]})
        }
    }
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
