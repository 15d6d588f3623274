//! What a string has to be: length, characters and form.

mod address;

pub(crate) use address::is_bare_host;

use crate::{
    document::text::{has_byte, is_separator, longer_than},
    rulebook::{ParameterFormat, StringFormat, StringRule},
    validation::{
        formatting, languages, languages::whatsapp, placeholder_context, placeholders, timestamp,
    },
    violation::{Rule, Span, TextViolation, shortened},
};

/// Checks a string against its row; answers how many placeholders it holds when it may hold any
/// and they are all good.
pub(crate) fn check(
    rule: &StringRule,
    text: &str,
    faults: &mut Vec<TextViolation>,
) -> Option<usize> {
    check_in(ParameterFormat::Positional, rule, text, faults)
}

/// Checks a string likewise, in a document whose placeholders are written in that format.
pub(crate) fn check_in(
    format: ParameterFormat,
    rule: &StringRule,
    text: &str,
    faults: &mut Vec<TextViolation>,
) -> Option<usize> {
    if text.trim_start().is_empty() {
        faults.push(
            TextViolation::new(Rule::Empty, "must not be empty or only white space")
                .hint("write something visible"),
        );
        return None;
    }
    // These forms say how long they are, and say it better.
    let sized_by_form = matches!(
        rule.format,
        StringFormat::Language
            | StringFormat::Locale
            | StringFormat::Phone
            | StringFormat::DialledPhone
            | StringFormat::Timestamp
            | StringFormat::SignatureHash
    );
    if !sized_by_form && longer_than(text, rule.max) {
        let length = text.chars().count();
        let message = format!("has {length} characters; at most {} are allowed", rule.max);
        let hint = format!("shorten it by {}", length - rule.max);
        let span = Span { start: rule.max, end: length };
        faults.push(TextViolation::new(Rule::TooLong, message).hint(hint).at(span));
        // A text of any length is not searched for further faults: that work has a limit too.
        return None;
    }
    control_characters(text, rule, faults);
    form(rule.format, format, text, faults)
}

fn form(
    form: StringFormat,
    format: ParameterFormat,
    text: &str,
    faults: &mut Vec<TextViolation>,
) -> Option<usize> {
    match form {
        StringFormat::Free => None,
        StringFormat::Name => name(text, faults),
        StringFormat::Language => languages::check(text, faults),
        StringFormat::WithPlaceholders => placeholders::numbered(text, faults),
        StringFormat::WithoutPlaceholders => {
            placeholders::forbid(text, "no placeholder may stand here", faults);
            None
        }
        StringFormat::Url => {
            address::url(text, faults);
            placeholders::forbid(text, "this address takes no placeholder", faults);
            None
        }
        StringFormat::UrlWithSuffix => {
            let base = text.strip_suffix("{{1}}");
            address::url(base.unwrap_or(text), faults);
            let why = "an address takes a placeholder only as `{{1}}` at its very end";
            placeholders::forbid(base.unwrap_or(text), why, faults);
            base.is_some().then_some(1)
        }
        StringFormat::Phone => address::phone(text, faults),
        StringFormat::DialledPhone => address::dialled(text, faults),
        StringFormat::Timestamp => timestamp::check(text, faults),
        StringFormat::Identifier => identifier(text, faults),
        StringFormat::Locale => {
            whatsapp::check(text, faults);
            None
        }
        StringFormat::Headline => {
            formatting::forbid(text, formatting::IN_HEADLINES, faults);
            let count = placeholders::scan(text, format, faults);
            placeholder_context::at_most_one(text, count, faults);
            count
        }
        StringFormat::Message => {
            let count = placeholders::scan(text, format, faults);
            placeholder_context::edges(text, faults);
            placeholder_context::enough_words(text, count, faults);
            count
        }
        StringFormat::CardMessage => {
            let count = placeholders::scan(text, format, faults);
            placeholder_context::edges(text, faults);
            count
        }
        StringFormat::Plain | StringFormat::Label => {
            let marks = if form == StringFormat::Label { formatting::IN_LABELS } else { &[] };
            formatting::forbid(text, marks, faults);
            placeholders::forbid(text, "no placeholder may stand here", faults);
            None
        }
        StringFormat::Link => address::link(text, format, faults),
        StringFormat::AndroidPackage => package(text, faults),
        StringFormat::SignatureHash => signature(text, faults),
        StringFormat::Secret => secret(text, faults),
    }
}

/// Whether a string is one line in every respect: separators are line breaks there, too.
pub(crate) fn is_one_line(rule: &StringRule) -> bool {
    !rule.multiline
        && matches!(rule.format, StringFormat::Headline | StringFormat::Plain | StringFormat::Label)
}

fn control_characters(text: &str, rule: &StringRule, faults: &mut Vec<TextViolation>) {
    let (multiline, strict) = (rule.multiline, is_one_line(rule));
    let refused = |found: char| {
        (found.is_control() && !(multiline && matches!(found, '\n' | '\r' | '\t')))
            || (strict && is_separator(found))
    };
    // Hardly any text holds one; bytes tell that quickly. 0xC2 begins U+0080 to U+00BF, and 0xE2
    // the separators.
    let is_suspect = |byte: u8| byte < 0x20 || byte == 0x7f || byte == 0xc2 || byte == 0xe2;
    if !has_byte(text, is_suspect) {
        return;
    }
    if let Some((at, found)) = text.char_indices().find(|(_, found)| refused(*found)) {
        let code = u32::from(found);
        let what = if found.is_control() { "control character" } else { "line break" };
        let message = format!("holds the {what} U+{code:04X}");
        let span = Span::of(text, at..at + found.len_utf8());
        let hint = if multiline || !(matches!(found, '\n' | '\r' | '\t') || is_separator(found)) {
            "remove it"
        } else {
            "write it on one line: only body texts take line breaks and tabs"
        };
        faults.push(TextViolation::new(Rule::ControlCharacter, message).hint(hint).at(span));
    }
}

fn name(text: &str, faults: &mut Vec<TextViolation>) -> Option<usize> {
    let trimmed = text.trim();
    if trimmed.len() != text.len() {
        let hint = format!("did you mean `{}`?", shortened(trimmed));
        faults.push(
            TextViolation::new(Rule::NameEdges, "begins or ends with white space").hint(hint),
        );
    }
    None
}

fn identifier(text: &str, faults: &mut Vec<TextViolation>) -> Option<usize> {
    let fits = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    let (at, odd) = text.char_indices().find(|(_, it)| !fits(*it))?;
    let span = Span::of(text, at..at + odd.len_utf8());
    let message = "holds something else than lower-case letters, digits and `_`";
    let meant = text.trim().to_lowercase().replace([' ', '-', '.'], "_");
    let hint = if meant.chars().all(fits) && !meant.is_empty() {
        format!("did you mean `{}`?", shortened(&meant))
    } else {
        "write a name such as `order_update_2`".to_owned()
    };
    faults.push(TextViolation::new(Rule::NameForm, message).hint(hint).at(span));
    None
}

fn package(text: &str, faults: &mut Vec<TextViolation>) -> Option<usize> {
    let is_part = |part: &str| {
        part.starts_with(|it: char| it.is_ascii_alphabetic())
            && part.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
    };
    if !text.contains('.') || !text.split('.').all(is_part) {
        let message = format!("`{}` is not the name of an Android package", shortened(text));
        faults.push(TextViolation::new(Rule::PackageForm, message).hint("like `com.example.shop`"));
    }
    None
}

fn signature(text: &str, faults: &mut Vec<TextViolation>) -> Option<usize> {
    let fits = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'=');
    if text.len() != 11 || !text.bytes().all(fits) {
        let message = "is not the hash of an app's key: 11 letters, digits, `+`, `/` or `=`";
        faults.push(TextViolation::new(Rule::SignatureForm, message).hint("like `K8a/AINcGX7`"));
    }
    None
}

/// What is wrong is told without repeating any of it.
fn secret(text: &str, faults: &mut Vec<TextViolation>) -> Option<usize> {
    if text.len() < 16 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = "is no secret: 16 to 256 printable ASCII characters without spaces";
        let hint = "take the app secret as Meta shows it, or leave it out";
        faults.push(TextViolation::new(Rule::SecretForm, message).hint(hint));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(form: StringFormat, text: &str) -> Vec<&'static str> {
        let mut faults = Vec::new();
        let rule = StringRule { max: 60, whatsapp_max: None, multiline: false, format: form };
        check(&rule, text, &mut faults);
        faults.iter().map(|fault| fault.rule.id()).collect()
    }

    #[test]
    fn strings_are_visible_bounded_and_free_of_control_characters() {
        for blank in ["", " ", "\t\n", "\u{a0}\u{3000}"] {
            assert_eq!(faults(StringFormat::Free, blank), ["empty"], "{blank:?}");
        }
        assert_eq!(faults(StringFormat::Free, &"é".repeat(60)), [""; 0]);
        assert_eq!(faults(StringFormat::Free, &"é".repeat(61)), ["too-long"]);
        for separator in ["a\u{2028}b", "a\u{2029}b"] {
            for form in [StringFormat::Headline, StringFormat::Plain, StringFormat::Label] {
                assert_eq!(faults(form, separator), ["control-character"], "{form:?}");
            }
            assert_eq!(faults(StringFormat::Free, separator), [""; 0]);
        }
        for control in ['\0', '\n', '\r', '\t', '\u{7f}', '\u{85}', '\u{9f}'] {
            assert_eq!(
                faults(StringFormat::Free, &format!("a{control}b")),
                ["control-character"],
                "{control:?}"
            );
        }
        assert_eq!(
            faults(StringFormat::Free, "a\u{200b}\u{202e}b"),
            [""; 0],
            "invisible is not control"
        );
        let body =
            StringRule { max: 60, whatsapp_max: None, multiline: true, format: StringFormat::Free };
        let mut found = Vec::new();
        check(&body, "a\r\n\tb", &mut found);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn names_keep_their_inner_spaces_but_not_their_edges() {
        assert_eq!(faults(StringFormat::Name, "Spring sale"), [""; 0]);
        assert_eq!(faults(StringFormat::Name, " sale"), ["name-edges"]);
        assert_eq!(faults(StringFormat::Name, "sale\u{3000}"), ["name-edges"]);
    }
}
