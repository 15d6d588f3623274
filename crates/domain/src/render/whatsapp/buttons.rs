//! Buttons of `whatsapp` templates: which of them take a value and how they are rendered.

use super::{actions, report_unknown};
use crate::{
    document::Json,
    render::{
        ADDRESS_MAX,
        message::{Button, Component, Parameter},
        str_field, text_field, value,
        value_reader::{ExpectedValue, ValueReader},
    },
    rulebook::ParameterFormat,
    validation::placeholders,
    violation::{Rule, TextViolation, ViolationCollector, truncated},
};

const PAYLOAD_MAX: usize = 256;

/// A button filled with its value: as the recipient sees it, and the component to send.
struct RenderedButton<'a> {
    shown: Option<Button<'a>>,
    sent: Option<Component<'a>>,
}

/// The buttons as the recipient sees them, and the message components for those with a value.
pub(super) fn fill<'a>(
    buttons: &[Json<'a>],
    format: ParameterFormat,
    coupon_max: usize,
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> (Vec<Button<'a>>, Vec<Component<'a>>) {
    let (mut shown, mut sent) = (Vec::with_capacity(buttons.len()), Vec::new());
    let indices: Vec<usize> =
        (0..buttons.len()).filter(|index| takes_value(&buttons[*index], format)).collect();
    if indices.is_empty() {
        values.expect_nothing("the buttons of this template do not take values", violations);
    } else if values.expect_object("write button indices as keys: `{\"0\": \"…\"}`", violations) {
        values.reject_unknown_buttons(&indices, violations);
    } else {
        return (shown, sent);
    }
    for (index, button) in buttons.iter().enumerate() {
        let value = values.button(index);
        match render_button(button, index, format, coupon_max, &value, violations) {
            Some(rendered) => {
                shown.extend(rendered.shown);
                sent.extend(rendered.sent);
            }
            None => report_unknown("button", str_field(button, "type"), violations),
        }
    }
    (shown, sent)
}

fn takes_value(button: &Json<'_>, format: ParameterFormat) -> bool {
    match str_field(button, "type") {
        Some("URL") => {
            str_field(button, "url").is_some_and(|it| placeholders::base(it, format).is_some())
        }
        Some(
            "QUICK_REPLY" | "COPY_CODE" | "FLOW" | "CATALOG" | "MPM" | "VOICE_CALL"
            | "ORDER_DETAILS",
        ) => true,
        _ => false,
    }
}

/// Renders a button; `None` if its type is unknown or a required field is missing.
fn render_button<'a>(
    button: &Json<'a>,
    index: usize,
    format: ParameterFormat,
    coupon_max: usize,
    value: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Option<RenderedButton<'a>> {
    let label = text_field(button, "text")?;
    let shown = |button| RenderedButton { shown: Some(button), sent: None };
    let component = |sub_type, parameter| {
        Some(Component::Button {
            sub_type,
            index: Some(index.to_string()),
            parameters: vec![parameter],
        })
    };
    Some(match str_field(button, "type")? {
        "PHONE_NUMBER" => {
            let phone_number = text_field(button, "phone_number")?;
            shown(Button::PhoneNumber { text: label, phone_number })
        }
        "SPM" => shown(Button::Spm { text: label }),
        "REQUEST_CONTACT_INFO" => shown(Button::RequestContactInfo { text: label }),
        "URL" => return render_url_button(button, index, format, value, violations),
        "QUICK_REPLY" => {
            let payload =
                value.optional_string(|it| value::check_payload(it, PAYLOAD_MAX), violations);
            let sent = payload
                .and_then(|payload| component("quick_reply", Parameter::Payload { payload }));
            RenderedButton { shown: Some(Button::QuickReply { text: label }), sent }
        }
        "COPY_CODE" => {
            let description = "the code to copy".to_owned();
            let expected = || ExpectedValue { description, sample: sample(button) };
            let check = |code: &str| check_coupon(code, coupon_max);
            let Some(coupon_code) = value.required_string(expected, check, violations) else {
                return Some(RenderedButton { shown: None, sent: None });
            };
            RenderedButton {
                shown: Some(Button::CopyCode { text: Some(label), code: coupon_code }),
                sent: component("copy_code", Parameter::CouponCode { coupon_code }),
            }
        }
        "FLOW" => {
            // WhatsApp requires the component even without a value.
            let action = actions::flow(value, violations);
            let sent = component("flow", Parameter::Action { action });
            RenderedButton { shown: Some(Button::Flow { text: label }), sent }
        }
        "CATALOG" => {
            let action = actions::catalog(value, violations);
            let sent = action.and_then(|action| component("catalog", Parameter::Action { action }));
            RenderedButton { shown: Some(Button::Catalog { text: label }), sent }
        }
        "MPM" => {
            let action = actions::products(value, violations);
            let sent = action.and_then(|action| component("mpm", Parameter::Action { action }));
            RenderedButton { shown: Some(Button::Mpm { text: label }), sent }
        }
        "ORDER_DETAILS" => {
            let action = actions::order(value, violations);
            let sent =
                action.and_then(|action| component("order_details", Parameter::Action { action }));
            RenderedButton { shown: Some(Button::OrderDetails { text: label }), sent }
        }
        "VOICE_CALL" => {
            let parameters = actions::call(value, violations);
            // WhatsApp's samples have no index here: a message has only one such button.
            let component =
                |parameters| Component::Button { sub_type: "voice_call", index: None, parameters };
            let sent = (!parameters.is_empty()).then(|| component(parameters));
            RenderedButton { shown: Some(Button::VoiceCall { text: label }), sent }
        }
        _ => return None,
    })
}

/// Renders a URL button; the end of the URL may be a value.
fn render_url_button<'a>(
    button: &Json<'a>,
    index: usize,
    format: ParameterFormat,
    value: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Option<RenderedButton<'a>> {
    let (label, url) = (text_field(button, "text")?, text_field(button, "url")?);
    let Some(base) = placeholders::base(&url, format) else {
        return Some(RenderedButton { shown: Some(Button::Url { text: label, url }), sent: None });
    };
    let expected = || ExpectedValue {
        description: format!("the end of the URL of the button `{}`", truncated(&label)),
        sample: sample(button),
    };
    let check = |end: &str| value::check_url_end(base, end, ADDRESS_MAX);
    let Some(end) = value.required_string(expected, check, violations) else {
        return Some(RenderedButton { shown: None, sent: None });
    };
    // With NAMED parameters, the placeholder of a URL may be named or numbered.
    let name = url[base.len()..].trim_matches(['{', '}']);
    let parameter_name = (name != "1").then(|| name.to_owned());
    let parameters = vec![Parameter::Text { parameter_name, text: end }];
    let whole = format!("{base}{end}").into();
    Some(RenderedButton {
        shown: Some(Button::Url { text: label, url: whole }),
        sent: Some(Component::Button {
            sub_type: "url",
            index: Some(index.to_string()),
            parameters,
        }),
    })
}

fn check_coupon(code: &str, max: usize) -> Vec<TextViolation> {
    let mut found = value::check_text(code, max);
    if found.is_empty() && !code.bytes().all(|it| it.is_ascii_alphanumeric()) {
        let message = "contains characters other than the letters `A` to `Z` and digits";
        found.push(TextViolation::new(Rule::CodeForm, message).hint("for example `SAVE25`"));
    }
    found
}

fn sample<'t>(button: &'t Json<'_>) -> Option<&'t str> {
    match button.get("example")? {
        Json::Array(samples) => samples.first()?.as_str(),
        sample => sample.as_str(),
    }
}
