//! Rendering templates of the `whatsapp` rulebook: values by number or by name, attachments,
//! cards, offers, codes. Every part is filled or complained of; none is passed over.

mod actions;
mod buttons;
mod code;
mod header;
mod parts;
mod spot;
mod words;

use super::{
    Filled, Rendered,
    intake::Need,
    list,
    message::{Card, Component, End, Message, Offer, Parameter, Texts},
    text, word,
};
use crate::{
    document::Json,
    rulebook::{
        Category, MAX_BODY_CHARS, MAX_COUPON_CHARS, MAX_OFFER_COUPON_CHARS, ParameterFormat,
    },
    template::Template,
    validation::timestamp,
    violation::{Rule, TextViolation, Violation, ViolationCollector, shortened},
};
use parts::Parts;
use spot::Spot;
use words::{Limit, Words};

// How long the texts may be once they are filled: what the rulebook says of the texts themselves.
// A test holds the two together.
const HEADER_MAX: usize = 60;
const OFFER_BODY_MAX: usize = 600;
const SMALL_BODY_MAX: usize = 160;

/// How many characters the values of a body may have together when the body is all there is. A value
/// counts as often as it is put in, which keeps answers small.
const VALUES_MAX: usize = 32_768;

/// How long names, ids and tokens may be. WhatsApp tells no limit; this keeps answers small.
const LONGEST: usize = 1_024;

/// How many cards a row of products may have when it is sent.
const PRODUCT_CARDS: std::ops::RangeInclusive<usize> = 2..=10;

/// The moments that an offer may end at, in milliseconds: what is less are seconds.
const EARLIEST_END: i64 = 100_000_000_000;
const LATEST_END: i64 = 253_402_300_799_999;

/// The whole message.
pub(super) fn whole<'a>(
    template: &'a Template,
    content: &Json<'a>,
    values: &'a Json<'a>,
    report: &mut ViolationCollector,
) -> Rendered<'a> {
    let format = word(content, "parameter_format").and_then(ParameterFormat::parse);
    let format = format.unwrap_or(ParameterFormat::Positional);
    let root = Spot::root(values);
    root.only(&["header", "body", "buttons", "cards", "offer"], report);
    let parts = Parts::of(content, report);
    let (texts, components) = if template.category() == Category::Authentication {
        code::fill(&parts, &root, report)
    } else {
        // A card has no place for these: there they are told as strangers.
        if parts.offer.is_none() {
            root.key("offer").nothing("a template without an offer takes no end of one", report);
        }
        if parts.carousel.is_none() {
            root.key("cards").nothing("a template without cards takes no values for them", report);
        }
        let max = body_max(&parts);
        message(&parts, format, max, &root, report)
    };
    Rendered { texts, payload: Message::new(template, components) }
}

/// How long the body may be, which depends on what stands beside it.
fn body_max(parts: &Parts<'_, '_>) -> Limit {
    let buttons = list(parts.buttons, "buttons");
    if parts.only_body() {
        Limit::Values(VALUES_MAX)
    } else if buttons.iter().any(|it| word(it, "type") == Some("SPM")) {
        Limit::Filled(SMALL_BODY_MAX)
    } else if parts.offer.is_some() {
        Limit::Filled(OFFER_BODY_MAX)
    } else {
        Limit::Filled(MAX_BODY_CHARS)
    }
}

/// A message or one of its cards: what is read, and what is sent.
fn message<'a>(
    parts: &Parts<'_, 'a>,
    format: ParameterFormat,
    body_max: Limit,
    spot: &Spot<'a, '_>,
    report: &mut ViolationCollector,
) -> (Texts<'a>, Vec<Component<'a>>) {
    let mut sent = Vec::new();
    let header = parts.header.map(|component| {
        let filled = header::fill(component, format, &spot.key("header"), report);
        filled.unwrap_or_else(|| {
            unknown("header", word(component, "format"), report);
            Filled::default()
        })
    });
    let header = header.unwrap_or_else(|| {
        spot.key("header").nothing("a message without a header takes no values for one", report);
        Filled::default()
    });
    let body = parts.body.map(|component| {
        let words = Words { component, part: "body", format, max: body_max };
        words.fill(&spot.key("body"), report).unwrap_or_else(|| {
            unknown("component", Some("BODY"), report);
            Filled::default()
        })
    });
    let body = body.unwrap_or_else(|| {
        spot.key("body").nothing("a message without a body takes no values for one", report);
        Filled::default()
    });
    if !header.parameters.is_empty() {
        sent.push(Component::Header { parameters: header.parameters });
    }
    if !body.parameters.is_empty() {
        sent.push(Component::Body { parameters: body.parameters });
    }
    let footer = parts.footer.and_then(|it| {
        let footer = text(it, "text");
        if footer.is_none() {
            unknown("component", Some("FOOTER"), report);
        }
        footer
    });
    let offer = offer(parts.offer, &spot.key("offer"), report);
    if let Some(expiration_time_ms) = offer.as_ref().and_then(|it| it.expiration_time_ms) {
        let limited_time_offer = End { expiration_time_ms };
        let parameters = [Parameter::LimitedTimeOffer { limited_time_offer }];
        sent.push(Component::LimitedTimeOffer { parameters });
    }
    let defined = list(parts.buttons, "buttons");
    if parts.buttons.is_some() && defined.is_empty() {
        unknown("component", Some("BUTTONS"), report);
    }
    let coupon_max = if parts.offer.is_some() { MAX_OFFER_COUPON_CHARS } else { MAX_COUPON_CHARS };
    let (buttons, taken) = buttons::fill(defined, format, coupon_max, &spot.key("buttons"), report);
    sent.extend(taken);
    let cards = cards(parts.carousel, format, &spot.key("cards"), report);
    let (shown, cards): (Vec<_>, Vec<_>) = cards.into_iter().unzip();
    if !cards.is_empty() {
        sent.push(Component::Carousel { cards });
    }
    let texts = Texts {
        header: header.text,
        body: body.text,
        footer,
        buttons,
        offer,
        call_permission_request: parts.call_permission.is_some(),
        cards: shown,
    };
    (texts, sent)
}

/// The cards, as they are read and as they are sent: as many as the template has. Only products
/// may be more, since the template shows what two of them look like.
fn cards<'a>(
    carousel: Option<&Json<'a>>,
    format: ParameterFormat,
    spot: &Spot<'a, '_>,
    report: &mut ViolationCollector,
) -> Vec<(Texts<'a>, Card<'a>)> {
    let Some(carousel) = carousel else { return Vec::new() };
    let defined = list(Some(carousel), "cards");
    if defined.is_empty() {
        unknown("component", Some("CAROUSEL"), report);
    }
    if !spot.is_list("write a list with an object for each card", report) {
        return Vec::new();
    }
    let defined: Vec<Parts<'_, 'a>> = defined.iter().map(|it| Parts::of(it, report)).collect();
    let product =
        |it: &Parts<'_, '_>| it.header.is_some_and(|it| word(it, "format") == Some("PRODUCT"));
    let count = if !defined.is_empty() && defined.iter().all(product) {
        spot.items().len().clamp(*PRODUCT_CARDS.start(), *PRODUCT_CARDS.end())
    } else {
        defined.len()
    };
    let mut cards = Vec::with_capacity(count);
    for (card_index, parts) in
        (0..count).filter_map(|at| Some((at, defined.get(at).or(defined.last())?)))
    {
        let place = spot.item(card_index);
        let hint = "write an object with `header`, `body` and `buttons`";
        if !place.is_object(hint, report) {
            continue;
        }
        place.only(&["header", "body", "buttons"], report);
        let (texts, components) =
            message(parts, format, Limit::Filled(SMALL_BODY_MAX), &place, report);
        cards.push((texts, Card { card_index, components }));
    }
    spot.at_most(count, report);
    cards
}

/// The offer, and when it ends if it does.
fn offer<'a>(
    component: Option<&Json<'a>>,
    spot: &Spot<'a, '_>,
    report: &mut ViolationCollector,
) -> Option<Offer<'a>> {
    let component = component?;
    let details = component.get("limited_time_offer");
    let Some(text) = details.and_then(|details| text(details, "text")) else {
        unknown("component", Some("LIMITED_TIME_OFFER"), report);
        return None;
    };
    let ends = matches!(details.and_then(|it| it.get("has_expiration")), Some(Json::Bool(true)));
    let expiration_time_ms = if ends {
        end(spot, report)
    } else {
        spot.nothing("an offer that does not end takes no values", report);
        None
    };
    Some(Offer { text, expiration_time_ms })
}

/// A moment in milliseconds since 1970, or as RFC 3339 writes it.
fn end(spot: &Spot<'_, '_>, report: &mut ViolationCollector) -> Option<i64> {
    match spot.value() {
        None => {
            let what = "the moment when the offer ends".to_owned();
            spot.missing(|| Need { what, sample: Some("2026-11-15T09:30:00Z") }, report);
            None
        }
        Some(Json::String(written)) => {
            let mut faults = Vec::new();
            timestamp::check(written, &mut faults);
            spot.faults(faults, report);
            timestamp::parse(written).map(jiff::Timestamp::as_millisecond)
        }
        Some(Json::Number(_)) => spot.integer(EARLIEST_END, LATEST_END, report),
        Some(_) => {
            let hint = "write it in milliseconds since 1970, or as `2026-11-15T09:30:00Z`";
            spot.wrong_type("a number or a string", hint, report);
            None
        }
    }
}

/// A part of the template itself that cannot be filled: no value can mend that.
fn unknown(what: &str, word: Option<&str>, report: &mut ViolationCollector) {
    report.add(|| {
        let word = shortened(word.unwrap_or("?"));
        let message = format!("the template holds a {what} `{word}` that cannot be rendered");
        let hint = "edit the template by today's rules; no value helps".to_owned();
        let TextViolation { rule, message, hint, span } =
            TextViolation::new(Rule::PartUnknown, message).hint(hint);
        Violation { pointer: String::new(), rule, message, hint, span }
    });
}
