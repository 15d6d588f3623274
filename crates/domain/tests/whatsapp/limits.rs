//! Every string of the table is accepted at its maximum length and rejected with one more character.

use galley_domain::{
    document::Document,
    rulebook::{
        Field, FieldType, ObjectSchema, Presence, StringFormat, StringRule, TaggedObject,
        VariantContent, WHATSAPP,
    },
    template::Template,
    violation::Violations,
};
use serde_json::{Value, json};

/// A string field of the table: a document that contains it, and its pointer.
struct TextField {
    document: Value,
    pointer: String,
    rule: &'static StringRule,
}

/// Embeds an object in a document.
type Embed<'p> = &'p dyn Fn(Value) -> Value;

/// A string of this format and length.
fn text(format: StringFormat, length: usize) -> String {
    match format {
        StringFormat::Identifier | StringFormat::SignatureHash => "a".repeat(length),
        StringFormat::DialledPhone => "1".repeat(length),
        StringFormat::AndroidPackage => format!("a.{}", "b".repeat(length - 2)),
        StringFormat::Link | StringFormat::Url => {
            format!("https://a.b/{}", "x".repeat(length - 12))
        }
        _ => "é".repeat(length),
    }
}

/// A minimal valid value of a field.
fn minimal_value(field: &Field) -> Value {
    match &field.field_type {
        FieldType::String(StringRule { format: StringFormat::Locale, .. }) => json!("en"),
        FieldType::String(StringRule { format: StringFormat::SignatureHash, .. }) => {
            json!(text(StringFormat::SignatureHash, 11))
        }
        FieldType::String(rule) | FieldType::Id(rule) | FieldType::SingleString(rule) => {
            json!(text(rule.format, rule.max.min(15)))
        }
        FieldType::Choice(values) => json!(values[0]),
        FieldType::Bool => json!(true),
        FieldType::Object(schema) => minimal_object(schema),
        FieldType::ObjectList(list) => json!(vec![minimal_object(list.item); list.min]),
        other => panic!("{} has the type {other:?}", field.name),
    }
}

/// An object with its required fields.
fn minimal_object(schema: &ObjectSchema) -> Value {
    let required = schema.fields.iter().filter(|field| {
        let is_list = matches!(field.field_type, FieldType::TaggedList(_));
        matches!(field.presence, Presence::Required | Presence::RequiredOrInlined) && !is_list
    });
    Value::Object(required.map(|field| (field.name.to_owned(), minimal_value(field))).collect())
}

fn with(object: &Value, name: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[name] = value;
    object
}

fn collect_fields(
    schema: &'static ObjectSchema,
    object: &Value,
    embed: Embed<'_>,
    pointer: &str,
    found: &mut Vec<TextField>,
) {
    for field in schema.fields.iter().filter(|it| !matches!(it.presence, Presence::Forbidden(_))) {
        let pointer = format!("{pointer}/{}", field.name);
        // Samples are allowed only with placeholders.
        let object = match field.presence {
            Presence::OnlyWithPlaceholders => &with(object, "url", json!("https://a.b/{{1}}")),
            _ => object,
        };
        let embed = |value: Value| embed(with(object, field.name, value));
        match &field.field_type {
            FieldType::String(rule) | FieldType::Id(rule) | FieldType::SingleString(rule) => {
                found.push(TextField { document: embed(json!("")), pointer, rule });
            }
            FieldType::Object(inner) | FieldType::Map(inner) => {
                collect_fields(inner, &minimal_object(inner), &embed, &pointer, found);
            }
            FieldType::ObjectList(list) => {
                let embed = |first: Value| embed(json!([first]));
                collect_fields(
                    list.item,
                    &minimal_object(list.item),
                    &embed,
                    &format!("{pointer}/0"),
                    found,
                );
            }
            FieldType::TaggedList(list) => {
                let embed = |first: Value| embed(json!([first]));
                collect_variants(list.item, &json!({}), &embed, &format!("{pointer}/0"), found);
            }
            _ => {}
        }
    }
}

fn collect_variants(
    tagged: &'static TaggedObject,
    tags: &Value,
    embed: Embed<'_>,
    pointer: &str,
    found: &mut Vec<TextField>,
) {
    for variant in tagged.variants {
        let tags = with(tags, tagged.tag, json!(variant.value));
        match &variant.content {
            VariantContent::Tagged(inner) => collect_variants(inner, &tags, embed, pointer, found),
            VariantContent::Fields(inner) => {
                let mut object = minimal_object(inner);
                object.as_object_mut().unwrap().extend(tags.as_object().unwrap().clone());
                collect_fields(inner, &object, embed, pointer, found);
            }
        }
    }
}

/// The rules that a string of this length breaks in the field.
fn rules_at(field: &TextField, length: usize) -> Vec<String> {
    let mut document = field.document.clone();
    *document.pointer_mut(&field.pointer).unwrap() = json!(text(field.rule.format, length));
    let document = document.to_string();
    let result = Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP);
    let violations = result.as_ref().err().map(Violations::listed).unwrap_or_default();
    let here = violations.iter().filter(|it| it.pointer == field.pointer);
    here.map(|it| it.rule.id().to_owned()).collect()
}

#[test]
fn every_string_is_accepted_up_to_its_maximum_length() {
    let mut found = Vec::new();
    let root = WHATSAPP.template;
    collect_fields(
        root,
        &with(&minimal_object(root), "category", json!("MARKETING")),
        &|root| root,
        "",
        &mut found,
    );
    found.retain(|field| field.rule.format != StringFormat::Locale);
    assert!(found.len() > 50, "{}", found.len());
    for field in &found {
        let (pointer, max) = (&field.pointer, field.rule.max);
        assert_eq!(rules_at(field, max), [""; 0], "{pointer} of {max} in {}", field.document);
        let rule = match field.rule.format {
            StringFormat::DialledPhone => "phone-form",
            StringFormat::SignatureHash => "signature-form",
            _ => "too-long",
        };
        assert_eq!(rules_at(field, max + 1), [rule], "{pointer} of {max} in {}", field.document);
    }
}
