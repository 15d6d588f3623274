//! Buttons: which kinds take a value, how they are shown, and what is sent for them.

use super::{actions, spot::Spot, unknown};
use crate::{
    document::Json,
    render::{
        ADDRESS_MAX,
        intake::Need,
        message::{Button, Component, Parameter},
        text, value, word,
    },
    rulebook::ParameterFormat,
    validation::placeholders,
    violation::{Rule, TextViolation, ViolationCollector, shortened},
};

const PAYLOAD_MAX: usize = 256;

/// A button with its value in place: how it is shown, and what is sent for it.
struct Pressed<'a> {
    shown: Option<Button<'a>>,
    sent: Option<Component<'a>>,
}

/// The buttons as they are shown, and the parts of the message for those that take values.
pub(super) fn fill<'a>(
    buttons: &[Json<'a>],
    format: ParameterFormat,
    coupon_max: usize,
    spot: &Spot<'a, '_>,
    report: &mut ViolationCollector,
) -> (Vec<Button<'a>>, Vec<Component<'a>>) {
    let (mut shown, mut sent) = (Vec::with_capacity(buttons.len()), Vec::new());
    let numbers: Vec<(usize, String)> = (0..buttons.len())
        .filter(|index| takes_value(&buttons[*index], format))
        .map(|index| (index, index.to_string()))
        .collect();
    if numbers.is_empty() {
        spot.nothing("the buttons of this template take no values", report);
    } else if spot.is_object("write the numbers of buttons as keys: `{\"0\": \"…\"}`", report) {
        strangers(&numbers, spot, report);
    } else {
        return (shown, sent);
    }
    let mut numbers = numbers.into_iter().peekable();
    for (index, button) in buttons.iter().enumerate() {
        let number = numbers.next_if(|(it, _)| *it == index).map(|(_, number)| number);
        let place = spot.key(number.as_deref().unwrap_or_default());
        match press(button, index, format, coupon_max, &place, report) {
            Some(pressed) => {
                shown.extend(pressed.shown);
                sent.extend(pressed.sent);
            }
            None => unknown("button", word(button, "type"), report),
        }
    }
    (shown, sent)
}

/// Keys that are the number of no button that takes a value.
fn strangers(numbers: &[(usize, String)], spot: &Spot<'_, '_>, report: &mut ViolationCollector) {
    let Some(Json::Object(members)) = spot.value() else { return };
    let given = members.iter().filter(|it| !matches!(it.value, Json::Null));
    for key in given.map(|it| &*it.key).filter(|key| numbers.iter().all(|(_, it)| it != key)) {
        spot.stranger(key).tell(report, || {
            let plain = key.parse::<usize>().is_ok_and(|number| number.to_string() == key);
            let message = if plain {
                format!("button {key} takes no value")
            } else {
                format!("`{}` is not the number of a button", shortened(key))
            };
            let listed: Vec<&str> = numbers.iter().map(|(_, it)| &**it).collect();
            let hint = format!("counted from 0, these take a value: `{}`", listed.join("`, `"));
            TextViolation::new(Rule::ValueSuperfluous, message).hint(hint)
        });
    }
}

fn takes_value(button: &Json<'_>, format: ParameterFormat) -> bool {
    match word(button, "type") {
        Some("URL") => {
            word(button, "url").is_some_and(|it| placeholders::base(it, format).is_some())
        }
        Some(
            "QUICK_REPLY" | "COPY_CODE" | "FLOW" | "CATALOG" | "MPM" | "VOICE_CALL"
            | "ORDER_DETAILS",
        ) => true,
        _ => false,
    }
}

/// One button; nothing when it is of a kind that nobody knows, or lacks what its kind has.
fn press<'a>(
    button: &Json<'a>,
    index: usize,
    format: ParameterFormat,
    coupon_max: usize,
    spot: &Spot<'a, '_>,
    report: &mut ViolationCollector,
) -> Option<Pressed<'a>> {
    let label = text(button, "text")?;
    let shown = |button| Pressed { shown: Some(button), sent: None };
    let part = |sub_type, parameter| {
        Some(Component::Button {
            sub_type,
            index: Some(index.to_string()),
            parameters: vec![parameter],
        })
    };
    Some(match word(button, "type")? {
        "PHONE_NUMBER" => {
            let phone_number = text(button, "phone_number")?;
            shown(Button::PhoneNumber { text: label, phone_number })
        }
        "SPM" => shown(Button::Spm { text: label }),
        "REQUEST_CONTACT_INFO" => shown(Button::RequestContactInfo { text: label }),
        "URL" => return address(button, index, format, spot, report),
        "QUICK_REPLY" => {
            let payload = spot.optional(|it| value::payload(it, PAYLOAD_MAX), report);
            let sent =
                payload.and_then(|payload| part("quick_reply", Parameter::Payload { payload }));
            Pressed { shown: Some(Button::QuickReply { text: label }), sent }
        }
        "COPY_CODE" => {
            let what = || "the code that is copied".to_owned();
            let need = || Need { what: what(), sample: sample(button) };
            let Some(coupon_code) = spot.string(need, |it| coupon(it, coupon_max), report) else {
                return Some(Pressed { shown: None, sent: None });
            };
            Pressed {
                shown: Some(Button::CopyCode { text: Some(label), code: coupon_code }),
                sent: part("copy_code", Parameter::CouponCode { coupon_code }),
            }
        }
        "FLOW" => {
            // WhatsApp wants the part even when nothing is given with it.
            let action = actions::flow(spot, report);
            let sent = part("flow", Parameter::Action { action });
            Pressed { shown: Some(Button::Flow { text: label }), sent }
        }
        "CATALOG" => {
            let action = actions::catalog(spot, report);
            let sent = action.and_then(|action| part("catalog", Parameter::Action { action }));
            Pressed { shown: Some(Button::Catalog { text: label }), sent }
        }
        "MPM" => {
            let action = actions::products(spot, report);
            let sent = action.and_then(|action| part("mpm", Parameter::Action { action }));
            Pressed { shown: Some(Button::Mpm { text: label }), sent }
        }
        "ORDER_DETAILS" => {
            let action = actions::order(spot, report);
            let sent =
                action.and_then(|action| part("order_details", Parameter::Action { action }));
            Pressed { shown: Some(Button::OrderDetails { text: label }), sent }
        }
        "VOICE_CALL" => {
            let parameters = actions::call(spot, report);
            // It is the only one of its kind, and WhatsApp's samples give it no number.
            let part =
                |parameters| Component::Button { sub_type: "voice_call", index: None, parameters };
            let sent = (!parameters.is_empty()).then(|| part(parameters));
            Pressed { shown: Some(Button::VoiceCall { text: label }), sent }
        }
        _ => return None,
    })
}

/// A button that leads to an address, whose end may be a value.
fn address<'a>(
    button: &Json<'a>,
    index: usize,
    format: ParameterFormat,
    spot: &Spot<'a, '_>,
    report: &mut ViolationCollector,
) -> Option<Pressed<'a>> {
    let (label, url) = (text(button, "text")?, text(button, "url")?);
    let Some(base) = placeholders::base(&url, format) else {
        return Some(Pressed { shown: Some(Button::Url { text: label, url }), sent: None });
    };
    let what = || format!("the end of the address behind `{}`", shortened(&label));
    let need = || Need { what: what(), sample: sample(button) };
    let check = |end: &str| value::end_of_address(base, end, ADDRESS_MAX);
    let Some(end) = spot.string(need, check, report) else {
        return Some(Pressed { shown: None, sent: None });
    };
    // Under NAMED the end may have a name; it may be numbered all the same.
    let name = url[base.len()..].trim_matches(['{', '}']);
    let parameter_name = (name != "1").then(|| name.to_owned());
    let parameters = vec![Parameter::Text { parameter_name, text: end }];
    let whole = format!("{base}{end}").into();
    Some(Pressed {
        shown: Some(Button::Url { text: label, url: whole }),
        sent: Some(Component::Button {
            sub_type: "url",
            index: Some(index.to_string()),
            parameters,
        }),
    })
}

fn coupon(code: &str, max: usize) -> Vec<TextViolation> {
    let mut faults = value::plain(code, max);
    if faults.is_empty() && !code.bytes().all(|it| it.is_ascii_alphanumeric()) {
        let message = "holds something else than letters from `A` to `Z` and digits";
        faults.push(TextViolation::new(Rule::CodeForm, message).hint("like `SAVE25`"));
    }
    faults
}

fn sample<'t>(button: &'t Json<'_>) -> Option<&'t str> {
    match button.get("example")? {
        Json::Array(samples) => samples.first()?.as_str(),
        sample => sample.as_str(),
    }
}
