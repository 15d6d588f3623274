//! Buttons: which kinds take a value, and what becomes of it.

use super::{
    ADDRESS_MAX, CODE_MAX,
    intake::{Intake, Need, Place},
    list,
    message::{Button, Component, Parameter},
    text, value, word,
};
use crate::{document::Json, violation::shortened};

/// The buttons as they are shown, and the parts of the message for those that take values.
pub(super) fn fill<'a>(
    component: Option<&Json<'a>>,
    intake: &mut Intake<'a, '_>,
) -> (Vec<Button<'a>>, Vec<Component<'a>>) {
    let buttons = list(component, "buttons");
    let wanted: Vec<bool> = buttons.iter().map(takes_value).collect();
    let values = intake.buttons(&wanted, |index| need(&buttons[index]));
    let (mut shown, mut taken) = (Vec::with_capacity(buttons.len()), Vec::new());
    for (index, (button, value)) in buttons.iter().zip(values).enumerate() {
        let place = Place::Item("buttons", index);
        shown.extend(show(button, value, place, intake));
        let parameter = value.and_then(|value| parameter(button, value));
        taken.extend(parameter.map(|(sub_type, parameter)| Component::Button {
            sub_type,
            index: Some(index.to_string()),
            parameters: vec![parameter],
        }));
    }
    (shown, taken)
}

fn takes_value(button: &Json<'_>) -> bool {
    match word(button, "type") {
        Some("URL") => open_address(button).is_some(),
        Some("COPY_CODE") => true,
        _ => false,
    }
}

/// What a button needs that takes a value.
fn need<'t>(button: &'t Json<'_>) -> Need<'t> {
    let what = match (word(button, "type"), word(button, "text")) {
        (Some("URL"), Some(label)) => {
            format!("the end of the address behind `{}`", shortened(label))
        }
        (Some("URL"), None) => "the end of the address".to_owned(),
        _ => "the code that is copied".to_owned(),
    };
    let sample = match button.get("example") {
        Some(Json::Array(samples)) => samples.first().and_then(Json::as_str),
        sample => sample.and_then(Json::as_str),
    };
    Need { what, sample }
}

/// How a button is shown; a kind that is not known yet is not.
fn show<'a>(
    button: &Json<'a>,
    value: Option<&'a str>,
    place: Place<'_>,
    intake: &mut Intake<'a, '_>,
) -> Option<Button<'a>> {
    let label = || text(button, "text");
    match word(button, "type")? {
        "QUICK_REPLY" => Some(Button::QuickReply { text: label()? }),
        "PHONE_NUMBER" => Some(Button::PhoneNumber {
            text: label()?,
            phone_number: text(button, "phone_number")?,
        }),
        "URL" => {
            let url = match open_address(button) {
                Some(base) => {
                    let end = value?;
                    intake.faults(place, value::end_of_address(base, end, ADDRESS_MAX));
                    format!("{base}{end}").into()
                }
                None => text(button, "url")?,
            };
            Some(Button::Url { text: label()?, url })
        }
        "COPY_CODE" => {
            let code = value?;
            intake.faults(place, value::plain(code, CODE_MAX));
            Some(Button::CopyCode { text: None, code })
        }
        _ => None,
    }
}

/// How a button's value is sent.
fn parameter<'a>(button: &Json<'a>, value: &'a str) -> Option<(&'static str, Parameter<'a>)> {
    match word(button, "type")? {
        "URL" => Some(("url", Parameter::text(value))),
        "COPY_CODE" => Some(("copy_code", Parameter::CouponCode { coupon_code: value })),
        _ => None,
    }
}

/// The fixed beginning of an address whose end is a value.
fn open_address<'t>(button: &'t Json<'_>) -> Option<&'t str> {
    word(button, "url")?.strip_suffix("{{1}}")
}
