//! The envelope of a message: the recipient, and the name and language of the template.

use super::{
    findings::Findings,
    position::Position,
    refusal::{Refusal, RefusalCode},
};
use crate::{
    document::{Document, Json, text::longer_than},
    violation::truncated,
};

/// The number of digits of a phone number with its country code.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// Maximum length of a template's name, in characters.
const NAME_MAX: usize = 512;

/// Maximum length of the language of a template, in characters.
const LANGUAGE_MAX: usize = 32;

/// Maximum length of the data that is returned with statuses, in characters.
const CALLBACK_DATA_MAX: usize = 512;

/// A template message whose envelope is valid. Its components are unchecked until
/// [`super::check`].
pub struct Message<'d> {
    /// The recipient as written.
    pub to: String,
    /// The recipient's phone number: its digits, with the country code.
    pub wa_id: String,
    /// The name of the template.
    pub name: &'d str,
    /// The language of the template.
    pub language: &'d str,
    /// `biz_opaque_callback_data`, which is returned with each status of the message.
    pub callback_data: Option<&'d str>,
    root: &'d Json<'d>,
}

impl<'d> Message<'d> {
    /// Reads the body of a send request. Returns the message or every violation of the envelope.
    /// Unknown fields are ignored.
    pub fn read(document: &'d Document<'d>) -> Result<Self, Refusal> {
        let mut findings = Findings::default();
        let message = read(document.root(), &mut findings);
        findings.into_result(document.root(), message)
    }

    pub(super) fn root(&self) -> &'d Json<'d> {
        self.root
    }

    pub(super) fn components(&self) -> Position<'d> {
        Position::root(self.root).field("template").field("components")
    }
}

/// The message; `None` after reporting at least one violation.
fn read<'d>(document: &'d Json<'d>, findings: &mut Findings) -> Option<Message<'d>> {
    let root = Position::root(document);
    if !matches!(root.value, Some(Json::Object(_))) {
        findings.add(&root, RefusalCode::ParameterInvalid, || {
            format!("the message must be a JSON object, not {}", root.kind())
        });
        return None;
    }
    let product = required_string(&root.field("messaging_product"), findings);
    if product.is_some_and(|it| !it.eq_ignore_ascii_case("whatsapp")) {
        let at = root.field("messaging_product");
        findings.add(&at, RefusalCode::ParameterInvalid, || {
            "messaging_product must be `whatsapp`".to_owned()
        });
    }
    let recipient_type = optional_string(&root.field("recipient_type"), findings);
    if recipient_type.is_some_and(|it| !it.eq_ignore_ascii_case("individual")) {
        let at = root.field("recipient_type");
        findings.add(&at, RefusalCode::ParameterInvalid, || {
            "recipient_type must be `individual`: the sandbox does not send to groups".to_owned()
        });
    }
    let recipient = recipient(&root.field("to"), findings);
    let kind = required_string(&root.field("type"), findings);
    let template = match kind {
        Some(kind) if kind.eq_ignore_ascii_case("template") => {
            template(&root.field("template"), findings)
        }
        Some(kind) => {
            findings.add(&root.field("type"), RefusalCode::MessageType, || {
                let kind = truncated(kind);
                format!("the sandbox sends template messages only: type must be `template`, not `{kind}`")
            });
            None
        }
        None => None,
    };
    let data = root.field("biz_opaque_callback_data");
    let callback_data = optional_string(&data, findings);
    if callback_data.is_some_and(|it| longer_than(it, CALLBACK_DATA_MAX)) {
        findings.add(&data, RefusalCode::ParameterInvalid, || {
            format!("biz_opaque_callback_data has more than {CALLBACK_DATA_MAX} characters")
        });
    }
    product?;
    let ((to, wa_id), (name, language)) = (recipient?, template?);
    Some(Message { to, wa_id, name, language, callback_data, root: document })
}

/// The recipient as written, and its digits. People write phone numbers with a plus, spaces,
/// hyphens, dots and parentheses; some programs write a JSON number.
fn recipient(at: &Position<'_>, findings: &mut Findings) -> Option<(String, String)> {
    let to = match at.value {
        Some(number @ Json::Number(_)) => {
            number.as_positive_integer().map(|it| it.to_string()).unwrap_or_default()
        }
        _ => required_string(at, findings)?.to_owned(),
    };
    let digits: String = to.chars().filter(char::is_ascii_digit).collect();
    let is_allowed =
        |it: char| it.is_ascii_digit() || matches!(it, '+' | ' ' | '-' | '.' | '(' | ')');
    let is_first = |it: char| it.is_ascii_digit() || matches!(it, '+' | '(');
    let is_plus_first = to.rfind('+').is_none_or(|at| at == 0);
    let is_number = to.starts_with(is_first) && is_plus_first && to.chars().all(is_allowed);
    if is_number && PHONE_DIGITS.contains(&digits.len()) {
        return Some((to, digits));
    }
    findings.add(at, RefusalCode::ParameterInvalid, || {
        let (min, max) = (PHONE_DIGITS.start(), PHONE_DIGITS.end());
        format!("to must be a phone number with its country code, {min} to {max} digits")
    });
    None
}

/// The name and the language of the template.
fn template<'d>(at: &Position<'d>, findings: &mut Findings) -> Option<(&'d str, &'d str)> {
    if !expect_object(at, "template", findings) {
        return None;
    }
    let name = required_string(&at.field("name"), findings);
    if name.is_some_and(|it| longer_than(it, NAME_MAX)) {
        findings.add(&at.field("name"), RefusalCode::ParameterInvalid, || {
            format!("name has more than {NAME_MAX} characters")
        });
    }
    let language = at.field("language");
    let code = if expect_object(&language, "language", findings) {
        let policy = optional_string(&language.field("policy"), findings);
        if policy.is_some_and(|it| !it.eq_ignore_ascii_case("deterministic")) {
            let at = language.field("policy");
            findings.add(&at, RefusalCode::ParameterInvalid, || {
                "policy must be `deterministic`".to_owned()
            });
        }
        let code = required_string(&language.field("code"), findings);
        if code.is_some_and(|it| longer_than(it, LANGUAGE_MAX)) {
            findings.add(&language.field("code"), RefusalCode::ParameterInvalid, || {
                format!("code has more than {LANGUAGE_MAX} characters")
            });
        }
        code
    } else {
        None
    };
    let components = at.field("components");
    if !matches!(components.value, None | Some(Json::Array(_))) {
        findings.add(&components, RefusalCode::ParameterInvalid, || {
            format!("components must be a list, not {}", components.kind())
        });
    }
    Some((name?, code?))
}

/// Whether the value is an object; reports an absent one and any other.
fn expect_object(at: &Position<'_>, name: &str, findings: &mut Findings) -> bool {
    match at.value {
        Some(Json::Object(_)) => return true,
        None => findings
            .add(at, RefusalCode::ParameterMissing, || format!("the parameter {name} is missing")),
        Some(_) => findings.add(at, RefusalCode::ParameterInvalid, || {
            format!("{name} must be an object, not {}", at.kind())
        }),
    }
    false
}

/// A string that is not empty; reports an absent one and any other value.
fn required_string<'d>(at: &Position<'d>, findings: &mut Findings) -> Option<&'d str> {
    if at.value.is_none() {
        findings.add(at, RefusalCode::ParameterMissing, || {
            format!("the parameter {} is missing", at.name())
        });
    }
    let text = optional_string(at, findings)?;
    if text.trim().is_empty() {
        findings
            .add(at, RefusalCode::ParameterInvalid, || format!("{} must not be empty", at.name()));
        return None;
    }
    Some(text)
}

/// A string, if there is a value; reports any other value.
fn optional_string<'d>(at: &Position<'d>, findings: &mut Findings) -> Option<&'d str> {
    at.value?;
    let text = at.as_str();
    if text.is_none() {
        findings.add(at, RefusalCode::ParameterInvalid, || {
            format!("{} must be a string, not {}", at.name(), at.kind())
        });
    }
    text
}
