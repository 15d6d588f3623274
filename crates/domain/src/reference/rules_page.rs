//! The rules page of the documentation, generated from the rulebook tables.

use std::fmt::Write as _;

use crate::{
    rulebook::{
        Field, FieldType, ObjectList, ObjectSchema, ParameterFormat, Presence, Rulebook,
        SampleFormat, SampleRule, StringFormat, StringRule, TaggedList, TaggedObject,
        VariantContent, graph_codes,
    },
    violation::{MAX_LISTED, Rule, WarningRule},
};

/// The page as Markdown.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Rules\n\n\
         <!-- Generated from the rulebook tables of `galley-domain`. To update it, run \
         UPDATE_DOCS=1 cargo test -p galley-domain --test domain pages -->\n\n\
         The format of template documents, and the meaning of each rule id in an error response. \
         A response lists **all** violations of a document",
    );
    let _ = writeln!(page, " (at most {MAX_LISTED}; `more` counts the rest).\n");
    page.push_str(
        "`null` is equivalent to an absent field. Unknown fields, and known fields that an object \
         does not use, are ignored: neither validated nor stored. Lengths are counted in Unicode \
         scalar values. Texts are stored byte for byte.\n",
    );
    for rulebook in Rulebook::ALL {
        let _ = writeln!(page, "\n## Rulebook `{}`", rulebook.name);
        object_section(&mut page, rulebook.template, &[], &mut Vec::new());
        checks_section(&mut page, rulebook);
    }
    page.push_str(
        "\n## Rule ids\n\nIds are stable; programs can rely on them.\n\n| id | rule |\n|---|---|\n",
    );
    for rule in Rule::ALL {
        let _ = writeln!(page, "| `{}` | {} |", rule.id(), rule.about());
    }
    warnings_section(&mut page);
    page
}

/// The rules beyond the table, the rules specific to a rulebook, and the Graph API errors.
fn checks_section(page: &mut String, rulebook: &Rulebook) {
    let is_shared = |rule: &Rule| {
        let mut other_rulebooks = Rulebook::ALL.iter().filter(|it| **it != rulebook);
        other_rulebooks.any(|it| it.rules.contains(rule))
    };
    let specific = rulebook.rules.iter().filter(|rule| !is_shared(rule));
    let specific: Vec<String> = specific.map(|rule| format!("`{}`", rule.id())).collect();
    if !rulebook.checks.is_empty() {
        let names: Vec<&str> = rulebook.checks.iter().map(|check| check.name).collect();
        let _ = writeln!(
            page,
            "\n### Rules that involve several fields\n\nGalley also checks: {}.\n\n\
             Rules specific to this rulebook: {}.",
            names.join(", "),
            specific.join(", ")
        );
        let _ = write!(
            page,
            "\n### Graph API error codes\n\nThe codes that Galley returns on the Graph surface for the first \
             violation of a document. The first matching row applies.\n\n{}",
            graph_codes::markdown()
        );
    }
}

fn warnings_section(page: &mut String) {
    let _ = writeln!(
        page,
        "\n## Warnings\n\nWarnings do not make a document invalid. The dry run and `galley lint` report \
         them, for invalid documents too (at most {MAX_LISTED}, and a count of the rest). The \
         responses to a create and to an edit contain their number, in the header `Galley-Warnings`; \
         rendering lists those about WhatsApp that concern its name, language and content.\n"
    );
    page.push_str("| id | warning |\n|---|---|\n");
    for warning in WarningRule::ALL {
        let _ = writeln!(page, "| `{}` | {} |", warning.id(), warning.about());
    }
}

/// A section for an object, followed by sections for the objects inside it. Skips objects in
/// `written`.
fn object_section(
    page: &mut String,
    object: &'static ObjectSchema,
    tags: &[(&TaggedObject, &str)],
    written: &mut Vec<&'static ObjectSchema>,
) {
    if written.iter().any(|it| std::ptr::eq(*it, object)) {
        return;
    }
    written.push(object);
    let title = object.title;
    let _ = writeln!(
        page,
        "\n### {}\n\n| field | required | value | description |\n|---|---|---|---|",
        capitalized(title)
    );
    for (tagged, value) in tags {
        let _ = writeln!(
            page,
            "| `{}` | yes | `{value}`, case-insensitive | {} |",
            tagged.tag, tagged.about
        );
    }
    for field in object.fields {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            field.name,
            required(field),
            value_description(field),
            field.about
        );
    }
    for field in object.fields {
        match &field.field_type {
            FieldType::Object(inner)
            | FieldType::Map(inner)
            | FieldType::ObjectList(ObjectList { item: inner, .. }) => {
                object_section(page, inner, &[], written);
            }
            FieldType::TaggedObject(inner) => variant_sections(page, inner, &[], written),
            FieldType::TaggedList(TaggedList { item, .. }) => {
                variant_sections(page, item, &[], written);
            }
            _ => {}
        }
    }
}

fn variant_sections(
    page: &mut String,
    tagged: &'static TaggedObject,
    outer: &[(&TaggedObject, &str)],
    written: &mut Vec<&'static ObjectSchema>,
) {
    for variant in tagged.variants {
        let mut tags = outer.to_vec();
        tags.push((tagged, variant.value));
        match &variant.content {
            VariantContent::Fields(inner) => object_section(page, inner, &tags, written),
            VariantContent::Tagged(inner) => variant_sections(page, inner, &tags, written),
        }
    }
}

fn required(field: &Field) -> &'static str {
    match field.presence {
        Presence::Required => "yes",
        Presence::RequiredOrInlined => {
            "yes, or the fields of its only item directly in this object"
        }
        Presence::Forbidden(_) => "not allowed",
        Presence::Optional | Presence::DefaultsTo(_) => "no",
        Presence::RequiredWithPlaceholders => "if there are placeholders",
        Presence::OnlyWithPlaceholders => "if there are placeholders; otherwise not allowed",
        Presence::OptionalWithPlaceholders => "no; ignored without placeholders",
    }
}

fn value_description(field: &'static Field) -> String {
    match field.presence {
        Presence::Forbidden(rule) => format!("rejected with `{}`", rule.id()),
        Presence::DefaultsTo(value) => {
            format!("{}; default `{value}`", type_description(&field.field_type))
        }
        _ => type_description(&field.field_type),
    }
}

fn type_description(field_type: &'static FieldType) -> String {
    match field_type {
        FieldType::String(rule) => text(rule),
        FieldType::Choice(values) => format!("`{}`, case-insensitive", values.join("`, `")),
        FieldType::ChoiceList(values) => {
            format!("list of `{}`, case-insensitive", values.join("`, `"))
        }
        FieldType::Bool => "boolean".to_owned(),
        FieldType::ParameterFormat => {
            format!("`{}`, case-insensitive", ParameterFormat::VALUES.join("`, `"))
        }
        FieldType::PositiveInteger => "integer, at least 1".to_owned(),
        FieldType::Integer(min, max) => format!("integer from {min} to {max}"),
        FieldType::Id(rule) => format!("{}, or integer of at least 1", text(rule)),
        FieldType::SingleString(rule) => format!("{}, or a list with one such string", text(rule)),
        FieldType::Object(object) => object.title.to_owned(),
        FieldType::Map(object) => {
            format!("{}, or a list of objects with `key` and `value`", object.title)
        }
        FieldType::AnyJson(max) => format!("any JSON of up to {max} bytes, stored unchanged"),
        FieldType::TaggedObject(tagged) => format!("a {}", tagged.title),
        FieldType::TaggedList(list) => {
            format!("list of {} to {} {}s", list.min.max(1), list.max, list.item.title)
        }
        FieldType::ObjectList(list) => {
            format!("list of {} to {} {}s", list.min, list.max, list.title)
        }
        FieldType::Samples(rule) => samples(*rule),
    }
}

fn samples(rule: SampleRule) -> String {
    let format = match rule.format {
        SampleFormat::LenientNested => {
            "list with one list of strings, list with one string, or string"
        }
        SampleFormat::LenientFlat => "list of strings, or string",
        SampleFormat::Named => "list of objects with `param_name` and `example`, both strings",
        SampleFormat::Nested => "list with one list of strings",
        SampleFormat::Flat => "list of strings",
        SampleFormat::Single => "string, or list with one string",
    };
    format!("{format}{}", lines(rule.multiline))
}

fn text(rule: &StringRule) -> String {
    let format = match rule.format {
        StringFormat::Language => return "`language_REGION`".to_owned(),
        StringFormat::Phone => {
            return "optional `+` and 7 to 15 digits, the first not 0".to_owned();
        }
        StringFormat::DialledPhone => {
            return "optional `+` and at least 5 digits, with spaces, hyphens, dots and parentheses allowed; up to 20 characters".to_owned();
        }
        StringFormat::Timestamp => {
            return "RFC 3339 timestamp, such as `2026-11-15T09:30:00Z`".to_owned();
        }
        StringFormat::Free | StringFormat::Handle => "",
        StringFormat::Secret => ", at least 16, printable ASCII without spaces",
        StringFormat::Name => ", no leading or trailing whitespace",
        StringFormat::WithPlaceholders => ", placeholders `{{1}}` to `{{999}}` allowed",
        StringFormat::WithoutPlaceholders => ", no placeholders",
        StringFormat::Url => ", an `http://` or `https://` URL",
        StringFormat::Locale => return "language code that WhatsApp supports".to_owned(),
        StringFormat::SignatureHash => return "11 letters, digits, `+`, `/` or `=`".to_owned(),
        StringFormat::Identifier => ", lower-case letters, digits and `_`",
        StringFormat::Headline => ", at most one placeholder, no formatting, no emoji",
        StringFormat::Message => {
            ", placeholders allowed, with words before, between and after them"
        }
        StringFormat::Plain => ", no placeholders, no formatting, no emoji",
        StringFormat::Label => ", no placeholders, no `*`, `~` or `` ` ``, no formatting, no emoji",
        StringFormat::Link => {
            ", an `http://` or `https://` URL that may end in a placeholder and does not point to WhatsApp or `localhost`"
        }
        StringFormat::AndroidPackage => ", an Android package name",
        StringFormat::UrlWithSuffix => ", an `http://` or `https://` URL that may end in `{{1}}`",
    };
    let lines = lines(rule.multiline);
    let whatsapp = rule.whatsapp_max.map_or(String::new(), |max| format!(" ({max} on WhatsApp)"));
    format!("string of 1 to {} characters{whatsapp}{format}{lines}", rule.max)
}

fn lines(multiline: bool) -> &'static str {
    if multiline { ", line breaks and tabs allowed" } else { "" }
}

fn capitalized(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
