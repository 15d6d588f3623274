//! What a string has to be: length, characters and form.

use std::borrow::Cow;

use crate::{
    advice::links,
    language, marks, moment, phrase, placeholder,
    rulebook::{Form, Format, Text, languages},
    violation::{Rule, Span},
};

/// One thing wrong with a string; the reader adds the place.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) rule: Rule,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) span: Option<Span>,
}

impl Fault {
    pub(crate) fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { rule, message: message.into(), hint: None, span: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }
}

/// Checks a string against its row; answers how many placeholders it holds when it may hold any
/// and they are all good.
pub(crate) fn check(rule: &Text, text: &str, faults: &mut Vec<Fault>) -> Option<usize> {
    check_in(Format::Positional, rule, text, faults)
}

/// Checks a string likewise, in a document whose placeholders are written in that format.
pub(crate) fn check_in(
    format: Format,
    rule: &Text,
    text: &str,
    faults: &mut Vec<Fault>,
) -> Option<usize> {
    if text.trim_ascii_start().is_empty() || text.trim().is_empty() {
        faults.push(
            Fault::new(Rule::Empty, "must not be empty or only white space")
                .hint("write something visible"),
        );
        return None;
    }
    // These forms say how long they are, and say it better.
    let sized_by_form = matches!(
        rule.form,
        Form::Language | Form::Locale | Form::Phone | Form::Moment | Form::Signature
    );
    if !sized_by_form && longer_than(text, rule.max) {
        let length = text.chars().count();
        let message = format!("has {length} characters; at most {} are allowed", rule.max);
        let hint = format!("shorten it by {}", length - rule.max);
        let span = Span { start: rule.max, end: length };
        faults.push(Fault::new(Rule::TooLong, message).hint(hint).at(span));
        // A text of any length is not searched for further faults: that work has a limit too.
        return None;
    }
    control_characters(text, rule.multiline, faults);
    form(rule.form, format, text, faults)
}

fn form(form: Form, format: Format, text: &str, faults: &mut Vec<Fault>) -> Option<usize> {
    match form {
        Form::Free => None,
        Form::Name => name(text, faults),
        Form::Language => language::check(text, faults),
        Form::WithPlaceholders => placeholder::scan(text, format, faults),
        Form::WithoutPlaceholders => {
            placeholder::forbid(text, "no placeholder may stand here", faults);
            None
        }
        Form::Url => {
            url(text, faults);
            placeholder::forbid(text, "this address takes no placeholder", faults);
            None
        }
        Form::UrlWithSuffix => {
            let base = text.strip_suffix("{{1}}");
            url(base.unwrap_or(text), faults);
            let why = "an address takes a placeholder only as `{{1}}` at its very end";
            placeholder::forbid(base.unwrap_or(text), why, faults);
            base.is_some().then_some(1)
        }
        Form::Phone => phone(text, faults),
        Form::Moment => moment::check(text, faults),
        Form::Identifier => identifier(text, faults),
        Form::Locale => {
            languages::check(text, faults);
            None
        }
        Form::Headline => {
            marks::forbid(text, true, faults);
            let count = placeholder::scan(text, format, faults);
            phrase::at_most_one(text, count, faults);
            count
        }
        Form::Message => {
            let count = placeholder::scan(text, format, faults);
            phrase::check(text, count, faults);
            count
        }
        Form::Plain => {
            marks::forbid(text, false, faults);
            placeholder::forbid(text, "no placeholder may stand here", faults);
            None
        }
        Form::Link => link(text, format, faults),
        Form::Package => package(text, faults),
        Form::Signature => signature(text, faults),
        Form::Secret => secret(text, faults),
    }
}

/// Whether there are more than `max` characters, counting only when the bytes leave it open.
pub(crate) fn longer_than(text: &str, max: usize) -> bool {
    text.len() > max && text.chars().nth(max).is_some()
}

fn control_characters(text: &str, multiline: bool, faults: &mut Vec<Fault>) {
    let refused =
        |found: char| found.is_control() && !(multiline && matches!(found, '\n' | '\r' | '\t'));
    // Hardly any text holds one; bytes tell that quickly. 0xC2 begins U+0080 to U+00BF.
    if !text.bytes().any(|byte| byte < 0x20 || byte == 0x7f || byte == 0xc2) {
        return;
    }
    if let Some((at, found)) = text.char_indices().find(|(_, found)| refused(*found)) {
        let code = u32::from(found);
        let message = format!("holds the control character U+{code:04X}");
        let span = Span::of(text, at..at + found.len_utf8());
        let hint = if multiline || !matches!(found, '\n' | '\r' | '\t') {
            "remove it"
        } else {
            "write it on one line: only body texts take line breaks and tabs"
        };
        faults.push(Fault::new(Rule::ControlCharacter, message).hint(hint).at(span));
    }
}

fn name(text: &str, faults: &mut Vec<Fault>) -> Option<usize> {
    let trimmed = text.trim();
    if trimmed.len() != text.len() {
        let hint = format!("did you mean `{}`?", shortened(trimmed));
        faults.push(Fault::new(Rule::NameEdges, "begins or ends with white space").hint(hint));
    }
    None
}

fn identifier(text: &str, faults: &mut Vec<Fault>) -> Option<usize> {
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
    faults.push(Fault::new(Rule::NameForm, message).hint(hint).at(span));
    None
}

/// The address of a button. Its end is a placeholder of whatever name: addresses count for
/// themselves.
fn link(text: &str, format: Format, faults: &mut Vec<Fault>) -> Option<usize> {
    let base = placeholder::base(text, format);
    let fixed = base.unwrap_or(text);
    url(fixed, faults);
    let why = "an address takes one placeholder, at its very end";
    placeholder::forbid(fixed, why, faults);
    if links::leads_into_whatsapp(fixed) {
        let hint = "leave it out: WhatsApp refuses buttons that lead to itself";
        faults.push(Fault::new(Rule::WhatsappLink, "leads back into WhatsApp").hint(hint));
    }
    base.map(|_| 1)
}

fn package(text: &str, faults: &mut Vec<Fault>) -> Option<usize> {
    let is_part = |part: &str| {
        part.starts_with(|it: char| it.is_ascii_alphabetic())
            && part.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
    };
    if !text.contains('.') || !text.split('.').all(is_part) {
        let message = format!("`{}` is not the name of an Android package", shortened(text));
        faults.push(Fault::new(Rule::PackageForm, message).hint("like `com.example.shop`"));
    }
    None
}

fn signature(text: &str, faults: &mut Vec<Fault>) -> Option<usize> {
    let fits = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'=');
    if text.len() != 11 || !text.bytes().all(fits) {
        let message = "is not the hash of an app's key: 11 letters, digits, `+`, `/` or `=`";
        faults.push(Fault::new(Rule::SignatureForm, message).hint("like `K8a/AINcGX7`"));
    }
    None
}

/// What is wrong is told without repeating any of it.
fn secret(text: &str, faults: &mut Vec<Fault>) -> Option<usize> {
    if text.len() < 16 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let message = "is no secret: 16 to 256 printable ASCII characters without spaces";
        let hint = "take the app secret as Meta shows it, or leave it out";
        faults.push(Fault::new(Rule::SecretForm, message).hint(hint));
    }
    None
}

fn url(text: &str, faults: &mut Vec<Fault>) {
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    let space = || text.char_indices().find(|(_, found)| found.is_whitespace());
    if !plain && let Some((at, found)) = space() {
        let span = Span::of(text, at..at + found.len_utf8());
        let hint = "remove it, or write it as `%20`";
        faults.push(Fault::new(Rule::UrlWhiteSpace, "holds white space").hint(hint).at(span));
    }
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        let fault = Fault::new(Rule::UrlScheme, "does not begin with `http://` or `https://`");
        let hint = match text.split_once("://") {
            Some((scheme, rest)) if scheme.to_lowercase().starts_with("http") => {
                format!("did you mean `https://{}`?", shortened(rest))
            }
            Some(_) => "only http and https addresses are taken".to_owned(),
            None => format!("did you mean `https://{}`?", shortened(text.trim_start_matches('/'))),
        };
        faults.push(fault.hint(hint));
        return;
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => {
            let hint = "leave out what stands before `@`";
            faults
                .push(Fault::new(Rule::UrlUserInfo, "carries a user name or password").hint(hint));
            host
        }
        None => authority,
    };
    if !is_host_and_port(host) {
        let hint = "an address looks like `https://shop.example/path`";
        faults.push(Fault::new(Rule::UrlHost, "names no host").hint(hint));
    }
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

fn phone(text: &str, faults: &mut Vec<Fault>) -> Option<usize> {
    if is_phone(text) {
        return None;
    }
    let fault = Fault::new(Rule::PhoneForm, format!("`{}` is not a phone number", shortened(text)));
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

/// A caller's own words, short enough to be repeated in a message.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(form: Form, text: &str) -> Vec<&'static str> {
        let mut faults = Vec::new();
        let rule = Text { max: 60, whatsapp_max: None, multiline: false, form };
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
            assert_eq!(faults(Form::Url, good), [""; 0], "{good}");
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
            assert_eq!(faults(Form::Url, bad), [rule], "{bad}");
        }
    }

    #[test]
    fn a_button_url_may_end_in_the_one_placeholder_and_hold_none_elsewhere() {
        let mut none = Vec::new();
        let form = Form::UrlWithSuffix;
        let rule = Text { max: 60, whatsapp_max: None, multiline: false, form };
        assert_eq!(check(&rule, "https://a.b/{{1}}", &mut none), Some(1));
        assert_eq!(check(&rule, "https://a.b/", &mut none), None);
        assert!(none.is_empty(), "{none:?}");
        for (bad, rules) in [
            ("https://a.b/{{1}}/c", &["placeholder-not-allowed"][..]),
            ("https://a.b/{{2}}", &["placeholder-not-allowed"]),
            ("https://a.b/{{1}}{{1}}", &["placeholder-not-allowed"]),
            ("https://{{1}}", &["url-host"]),
        ] {
            assert_eq!(faults(Form::UrlWithSuffix, bad), rules, "{bad}");
        }
    }

    #[test]
    fn phone_numbers() {
        for good in ["+15550001111", "15550001111", "1234567", "+123456789012345"] {
            assert_eq!(faults(Form::Phone, good), [""; 0], "{good}");
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
            assert_eq!(faults(Form::Phone, bad), ["phone-form"], "{bad}");
        }
    }

    #[test]
    fn strings_are_visible_bounded_and_free_of_control_characters() {
        for blank in ["", " ", "\t\n", "\u{a0}\u{3000}"] {
            assert_eq!(faults(Form::Free, blank), ["empty"], "{blank:?}");
        }
        assert_eq!(faults(Form::Free, &"é".repeat(60)), [""; 0]);
        assert_eq!(faults(Form::Free, &"é".repeat(61)), ["too-long"]);
        for control in ['\0', '\n', '\r', '\t', '\u{7f}', '\u{85}', '\u{9f}'] {
            assert_eq!(
                faults(Form::Free, &format!("a{control}b")),
                ["control-character"],
                "{control:?}"
            );
        }
        assert_eq!(faults(Form::Free, "a\u{200b}\u{202e}b"), [""; 0], "invisible is not control");
        let body = Text { max: 60, whatsapp_max: None, multiline: true, form: Form::Free };
        let mut found = Vec::new();
        check(&body, "a\r\n\tb", &mut found);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn names_keep_their_inner_spaces_but_not_their_edges() {
        assert_eq!(faults(Form::Name, "Spring sale"), [""; 0]);
        assert_eq!(faults(Form::Name, " sale"), ["name-edges"]);
        assert_eq!(faults(Form::Name, "sale\u{3000}"), ["name-edges"]);
    }
}
