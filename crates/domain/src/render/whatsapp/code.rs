//! Authentication templates: one code, which stands in the text and behind the button.

use std::borrow::Cow;

use super::{parts::Parts, spot::Spot, unknown};
use crate::{
    document::Json,
    render::{
        intake::Need,
        list,
        message::{Button, Component, Parameter, Texts},
        text, value, word,
    },
    violation::ViolationCollector,
};

const CODE_MAX: usize = 15;

/// The texts and the parts of a message that hands over a code.
///
/// WhatsApp writes the texts itself, in the language of the template. These here are our own
/// words, and English in every language: they show what is said, not how.
pub(super) fn fill<'a>(
    parts: &Parts<'_, 'a>,
    spot: &Spot<'a, '_>,
    report: &mut ViolationCollector,
) -> (Texts<'a>, Vec<Component<'a>>) {
    let mut texts = Texts::default();
    let others = [
        ("HEADER", parts.header),
        ("CAROUSEL", parts.carousel),
        ("LIMITED_TIME_OFFER", parts.offer),
        ("CALL_PERMISSION_REQUEST", parts.call_permission),
    ];
    for (kind, _) in others.into_iter().filter(|(_, part)| part.is_some()) {
        unknown("component", Some(kind), report);
    }
    for member in ["header", "buttons", "cards", "offer"] {
        // The button takes the code by itself.
        spot.key(member)
            .nothing("an AUTHENTICATION template takes its code and nothing else", report);
    }
    texts.footer = parts.footer.and_then(|it| footer(it, report));
    let Some(code) = code(&spot.key("body"), report) else { return (texts, Vec::new()) };
    let keep = parts.body.and_then(|it| it.get("add_security_recommendation"));
    let keep = if let Some(Json::Bool(true)) = keep { " Keep it to yourself." } else { "" };
    texts.body = Some(format!("Your code is {code}.{keep}").into());
    let mut components = vec![Component::Body { parameters: vec![Parameter::text(code)] }];
    for (index, button) in list(parts.buttons, "buttons").iter().enumerate() {
        match (word(button, "type"), text(button, "text")) {
            (Some("OTP"), Some(label)) if index == 0 => {
                let autofill_text = text(button, "autofill_text");
                texts.buttons.push(Button::Otp { text: label, autofill_text, code });
                components.push(Component::Button {
                    sub_type: "url",
                    index: Some(index.to_string()),
                    parameters: vec![Parameter::text(code)],
                });
            }
            (kind, _) => unknown("button", kind, report),
        }
    }
    (texts, components)
}

/// The code: the one value of the body, in a list or by itself.
fn code<'a>(spot: &Spot<'a, '_>, report: &mut ViolationCollector) -> Option<&'a str> {
    let need = || Need { what: "the code".to_owned(), sample: Some("123456") };
    let check = |code: &str| value::on_one_line(code, CODE_MAX);
    match spot.value() {
        None | Some(Json::Array(_)) => {
            let code = spot.item(0).string(need, check, report);
            spot.at_most(1, report);
            code
        }
        Some(Json::String(_) | Json::Number(_)) => spot.string(need, check, report),
        Some(_) => {
            let hint = "write the code by itself or in a list, `[\"123456\"]`";
            spot.wrong_type("a string or a list", hint, report);
            None
        }
    }
}

fn footer<'a>(footer: &Json<'a>, report: &mut ViolationCollector) -> Option<Cow<'a, str>> {
    if let Some(text) = text(footer, "text") {
        return Some(text);
    }
    let minutes = footer.get("code_expiration_minutes")?.as_i64();
    if minutes.is_none() {
        unknown("component", Some("FOOTER"), report);
    }
    let plural = if minutes == Some(1) { "" } else { "s" };
    minutes.map(|minutes| format!("The code is good for {minutes} minute{plural}.").into())
}
