//! Checks URLs and phone numbers.

use std::net::{IpAddr, Ipv4Addr};

use crate::{
    document::text::has_byte,
    rulebook::ParameterFormat,
    validation::{
        placeholders::{self, PlaceholderCount},
        warnings::links,
    },
    violation::{Rule, Span, TextViolation, did_you_mean, truncated},
};

/// Maximum length of a phone number under the `whatsapp` rulebook, in characters.
const MAX_PHONE_CHARS: usize = 20;

/// Minimum number of digits of a phone number under the `whatsapp` rulebook.
const MIN_PHONE_DIGITS: usize = 5;

const ONLY_HTTP: &str = "only http and https URLs are accepted";

/// Checks a URL whose scheme must be in lower case and that must not contain placeholders.
pub(super) fn check_url(text: &str, violations: &mut Vec<TextViolation>) {
    check_base(text, "", violations);
    placeholders::forbid(text, "placeholders are not allowed in this URL", violations);
}

/// Checks a URL that may end in `{{1}}`.
pub(super) fn check_url_with_suffix(
    text: &str,
    violations: &mut Vec<TextViolation>,
) -> PlaceholderCount {
    let base = text.strip_suffix("{{1}}");
    let fixed = base.unwrap_or(text);
    check_base(fixed, &text[fixed.len()..], violations);
    let message = "a URL may contain a placeholder only as `{{1}}` at its very end";
    placeholders::forbid(fixed, message, violations);
    placeholders::of_url(base, text)
}

/// Checks the part of a URL before `suffix`, except for placeholders.
fn check_base(text: &str, suffix: &str, violations: &mut Vec<TextViolation>) {
    check_whitespace(text, violations);
    if let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) {
        return check_host(rest, violations);
    }
    let rest = match split_scheme(text) {
        Some((scheme, rest)) if scheme.to_lowercase().starts_with("http") => rest,
        Some((_, rest)) => {
            violations.push(invalid_scheme(ONLY_HTTP.to_owned()));
            return check_host(rest, violations);
        }
        None => text.trim_start_matches('/'),
    };
    let mut remaining = Vec::new();
    check_whitespace(rest, &mut remaining);
    check_host(rest, &mut remaining);
    placeholders::forbid(rest, "", &mut remaining);
    violations.push(invalid_scheme(suggestion(&format!("https://{rest}{suffix}"), &remaining)));
}

/// Checks the URL of a button, which may end in a placeholder. The placeholder of each URL is
/// numbered separately from those of the text.
pub(super) fn check_link(
    text: &str,
    format: ParameterFormat,
    violations: &mut Vec<TextViolation>,
) -> PlaceholderCount {
    let base = placeholders::base(text, format);
    let fixed = base.unwrap_or(text);
    // Whitespace between braces is reported as an invalid placeholder.
    check_whitespace(fixed.split("{{").next().unwrap_or_default(), violations);
    let scheme = scheme(fixed);
    if !matches!(scheme, Some("http" | "https")) {
        violations.push(invalid_scheme(scheme_hint(scheme, text, format)));
    }
    if let Some((_, rest)) = split_scheme(fixed) {
        check_host(rest, violations);
    }
    placeholders::only_at_end(fixed, base.is_some(), format, violations);
    if is_own_device(host(fixed)) {
        let hint = "write the URL of a website that recipients can open";
        let message = "leads to the recipient's own device";
        violations.push(TextViolation::new(Rule::UrlHost, message).hint(hint));
    }
    if links::is_whatsapp_url(fixed) {
        let hint = "remove it: WhatsApp rejects buttons that lead back to WhatsApp";
        violations
            .push(TextViolation::new(Rule::WhatsappLink, "leads back to WhatsApp").hint(hint));
    }
    placeholders::of_url(base, text)
}

/// The scheme of a URL, known or not, and the part after it.
fn split_scheme(url: &str) -> Option<(&str, &str)> {
    let is_scheme = |it: &str| it.bytes().all(|byte| byte.is_ascii_alphanumeric());
    url.split_once("://").filter(|(scheme, _)| is_scheme(scheme))
}

/// The known scheme that a URL begins with.
fn scheme(text: &str) -> Option<&'static str> {
    const SCHEMES: [(&str, &str); 6] = [
        ("https", "://"),
        ("http", "://"),
        ("tel", ":"),
        ("sms", ":"),
        ("mailto", ":"),
        ("whatsapp", ":"),
    ];
    let is_scheme = |(name, end): &&(&str, &str)| {
        let rest = text.split_at_checked(name.len());
        rest.is_some_and(|(start, rest)| start.eq_ignore_ascii_case(name) && rest.starts_with(end))
    };
    SCHEMES.iter().find(is_scheme).map(|(name, _)| *name)
}

/// The hint for a URL without an accepted scheme.
fn scheme_hint(scheme: Option<&str>, text: &str, format: ParameterFormat) -> String {
    let plain = text.trim_start_matches('/');
    match scheme {
        Some("tel") => "use a PHONE_NUMBER button to call a number".to_owned(),
        Some(_) => ONLY_HTTP.to_owned(),
        None if split_scheme(text).is_some() => ONLY_HTTP.to_owned(),
        None if plain.is_empty() || plain.starts_with("{{") => {
            "begin with a fixed URL and put the placeholder after it: `https://shop.example/{{1}}`"
                .to_owned()
        }
        None => {
            let url = format!("https://{plain}");
            let mut remaining = Vec::new();
            check_link(&url, format, &mut remaining);
            suggestion(&url, &remaining)
        }
    }
}

/// Suggests a URL unless it has violations.
fn suggestion(url: &str, violations: &[TextViolation]) -> String {
    if violations.is_empty() && !url.contains(char::is_control) {
        did_you_mean(url).unwrap_or_else(|| "begin it with `https://`".to_owned())
    } else {
        "write a URL such as `https://shop.example/path`".to_owned()
    }
}

fn invalid_scheme(hint: String) -> TextViolation {
    TextViolation::new(Rule::UrlScheme, "does not begin with `http://` or `https://`").hint(hint)
}

fn check_whitespace(text: &str, violations: &mut Vec<TextViolation>) {
    let is_graphic = !has_byte(text, |byte| !byte.is_ascii_graphic());
    if is_graphic {
        return;
    }
    let mut whitespace = text.chars().enumerate().filter(|(_, found)| found.is_whitespace());
    if let Some((at, _)) = whitespace.next() {
        let message = match whitespace.count() {
            0 => "contains whitespace".to_owned(),
            others => format!("contains {} whitespace characters", others + 1),
        };
        let hint = "remove it, or write it as `%20`";
        let span = Span { start: at, end: at + 1 };
        violations.push(TextViolation::new(Rule::UrlWhiteSpace, message).hint(hint).at(span));
    }
}

/// Checks that the part after the scheme begins with a host and has no user name.
fn check_host(rest: &str, violations: &mut Vec<TextViolation>) {
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => {
            let hint = "remove everything before the `@`";
            violations.push(
                TextViolation::new(Rule::UrlUserInfo, "contains a user name or password")
                    .hint(hint),
            );
            host
        }
        None => authority,
    };
    if !is_host_and_port(host) {
        let hint = "write a URL such as `https://shop.example/path`";
        violations.push(TextViolation::new(Rule::UrlHost, "has no valid host").hint(hint));
    }
}

/// The host of a URL, without user name, port, final dot and placeholders.
pub(crate) fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let authority = authority.split("{{").next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    };
    host.trim_end_matches('.')
}

/// The IP address that a host is.
pub(crate) fn ip_address(host: &str) -> Option<IpAddr> {
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    address.or_else(|| ipv4_address(host).map(IpAddr::V4)).map(|it| it.to_canonical())
}

/// The IPv4 address in one of the forms that browsers also accept: with fewer than four numbers, of
/// which the last fills the rest of the address, and with octal and hexadecimal numbers.
fn ipv4_address(host: &str) -> Option<Ipv4Addr> {
    let number = |part: &str| {
        let is_number = !part.is_empty() && part.bytes().all(|it| it.is_ascii_alphanumeric());
        let hexadecimal = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X"));
        let (digits, radix) = match hexadecimal {
            Some(digits) => (digits, 16),
            None if part.len() > 1 && part.starts_with('0') => (part, 8),
            None => (part, 10),
        };
        u32::from_str_radix(digits, radix).ok().filter(|_| is_number)
    };
    let mut address: u32 = 0;
    let mut unused_bytes: u32 = 4;
    let mut parts = host.split('.').peekable();
    while let Some(part) = parts.next() {
        let number = number(part)?;
        let bytes = if parts.peek().is_some() { 1 } else { unused_bytes };
        unused_bytes = unused_bytes.checked_sub(bytes)?;
        let fits = bytes == 4 || bytes > 0 && number >> (8 * bytes) == 0;
        address |= fits.then_some(number)?.checked_shl(8 * unused_bytes)?;
    }
    Some(address.into())
}

/// Whether a host is the device that opens its URL.
pub(crate) fn is_own_device(host: &str) -> bool {
    let top_level = host.rsplit('.').next().unwrap_or_default();
    let is_loopback = ip_address(host).is_some_and(|address| address.is_loopback());
    is_loopback || top_level.eq_ignore_ascii_case("localhost")
}

/// Whether a URL ends with its host or port, so that appended text would extend it. A backslash
/// does not count as the end of the host, because programs disagree about it.
pub(crate) fn is_bare_host(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    !rest.contains(['/', '?', '#'])
}

fn is_host_and_port(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let is_name = |host: &str| {
        host.chars().any(char::is_alphanumeric)
            && host.chars().all(|it| it.is_alphanumeric() || matches!(it, '-' | '.' | '_'))
    };
    let is_ipv6 = |host: &str| {
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        inner.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
    };
    (is_name(host) || is_ipv6(host)) && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// Checks a phone number under the `v1` rulebook.
pub(super) fn check_phone(text: &str, violations: &mut Vec<TextViolation>) {
    if is_phone(text) {
        return;
    }
    let violation =
        TextViolation::new(Rule::PhoneForm, format!("`{}` is not a phone number", truncated(text)));
    // Suggest the number without common separators.
    let digits: String =
        text.chars().filter(|it| !matches!(it, ' ' | '-' | '.' | '/' | '(' | ')')).collect();
    violations.push(if is_phone(&digits) {
        violation.hint(format!("did you mean `{digits}`?"))
    } else {
        violation.hint("write the country code and the number in digits: `+15550001111`")
    });
}

fn is_phone(text: &str) -> bool {
    let digits = text.strip_prefix('+').unwrap_or(text);
    (7..=15).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0')
}

/// Checks a phone number under the `whatsapp` rulebook, which allows separators.
pub(super) fn check_whatsapp_phone(text: &str, violations: &mut Vec<TextViolation>) {
    let number = text.strip_prefix('+').unwrap_or(text);
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    let is_allowed = |it: u8| it.is_ascii_digit() || matches!(it, b' ' | b'-' | b'.' | b'(' | b')');
    if text.len() > MAX_PHONE_CHARS || digits < MIN_PHONE_DIGITS || !number.bytes().all(is_allowed)
    {
        let message = format!("`{}` is not a phone number", truncated(text));
        let hint =
            "write the country code and the number, in at most 20 characters: `+15550001111`";
        violations.push(TextViolation::new(Rule::PhoneForm, message).hint(hint));
    }
}

#[cfg(test)]
mod tests;
