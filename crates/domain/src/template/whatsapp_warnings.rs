//! Warns where WhatsApp cannot have a template of the `v1` rulebook: its name, language or content.
//!
//! The `whatsapp` rulebook decides about the content. Every create collects these warnings, so a
//! template whose content is obviously acceptable is recognised without a second pass.

use super::{Category, Template};
use crate::{
    document::{Document, Json},
    rulebook::WHATSAPP,
    validation::{languages::whatsapp as languages, reader::Reader, whatsapp_name},
    violation::{
        Rule, Span, Violation, Violations, Warning, WarningRule, Warnings, pluralized, truncated,
    },
};

/// Rules that warnings of the `v1` rulebook cover, and these warnings.
const COVERED: [(Rule, &[WarningRule]); 4] = [
    (Rule::WhatsappLink, &[WarningRule::LinkShortener]),
    (Rule::TooLong, &[WarningRule::OverWhatsappLimit]),
    (Rule::PlaceholderAtStart, &[WarningRule::BodyBeginsWithPlaceholder]),
    (Rule::PlaceholderAtEnd, &[WarningRule::BodyEndsWithPlaceholder]),
];

/// Adds the warnings about a valid template. `document` is its document, if other warnings about
/// it have been collected already.
pub(super) fn collect(template: &Template, document: Option<&Json<'_>>, warnings: &mut Warnings) {
    check_name(&template.name, warnings);
    check_language(&template.language, warnings);
    let is_plain = |root: &Json<'_>| plain::is_accepted(root, template.category);
    if !document.is_some_and(is_plain) {
        check_content(template, warnings);
    }
}

/// Adds the warnings about name and language of an invalid document, unless they are invalid.
pub(super) fn collect_identity(root: &Json<'_>, violations: &Violations, warnings: &mut Warnings) {
    let valid = |field: &str| {
        let text = root.get(field).and_then(Json::as_str)?;
        let is_invalid =
            violations.listed().iter().any(|it| it.pointer.strip_prefix('/') == Some(field));
        (!is_invalid && violations.omitted() == 0).then_some(text)
    };
    valid("name").inspect(|name| check_name(name, warnings));
    valid("language").inspect(|language| check_language(language, warnings));
}

fn check_name(name: &str, warnings: &mut Warnings) {
    if whatsapp_name::is_valid(name) {
        return;
    }
    let message = "is not a name that WhatsApp accepts: lower-case letters, digits and `_`";
    let hint = match whatsapp_name::adapted(name) {
        Some(adapted) => format!("for WhatsApp, name it `{}`", truncated(&adapted)),
        None => "for WhatsApp, choose a name such as `spring_sale_2026`".to_owned(),
    };
    add("/name", WarningRule::WhatsappName, message, hint, None, warnings);
}

fn check_language(code: &str, warnings: &mut Warnings) {
    if languages::CODES.binary_search(&code).is_ok() {
        return;
    }
    let message = format!("WhatsApp does not have the language `{}`", truncated(code));
    let hint = match languages::suggestion(code) {
        Some(nearest) => format!("the closest code of WhatsApp is `{nearest}`"),
        None => "WhatsApp does not support this language".to_owned(),
    };
    add("/language", WarningRule::WhatsappLanguage, message, hint, None, warnings);
}

/// Warns once, at the category, of content that an edit of the category leaves unchanged: the
/// edit has no other place.
pub(super) fn check_unchanged_content(template: &Template, warnings: &mut Warnings) {
    const PLACE: &str = "/category";
    let mut found = Warnings::default();
    check_content(template, &mut found);
    let Some(first) = found.listed().first() else { return };
    let Warning { pointer, rule, message, hint, .. } = first;
    if pointer == PLACE {
        return add(PLACE, *rule, message, hint.clone(), None, warnings);
    }
    let others = match found.count() - 1 {
        0 => String::new(),
        others => format!(", and {}", pluralized(others, "other violation")),
    };
    let message = format!("the edit leaves `{pointer}` unchanged. {message}{others}");
    add(PLACE, *rule, message, format!("edit the components, too: {hint}"), None, warnings);
}

/// Reads the stored content with WhatsApp's rules.
pub(super) fn check_content(template: &Template, warnings: &mut Warnings) {
    if template.category == Category::Authentication {
        return check_authentication(warnings);
    }
    let Some(fields) = template.content.strip_prefix('{').filter(|it| it.len() > 1) else { return };
    let category = template.category.as_str();
    let text = format!(r#"{{"name":"n","language":"en","category":"{category}",{fields}"#);
    let Ok(document) = Document::parse(text.as_bytes()) else { return };
    let also = |violations: &mut _| WHATSAPP.check(document.root(), false, violations);
    let Err(violations) = Reader::read(&document, WHATSAPP.template, |_| false, also) else {
        return;
    };
    for violation in violations.listed() {
        if is_tolerated(document.root(), &violation.pointer) || is_covered(violation, warnings) {
            continue;
        }
        let Violation { pointer, message, hint, span, .. } = violation;
        let hint = hint.clone().unwrap_or_else(|| "change it for WhatsApp".to_owned());
        let message = format!("WhatsApp refuses this: {message}");
        add(pointer, WarningRule::WhatsappContent, message, hint, *span, warnings);
    }
}

/// Warns of a template whose text WhatsApp generates: no change of the text makes it acceptable.
fn check_authentication(warnings: &mut Warnings) {
    use WarningRule::{BodyBeginsWithPlaceholder, BodyEndsWithPlaceholder, WhatsappContent};
    warnings.retract(|it| matches!(it.rule, BodyBeginsWithPlaceholder | BodyEndsWithPlaceholder));
    let message = "WhatsApp generates the text of AUTHENTICATION templates";
    let hint = "for WhatsApp, convert it: `galley convert --from v1 --to whatsapp`".to_owned();
    add("/category", WhatsappContent, message, hint, None, warnings);
}

/// Whether a violation is no reason for WhatsApp not to have the template: it concerns a sample, which
/// is no part of a message, or the format of a header that is a file. WhatsApp has IMAGE, VIDEO and
/// DOCUMENT instead of MEDIA, and the payload gets the format from the file.
fn is_tolerated(root: &Json<'_>, pointer: &str) -> bool {
    let mut segments = pointer.split('/').skip(1);
    if segments.clone().any(|segment| segment == "example") {
        return true;
    }
    let (Some("components"), Some(index), Some("format"), Some(Json::Array(components))) =
        (segments.next(), segments.next(), segments.next(), root.get("components"))
    else {
        return false;
    };
    let component = index.parse().ok().and_then(|index: usize| components.get(index));
    component.and_then(|it| it.get("format")).and_then(Json::as_str) == Some("MEDIA")
}

fn is_covered(violation: &Violation, warnings: &Warnings) -> bool {
    COVERED.iter().filter(|(rule, _)| *rule == violation.rule).any(|(_, covering)| {
        let covers = |it: &Warning| it.pointer == violation.pointer && covering.contains(&it.rule);
        warnings.listed().iter().any(covers)
    })
}

fn add(
    pointer: &str,
    rule: WarningRule,
    message: impl Into<String>,
    hint: String,
    span: Option<Span>,
    warnings: &mut Warnings,
) {
    let (pointer, message) = (pointer.to_owned(), message.into());
    warnings.add(|| Warning { pointer, rule, message, hint, span });
}

/// Recognises contents that WhatsApp's rules accept, without reading them by these rules. It may
/// refuse what they accept, never the reverse; a test compares them. Lengths, and placeholders at
/// the ends of a body, have warnings of their own.
mod plain {
    use super::{Category, Json};

    const MAX_BUTTONS: usize = 10;

    pub(super) fn is_accepted(root: &Json<'_>, category: Category) -> bool {
        let Some(Json::Array(components)) = root.get("components") else { return false };
        category != Category::Authentication && components.iter().all(is_component)
    }

    fn is_component(component: &Json<'_>) -> bool {
        match text(component, "type") {
            "HEADER" => match text(component, "format") {
                "MEDIA" => true,
                "TEXT" => is_label(text(component, "text")),
                _ => false,
            },
            "BODY" => is_body(text(component, "text")),
            "FOOTER" => is_label(text(component, "text")),
            "BUTTONS" => are_buttons(component.get("buttons")),
            _ => false,
        }
    }

    /// Has enough words for its placeholders.
    fn is_body(text: &str) -> bool {
        let placeholders = text.bytes().filter(|byte| *byte == b'{').count().div_ceil(2);
        let is_word = |it: &&str| !it.contains("{{") && it.contains(char::is_alphanumeric);
        let mut words = text.split_whitespace().filter(is_word);
        placeholders == 0 || words.nth(2 * placeholders).is_some()
    }

    fn are_buttons(buttons: Option<&Json<'_>>) -> bool {
        let Some(Json::Array(buttons)) = buttons else { return false };
        let (mut urls, mut phones, mut codes, mut changes) = (0, 0, 0, 0);
        let mut was_reply = None;
        let mut replies: Vec<&str> = Vec::new();
        for button in buttons {
            let label = text(button, "text");
            let is_reply = match text(button, "type") {
                "QUICK_REPLY" if is_label(label) && !replies.contains(&label) => {
                    replies.push(label);
                    true
                }
                "URL" if is_label(label) && is_link(button) => {
                    urls += 1;
                    false
                }
                "PHONE_NUMBER" if is_label(label) => {
                    phones += 1;
                    false
                }
                "COPY_CODE" => {
                    codes += 1;
                    false
                }
                _ => return false,
            };
            changes += usize::from(was_reply.is_some_and(|was| was != is_reply));
            was_reply = Some(is_reply);
        }
        buttons.len() <= MAX_BUTTONS && urls <= 2 && phones <= 1 && codes <= 1 && changes <= 1
    }

    /// A fixed URL with a domain, which is not WhatsApp's.
    fn is_link(button: &Json<'_>) -> bool {
        let url = text(button, "url");
        let host = url.strip_prefix("https://").and_then(|rest| rest.split('/').next());
        host.is_some_and(|host| {
            let is_name = |it: u8| it.is_ascii_lowercase() || b".-".contains(&it);
            host.contains('.')
                && host.bytes().all(is_name)
                && !host.ends_with(['.', '-'])
                && !["wa.me", "whatsapp.com", "localhost"].iter().any(|it| host.ends_with(it))
        }) && url.bytes().all(|it| it.is_ascii_graphic() && !b"{}".contains(&it))
    }

    /// Without formatting, emoji, placeholders and line breaks.
    fn is_label(text: &str) -> bool {
        !text.is_empty()
            && text.chars().all(|it| match it {
                ' ' | '.' | ',' | '!' | '?' | '\'' | '-' | ':' | ';' | '&' | '%' | '(' | ')' => {
                    true
                }
                it => it.is_alphanumeric(),
            })
    }

    fn text<'t>(object: &'t Json<'_>, field: &str) -> &'t str {
        object.get(field).and_then(Json::as_str).unwrap_or_default()
    }
}
