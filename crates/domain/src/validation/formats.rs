//! Checks strings: length, characters and format.

mod address;

pub(crate) use address::{host, ip_address, is_bare_host, is_own_device};

use crate::{
    document::text::{has_byte, is_separator, longer_than},
    rulebook::{ParameterFormat, StringFormat, StringRule},
    validation::{
        formatting, languages,
        languages::whatsapp,
        placeholder_context,
        placeholders::{self, PlaceholderCount},
        timestamp,
    },
    violation::{Rule, Span, TextViolation, did_you_mean, is_or_are, pluralized, truncated},
};

/// Checks a string against its rule. Returns what is known about its placeholders.
pub(crate) fn check(
    rule: &StringRule,
    text: &str,
    violations: &mut Vec<TextViolation>,
) -> PlaceholderCount {
    check_in(ParameterFormat::Positional, rule, text, violations)
}

/// Checks a string like [`check`], in a document with the given placeholder format.
pub(crate) fn check_in(
    format: ParameterFormat,
    rule: &StringRule,
    text: &str,
    violations: &mut Vec<TextViolation>,
) -> PlaceholderCount {
    if text.trim_start().is_empty() {
        violations.push(
            TextViolation::new(Rule::Empty, "must not be empty or consist only of whitespace")
                .hint("write something visible"),
        );
        return PlaceholderCount::Unknown;
    }
    // These formats imply a length, and their messages state it.
    let has_own_length = matches!(
        rule.format,
        StringFormat::Language
            | StringFormat::Locale
            | StringFormat::Phone
            | StringFormat::DialledPhone
            | StringFormat::Timestamp
            | StringFormat::SignatureHash
    );
    if !has_own_length && longer_than(text, rule.max) {
        let length = text.chars().count();
        let max = rule.max;
        let count = pluralized(length, "character");
        let message = format!("has {count}; at most {max} {} allowed", is_or_are(max));
        let hint = format!("shorten it by {}", pluralized(length - max, "character"));
        let span = Span { start: max, end: length };
        violations.push(TextViolation::new(Rule::TooLong, message).hint(hint).at(span));
        check_prefix(rule, format, text, violations);
        let count = placeholders::unchecked(text);
        let has_one = matches!(
            rule.format,
            StringFormat::Headline | StringFormat::UrlWithSuffix | StringFormat::Link
        );
        return if has_one { count.at_most_one() } else { count };
    }
    check_control_characters(text, rule, violations);
    check_format(rule.format, format, text, violations)
}

/// Checks the part of a string that remains if it is cut at its maximum length, so that the work is
/// limited however long the string is. Reports nothing that depends on where the string ends.
fn check_prefix(
    rule: &StringRule,
    format: ParameterFormat,
    text: &str,
    violations: &mut Vec<TextViolation>,
) {
    let end = text.char_indices().nth(rule.max).map_or(text.len(), |(at, _)| at);
    check_control_characters(&text[..end], rule, violations);
    let prefix = &text[..placeholders::straddling(text, end).unwrap_or(end)];
    if prefix.trim_start().is_empty() {
        return;
    }
    let mut found = Vec::new();
    check_format(rule.format, format, prefix, &mut found);
    let depends_on_end = |violation: &TextViolation| match violation.rule {
        Rule::PlaceholderAtEnd | Rule::PlaceholderGap | Rule::TooFewWords | Rule::PackageForm => {
            true
        }
        Rule::NameEdges => !text.starts_with(char::is_whitespace),
        Rule::UrlHost | Rule::WhatsappLink => is_bare_host(prefix),
        _ => false,
    };
    violations.extend(found.into_iter().filter(|it| !depends_on_end(it)));
}

/// Checks the format of a string and counts its placeholders.
fn check_format(
    form: StringFormat,
    format: ParameterFormat,
    text: &str,
    violations: &mut Vec<TextViolation>,
) -> PlaceholderCount {
    match form {
        StringFormat::WithPlaceholders => return placeholders::numbered(text, violations),
        StringFormat::UrlWithSuffix => return address::check_url_with_suffix(text, violations),
        StringFormat::Link => return address::check_link(text, format, violations),
        StringFormat::Headline => {
            formatting::forbid(text, formatting::FORBIDDEN_IN_HEADERS, violations);
            let count = placeholders::scan(text, format, violations);
            placeholder_context::at_most_one(text, count, violations);
            return count.at_most_one();
        }
        StringFormat::Message => {
            let count = placeholders::scan(text, format, violations);
            placeholder_context::edges(text, violations);
            placeholder_context::enough_words(text, count, violations);
            return count;
        }
        StringFormat::Free | StringFormat::Handle => {}
        StringFormat::Name => check_name(text, violations),
        StringFormat::Language => languages::check(text, violations),
        StringFormat::WithoutPlaceholders => {
            placeholders::forbid(text, "placeholders are not allowed here", violations);
        }
        StringFormat::Url => address::check_url(text, violations),
        StringFormat::Phone => address::check_phone(text, violations),
        StringFormat::DialledPhone => address::check_whatsapp_phone(text, violations),
        StringFormat::Timestamp => timestamp::check(text, violations),
        StringFormat::Identifier => check_identifier(text, violations),
        StringFormat::Locale => whatsapp::check(text, violations),
        StringFormat::Plain | StringFormat::Label => {
            let is_label = form == StringFormat::Label;
            let forbidden = if is_label { formatting::FORBIDDEN_IN_LABELS } else { &[] };
            formatting::forbid(text, forbidden, violations);
            placeholders::forbid(text, "placeholders are not allowed here", violations);
        }
        StringFormat::AndroidPackage => check_package(text, violations),
        StringFormat::SignatureHash => check_signature(text, violations),
        StringFormat::Secret => check_secret(text, violations),
    }
    PlaceholderCount::NONE
}

/// Whether a string must be a single line and not even contain U+2028 or U+2029.
pub(crate) fn is_one_line(rule: &StringRule) -> bool {
    !rule.multiline
        && matches!(rule.format, StringFormat::Headline | StringFormat::Plain | StringFormat::Label)
}

fn check_control_characters(text: &str, rule: &StringRule, violations: &mut Vec<TextViolation>) {
    let (multiline, one_line) = (rule.multiline, is_one_line(rule));
    let is_forbidden = |found: char| {
        (found.is_control() && !(multiline && matches!(found, '\n' | '\r' | '\t')))
            || (one_line && is_separator(found))
    };
    // Few texts contain one, and a scan of the bytes is fast. 0xC2 starts U+0080 to U+00BF, and
    // 0xE2 starts the separators.
    let is_suspect = |byte: u8| byte < 0x20 || byte == 0x7f || byte == 0xc2 || byte == 0xe2;
    if !has_byte(text, is_suspect) {
        return;
    }
    let mut forbidden = text.chars().enumerate().filter(|(_, found)| is_forbidden(*found));
    let Some((at, found)) = forbidden.next() else { return };
    let code = u32::from(found);
    let what = if found.is_control() { "control character" } else { "line break" };
    let (message, them) = match forbidden.count() {
        0 => (format!("contains the {what} U+{code:04X}"), "it"),
        others => {
            let others = pluralized(others, "other such character");
            (format!("contains the {what} U+{code:04X} and {others}"), "them")
        }
    };
    let is_line_break = matches!(found, '\n' | '\r' | '\t') || is_separator(found);
    let hint = if multiline || !is_line_break {
        format!("remove {them}")
    } else {
        "write it on one line: line breaks and tabs are only allowed in body texts".to_owned()
    };
    let span = Span { start: at, end: at + 1 };
    violations.push(TextViolation::new(Rule::ControlCharacter, message).hint(hint).at(span));
}

fn check_name(text: &str, violations: &mut Vec<TextViolation>) {
    let trimmed = text.trim();
    if trimmed.len() != text.len() {
        let suggestion = Some(trimmed).filter(|it| !it.contains(char::is_control));
        let hint = suggestion.and_then(did_you_mean);
        let hint = hint.unwrap_or_else(|| "remove the whitespace at both ends".to_owned());
        violations
            .push(TextViolation::new(Rule::NameEdges, "begins or ends with whitespace").hint(hint));
    }
}

fn check_identifier(text: &str, violations: &mut Vec<TextViolation>) {
    let is_allowed = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    let Some((at, found)) = text.char_indices().find(|(_, it)| !is_allowed(*it)) else { return };
    let span = Span::of(text, at..at + found.len_utf8());
    let message = "contains characters other than lower-case letters, digits and `_`";
    let corrected = text.trim().to_lowercase().replace([' ', '-', '.'], "_");
    let is_valid = corrected.chars().all(is_allowed) && !corrected.is_empty();
    let hint = is_valid.then(|| did_you_mean(&corrected)).flatten();
    let hint = hint.unwrap_or_else(|| "write a name such as `order_update_2`".to_owned());
    violations.push(TextViolation::new(Rule::NameForm, message).hint(hint).at(span));
}

fn check_package(text: &str, violations: &mut Vec<TextViolation>) {
    let is_part = |part: &str| {
        part.starts_with(|it: char| it.is_ascii_alphabetic())
            && part.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
    };
    if !text.contains('.') || !text.split('.').all(is_part) {
        let message = format!("`{}` is not an Android package name", truncated(text));
        let hint = "write a name such as `com.example.shop`";
        violations.push(TextViolation::new(Rule::PackageForm, message).hint(hint));
    }
}

fn check_signature(text: &str, violations: &mut Vec<TextViolation>) {
    let is_allowed = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'=');
    if text.len() != 11 || !text.bytes().all(is_allowed) {
        let message = "is not an app signature hash: 11 letters, digits, `+`, `/` or `=`";
        let hint = "write a hash such as `K8a/AINcGX7`";
        violations.push(TextViolation::new(Rule::SignatureForm, message).hint(hint));
    }
}

/// Checks a secret. The message must not quote any part of it.
fn check_secret(text: &str, violations: &mut Vec<TextViolation>) {
    if text.len() < 16 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = "is not a valid secret: 16 to 256 printable ASCII characters without spaces";
        let hint = "use the app secret as Meta displays it, or leave it out";
        violations.push(TextViolation::new(Rule::SecretForm, message).hint(hint));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(form: StringFormat, text: &str) -> Vec<&'static str> {
        let mut violations = Vec::new();
        let rule = StringRule { max: 60, whatsapp_max: None, multiline: false, format: form };
        check(&rule, text, &mut violations);
        violations.iter().map(|violation| violation.rule.id()).collect()
    }

    #[test]
    fn strings_are_visible_limited_in_length_and_free_of_control_characters() {
        for blank in ["", " ", "\t\n", "\u{a0}\u{3000}"] {
            assert_eq!(rules(StringFormat::Free, blank), ["empty"], "{blank:?}");
        }
        assert_eq!(rules(StringFormat::Free, &"é".repeat(60)), [""; 0]);
        assert_eq!(rules(StringFormat::Free, &"é".repeat(61)), ["too-long"]);
        for separator in ["a\u{2028}b", "a\u{2029}b"] {
            for form in [StringFormat::Headline, StringFormat::Plain, StringFormat::Label] {
                assert_eq!(rules(form, separator), ["control-character"], "{form:?}");
            }
            assert_eq!(rules(StringFormat::Free, separator), [""; 0]);
        }
        for control in ['\0', '\n', '\r', '\t', '\u{7f}', '\u{85}', '\u{9f}'] {
            assert_eq!(
                rules(StringFormat::Free, &format!("a{control}b")),
                ["control-character"],
                "{control:?}"
            );
        }
        assert_eq!(
            rules(StringFormat::Free, "a\u{200b}\u{202e}b"),
            [""; 0],
            "invisible characters are not control characters"
        );
        let body =
            StringRule { max: 60, whatsapp_max: None, multiline: true, format: StringFormat::Free };
        let mut found = Vec::new();
        check(&body, "a\r\n\tb", &mut found);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_text_that_is_too_long_is_checked_up_to_its_maximum_length() {
        let tail = "x".repeat(60);
        for (form, text, found) in [
            (StringFormat::Label, format!("*a* {tail}"), &["too-long", "formatting"][..]),
            (
                StringFormat::Message,
                format!("{{{{1}}}} {{{{x}}}}\u{7} {tail}"),
                &["too-long", "control-character", "placeholder-syntax", "placeholder-at-start"],
            ),
            (
                StringFormat::Link,
                format!("ftp://u@localhost/ {tail}"),
                &["too-long", "url-white-space", "url-scheme", "url-user-info", "url-host"],
            ),
            (
                StringFormat::Message,
                format!("a {{{{ {tail} b"),
                &["too-long", "placeholder-syntax"],
            ),
            // What depends on where the text is cut is not reported.
            (StringFormat::Message, format!("a {{{{2}}}} {}{tail}", ".".repeat(52)), &["too-long"]),
            (StringFormat::Message, format!("{tail}{{{{1}}}}\u{7}"), &["too-long"]),
            (StringFormat::Message, format!("{} {{{{1}}}} a", &tail[..55]), &["too-long"]),
            (StringFormat::Name, format!("a{}b", " ".repeat(60)), &["too-long"]),
            (StringFormat::Name, format!(" a{tail}"), &["too-long", "name-edges"]),
            (StringFormat::Link, format!("https://{tail}["), &["too-long"]),
            (StringFormat::AndroidPackage, tail.clone() + ".a", &["too-long"]),
        ] {
            assert_eq!(rules(form, &text), found, "{form:?} {text}");
        }
    }

    #[test]
    fn one_violation_counts_all_control_characters() {
        let rule = StringRule {
            max: 60,
            whatsapp_max: None,
            multiline: false,
            format: StringFormat::Free,
        };
        for (text, message, hint) in [
            ("a\u{7}", "contains the control character U+0007", "remove it"),
            (
                "a\u{7}\u{8}b\n",
                "contains the control character U+0007 and 2 other such characters",
                "remove them",
            ),
            (
                "a\nb\u{7}",
                "contains the control character U+000A and 1 other such character",
                "write it on one line: line breaks and tabs are only allowed in body texts",
            ),
        ] {
            let mut violations = Vec::new();
            check(&rule, text, &mut violations);
            let [TextViolation { message: found, hint: Some(found_hint), .. }] = &violations[..]
            else {
                panic!("{violations:?}")
            };
            assert_eq!((&**found, &**found_hint), (message, hint));
        }
    }

    #[test]
    fn names_may_contain_spaces_but_not_at_the_edges() {
        assert_eq!(rules(StringFormat::Name, "Spring sale"), [""; 0]);
        assert_eq!(rules(StringFormat::Name, " sale"), ["name-edges"]);
        assert_eq!(rules(StringFormat::Name, "sale\u{3000}"), ["name-edges"]);
    }
}
