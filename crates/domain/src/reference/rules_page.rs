//! The rules page of the documentation, written from the table itself.

use std::fmt::Write as _;

use crate::{
    rulebook::{
        Field, FieldType, ObjectList, ObjectSchema, ParameterFormat, Presence, Rulebook,
        SampleFormat, StringFormat, StringRule, TaggedList, TaggedObject, VariantContent,
        graph_codes,
    },
    violation::{MAX_LISTED, Rule, WarningRule},
};

/// The whole page as Markdown.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Rules\n\n\
         <!-- Written from the rulebook's table by `galley-domain`; a test holds it. \
         To renew: UPDATE_DOCS=1 cargo test -p galley-domain --test pages -->\n\n\
         What a template document has to look like, and what each rule id in a refusal means. \
         A refused document gets **all** its violations in one answer",
    );
    let _ = writeln!(page, " (at most {MAX_LISTED}, then a count in `more`).\n");
    page.push_str(
        "`null` means the same as absent. Fields that nobody knows, and known fields in a place \
         that does not use them, are passed over: not checked, not kept. Lengths count Unicode \
         scalar values; texts are kept byte for byte.\n",
    );
    for rulebook in Rulebook::ALL {
        let _ = writeln!(page, "\n## Rulebook `{}`", rulebook.name);
        part(&mut page, rulebook.template, &[], &mut Vec::new());
        only_here(&mut page, rulebook);
    }
    page.push_str("\n## Rule ids\n\nIds are stable: programs may depend on them.\n\n| id | rule |\n|---|---|\n");
    for rule in Rule::ALL {
        let _ = writeln!(page, "| `{}` | {} |", rule.id(), rule.about());
    }
    warnings(&mut page);
    page
}

/// The rules that belong to one rulebook alone, so that a reader of another may pass them over.
fn only_here(page: &mut String, rulebook: &Rulebook) {
    let elsewhere = |rule: &Rule| {
        let mut others = Rulebook::ALL.iter().filter(|it| **it != rulebook);
        others.any(|it| it.rules.contains(rule))
    };
    let own = rulebook.rules.iter().filter(|rule| !elsewhere(rule));
    let own: Vec<String> = own.map(|rule| format!("`{}`", rule.id())).collect();
    if !rulebook.checks.is_empty() {
        let names: Vec<&str> = rulebook.checks.iter().map(|check| check.name).collect();
        let _ = writeln!(
            page,
            "\n### Beyond the table\n\nSome rules are about several fields at once: {}.\n\n\
             Rules that only this rulebook has: {}.",
            names.join(", "),
            own.join(", ")
        );
        let _ = write!(
            page,
            "\n### What WhatsApp's Graph API answers\n\nThe first row that fits counts.\n\n{}",
            graph_codes::markdown()
        );
    }
}

fn warnings(page: &mut String) {
    page.push_str(
        "\n## Warnings\n\nThey do not block: a document with warnings is as good as one without, \
         and creating a template tells none. The dry run and `galley lint` tell them, also of a \
         document that breaks rules",
    );
    let _ = writeln!(page, " (at most {MAX_LISTED}, then a count).\n");
    page.push_str("| id | advice |\n|---|---|\n");
    for advice in WarningRule::ALL {
        let _ = writeln!(page, "| `{}` | {} |", advice.id(), advice.about());
    }
}

/// One object and, behind it, those inside of it. What is `told` already is not told again.
fn part(
    page: &mut String,
    part: &'static ObjectSchema,
    tags: &[(&TaggedObject, &str)],
    told: &mut Vec<&'static ObjectSchema>,
) {
    if told.iter().any(|it| std::ptr::eq(*it, part)) {
        return;
    }
    told.push(part);
    let title = part.title;
    let _ = writeln!(
        page,
        "\n### {}\n\n| field | required | value | meaning |\n|---|---|---|---|",
        capital(title)
    );
    for (tagged, word) in tags {
        let _ = writeln!(
            page,
            "| `{}` | yes | `{word}`, in any letter case | {} |",
            tagged.tag, tagged.about
        );
    }
    for field in part.fields {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            field.name,
            required(field),
            value(field),
            field.about
        );
    }
    for field in part.fields {
        match &field.shape {
            FieldType::Object(inner)
            | FieldType::Map(inner)
            | FieldType::ObjectList(ObjectList { item: inner, .. }) => {
                self::part(page, inner, &[], told);
            }
            FieldType::TaggedObject(inner) => variants(page, inner, &[], told),
            FieldType::TaggedList(TaggedList { item, .. }) => variants(page, item, &[], told),
            _ => {}
        }
    }
}

fn variants(
    page: &mut String,
    tagged: &'static TaggedObject,
    outer: &[(&TaggedObject, &str)],
    told: &mut Vec<&'static ObjectSchema>,
) {
    for variant in tagged.variants {
        let mut tags = outer.to_vec();
        tags.push((tagged, variant.word));
        match &variant.kind {
            VariantContent::Fields(inner) => part(page, inner, &tags, told),
            VariantContent::Tagged(inner) => variants(page, inner, &tags, told),
        }
    }
}

fn required(field: &Field) -> &'static str {
    match field.presence {
        Presence::Required => "yes",
        Presence::OrItsOnlyItem => "yes, or the fields of its only item in its place",
        Presence::Never(_) => "never",
        Presence::Optional | Presence::Otherwise(_) => "no",
        Presence::RequiredWithPlaceholders => "when there are placeholders",
        Presence::OnlyWithPlaceholders => "exactly when there are placeholders",
        Presence::OptionalWithPlaceholders => "no; used when there are placeholders",
    }
}

fn value(field: &'static Field) -> String {
    match field.presence {
        Presence::Never(rule) => format!("refused: `{}`", rule.id()),
        Presence::Otherwise(word) => format!("{}; else `{word}`", shape(&field.shape)),
        _ => shape(&field.shape),
    }
}

fn shape(shape: &'static FieldType) -> String {
    match shape {
        FieldType::String(rule) => text(rule),
        FieldType::Choice(words) => format!("`{}`, in any letter case", words.join("`, `")),
        FieldType::Choices(words) => {
            format!("list of `{}`, in any letter case", words.join("`, `"))
        }
        FieldType::Bool => "boolean".to_owned(),
        FieldType::ParameterFormat => {
            format!("`{}`, in any letter case", ParameterFormat::VALUES.join("`, `"))
        }
        FieldType::PositiveInteger => "whole number from 1".to_owned(),
        FieldType::Integer(least, most) => format!("whole number from {least} to {most}"),
        FieldType::Id(rule) => format!("{}, or whole number from 1", text(rule)),
        FieldType::OneString(rule) => format!("{}, or a list with one", text(rule)),
        FieldType::Object(part) => part.title.to_owned(),
        FieldType::Map(part) => {
            format!("{}, or a list of objects with `key` and `value`", part.title)
        }
        FieldType::AnyJson(max) => format!("anything of up to {max} bytes, kept as it is"),
        FieldType::TaggedObject(tagged) => format!("a {}", tagged.title),
        FieldType::TaggedList(list) => {
            format!("list of {} to {} {}s", list.min.max(1), list.max, list.item.title)
        }
        FieldType::ObjectList(parts) => {
            format!("list of {} to {} {}s", parts.min, parts.max, parts.title)
        }
        FieldType::Samples(SampleFormat::Loose) => {
            "list with one list of strings, or list of strings, or string".to_owned()
        }
        FieldType::Samples(SampleFormat::LoosePlain) => "list of strings, or string".to_owned(),
        FieldType::Samples(SampleFormat::Named) => {
            "list of objects with `param_name` and `example`, both strings".to_owned()
        }
        FieldType::Samples(SampleFormat::Nested) => "list with one list of strings".to_owned(),
        FieldType::Samples(SampleFormat::Plain) => "list of strings".to_owned(),
        FieldType::Samples(SampleFormat::Single) => "string, or list with one string".to_owned(),
    }
}

fn text(rule: &StringRule) -> String {
    let form = match rule.form {
        StringFormat::Language => return "`language_REGION`".to_owned(),
        StringFormat::Phone => {
            return "optional `+`, then 7 to 15 digits, the first not 0".to_owned();
        }
        StringFormat::Dialled => {
            return "phone number: optional `+`, at least 5 digits, spaces, hyphens, dots and parentheses; up to 20 characters".to_owned();
        }
        StringFormat::Moment => return "a moment: `2026-11-15T09:30:00Z`".to_owned(),
        StringFormat::Free => "",
        StringFormat::Secret => ", at least 16, printable ASCII without spaces",
        StringFormat::Name => ", no white space at the ends",
        StringFormat::WithPlaceholders => ", placeholders `{{1}}` to `{{999}}` allowed",
        StringFormat::WithoutPlaceholders => ", no placeholders",
        StringFormat::Url => ", an `http://` or `https://` address",
        StringFormat::Locale => return "one of WhatsApp's language codes".to_owned(),
        StringFormat::Signature => return "11 letters, digits, `+`, `/` or `=`".to_owned(),
        StringFormat::Identifier => ", lower-case letters, digits and `_`",
        StringFormat::Headline => ", at most one placeholder, no formatting, no emoji",
        StringFormat::Message => ", placeholders allowed with words around them",
        StringFormat::CardMessage => ", placeholders allowed between words",
        StringFormat::Plain => ", no placeholders, no formatting, no emoji",
        StringFormat::Label => {
            ", no placeholders, no `*`, `~` and `` ` ``, no formatting, no emoji"
        }
        StringFormat::Link => {
            ", an `http://` or `https://` address that may end in a placeholder and does not lead into WhatsApp"
        }
        StringFormat::Package => ", the name of an Android package",
        StringFormat::UrlWithSuffix => {
            ", an `http://` or `https://` address that may end in `{{1}}`"
        }
    };
    let lines = if rule.multiline { ", line breaks and tabs allowed" } else { "" };
    let whatsapp =
        rule.whatsapp_max.map_or(String::new(), |max| format!(" (WhatsApp takes {max})"));
    format!("string of 1 to {} characters{whatsapp}{form}{lines}", rule.max)
}

fn capital(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
