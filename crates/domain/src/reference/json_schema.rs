//! A rulebook as JSON Schema (draft 2020-12), for the API description.
//!
//! Whatever breaks the schema is refused. What meets it is accepted, except for what JSON Schema
//! cannot say: what a rulebook's checks look after, that placeholders count from 1 without gaps, that there is one sample for each,
//! which IPv6 addresses and letters beyond ASCII make a host, how many days a month has, and that
//! the name is still free.

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

/// The schema of the document that creates a template under a rulebook.
pub fn of_template(rulebook: &Rulebook) -> Value {
    one_of_them(objects(Side::Sent, rulebook.template, &Map::new()))
}

/// The schema of the document that edits a template: new components, a new category or both, or
/// an older version by itself.
pub fn of_edit(rulebook: &Rulebook) -> Value {
    let restores = |field: &Field| matches!(field.shape, FieldType::PositiveInteger);
    needing_one(rulebook.edit, |needed, other| restores(needed) == restores(other))
}

/// The schema of a document that holds some of its fields, and at least one.
pub fn of_some(part: &'static ObjectSchema) -> Value {
    needing_one(part, |_, _| true)
}

/// The schema of a document that holds exactly one of its fields.
pub fn of_one(part: &'static ObjectSchema) -> Value {
    needing_one(part, |_, _| false)
}

/// For each field the objects that hold it, and beside it those that `beside` lets stand there.
fn needing_one(part: &'static ObjectSchema, beside: impl Fn(&Field, &Field) -> bool) -> Value {
    let kind = |needed: &'static Field| {
        let properties = part.fields.iter().map(|field| {
            let schema = if field.name == needed.name {
                described(Side::Sent, field, false)
            } else if beside(needed, field) {
                or_null(&described(Side::Sent, field, false))
            } else {
                json!({"type": "null"})
            };
            (field.name.to_owned(), schema)
        });
        let properties: Map<String, Value> = properties.collect();
        json!({"type": "object", "properties": properties, "required": [needed.name]})
    };
    json!({"anyOf": part.fields.iter().map(kind).collect::<Vec<_>>()})
}

/// The schema of any other document that is sent.
pub fn of_part(part: &'static ObjectSchema) -> Value {
    one_of_them(objects(Side::Sent, part, &Map::new()))
}

/// The schema of a document as it is kept and shown: only what is always so, since what met
/// yesterday's rules is still shown today.
pub fn of_kept(rulebook: &Rulebook) -> Value {
    one_of_them(objects(Side::Kept, rulebook.template, &Map::new()))
}

/// Whose documents are described.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// What a caller may send: words in any letter case, `null` for what is left out.
    Sent,
    /// What is kept: words in upper case, known fields only.
    Kept,
}

/// The objects that a part describes: one schema, or two where placeholders in one field decide
/// what another has to be.
fn objects(side: Side, part: &'static ObjectSchema, tags: &Map<String, Value>) -> Vec<Value> {
    let decides = part.fields.iter().any(|field| may_hold_placeholders(&field.shape));
    if side == Side::Kept || !decides {
        let usual = object(side, part, tags, true, &capital(part.title));
        let other = (side == Side::Sent).then(|| inlined(part, &usual)).flatten();
        return [usual].into_iter().chain(other).collect();
    }
    let described = |how: &str| capital(&format!("{} {how} placeholders", part.title));
    vec![
        object(side, part, tags, false, &described("without")),
        object(side, part, tags, true, &described("with")),
    ]
}

/// The same object in which the fields of a list's only item stand in the place of the list.
fn inlined(part: &'static ObjectSchema, usual: &Value) -> Option<Value> {
    let field = part.fields.iter().find(|field| !field.inlined().is_empty())?;
    let mut schema = usual.clone();
    schema["title"] = json!(capital(&format!("{} with one {}", part.title, field.name)));
    schema["properties"][field.name] = json!({"type": "null"});
    let required = schema["required"].as_array_mut()?;
    required.retain(|it| it != field.name);
    for inner in field.inlined() {
        required.push(json!(inner.name));
    }
    for inner in field.inlined() {
        schema["properties"][inner.name] = described(Side::Sent, inner, false);
    }
    Some(schema)
}

fn may_hold_placeholders(shape: &FieldType) -> bool {
    let FieldType::String(StringRule { form, .. }) = shape else { return false };
    matches!(
        form,
        StringFormat::WithPlaceholders
            | StringFormat::UrlWithSuffix
            | StringFormat::Headline
            | StringFormat::Message
            | StringFormat::CardMessage
            | StringFormat::Link
    )
}

/// An object with the fields of a part and, before them, the tags that told which part it is.
/// A field that nobody reads is not mentioned: anything may stand there.
fn object(
    side: Side,
    part: &'static ObjectSchema,
    tags: &Map<String, Value>,
    placeholders: bool,
    title: &str,
) -> Value {
    let mut properties = tags.clone();
    let mut required: Vec<&str> = tags.keys().map(String::as_str).collect();
    for field in part.fields {
        let (used, needed) = match field.presence {
            Presence::Required | Presence::OrItsOnlyItem => (true, true),
            Presence::Never(_) => (false, false),
            Presence::Optional => (true, false),
            Presence::Otherwise(_) => (true, side == Side::Kept),
            Presence::RequiredWithPlaceholders => (placeholders, side == Side::Sent),
            Presence::OptionalWithPlaceholders => (placeholders, false),
            // Which of two kinds of samples are asked for, the format tells, which stands elsewhere.
            Presence::OnlyWithPlaceholders => {
                let one_kind = !matches!(field.shape, FieldType::Samples(_));
                (placeholders, side == Side::Sent && one_kind)
            }
        };
        if !used {
            if matches!(field.presence, Presence::OnlyWithPlaceholders | Presence::Never(_)) {
                properties.insert(field.name.to_owned(), json!({"type": "null"}));
            }
            continue;
        }
        let schema = described(side, field, placeholders);
        let schema = if needed || side == Side::Kept { schema } else { or_null(&schema) };
        properties.insert(field.name.to_owned(), schema);
        if needed {
            required.push(field.name);
        }
    }
    let mut schema = json!({"type": "object", "title": title, "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn described(side: Side, field: &'static Field, placeholders: bool) -> Value {
    let mut schema = match &field.shape {
        FieldType::String(rule) if side == Side::Sent => text(rule, placeholders),
        FieldType::Choice(words) => choice(side, words),
        FieldType::Choices(words) => {
            json!({"type": "array", "maxItems": words.len(), "items": choice(side, words)})
        }
        FieldType::Bool => json!({"type": "boolean"}),
        FieldType::ParameterFormat => choice(side, ParameterFormat::VALUES),
        FieldType::PositiveInteger => {
            json!({"type": "integer", "minimum": 1, "maximum": MAX_SAFE_INTEGER})
        }
        FieldType::Integer(least, most) => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        FieldType::Id(rule) if side == Side::Sent => {
            let number = json!({"type": "integer", "minimum": 1, "maximum": MAX_SAFE_INTEGER});
            json!({"anyOf": [text(rule, placeholders), number]})
        }
        FieldType::String(_) | FieldType::Id(_) => json!({"type": "string"}),
        FieldType::OneString(rule) => one(side, rule),
        FieldType::Object(part) => one_of_them(objects(side, part, &Map::new())),
        FieldType::Map(part) => map(side, part),
        FieldType::AnyJson(_) => json!({}),
        FieldType::TaggedObject(inner) => one_of_them(tagged(side, inner, &Map::new())),
        FieldType::TaggedList(inner) => list(side, inner),
        FieldType::ObjectList(parts) => several(side, parts),
        FieldType::Samples(samples) => sample(side, *samples),
    };
    schema["description"] = match &field.shape {
        FieldType::Choice(words) | FieldType::Choices(words) if side == Side::Sent => {
            json!(format!("{} One of {}, in any letter case.", field.about, words.join(", ")))
        }
        _ => json!(field.about),
    };
    schema
}

/// A string by itself or in a list; kept in one.
fn one(side: Side, rule: &StringRule) -> Value {
    let value = match side {
        Side::Sent => text(rule, false),
        Side::Kept => json!({"type": "string"}),
    };
    let list = json!({"type": "array", "items": value, "minItems": 1, "maxItems": 1});
    if side == Side::Kept { list } else { json!({"anyOf": [value, list]}) }
}

/// An object, or a list of keys and values; kept as an object.
fn map(side: Side, part: &'static ObjectSchema) -> Value {
    let object = one_of_them(objects(side, part, &Map::new()));
    if side == Side::Kept {
        return object;
    }
    let known: Vec<&str> = part.fields.iter().map(|field| field.name).collect();
    let values: Vec<Value> = part.fields.iter().map(|it| described(side, it, false)).collect();
    let entry = |(name, value): (&&str, &Value)| json!({"type": "object", "properties": {"key": {"const": name}, "value": value}, "required": ["key", "value"]});
    let mut entries: Vec<Value> = known.iter().zip(&values).map(entry).collect();
    entries.push(json!({
        "type": "object",
        "description": "One that nobody knows is passed over.",
        "properties": {"key": {"type": "string", "not": {"enum": known}}, "value": {"not": {"type": "null"}}},
        "required": ["key", "value"],
    }));
    json!({"anyOf": [object, {"type": "array", "items": {"anyOf": entries}}]})
}

fn several(side: Side, parts: &'static ObjectList) -> Value {
    let items = one_of_them(objects(side, parts.item, &Map::new()));
    if side == Side::Kept {
        return json!({"type": "array", "items": items});
    }
    json!({"type": "array", "minItems": parts.min, "maxItems": parts.max, "items": items})
}

fn choice(side: Side, words: &[&'static str]) -> Value {
    match side {
        Side::Sent => {
            json!({"type": "string", "pattern": any_case(words), "examples": words})
        }
        Side::Kept => json!({"type": "string", "enum": words}),
    }
}

fn tagged(side: Side, tagged: &'static TaggedObject, outer: &Map<String, Value>) -> Vec<Value> {
    let variants = tagged.variants.iter().flat_map(|variant| {
        let mut tags = outer.clone();
        let mut tag = choice(side, &[variant.word]);
        tag["description"] = json!(tagged.about);
        tags.insert(tagged.tag.to_owned(), tag);
        match &variant.kind {
            VariantContent::Fields(part) => objects(side, part, &tags),
            VariantContent::Tagged(inner) => self::tagged(side, inner, &tags),
        }
    });
    variants.collect()
}

fn list(side: Side, list: &'static TaggedList) -> Value {
    let items = one_of_them(tagged(side, list.item, &Map::new()));
    if side == Side::Kept {
        return json!({"type": "array", "items": items});
    }
    // Where no kind may repeat, there are no more items than kinds.
    let most = if list.unique { list.max.min(list.item.variants.len()) } else { list.max };
    let least = list.min.max(usize::from(list.needs.is_some()));
    let mut schema = json!({"type": "array", "minItems": least, "maxItems": most, "items": items});
    let counts: Vec<Value> = list.item.words().filter_map(|word| count(list, word)).collect();
    if !counts.is_empty() {
        schema["allOf"] = json!(counts);
    }
    schema
}

/// How often a kind of item may stand in a list, where the list says something about that.
fn count(list: &'static TaggedList, word: &'static str) -> Option<Value> {
    let needed = list.needs == Some(word);
    if !needed && !list.unique {
        return None;
    }
    let tag = list.item.tag;
    let kind = json!({
        "type": "object",
        "properties": {tag: {"type": "string", "pattern": any_case(&[word])}},
        "required": [tag],
    });
    let mut schema = json!({"contains": kind, "minContains": u8::from(needed)});
    if list.unique {
        schema["maxContains"] = json!(1);
    }
    Some(schema)
}

fn sample(side: Side, samples: SampleFormat) -> Value {
    let value = match side {
        Side::Sent => json!({"type": "string", "minLength": 1, "pattern": visible(false)}),
        Side::Kept => json!({"type": "string"}),
    };
    let several = |min: usize| json!({"type": "array", "items": value, "minItems": min});
    let nested = || json!({"type": "array", "items": several(1), "minItems": 1, "maxItems": 1});
    match samples {
        SampleFormat::Loose if side == Side::Sent => {
            json!({"anyOf": [nested(), several(1), value]})
        }
        SampleFormat::LoosePlain if side == Side::Sent => json!({"anyOf": [several(1), value]}),
        SampleFormat::Named => {
            let named = json!({
                "type": "object",
                "properties": {"param_name": {"type": "string"}, "example": value},
                "required": ["param_name", "example"],
            });
            json!({"type": "array", "items": named, "minItems": 1})
        }
        SampleFormat::Plain | SampleFormat::LoosePlain => several(1),
        SampleFormat::Nested | SampleFormat::Loose => nested(),
        SampleFormat::Single => {
            let list = json!({"type": "array", "items": value, "minItems": 1, "maxItems": 1});
            json!({"anyOf": [value, list]})
        }
    }
}

fn or_null(schema: &Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn one_of_them(mut schemas: Vec<Value>) -> Value {
    match schemas.len() {
        1 => schemas.swap_remove(0),
        _ => json!({"anyOf": schemas}),
    }
}

fn capital(title: &str) -> String {
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
    fn a_text_with_placeholders_and_one_without_are_told_apart() {
        let schema = of_template(&V1);
        let kinds = schema["properties"]["components"]["items"]["anyOf"].as_array().unwrap();
        let needs_example = |kind: &Value| {
            let required = kind["required"].as_array().unwrap();
            required.contains(&json!("example"))
        };
        let told: Vec<(&str, bool)> = kinds
            .iter()
            .map(|kind| (kind["title"].as_str().unwrap(), needs_example(kind)))
            .collect();
        assert_eq!(
            told,
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
    fn each_kind_of_component_is_counted() {
        let schema = of_template(&V1);
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
    fn an_edit_replaces_or_restores_but_not_both() {
        let schema = of_edit(&V1);
        let absent =
            |kind: &Value, field: &str| kind["properties"][field] == json!({"type": "null"});
        let kinds: Vec<(&str, bool, bool)> = schema["anyOf"]
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
            kinds,
            [
                ("category", false, true),
                ("components", false, true),
                ("restore_version", true, false)
            ]
        );
    }
    #[test]
    fn a_change_holds_something_and_a_replay_one_thing() {
        let null = json!({"type": "null"});
        let change = of_some(&webhook::CHANGE);
        let kinds = change["anyOf"].as_array().unwrap();
        assert_eq!(kinds.len(), webhook::CHANGE.fields.len());
        assert!(kinds.iter().all(|kind| kind["properties"]["url"] != null));
        let replay = of_one(&webhook::REPLAY);
        let kinds = replay["anyOf"].as_array().unwrap();
        assert_eq!(
            (&kinds[0]["required"], &kinds[1]["required"]),
            (&json!(["event"]), &json!(["since"]))
        );
        assert_eq!(
            (&kinds[0]["properties"]["since"], &kinds[1]["properties"]["event"]),
            (&null, &null)
        );
    }

    #[test]
    fn samples_that_stand_only_with_placeholders_are_forbidden_without() {
        let schema = of_template(&WHATSAPP);
        let kinds = schema["properties"]["components"]["items"]["anyOf"].as_array().unwrap();
        let kind = |title: &str| kinds.iter().find(|kind| kind["title"] == title).unwrap();
        let without = kind("A BODY component without placeholders");
        assert_eq!(without["properties"]["example"], json!({"type": "null"}));
        let with = kind("A BODY component with placeholders");
        assert!(with["required"].as_array().unwrap().contains(&json!("example")));
        let kept = of_kept(&WHATSAPP);
        assert!(kept["required"].as_array().unwrap().contains(&json!("parameter_format")));
        assert_eq!(of_edit(&WHATSAPP)["anyOf"].as_array().unwrap().len(), 6);
    }

    #[test]
    fn a_word_with_a_dot_is_taken_literally() {
        let events = &of_part(&webhook::REGISTRATION)["properties"]["events"]["anyOf"][0];
        let pattern = events["items"]["pattern"].as_str().unwrap();
        assert!(pattern.contains(r"[Tt][Ee]\.[Cc]"), "{pattern}");
    }
}
