//! What a string has to be: length, characters and form.

mod address;

pub(crate) use address::is_bare_host;

use std::borrow::Cow;

use crate::{
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
    if text.trim_start().is_empty() {
        faults.push(
            Fault::new(Rule::Empty, "must not be empty or only white space")
                .hint("write something visible"),
        );
        return None;
    }
    // These forms say how long they are, and say it better.
    let sized_by_form = matches!(
        rule.form,
        Form::Language
            | Form::Locale
            | Form::Phone
            | Form::Dialled
            | Form::Moment
            | Form::Signature
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
    control_characters(text, rule, faults);
    form(rule.form, format, text, faults)
}

fn form(form: Form, format: Format, text: &str, faults: &mut Vec<Fault>) -> Option<usize> {
    match form {
        Form::Free => None,
        Form::Name => name(text, faults),
        Form::Language => language::check(text, faults),
        Form::WithPlaceholders => placeholder::numbered(text, faults),
        Form::WithoutPlaceholders => {
            placeholder::forbid(text, "no placeholder may stand here", faults);
            None
        }
        Form::Url => {
            address::url(text, faults);
            placeholder::forbid(text, "this address takes no placeholder", faults);
            None
        }
        Form::UrlWithSuffix => {
            let base = text.strip_suffix("{{1}}");
            address::url(base.unwrap_or(text), faults);
            let why = "an address takes a placeholder only as `{{1}}` at its very end";
            placeholder::forbid(base.unwrap_or(text), why, faults);
            base.is_some().then_some(1)
        }
        Form::Phone => address::phone(text, faults),
        Form::Dialled => address::dialled(text, faults),
        Form::Moment => moment::check(text, faults),
        Form::Identifier => identifier(text, faults),
        Form::Locale => {
            languages::check(text, faults);
            None
        }
        Form::Headline => {
            marks::forbid(text, marks::IN_HEADLINES, faults);
            let count = placeholder::scan(text, format, faults);
            phrase::at_most_one(text, count, faults);
            count
        }
        Form::Message => {
            let count = placeholder::scan(text, format, faults);
            phrase::edges(text, faults);
            phrase::enough_words(text, count, faults);
            count
        }
        Form::CardMessage => {
            let count = placeholder::scan(text, format, faults);
            phrase::edges(text, faults);
            count
        }
        Form::Plain | Form::Label => {
            let marks = if form == Form::Label { marks::IN_LABELS } else { &[] };
            marks::forbid(text, marks, faults);
            placeholder::forbid(text, "no placeholder may stand here", faults);
            None
        }
        Form::Link => address::link(text, format, faults),
        Form::Package => package(text, faults),
        Form::Signature => signature(text, faults),
        Form::Secret => secret(text, faults),
    }
}

/// Whether there are more than `max` characters, counting only when the bytes leave it open.
pub(crate) fn longer_than(text: &str, max: usize) -> bool {
    text.len() > max && text.chars().nth(max).is_some()
}

/// Whether a text has such a byte. All of them are looked at, which a processor does many at a time:
/// stopping at the first one found would make it look at each by itself.
pub(crate) fn has_byte(text: &str, is_such: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(false, |has, byte| has | is_such(byte))
}

/// Whether that byte stands twice in a row in a text, found out likewise.
pub(crate) fn has_pair(text: &str, of: u8) -> bool {
    let bytes = text.as_bytes();
    let is_it = |(first, second): (&u8, &u8)| *first == of && *second == of;
    bytes.iter().zip(bytes.get(1..).unwrap_or_default()).fold(false, |has, it| has | is_it(it))
}

/// What parts lines and paragraphs without being a control character.
pub(crate) fn is_separator(character: char) -> bool {
    matches!(character, '\u{2028}' | '\u{2029}')
}

/// Whether a string is one line in every respect: separators are line breaks there, too.
pub(crate) fn is_one_line(rule: &Text) -> bool {
    !rule.multiline && matches!(rule.form, Form::Headline | Form::Plain | Form::Label)
}

fn control_characters(text: &str, rule: &Text, faults: &mut Vec<Fault>) {
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
    fn strings_are_visible_bounded_and_free_of_control_characters() {
        for blank in ["", " ", "\t\n", "\u{a0}\u{3000}"] {
            assert_eq!(faults(Form::Free, blank), ["empty"], "{blank:?}");
        }
        assert_eq!(faults(Form::Free, &"é".repeat(60)), [""; 0]);
        assert_eq!(faults(Form::Free, &"é".repeat(61)), ["too-long"]);
        for separator in ["a\u{2028}b", "a\u{2029}b"] {
            for form in [Form::Headline, Form::Plain, Form::Label] {
                assert_eq!(faults(form, separator), ["control-character"], "{form:?}");
            }
            assert_eq!(faults(Form::Free, separator), [""; 0]);
        }
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
