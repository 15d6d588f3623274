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

/// Fills a message that delivers a code: the texts and the components to send.
///
/// WhatsApp generates the texts in the language of the template. The texts returned here are
/// Galley's own, always in English, and only approximate what the recipient sees.
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
    let advice = components.body.and_then(|it| it.get("add_security_recommendation"));
    let advice = if let Some(Json::Bool(true)) = advice { " Keep it to yourself." } else { "" };
    texts.body = Some(format!("Your code is {code}.{advice}").into());
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

/// The code: the only value of the body, as a string or in a list.
fn read_code<'a>(
    value: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Option<&'a str> {
    let expected = || ExpectedValue { description: "the code".to_owned(), sample: Some("123456") };
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
    let minutes = footer.get("code_expiration_minutes")?.as_i64();
    if minutes.is_none() {
        report_unknown("component", Some("FOOTER"), violations);
    }
    let plural = if minutes == Some(1) { "" } else { "s" };
    minutes.map(|minutes| format!("The code is good for {minutes} minute{plural}.").into())
}
