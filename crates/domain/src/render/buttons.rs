//! Buttons of `v1` templates: which of them take a value and how they are rendered.

use super::{
    ADDRESS_MAX, CODE_MAX, array_field,
    message::{Button, Component, Parameter},
    str_field, text_field, value,
    value_reader::{ExpectedValue, ValueReader},
};
use crate::{
    document::Json,
    violation::{ViolationCollector, truncated},
};

/// The buttons as the recipient sees them, and the message components for those with a value.
pub(super) fn fill<'a>(
    component: Option<&Json<'a>>,
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> (Vec<Button<'a>>, Vec<Component<'a>>) {
    let buttons = array_field(component, "buttons");
    let strings = read_strings(buttons, values, violations);
    let (mut shown, mut sent) = (Vec::with_capacity(buttons.len()), Vec::new());
    for (index, (button, string)) in buttons.iter().zip(strings).enumerate() {
        shown.extend(show(button, string, &values.button(index), violations));
        let parameter = string.and_then(|string| parameter(button, string));
        sent.extend(parameter.map(|(sub_type, parameter)| Component::Button {
            sub_type,
            index: Some(index.to_string()),
            parameters: vec![parameter],
        }));
    }
    (shown, sent)
}

/// The string for each button; `None` for a button that takes none, or if it is missing.
fn read_strings<'a>(
    buttons: &[Json<'_>],
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Vec<Option<&'a str>> {
    let mut strings = vec![None; buttons.len()];
    let indices: Vec<usize> =
        (0..buttons.len()).filter(|index| takes_value(&buttons[*index])).collect();
    if indices.is_empty() {
        values.expect_nothing("this template does not take values here", violations);
        return strings;
    }
    let hint = "write an object with button indices as keys: `{\"0\": \"…\"}`";
    if !values.expect_object(hint, violations) {
        return strings;
    }
    values.reject_unknown_buttons(&indices, violations);
    for index in indices {
        let expected = || expected_value(&buttons[index]);
        let unchecked = |_: &str| Vec::new();
        strings[index] = values.button(index).required_string(expected, unchecked, violations);
    }
    strings
}

fn takes_value(button: &Json<'_>) -> bool {
    match str_field(button, "type") {
        Some("URL") => url_base(button).is_some(),
        Some("COPY_CODE") => true,
        _ => false,
    }
}

fn expected_value<'t>(button: &'t Json<'_>) -> ExpectedValue<'t> {
    let description = match (str_field(button, "type"), str_field(button, "text")) {
        (Some("URL"), Some(label)) => {
            format!("the end of the URL of the button `{}`", truncated(label))
        }
        (Some("URL"), None) => "the end of the URL".to_owned(),
        _ => "the code to copy".to_owned(),
    };
    let sample = match button.get("example") {
        Some(Json::Array(samples)) => samples.first().and_then(Json::as_str),
        sample => sample.and_then(Json::as_str),
    };
    ExpectedValue { description, sample }
}

/// The button as the recipient sees it; `None` if it is of an unknown type.
fn show<'a>(
    button: &Json<'a>,
    string: Option<&'a str>,
    value: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Option<Button<'a>> {
    let label = || text_field(button, "text");
    match str_field(button, "type")? {
        "QUICK_REPLY" => Some(Button::QuickReply { text: label()? }),
        "PHONE_NUMBER" => Some(Button::PhoneNumber {
            text: label()?,
            phone_number: text_field(button, "phone_number")?,
        }),
        "URL" => {
            let url = match url_base(button) {
                Some(base) => {
                    let end = string?;
                    value.report_all(value::check_url_end(base, end, ADDRESS_MAX), violations);
                    format!("{base}{end}").into()
                }
                None => text_field(button, "url")?,
            };
            Some(Button::Url { text: label()?, url })
        }
        "COPY_CODE" => {
            let code = string?;
            value.report_all(value::check_text(code, CODE_MAX), violations);
            Some(Button::CopyCode { text: None, code })
        }
        _ => None,
    }
}

/// The parameter of the message, and the `sub_type` of its component.
fn parameter<'a>(button: &Json<'a>, value: &'a str) -> Option<(&'static str, Parameter<'a>)> {
    match str_field(button, "type")? {
        "URL" => Some(("url", Parameter::text(value))),
        "COPY_CODE" => Some(("copy_code", Parameter::CouponCode { coupon_code: value })),
        _ => None,
    }
}

/// The fixed beginning of a URL that ends in a placeholder.
fn url_base<'t>(button: &'t Json<'_>) -> Option<&'t str> {
    str_field(button, "url")?.strip_suffix("{{1}}")
}
