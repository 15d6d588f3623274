//! Addresses and phone numbers.

use crate::{
    document::text::has_byte,
    violation::{TextViolation, shortened},
};
use crate::{
    rulebook::ParameterFormat,
    validation::{placeholders, warnings::links},
    violation::{Rule, Span},
};

/// How many characters a number that is dialled may have, and how many digits it has at least.
const LONGEST_DIALLED: usize = 20;
const FEWEST_DIGITS: usize = 5;

/// An address, whose scheme is written in small letters.
pub(super) fn url(text: &str, faults: &mut Vec<TextViolation>) {
    white_space(text, faults);
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        let hint = match text.split_once("://") {
            Some((scheme, rest)) if scheme.to_lowercase().starts_with("http") => {
                format!("did you mean `https://{}`?", shortened(rest))
            }
            Some(_) => "only http and https addresses are taken".to_owned(),
            None => format!("did you mean `https://{}`?", shortened(text.trim_start_matches('/'))),
        };
        faults.push(no_scheme(hint));
        return;
    };
    host(rest, faults);
}

/// The address of a button. Its end is a placeholder of whatever name: addresses count for
/// themselves.
pub(super) fn link(
    text: &str,
    format: ParameterFormat,
    faults: &mut Vec<TextViolation>,
) -> Option<usize> {
    let base = placeholders::base(text, format);
    let fixed = base.unwrap_or(text);
    // What is wrong between braces is told of the braces.
    white_space(fixed.split("{{").next().unwrap_or_default(), faults);
    match scheme(fixed) {
        Some("http" | "https") => host(&fixed[fixed.find("://").map_or(0, |at| at + 3)..], faults),
        other => faults.push(no_scheme(instead_of(other, fixed))),
    }
    placeholders::only_at_end(fixed, format, faults);
    if links::leads_into_whatsapp(fixed) {
        let hint = "leave it out: WhatsApp refuses buttons that lead to itself";
        faults.push(TextViolation::new(Rule::WhatsappLink, "leads back into WhatsApp").hint(hint));
    }
    base.map(|_| 1)
}

/// What an address begins with, before `://` or, for what is no place on the web, before `:`.
fn scheme(text: &str) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 6] = [
        ("https", "://"),
        ("http", "://"),
        ("tel", ":"),
        ("sms", ":"),
        ("mailto", ":"),
        ("whatsapp", ":"),
    ];
    let begins = |(name, end): &&(&str, &str)| {
        let rest = text.split_at_checked(name.len());
        rest.is_some_and(|(it, rest)| it.eq_ignore_ascii_case(name) && rest.starts_with(end))
    };
    KNOWN.iter().find(begins).map(|(name, _)| *name)
}

/// What to write instead of an address that is none.
fn instead_of(scheme: Option<&str>, text: &str) -> String {
    let plain = text.trim_start_matches('/');
    match scheme {
        Some("tel") => "take a PHONE_NUMBER button for a number that is called".to_owned(),
        Some(_) => "only http and https addresses are taken".to_owned(),
        None if text.contains("://") => "only http and https addresses are taken".to_owned(),
        None if plain.is_empty() || plain.starts_with("{{") => {
            "begin with a fixed address, and put the placeholder behind it: `https://shop.example/{{1}}`"
                .to_owned()
        }
        None => format!("did you mean `https://{}`?", shortened(plain)),
    }
}

fn no_scheme(hint: String) -> TextViolation {
    TextViolation::new(Rule::UrlScheme, "does not begin with `http://` or `https://`").hint(hint)
}

fn white_space(text: &str, faults: &mut Vec<TextViolation>) {
    let is_plain = !has_byte(text, |byte| !byte.is_ascii_graphic());
    let space = || text.char_indices().find(|(_, found)| found.is_whitespace());
    if !is_plain && let Some((at, found)) = space() {
        let span = Span::of(text, at..at + found.len_utf8());
        let hint = "remove it, or write it as `%20`";
        faults
            .push(TextViolation::new(Rule::UrlWhiteSpace, "holds white space").hint(hint).at(span));
    }
}

/// What stands behind the scheme begins with a host and nobody's name.
fn host(rest: &str, faults: &mut Vec<TextViolation>) {
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => {
            let hint = "leave out what stands before `@`";
            faults.push(
                TextViolation::new(Rule::UrlUserInfo, "carries a user name or password").hint(hint),
            );
            host
        }
        None => authority,
    };
    if !is_host_and_port(host) {
        let hint = "an address looks like `https://shop.example/path`";
        faults.push(TextViolation::new(Rule::UrlHost, "names no host").hint(hint));
    }
}

/// Whether an address ends with its host or port, so that whatever is put behind it goes on with
/// that. A backslash ends it for some programs and not for others.
pub(crate) fn is_bare_host(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    !rest.contains(['/', '?', '#'])
}

fn is_host_and_port(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let named = |host: &str| {
        host.chars().any(char::is_alphanumeric)
            && host.chars().all(|it| it.is_alphanumeric() || matches!(it, '-' | '.' | '_'))
    };
    let numbered = |host: &str| {
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
    };
    (named(host) || numbered(host)) && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// A phone number as API v1.0 takes it.
pub(super) fn phone(text: &str, faults: &mut Vec<TextViolation>) -> Option<usize> {
    if is_phone(text) {
        return None;
    }
    let fault =
        TextViolation::new(Rule::PhoneForm, format!("`{}` is not a phone number", shortened(text)));
    // What people write with spaces, dots and brackets is meant without them.
    let digits: String =
        text.chars().filter(|it| !matches!(it, ' ' | '-' | '.' | '/' | '(' | ')')).collect();
    faults.push(if is_phone(&digits) {
        fault.hint(format!("did you mean `{digits}`?"))
    } else {
        fault.hint("write the country code and the number in digits: `+15550001111`")
    });
    None
}

fn is_phone(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or(text);
    (7..=15).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0')
}

/// A phone number as WhatsApp takes it: people may write it as they say it.
pub(super) fn dialled(text: &str, faults: &mut Vec<TextViolation>) -> Option<usize> {
    let number = text.strip_prefix('+').unwrap_or(text);
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    let fits = |it: u8| it.is_ascii_digit() || matches!(it, b' ' | b'-' | b'.' | b'(' | b')');
    if text.len() > LONGEST_DIALLED || digits < FEWEST_DIGITS || !number.bytes().all(fits) {
        let message = format!("`{}` is not a phone number", shortened(text));
        let hint =
            "write the country code and the number, in at most 20 characters: `+15550001111`";
        faults.push(TextViolation::new(Rule::PhoneForm, message).hint(hint));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        rulebook::{StringFormat, StringRule},
        validation::formats::check,
    };

    fn faults(form: StringFormat, text: &str) -> Vec<&'static str> {
        let mut faults = Vec::new();
        let rule = StringRule { max: 60, whatsapp_max: None, multiline: false, format: form };
        check(&rule, text, &mut faults);
        faults.iter().map(|fault| fault.rule.id()).collect()
    }

    #[test]
    fn urls() {
        for good in [
            "http://a.b",
            "https://a",
            "https://a.b:8080/x?y=z#w",
            "https://bücher.example/ü",
            "https://[::1]/x",
            "https://192.0.2.1",
            "http://a.b/@me",
            "https://a.b/x{y}",
        ] {
            assert_eq!(faults(StringFormat::Url, good), [""; 0], "{good}");
        }
        for (bad, rule) in [
            ("ftp://a.b", "url-scheme"),
            ("HTTPS://a.b", "url-scheme"),
            ("a.b/c", "url-scheme"),
            ("javascript:alert(1)", "url-scheme"),
            ("https://", "url-host"),
            ("https:///x", "url-host"),
            ("https://?x", "url-host"),
            ("https://:80", "url-host"),
            ("https://a:99999", "url-host"),
            ("https://..", "url-host"),
            ("https://a:+80", "url-host"),
            ("https://u:p@a.b/", "url-user-info"),
            ("https://a.b/ c", "url-white-space"),
            ("https://a.b/\u{a0}", "url-white-space"),
            ("https://a.b/{{1}}", "placeholder-not-allowed"),
        ] {
            assert_eq!(faults(StringFormat::Url, bad), [rule], "{bad}");
        }
    }

    #[test]
    fn a_button_url_may_end_in_the_one_placeholder_and_hold_none_elsewhere() {
        let mut none = Vec::new();
        let form = StringFormat::UrlWithSuffix;
        let rule = StringRule { max: 60, whatsapp_max: None, multiline: false, format: form };
        assert_eq!(check(&rule, "https://a.b/{{1}}", &mut none), Some(1));
        assert_eq!(check(&rule, "https://a.b/", &mut none), None);
        assert!(none.is_empty(), "{none:?}");
        for (bad, rules) in [
            ("https://a.b/{{1}}/c", &["placeholder-not-allowed"][..]),
            ("https://a.b/{{2}}", &["placeholder-not-allowed"]),
            ("https://a.b/{{1}}{{1}}", &["placeholder-not-allowed"]),
            ("https://{{1}}", &["url-host"]),
        ] {
            assert_eq!(faults(StringFormat::UrlWithSuffix, bad), rules, "{bad}");
        }
    }

    #[test]
    fn phone_numbers() {
        for good in ["+15550001111", "15550001111", "1234567", "+123456789012345"] {
            assert_eq!(faults(StringFormat::Phone, good), [""; 0], "{good}");
        }
        for bad in [
            "+1 555 000 1111",
            "0123456789",
            "123456",
            "1234567890123456",
            "++1555000111",
            "abc",
            "+",
        ] {
            assert_eq!(faults(StringFormat::Phone, bad), ["phone-form"], "{bad}");
        }
    }

    #[test]
    fn numbers_that_are_dialled_may_be_written_as_they_are_said() {
        for good in [
            "+15550001111",
            "12345",
            "+55-0-955-585-95436",
            "+1 (555) 000.1111",
            "0800 123456",
            "12345678901234567890",
        ] {
            assert_eq!(faults(StringFormat::DialledPhone, good), [""; 0], "{good}");
        }
        for bad in
            ["1234", "+1-2-3-4", "123456789012345678901", "1+23456", "++123456", "12345a", "+"]
        {
            assert_eq!(faults(StringFormat::DialledPhone, bad), ["phone-form"], "{bad}");
        }
    }

    #[test]
    fn what_is_no_address_of_a_button_is_told_with_its_cure() {
        let cure = |format: ParameterFormat, text: &str| {
            let mut faults = Vec::new();
            link(text, format, &mut faults);
            let [TextViolation { rule, hint: Some(hint), .. }] = &faults[..] else {
                panic!("{faults:?}")
            };
            (rule.id(), hint.clone())
        };
        let named = ParameterFormat::Named;
        for (format, text, rule, hint) in [
            (ParameterFormat::Positional, "{{1}}", "url-scheme", "begin with a fixed address"),
            (
                ParameterFormat::Positional,
                "tel:+15550001111",
                "url-scheme",
                "take a PHONE_NUMBER button",
            ),
            (ParameterFormat::Positional, "mailto:me@a.b", "url-scheme", "only http and https"),
            (ParameterFormat::Positional, "ftp://a.b", "url-scheme", "only http and https"),
            (ParameterFormat::Positional, "a.b/c", "url-scheme", "did you mean `https://a.b/c`?"),
            (
                ParameterFormat::Positional,
                "https://a.b/{{2}}",
                "placeholder-not-allowed",
                "write `{{1}}`: each address counts for itself",
            ),
            (
                ParameterFormat::Positional,
                "https://a.b/{{ 1 }}",
                "placeholder-not-allowed",
                "write `{{1}}`",
            ),
            (named, "https://a.b/{{Code}}", "placeholder-not-allowed", "did you mean `{{code}}`?"),
            (
                ParameterFormat::Positional,
                "https://a.b/{{code}}",
                "placeholder-not-allowed",
                "write `{{1}}`, or add",
            ),
            (
                ParameterFormat::Positional,
                "https://a.b/{{1}}/x",
                "placeholder-not-allowed",
                "put it at the very end",
            ),
            (
                ParameterFormat::Positional,
                "https://a.b/{{1}}{{1}}",
                "placeholder-not-allowed",
                "keep the last one only",
            ),
        ] {
            let (told, cure) = cure(format, text);
            assert_eq!(told, rule, "{text}");
            assert!(cure.starts_with(hint), "{text}: {cure}");
        }
        let mut none = Vec::new();
        assert_eq!(link("HTTPS://a.b/{{1}}", ParameterFormat::Positional, &mut none), Some(1));
        assert!(none.is_empty(), "{none:?}");
    }
}
