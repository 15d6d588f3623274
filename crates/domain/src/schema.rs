//! A rulebook as JSON Schema (draft 2020-12), for the API description.
//!
//! Whatever breaks the schema is refused. What meets it is accepted, except for what JSON Schema
//! cannot say: that placeholders count from 1 without gaps, that there is one sample for each,
//! which IPv6 addresses and letters beyond ASCII make a host, and that the name is still free.

use serde_json::{Map, Value, json};

use crate::{
    json::LARGEST_NUMBER,
    language,
    rulebook::{Field, Form, Kind, List, Part, Presence, Rulebook, Samples, Shape, Tagged, Text},
};

/// The schema of the document that creates a template under a rulebook.
pub fn of_template(rulebook: &Rulebook) -> Value {
    one_of_them(objects(Side::Sent, rulebook.template, &Map::new()))
}

/// The schema of the document that edits a template: new components, a new category or both, or
/// an older version by itself.
pub fn of_edit(rulebook: &Rulebook) -> Value {
    let fields = rulebook.edit.fields;
    let restores = |field: &Field| matches!(field.shape, Shape::Number);
    let kind = |needed: &'static Field| {
        let properties = fields.iter().map(|field| {
            let schema = if restores(field) != restores(needed) {
                json!({"type": "null"})
            } else if field.name == needed.name {
                described(Side::Sent, field, false)
            } else {
                or_null(&described(Side::Sent, field, false))
            };
            (field.name.to_owned(), schema)
        });
        let properties: Map<String, Value> = properties.collect();
        json!({"type": "object", "properties": properties, "required": [needed.name]})
    };
    json!({"anyOf": fields.iter().map(kind).collect::<Vec<_>>()})
}

/// The schema of any other document that is sent.
pub fn of_part(part: &'static Part) -> Value {
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
fn objects(side: Side, part: &'static Part, tags: &Map<String, Value>) -> Vec<Value> {
    let decides = part.fields.iter().any(|field| may_hold_placeholders(&field.shape));
    if side == Side::Kept || !decides {
        return vec![object(side, part, tags, true, &capital(part.title))];
    }
    let described = |how: &str| capital(&format!("{} {how} placeholders", part.title));
    vec![
        object(side, part, tags, false, &described("without")),
        object(side, part, tags, true, &described("with")),
    ]
}

fn may_hold_placeholders(shape: &Shape) -> bool {
    matches!(shape, Shape::Text(Text { form: Form::WithPlaceholders | Form::UrlWithSuffix, .. }))
}

/// An object with the fields of a part and, before them, the tags that told which part it is.
/// A field that nobody reads is not mentioned: anything may stand there.
fn object(
    side: Side,
    part: &'static Part,
    tags: &Map<String, Value>,
    placeholders: bool,
    title: &str,
) -> Value {
    let mut properties = tags.clone();
    let mut required: Vec<&str> = tags.keys().map(String::as_str).collect();
    for field in part.fields {
        let (used, needed) = match field.presence {
            Presence::Required => (true, true),
            Presence::Optional => (true, false),
            Presence::RequiredWithPlaceholders => (placeholders, side == Side::Sent),
            Presence::OptionalWithPlaceholders => (placeholders, false),
        };
        if !used {
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
        Shape::Text(rule) if side == Side::Sent => text(rule, placeholders),
        Shape::Text(_) => json!({"type": "string"}),
        Shape::Choice(words) => choice(side, words),
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Number => json!({"type": "integer", "minimum": 1, "maximum": LARGEST_NUMBER}),
        Shape::Object(part) => one_of_them(objects(side, part, &Map::new())),
        Shape::Tagged(inner) => one_of_them(tagged(side, inner, &Map::new())),
        Shape::List(inner) => list(side, inner),
        Shape::Samples(samples) => sample(side, *samples),
    };
    schema["description"] = match &field.shape {
        Shape::Choice(words) if side == Side::Sent => {
            json!(format!("{} One of {}, in any letter case.", field.about, words.join(", ")))
        }
        _ => json!(field.about),
    };
    schema
}

fn choice(side: Side, words: &[&'static str]) -> Value {
    match side {
        Side::Sent => {
            json!({"type": "string", "pattern": any_case(words), "examples": words})
        }
        Side::Kept => json!({"type": "string", "enum": words}),
    }
}

fn tagged(side: Side, tagged: &'static Tagged, outer: &Map<String, Value>) -> Vec<Value> {
    let variants = tagged.variants.iter().flat_map(|variant| {
        let mut tags = outer.clone();
        let mut tag = choice(side, &[variant.word]);
        tag["description"] = json!(tagged.about);
        tags.insert(tagged.tag.to_owned(), tag);
        match &variant.kind {
            Kind::Part(part) => objects(side, part, &tags),
            Kind::Tagged(inner) => self::tagged(side, inner, &tags),
        }
    });
    variants.collect()
}

fn list(side: Side, list: &'static List) -> Value {
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
fn count(list: &'static List, word: &'static str) -> Option<Value> {
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

fn sample(side: Side, samples: Samples) -> Value {
    let value = match side {
        Side::Sent => json!({"type": "string", "minLength": 1, "pattern": visible(false)}),
        Side::Kept => json!({"type": "string"}),
    };
    let several = |min: usize| json!({"type": "array", "items": value, "minItems": min});
    match samples {
        Samples::Plain => several(1),
        Samples::Nested => {
            json!({"type": "array", "items": several(1), "minItems": 1, "maxItems": 1})
        }
        Samples::Single => {
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

// Patterns are plain ECMA-262 without look-around and `\p`, so that every usual engine reads them
// alike. No two ways of a repetition begin with the same character: nothing is tried twice.

/// White space that is no control character, as the inside of a character class.
const SPACE: &str = r" \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000";

/// Control characters, likewise.
const CONTROL: &str = r"\u0000-\u001f\u007f-\u009f";

/// Control characters that not even a body text takes.
const CONTROL_IN_LINES: &str = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f";

const PLACEHOLDER: &str = r"\{\{[1-9][0-9]{0,2}\}\}";

/// A port, 0 to 65535.
const PORT: &str =
    "0*(?:[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";

/// The schema of a string; `placeholders` tells whether it holds any, where it may.
fn text(rule: &Text, placeholders: bool) -> Value {
    let pattern = match rule.form {
        Form::Language => {
            let languages = language::languages().join("|");
            let regions = language::regions().join("|");
            let pattern = format!("^(?:{languages})_(?:{regions})$");
            return json!({"type": "string", "pattern": pattern, "examples": ["en_US", "pt_BR"]});
        }
        Form::Phone => {
            let pattern = r"^\+?[1-9][0-9]{6,14}$";
            return json!({"type": "string", "pattern": pattern, "examples": ["+15550001111"]});
        }
        Form::Url => return url(rule.max, ""),
        Form::UrlWithSuffix => return url(rule.max, if placeholders { r"\{\{1\}\}" } else { "" }),
        Form::Name => format!("^[^{CONTROL}{SPACE}](?:[^{CONTROL}]*[^{CONTROL}{SPACE}])?$"),
        Form::Free => visible(rule.multiline),
        Form::WithPlaceholders if placeholders => {
            let unit = unit(control(rule.multiline), control(rule.multiline));
            format!(r"^(?:{unit})*{PLACEHOLDER}(?:{unit}|{PLACEHOLDER})*\{{?$")
        }
        Form::WithPlaceholders | Form::WithoutPlaceholders => {
            let control = control(rule.multiline);
            let first = unit(&format!("{CONTROL}{SPACE}"), control);
            let unit = unit(control, control);
            format!(r"^{}(?:(?:{first})(?:{unit})*\{{?|\{{)$", space(rule.multiline))
        }
    };
    json!({"type": "string", "minLength": 1, "maxLength": rule.max, "pattern": pattern})
}

/// An `http` or `https` address that ends in `suffix`.
fn url(max: usize, suffix: &str) -> Value {
    let hidden = format!("{CONTROL}{SPACE}");
    let unit = unit(&hidden, &hidden);
    let rest = format!(r"(?::{PORT})?(?:[/?#\\](?:{unit})*\{{?)?{suffix}$");
    let plain = "[A-Za-z0-9._-]";
    let beyond = format!(r"[^\u0000-\u009f{SPACE}]");
    json!({
        "type": "string",
        "maxLength": max,
        "anyOf": [
            {"pattern": format!("^https?://[._-]*[A-Za-z0-9]{plain}*{rest}")},
            {
                "description": "The host has letters beyond ASCII, or is an IPv6 address.",
                "pattern": format!(r"^https?://(?:{plain}*{beyond}(?:{plain}|{beyond})*|\[[0-9A-Fa-f:.]{{2,45}}\]){rest}"),
            },
        ],
    })
}

/// A string with at least one visible character.
fn visible(multiline: bool) -> String {
    format!("^{}[^{CONTROL}{SPACE}][^{}]*$", space(multiline), control(multiline))
}

/// White space before the first visible character.
fn space(multiline: bool) -> String {
    format!("[{}{SPACE}]*", if multiline { r"\t\n\r" } else { "" })
}

fn control(multiline: bool) -> &'static str {
    if multiline { CONTROL_IN_LINES } else { CONTROL }
}

/// A character that is none of `first`, or a brace and one that is none of `second`: strung
/// together they never hold `{{`.
fn unit(first: &str, second: &str) -> String {
    format!(r"[^{first}{{]|\{{[^{second}{{]")
}

/// A pattern that takes any of the words in any letter case.
fn any_case(words: &[&str]) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphabetic() {
            format!("[{}{}]", letter.to_ascii_uppercase(), letter.to_ascii_lowercase())
        } else {
            letter.to_string()
        }
    };
    let words: Vec<String> = words.iter().map(|word| word.chars().map(letter).collect()).collect();
    format!("^(?:{})$", words.join("|"))
}

#[cfg(test)]
mod tests {
    use proptest::{
        strategy::{Strategy as _, ValueTree as _},
        string::string_regex,
        test_runner::TestRunner,
    };

    use super::*;
    use crate::{rulebook::V1, text, violation::Rule};

    /// Writes strings that a pattern takes, and tells which rules they break after all.
    fn broken_by_what_fits(rule: &Text, pattern: &str) -> Vec<Rule> {
        let inner = pattern.trim_start_matches('^').trim_end_matches('$');
        let strings = string_regex(inner).unwrap();
        let mut runner = TestRunner::deterministic();
        let mut faults = Vec::new();
        for _ in 0..300 {
            let written = strings.new_tree(&mut runner).unwrap().current();
            text::check(rule, &written, &mut faults);
        }
        let mut rules: Vec<Rule> = faults.iter().map(|fault| fault.rule).collect();
        rules.dedup();
        rules
    }

    fn patterns(schema: &Value) -> Vec<&str> {
        let own = schema.get("pattern").and_then(Value::as_str);
        let others = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
        own.into_iter().chain(others.flat_map(patterns)).collect()
    }

    #[test]
    fn what_a_pattern_takes_the_rule_takes_unless_no_pattern_can_tell() {
        use Form::{Free, Language, Name, Phone, Url, WithPlaceholders, WithoutPlaceholders};
        for (form, untold) in [
            (Free, None),
            (Name, None),
            (Language, None),
            (Phone, None),
            (WithoutPlaceholders, None),
            (WithPlaceholders, Some(Rule::PlaceholderGap)),
            (Url, Some(Rule::UrlHost)),
            (Form::UrlWithSuffix, Some(Rule::UrlHost)),
        ] {
            for (multiline, placeholders) in [(false, false), (false, true), (true, true)] {
                let rule = Text { max: 100_000, whatsapp_max: None, multiline, form };
                for pattern in patterns(&text(&rule, placeholders)) {
                    for broken in broken_by_what_fits(&rule, pattern) {
                        assert_eq!(Some(broken), untold, "{form:?} {pattern}");
                    }
                }
            }
        }
    }

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
}
