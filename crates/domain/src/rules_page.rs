//! The rules page of the documentation, written from the table itself.

use std::fmt::Write as _;

use crate::{
    advice::Advice,
    rulebook::{Field, Form, Kind, List, Part, Presence, Rulebook, Samples, Shape, Tagged, Text},
    violation::{MOST_TOLD, Rule},
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
    let _ = writeln!(page, " (at most {MOST_TOLD}, then a count in `more`).\n");
    page.push_str(
        "`null` means the same as absent. Fields that nobody knows, and known fields in a place \
         that does not use them, are passed over: not checked, not kept. Lengths count Unicode \
         scalar values; texts are kept byte for byte.\n",
    );
    for rulebook in Rulebook::ALL {
        let _ = writeln!(page, "\n## Rulebook `{}`", rulebook.name);
        part(&mut page, rulebook.template, &[]);
    }
    page.push_str("\n## Rule ids\n\nIds are stable: programs may depend on them.\n\n| id | rule |\n|---|---|\n");
    for rule in Rule::ALL {
        let _ = writeln!(page, "| `{}` | {} |", rule.id(), rule.about());
    }
    warnings(&mut page);
    page
}

fn warnings(page: &mut String) {
    page.push_str(
        "\n## Warnings\n\nThey do not block: a document with warnings is as good as one without, \
         and creating a template tells none. The dry run and `galley lint` tell them, also of a \
         document that breaks rules",
    );
    let _ = writeln!(page, " (at most {MOST_TOLD}, then a count).\n");
    page.push_str("| id | advice |\n|---|---|\n");
    for advice in Advice::ALL {
        let _ = writeln!(page, "| `{}` | {} |", advice.id(), advice.about());
    }
}

fn part(page: &mut String, part: &'static Part, tags: &[(&Tagged, &str)]) {
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
            value(&field.shape),
            field.about
        );
    }
    for field in part.fields {
        match &field.shape {
            Shape::Object(inner) => self::part(page, inner, &[]),
            Shape::Tagged(inner) => variants(page, inner, &[]),
            Shape::List(List { item, .. }) => variants(page, item, &[]),
            _ => {}
        }
    }
}

fn variants(page: &mut String, tagged: &'static Tagged, outer: &[(&Tagged, &str)]) {
    for variant in tagged.variants {
        let mut tags = outer.to_vec();
        tags.push((tagged, variant.word));
        match &variant.kind {
            Kind::Part(inner) => part(page, inner, &tags),
            Kind::Tagged(inner) => variants(page, inner, &tags),
        }
    }
}

fn required(field: &Field) -> &'static str {
    match field.presence {
        Presence::Required => "yes",
        Presence::Optional => "no",
        Presence::RequiredWithPlaceholders => "when there are placeholders",
        Presence::OptionalWithPlaceholders => "no; used when there are placeholders",
    }
}

fn value(shape: &'static Shape) -> String {
    match shape {
        Shape::Text(rule) => text(rule),
        Shape::Choice(words) => format!("`{}`, in any letter case", words.join("`, `")),
        Shape::Words(words) => {
            format!("list of `{}`, in any letter case", words.join("`, `"))
        }
        Shape::Flag => "boolean".to_owned(),
        Shape::Number => "whole number from 1".to_owned(),
        Shape::Object(part) => part.title.to_owned(),
        Shape::Tagged(tagged) => format!("a {}", tagged.title),
        Shape::List(list) => {
            format!("list of {} to {} {}s", list.min.max(1), list.max, list.item.title)
        }
        Shape::Samples(Samples::Nested) => "list with one list of strings".to_owned(),
        Shape::Samples(Samples::Plain) => "list of strings".to_owned(),
        Shape::Samples(Samples::Single) => "string, or list with one string".to_owned(),
    }
}

fn text(rule: &Text) -> String {
    let form = match rule.form {
        Form::Language => return "`language_REGION`".to_owned(),
        Form::Phone => return "optional `+`, then 7 to 15 digits, the first not 0".to_owned(),
        Form::Moment => return "a moment: `2026-11-15T09:30:00Z`".to_owned(),
        Form::Free => "",
        Form::Name => ", no white space at the ends",
        Form::WithPlaceholders => ", placeholders `{{1}}` to `{{999}}` allowed",
        Form::WithoutPlaceholders => ", no placeholders",
        Form::Url => ", an `http://` or `https://` address",
        Form::UrlWithSuffix => ", an `http://` or `https://` address that may end in `{{1}}`",
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
