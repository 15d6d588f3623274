//! Every text of the table: as long as it may be, it is taken; with one character more it is not.

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

/// A text of the table: a document that has one in its place, and where.
struct Place {
    document: Value,
    pointer: String,
    rule: &'static StringRule,
}

/// Puts an object where it belongs in a document.
type Put<'p> = &'p dyn Fn(Value) -> Value;

/// A text of that form, of so many characters.
fn text(form: StringFormat, length: usize) -> String {
    match form {
        StringFormat::Identifier | StringFormat::Signature => "a".repeat(length),
        StringFormat::Dialled => "1".repeat(length),
        StringFormat::Package => format!("a.{}", "b".repeat(length - 2)),
        StringFormat::Link | StringFormat::Url => {
            format!("https://a.b/{}", "x".repeat(length - 12))
        }
        _ => "é".repeat(length),
    }
}

/// The least that a field may hold.
fn least(field: &Field) -> Value {
    match &field.shape {
        FieldType::String(StringRule { form: StringFormat::Locale, .. }) => json!("en"),
        FieldType::String(StringRule { form: StringFormat::Signature, .. }) => {
            json!(text(StringFormat::Signature, 11))
        }
        FieldType::String(rule) | FieldType::Id(rule) | FieldType::OneString(rule) => {
            json!(text(rule.form, rule.max.min(15)))
        }
        FieldType::Choice(words) => json!(words[0]),
        FieldType::Bool => json!(true),
        FieldType::Object(part) => object(part),
        FieldType::ObjectList(parts) => json!(vec![object(parts.item); parts.min]),
        other => panic!("{} holds {other:?}", field.name),
    }
}

fn object(part: &ObjectSchema) -> Value {
    let needed = part.fields.iter().filter(|field| {
        let is_list = matches!(field.shape, FieldType::TaggedList(_));
        matches!(field.presence, Presence::Required | Presence::OrItsOnlyItem) && !is_list
    });
    Value::Object(needed.map(|field| (field.name.to_owned(), least(field))).collect())
}

fn with(object: &Value, name: &str, value: Value) -> Value {
    let mut object = object.clone();
    object[name] = value;
    object
}

fn part(
    part: &'static ObjectSchema,
    object: &Value,
    put: Put<'_>,
    pointer: &str,
    found: &mut Vec<Place>,
) {
    for field in part.fields.iter().filter(|it| !matches!(it.presence, Presence::Never(_))) {
        let pointer = format!("{pointer}/{}", field.name);
        // Samples stand only beside placeholders.
        let object = match field.presence {
            Presence::OnlyWithPlaceholders => &with(object, "url", json!("https://a.b/{{1}}")),
            _ => object,
        };
        let put = |value: Value| put(with(object, field.name, value));
        match &field.shape {
            FieldType::String(rule) | FieldType::Id(rule) | FieldType::OneString(rule) => {
                found.push(Place { document: put(json!("")), pointer, rule });
            }
            FieldType::Object(inner) | FieldType::Map(inner) => {
                self::part(inner, &self::object(inner), &put, &pointer, found);
            }
            FieldType::ObjectList(parts) => {
                let put = |first: Value| put(json!([first]));
                self::part(
                    parts.item,
                    &self::object(parts.item),
                    &put,
                    &format!("{pointer}/0"),
                    found,
                );
            }
            FieldType::TaggedList(list) => {
                let put = |first: Value| put(json!([first]));
                variants(list.item, &json!({}), &put, &format!("{pointer}/0"), found);
            }
            _ => {}
        }
    }
}

fn variants(
    tagged: &'static TaggedObject,
    tags: &Value,
    put: Put<'_>,
    pointer: &str,
    found: &mut Vec<Place>,
) {
    for variant in tagged.variants {
        let tags = with(tags, tagged.tag, json!(variant.word));
        match &variant.kind {
            VariantContent::Tagged(inner) => variants(inner, &tags, put, pointer, found),
            VariantContent::Fields(inner) => {
                let mut object = object(inner);
                object.as_object_mut().unwrap().extend(tags.as_object().unwrap().clone());
                part(inner, &object, put, pointer, found);
            }
        }
    }
}

/// What is told of that very place.
fn told(place: &Place, length: usize) -> Vec<String> {
    let mut document = place.document.clone();
    *document.pointer_mut(&place.pointer).unwrap() = json!(text(place.rule.form, length));
    let document = document.to_string();
    let verdict = Template::read(&Document::parse(document.as_bytes()).unwrap(), &WHATSAPP);
    let violations = verdict.as_ref().err().map(Violations::listed).unwrap_or_default();
    let here = violations.iter().filter(|it| it.pointer == place.pointer);
    here.map(|it| it.rule.id().to_owned()).collect()
}

#[test]
fn every_text_is_taken_up_to_its_limit_and_no_further() {
    let mut found = Vec::new();
    let root = WHATSAPP.template;
    part(root, &with(&object(root), "category", json!("MARKETING")), &|root| root, "", &mut found);
    found.retain(|place| place.rule.form != StringFormat::Locale);
    assert!(found.len() > 50, "{}", found.len());
    for place in &found {
        let (pointer, max) = (&place.pointer, place.rule.max);
        assert_eq!(told(place, max), [""; 0], "{pointer} of {max} in {}", place.document);
        let rule = match place.rule.form {
            StringFormat::Dialled => "phone-form",
            StringFormat::Signature => "signature-form",
            _ => "too-long",
        };
        assert_eq!(told(place, max + 1), [rule], "{pointer} of {max} in {}", place.document);
    }
}
