//! A rulebook as JSON Schema (draft 2020-12), for the API description.

use serde_json::{Map, Value, json};

use crate::{
    language,
    rulebook::{Field, Form, Kind, List, Part, Presence, Rulebook, Samples, Shape, Tagged, Text},
};

/// The schema of the document that creates a template under a rulebook.
pub fn of_template(rulebook: &Rulebook) -> Value {
    part(rulebook.template, Map::new())
}

/// An object with the fields of a part and, before them, the tags that told which part it is.
fn part(part: &'static Part, tags: Map<String, Value>) -> Value {
    let mut properties = tags;
    let mut required: Vec<String> = properties.keys().cloned().collect();
    let mut schema = Map::new();
    for field in part.fields {
        match field.presence {
            Presence::Required => {
                required.push(field.name.to_owned());
                properties.insert(field.name.to_owned(), described(field));
            }
            Presence::Optional => {
                let nullable = json!({"anyOf": [described(field), {"type": "null"}]});
                properties.insert(field.name.to_owned(), nullable);
            }
            Presence::RequiredWithPlaceholders | Presence::OptionalWithPlaceholders => {
                // Only asked for when the text before it holds placeholders: elsewhere anything goes.
                with_placeholders(&mut schema, &mut properties, part, field);
            }
        }
    }
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("description".to_owned(), json!(sentence(part.title)));
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    Value::Object(schema)
}

fn with_placeholders(
    schema: &mut Map<String, Value>,
    properties: &mut Map<String, Value>,
    part: &'static Part,
    field: &'static Field,
) {
    let required = field.presence == Presence::RequiredWithPlaceholders;
    let Some(source) = part.fields.iter().find(|it| holds_placeholders(&it.shape)) else {
        // Nested in an example, which is itself only read when there are placeholders.
        properties.insert(field.name.to_owned(), described(field));
        if required {
            schema.insert("required".to_owned(), json!([field.name]));
        }
        return;
    };
    let name = field.name;
    let then = if required {
        json!({"properties": {name: described(field)}, "required": [name]})
    } else {
        json!({"properties": {name: {"anyOf": [described(field), {"type": "null"}]}}})
    };
    schema.insert(
        "if".to_owned(),
        json!({"properties": {source.name: {"type": "string", "pattern": "\\{\\{"}}, "required": [source.name]}),
    );
    schema.insert("then".to_owned(), then);
    properties.insert(name.to_owned(), json!({"description": field.about}));
}

fn holds_placeholders(shape: &Shape) -> bool {
    matches!(shape, Shape::Text(Text { form: Form::WithPlaceholders | Form::UrlWithSuffix, .. }))
}

fn described(field: &'static Field) -> Value {
    let mut schema = shape(&field.shape);
    if let Value::Object(map) = &mut schema {
        map.insert("description".to_owned(), json!(field.about));
    }
    schema
}

fn shape(shape: &'static Shape) -> Value {
    match shape {
        Shape::Text(rule) => text(rule),
        Shape::Choice(words) => {
            json!({"type": "string", "pattern": any_case(words.iter().copied())})
        }
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Object(inner) => part(inner, Map::new()),
        Shape::Tagged(inner) => tagged(inner, &Map::new()),
        Shape::List(inner) => list(inner),
        Shape::Samples(samples) => sample(*samples),
    }
}

fn text(rule: &Text) -> Value {
    let pattern = match rule.form {
        Form::Language => {
            let (languages, regions) =
                (language::languages().join("|"), language::regions().join("|"));
            return json!({"type": "string", "pattern": format!("^({languages})_({regions})$"), "examples": ["en_US"]});
        }
        Form::Phone => {
            return json!({"type": "string", "pattern": "^\\+?[1-9][0-9]{6,14}$", "examples": ["+15550001111"]});
        }
        Form::Name => format!("^{VISIBLE}({PLAIN}*{VISIBLE})?$"),
        Form::WithoutPlaceholders => format!("^(?!.*\\{{\\{{){PLAIN}*{VISIBLE}{PLAIN}*$"),
        Form::WithPlaceholders if rule.multiline => {
            format!("^{MULTILINE}*{VISIBLE}{MULTILINE}*$")
        }
        Form::Free | Form::WithPlaceholders => format!("^{PLAIN}*{VISIBLE}{PLAIN}*$"),
        Form::Url => format!("^https?://{HOST}([/?#][!-z|}}~]*)?$"),
        Form::UrlWithSuffix => format!("^https?://{HOST}([/?#][!-z|}}~]*(\\{{\\{{1\\}}\\}})?)?$"),
    };
    json!({"type": "string", "minLength": 1, "maxLength": rule.max, "pattern": pattern})
}

/// Any character but control characters.
const PLAIN: &str = "[^\\x00-\\x1f\\x7f-\\x9f]";

/// Any character but control characters, with line feed, carriage return and tab.
const MULTILINE: &str = "[^\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f]";

/// A character that is neither white space nor a control character.
const VISIBLE: &str =
    "[^\\x00-\\x20\\x7f-\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";

/// A host name, written a little narrower than the rule takes it.
const HOST: &str = "[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?";

fn list(list: &'static List) -> Value {
    let mut schema = json!({
        "type": "array",
        "minItems": list.min.max(usize::from(list.needs.is_some())),
        "maxItems": list.max,
        "items": tagged(list.item, &Map::new()),
    });
    if let Some(needed) = list.needs {
        let pattern = any_case([needed].into_iter());
        schema["contains"] = json!({"type": "object", "properties": {list.item.tag: {"type": "string", "pattern": pattern}}, "required": [list.item.tag]});
        schema["minContains"] = json!(1);
        schema["maxContains"] = json!(1);
    }
    schema
}

fn tagged(tagged: &'static Tagged, outer: &Map<String, Value>) -> Value {
    let variants = tagged.variants.iter().map(|variant| {
        let mut tags = outer.clone();
        let word = json!({"type": "string", "pattern": any_case([variant.word].into_iter()), "description": tagged.about, "examples": [variant.word]});
        tags.insert(tagged.tag.to_owned(), word);
        match &variant.kind {
            Kind::Part(inner) => part(inner, tags),
            Kind::Tagged(inner) => self::tagged(inner, &tags),
        }
    });
    json!({"anyOf": variants.collect::<Vec<_>>()})
}

fn sample(samples: Samples) -> Value {
    let value = json!({"type": "string", "minLength": 1, "pattern": format!("^{PLAIN}*{VISIBLE}{PLAIN}*$")});
    let plain = json!({"type": "array", "items": value, "minItems": 1});
    match samples {
        Samples::Plain => plain,
        Samples::Nested => json!({"type": "array", "items": plain, "minItems": 1, "maxItems": 1}),
        Samples::Single => {
            json!({"anyOf": [value, {"type": "array", "items": value, "minItems": 1, "maxItems": 1}]})
        }
    }
}

/// A pattern that takes any of the words in any letter case.
fn any_case<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphabetic() {
            format!("[{}{}]", letter.to_ascii_uppercase(), letter.to_ascii_lowercase())
        } else {
            letter.to_string()
        }
    };
    let words: Vec<String> = words.map(|word| word.chars().map(letter).collect()).collect();
    format!("^({})$", words.join("|"))
}

fn sentence(title: &str) -> String {
    let mut letters = title.chars();
    letters
        .next()
        .map_or(String::new(), |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}
