//! JSON Schemas of the fields of an object: one for each type of field.

use serde_json::{Map, Value, json};

use super::{
    any_of, object_variants,
    patterns::{any_case, text, visible},
};
use crate::{
    document::MAX_SAFE_INTEGER,
    rulebook::{
        Field, FieldType, ObjectList, ObjectSchema, ParameterFormat, SampleFormat, SampleRule,
        StringRule, TaggedList, TaggedObject, VariantContent,
    },
};

/// The schema of a field's value.
pub(super) fn field_schema(field: &'static Field, placeholders: bool) -> Value {
    let mut schema = match &field.field_type {
        FieldType::String(rule) => text(rule, placeholders),
        FieldType::Choice(values) => choice(values),
        FieldType::ChoiceList(values) => {
            json!({"type": "array", "maxItems": values.len(), "items": choice(values)})
        }
        FieldType::Bool => json!({"type": "boolean"}),
        FieldType::ParameterFormat => choice(ParameterFormat::VALUES),
        FieldType::PositiveInteger => {
            json!({"type": "integer", "minimum": 1, "maximum": MAX_SAFE_INTEGER})
        }
        FieldType::Integer(min, max) => {
            json!({"type": "integer", "minimum": min, "maximum": max})
        }
        FieldType::Id(rule) => {
            let number = json!({"type": "integer", "minimum": 1, "maximum": MAX_SAFE_INTEGER});
            json!({"anyOf": [text(rule, placeholders), number]})
        }
        FieldType::SingleString(rule) => single_string(rule),
        FieldType::Object(object) => any_of(object_variants(object, &Map::new())),
        FieldType::Map(object) => map(object),
        FieldType::AnyJson(_) => json!({}),
        FieldType::TaggedObject(tagged) => any_of(tagged_variants(tagged, &Map::new())),
        FieldType::TaggedList(list) => tagged_list(list),
        FieldType::ObjectList(list) => object_list(list),
        FieldType::Samples(rule) => samples(*rule),
    };
    schema["description"] = match &field.field_type {
        FieldType::Choice(values) | FieldType::ChoiceList(values) => {
            json!(format!("{} One of {}; case-insensitive.", field.about, values.join(", ")))
        }
        _ => json!(field.about),
    };
    schema
}

/// A string, or a list with one string.
fn single_string(rule: &StringRule) -> Value {
    let value = text(rule, false);
    let list = json!({"type": "array", "items": value, "minItems": 1, "maxItems": 1});
    json!({"anyOf": [value, list]})
}

/// An object, or a list of its members as keys and values.
fn map(object: &'static ObjectSchema) -> Value {
    let as_object = any_of(object_variants(object, &Map::new()));
    let known: Vec<&str> = object.fields.iter().map(|field| field.name).collect();
    let values: Vec<Value> = object.fields.iter().map(|field| field_schema(field, false)).collect();
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

fn object_list(list: &'static ObjectList) -> Value {
    let items = any_of(object_variants(list.item, &Map::new()));
    json!({"type": "array", "minItems": list.min, "maxItems": list.max, "items": items})
}

fn choice(values: &[&'static str]) -> Value {
    json!({"type": "string", "pattern": any_case(values), "examples": values})
}

fn tagged_variants(tagged: &'static TaggedObject, outer_tags: &Map<String, Value>) -> Vec<Value> {
    let variants = tagged.variants.iter().flat_map(|variant| {
        let mut tags = outer_tags.clone();
        let mut tag = choice(&[variant.value]);
        tag["description"] = json!(tagged.about);
        tags.insert(tagged.tag.to_owned(), tag);
        match &variant.content {
            VariantContent::Fields(object) => object_variants(object, &tags),
            VariantContent::Tagged(inner) => tagged_variants(inner, &tags),
        }
    });
    variants.collect()
}

fn tagged_list(list: &'static TaggedList) -> Value {
    let items = any_of(tagged_variants(list.item, &Map::new()));
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

fn samples(rule: SampleRule) -> Value {
    let value = json!({"type": "string", "minLength": 1, "pattern": visible(rule.multiline)});
    let flat = || json!({"type": "array", "items": value, "minItems": 1});
    let single = || json!({"type": "array", "items": value, "minItems": 1, "maxItems": 1});
    let nested = || json!({"type": "array", "items": flat(), "minItems": 1, "maxItems": 1});
    match rule.format {
        SampleFormat::LenientNested => json!({"anyOf": [nested(), single(), value]}),
        SampleFormat::LenientFlat => json!({"anyOf": [flat(), value]}),
        SampleFormat::Named => {
            let named = json!({
                "type": "object",
                "properties": {"param_name": {"type": "string"}, "example": value},
                "required": ["param_name", "example"],
            });
            json!({"type": "array", "items": named, "minItems": 1})
        }
        SampleFormat::Flat => flat(),
        SampleFormat::Nested => nested(),
        SampleFormat::Single => json!({"anyOf": [value, single()]}),
    }
}
