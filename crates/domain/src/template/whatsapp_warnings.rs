//! Warns if WhatsApp does not accept a template of the `v1` rulebook: its name, language or content.
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

/// Adds the warnings about a valid template. Other warnings about its document have been collected
/// already.
pub(super) fn collect(template: &Template, root: &Json<'_>, warnings: &mut Warnings) {
    check_identity(template, warnings);
    if !plain::is_accepted(root, template.category) {
        check_content(template, warnings);
    }
}

/// Adds the warnings about name and language.
pub(super) fn check_identity(template: &Template, warnings: &mut Warnings) {
    check_name(&template.name, warnings);
    check_language(&template.language, warnings);
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
    use crate::document::byte_classes::{ByteClasses, NON_ASCII, SYMBOL};

    const MAX_BUTTONS: usize = 10;

    pub(super) fn is_accepted(root: &Json<'_>, category: Category) -> bool {
        let Some(Json::Array(components)) = root.get("components") else { return false };
        category != Category::Authentication && components.iter().all(is_component)
    }

    fn is_component(component: &Json<'_>) -> bool {
        match text(component, "type") {
            "HEADER" if text(component, "format") == "MEDIA" => true,
            "HEADER" => text(component, "format") == "TEXT" && is_header(text(component, "text")),
            "BODY" => is_body(text(component, "text")),
            "FOOTER" => is_label(text(component, "text")),
            "BUTTONS" => are_buttons(component.get("buttons")),
            _ => false,
        }
    }

    /// Has at most one placeholder.
    fn is_header(text: &str) -> bool {
        match text.split_once("{{1}}") {
            Some((before, after)) => is_label(before) && (after.is_empty() || is_label(after)),
            None => is_label(text),
        }
    }

    /// Has enough words for its placeholders.
    fn is_body(text: &str) -> bool {
        let placeholders = text.bytes().filter(|byte| *byte == b'{').count().div_ceil(2);
        let is_word =
            |it: &&str| it.contains(char::is_alphanumeric) && it.bytes().all(|byte| byte != b'{');
        let mut words = text.split_ascii_whitespace().filter(is_word);
        placeholders == 0 || words.nth(2 * placeholders).is_some()
    }

    fn are_buttons(buttons: Option<&Json<'_>>) -> bool {
        let Some(Json::Array(buttons)) = buttons else { return false };
        let (mut urls, mut phones, mut codes, mut changes) = (0, 0, 0, 0);
        let mut was_reply = None;
        for (index, button) in buttons.iter().enumerate() {
            let label = text(button, "text");
            let is_repeated = || buttons[..index].iter().any(|it| text(it, "text") == label);
            let is_reply = match text(button, "type") {
                "QUICK_REPLY" if is_label(label) && !is_repeated() => true,
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

    /// A URL with a domain, which is not WhatsApp's. It may end in a placeholder after a path.
    fn is_link(button: &Json<'_>) -> bool {
        let url = text(button, "url");
        let base = url.strip_suffix("{{1}}").unwrap_or(url);
        let Some((host, path)) = base.strip_prefix("https://").map(|it| match it.split_once('/') {
            Some((host, path)) => (host, Some(path)),
            None => (it, None),
        }) else {
            return false;
        };
        let is_name = |it: u8| matches!(it, b'a'..=b'z' | b'.' | b'-');
        let is_path = |it: u8| it.is_ascii_graphic() && !matches!(it, b'{' | b'}');
        host.contains('.')
            && host.bytes().all(is_name)
            && !host.ends_with(['.', '-'])
            && !["wa.me", "whatsapp.com", "localhost"].iter().any(|it| host.ends_with(it))
            && (path.is_some() || base.len() == url.len())
            && path.is_none_or(|it| it.bytes().all(is_path))
    }

    /// Without formatting, emoji, placeholders and line breaks.
    fn is_label(text: &str) -> bool {
        let classes = ByteClasses::of(text);
        let is_allowed = |it: char| it.is_ascii() || it.is_alphanumeric();
        !text.is_empty()
            && !classes.has(SYMBOL)
            && (!classes.has(NON_ASCII) || text.chars().all(is_allowed))
    }

    fn text<'t>(object: &'t Json<'_>, field: &str) -> &'t str {
        object.get(field).and_then(Json::as_str).unwrap_or_default()
    }
}
