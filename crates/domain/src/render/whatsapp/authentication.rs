//! AUTHENTICATION templates: one code, which is in the body and in the button.

use std::borrow::Cow;

use super::{components::Components, report_unknown};
use crate::{
    document::Json,
    render::{
        array_field,
        message::{Button, Component, Parameter, Texts},
        str_field, text_field, value,
        value_reader::{ExpectedValue, ValueReader},
    },
    violation::ViolationCollector,
};

const CODE_MAX: usize = 15;

/// A sample of a code.
pub(crate) const SAMPLE_CODE: &str = "123456";

/// Fills a message that delivers a code: the texts and the components to send.
///
/// WhatsApp generates the texts in the language of the template; see [`body_text`].
pub(super) fn fill<'a>(
    components: &Components<'_, 'a>,
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> (Texts<'a>, Vec<Component<'a>>) {
    let mut texts = Texts::default();
    let unsupported = [
        ("HEADER", components.header),
        ("CAROUSEL", components.carousel),
        ("LIMITED_TIME_OFFER", components.offer),
        ("CALL_PERMISSION_REQUEST", components.call_permission),
    ];
    for (kind, _) in unsupported.into_iter().filter(|(_, component)| component.is_some()) {
        report_unknown("component", Some(kind), violations);
    }
    for member in ["header", "buttons", "cards", "offer"] {
        // The button gets the code without a value of its own.
        let message = "an AUTHENTICATION template takes only its code";
        values.field(member).expect_nothing(message, violations);
    }
    texts.footer = components.footer.and_then(|it| footer(it, violations));
    let Some(code) = read_code(&values.field("body"), violations) else {
        return (texts, Vec::new());
    };
    texts.body = Some(body_text(components.body).replace("{{1}}", code).into());
    let mut sent = vec![Component::Body { parameters: vec![Parameter::text(code)] }];
    for (index, button) in array_field(components.buttons, "buttons").iter().enumerate() {
        match (str_field(button, "type"), text_field(button, "text")) {
            (Some("OTP"), Some(label)) if index == 0 => {
                let autofill_text = text_field(button, "autofill_text");
                texts.buttons.push(Button::Otp { text: label, autofill_text, code });
                sent.push(Component::Button {
                    sub_type: "url",
                    index: Some(index.to_string()),
                    parameters: vec![Parameter::text(code)],
                });
            }
            (kind, _) => report_unknown("button", kind, violations),
        }
    }
    (texts, sent)
}

/// The text of a body, in which the code is `{{1}}`. It is Galley's own, always in English, and only
/// approximates what the recipient sees.
pub(crate) fn body_text(component: Option<&Json<'_>>) -> &'static str {
    match component.and_then(|it| it.get("add_security_recommendation")) {
        Some(Json::Bool(true)) => "Your code is {{1}}. Keep it to yourself.",
        _ => "Your code is {{1}}.",
    }
}

/// The text of a footer without one: when the code expires. Galley's own, as [`body_text`] is.
pub(crate) fn footer_text(footer: &Json<'_>) -> Option<String> {
    let minutes = footer.get("code_expiration_minutes")?.as_i64()?;
    let plural = if minutes == 1 { "" } else { "s" };
    Some(format!("The code is good for {minutes} minute{plural}."))
}

/// The code: the only value of the body, as a string or in a list.
fn read_code<'a>(
    value: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Option<&'a str> {
    let expected =
        || ExpectedValue { description: "the code".to_owned(), sample: Some(SAMPLE_CODE) };
    let check = |code: &str| value::check_line(code, CODE_MAX);
    match value.value() {
        None | Some(Json::Array(_)) => {
            let code = value.item(0).required_string(expected, check, violations);
            value.reject_extra_items(1, violations);
            code
        }
        Some(Json::String(_) | Json::Number(_)) => {
            value.required_string(expected, check, violations)
        }
        Some(_) => {
            let hint = "write the code as a string or in a list, `[\"123456\"]`";
            value.report_wrong_type("a string or a list", hint, violations);
            None
        }
    }
}

fn footer<'a>(footer: &Json<'a>, violations: &mut ViolationCollector) -> Option<Cow<'a, str>> {
    if let Some(text) = text_field(footer, "text") {
        return Some(text);
    }
    footer.get("code_expiration_minutes")?;
    let text = footer_text(footer);
    if text.is_none() {
        report_unknown("component", Some("FOOTER"), violations);
    }
    text.map(Cow::Owned)
}
