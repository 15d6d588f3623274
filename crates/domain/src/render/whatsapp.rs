//! Renders templates of the `whatsapp` rulebook: numbered and named values, attachments, cards,
//! offers and one-time codes. A component that cannot be rendered is reported, never skipped.

mod actions;
pub(crate) mod authentication;
mod buttons;
pub(crate) mod components;
mod header;
mod text;

use super::{
    Filled, Rendered, array_field,
    message::{Card, Component, Message, Offer, OfferEnd, Parameter, Texts},
    str_field, text_field,
    value_reader::{ExpectedValue, ValueReader},
};
use crate::{
    document::Json,
    rulebook::{
        Category, MAX_BODY_CHARS, MAX_COUPON_CHARS, MAX_OFFER_COUPON_CHARS, ParameterFormat,
    },
    template::Template,
    validation::timestamp,
    violation::{Rule, TextViolation, Violation, ViolationCollector, truncated},
};
use components::Components;
use text::{LengthLimit, TextTemplate};

// Maximum lengths of the filled texts, in characters. They equal the rulebook's limits for the
// texts themselves; a test compares them.
const HEADER_MAX: usize = 60;
const OFFER_BODY_MAX: usize = 600;
const SMALL_BODY_MAX: usize = 160;

/// Maximum total length of the values of a body that is the only component, in characters. A value
/// counts once for each of its placeholders, which bounds the size of responses.
const BODY_VALUES_MAX: usize = 32_768;

/// Maximum length of names, ids and tokens, in characters. WhatsApp documents no limit; this one
/// bounds the size of responses.
const NAME_MAX: usize = 1_024;

/// The number of cards that a message with product cards may have.
const PRODUCT_CARDS: std::ops::RangeInclusive<usize> = 2..=10;

/// The range of an offer's end in milliseconds since 1970. Smaller numbers are likely seconds.
const MIN_OFFER_END_MS: i64 = 100_000_000_000;
const MAX_OFFER_END_MS: i64 = 253_402_300_799_999;

/// Renders the whole message.
pub(super) fn render<'a>(
    template: &'a Template,
    content: &Json<'a>,
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Rendered<'a> {
    let format = str_field(content, "parameter_format").and_then(ParameterFormat::parse);
    let format = format.unwrap_or(ParameterFormat::Positional);
    values.reject_unknown_members(&["header", "body", "buttons", "cards", "offer"], violations);
    let components = Components::of(content, violations);
    let (texts, sent) = if template.category() == Category::Authentication {
        authentication::fill(&components, values, violations)
    } else {
        // On a card, these two are reported as unknown members instead.
        if components.offer.is_none() {
            let message = "this template does not have an offer that ends";
            values.field("offer").expect_nothing(message, violations);
        }
        if components.carousel.is_none() {
            let message = "this template does not have cards";
            values.field("cards").expect_nothing(message, violations);
        }
        let max = body_max(&components);
        fill_message(&components, format, max, values, violations)
    };
    Rendered { texts, payload: Message::new(template, sent) }
}

/// The length limit of the body, which depends on the other components.
fn body_max(components: &Components<'_, '_>) -> LengthLimit {
    let buttons = array_field(components.buttons, "buttons");
    if components.has_only_body() {
        LengthLimit::Values(BODY_VALUES_MAX)
    } else if buttons.iter().any(|it| str_field(it, "type") == Some("SPM")) {
        LengthLimit::FilledText(SMALL_BODY_MAX)
    } else if components.offer.is_some() {
        LengthLimit::FilledText(OFFER_BODY_MAX)
    } else {
        LengthLimit::FilledText(MAX_BODY_CHARS)
    }
}

/// Fills a message or one of its cards: the texts and the components to send.
fn fill_message<'a>(
    components: &Components<'_, 'a>,
    format: ParameterFormat,
    body_max: LengthLimit,
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> (Texts<'a>, Vec<Component<'a>>) {
    let mut sent = Vec::new();
    let header = components.header.map(|component| {
        let filled = header::fill(component, format, &values.field("header"), violations);
        filled.unwrap_or_else(|| {
            report_unknown("header", str_field(component, "format"), violations);
            Filled::default()
        })
    });
    let header = header.unwrap_or_else(|| {
        values.field("header").expect_nothing("this template does not have a header", violations);
        Filled::default()
    });
    let body = components.body.map(|component| {
        let text = TextTemplate { component, name: "body", format, max: body_max };
        text.fill(&values.field("body"), violations).unwrap_or_else(|| {
            report_unknown("component", Some("BODY"), violations);
            Filled::default()
        })
    });
    let body = body.unwrap_or_else(|| {
        values.field("body").expect_nothing("this template does not have a body", violations);
        Filled::default()
    });
    if !header.parameters.is_empty() {
        sent.push(Component::Header { parameters: header.parameters });
    }
    if !body.parameters.is_empty() {
        sent.push(Component::Body { parameters: body.parameters });
    }
    let footer = components.footer.and_then(|it| {
        let footer = text_field(it, "text");
        if footer.is_none() {
            report_unknown("component", Some("FOOTER"), violations);
        }
        footer
    });
    let offer = fill_offer(components.offer, &values.field("offer"), violations);
    if let Some(expiration_time_ms) = offer.as_ref().and_then(|it| it.expiration_time_ms) {
        let limited_time_offer = OfferEnd { expiration_time_ms };
        let parameters = [Parameter::LimitedTimeOffer { limited_time_offer }];
        sent.push(Component::LimitedTimeOffer { parameters });
    }
    let defined = array_field(components.buttons, "buttons");
    if components.buttons.is_some() && defined.is_empty() {
        report_unknown("component", Some("BUTTONS"), violations);
    }
    let coupon_max =
        if components.offer.is_some() { MAX_OFFER_COUPON_CHARS } else { MAX_COUPON_CHARS };
    let (buttons, button_components) =
        buttons::fill(defined, format, coupon_max, &values.field("buttons"), violations);
    sent.extend(button_components);
    let cards = fill_cards(components.carousel, format, &values.field("cards"), violations);
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
        call_permission_request: components.call_permission.is_some(),
        cards: shown,
    };
    (texts, sent)
}

/// Fills the cards. A message has as many cards as the template, except that product cards may be
/// more: the template has two of them as samples.
fn fill_cards<'a>(
    carousel: Option<&Json<'a>>,
    format: ParameterFormat,
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Vec<(Texts<'a>, Card<'a>)> {
    let Some(carousel) = carousel else { return Vec::new() };
    let defined = array_field(Some(carousel), "cards");
    if defined.is_empty() {
        report_unknown("component", Some("CAROUSEL"), violations);
    }
    if !values.expect_array("write a list with one object per card", violations) {
        return Vec::new();
    }
    let defined: Vec<Components<'_, 'a>> =
        defined.iter().map(|it| Components::of(it, violations)).collect();
    let is_product = |it: &Components<'_, '_>| {
        it.header.is_some_and(|it| str_field(it, "format") == Some("PRODUCT"))
    };
    let count = if !defined.is_empty() && defined.iter().all(is_product) {
        values.array().len().clamp(*PRODUCT_CARDS.start(), *PRODUCT_CARDS.end())
    } else {
        defined.len()
    };
    let mut cards = Vec::with_capacity(count);
    for (card_index, components) in
        (0..count).filter_map(|index| Some((index, defined.get(index).or(defined.last())?)))
    {
        let card = values.item(card_index);
        let hint = "write an object with `header`, `body` and `buttons`";
        if !card.expect_object(hint, violations) {
            continue;
        }
        card.reject_unknown_members(&["header", "body", "buttons"], violations);
        let max = LengthLimit::FilledText(SMALL_BODY_MAX);
        let (texts, components) = fill_message(components, format, max, &card, violations);
        cards.push((texts, Card { card_index, components }));
    }
    values.reject_extra_items(count, violations);
    cards
}

/// Fills the offer, including its end if it has one.
fn fill_offer<'a>(
    component: Option<&Json<'a>>,
    value: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Option<Offer<'a>> {
    let component = component?;
    let details = component.get("limited_time_offer");
    let Some(text) = details.and_then(|details| text_field(details, "text")) else {
        report_unknown("component", Some("LIMITED_TIME_OFFER"), violations);
        return None;
    };
    let ends = matches!(details.and_then(|it| it.get("has_expiration")), Some(Json::Bool(true)));
    let expiration_time_ms = if ends {
        offer_end(value, violations)
    } else {
        value.expect_nothing("this template does not have an offer that ends", violations);
        None
    };
    Some(Offer { text, expiration_time_ms })
}

/// A timestamp in milliseconds since 1970, sent as such or in RFC 3339 format.
fn offer_end(value: &ValueReader<'_, '_>, violations: &mut ViolationCollector) -> Option<i64> {
    const SAMPLE: &str = "2026-11-15T09:30:00Z";
    match value.value() {
        None => {
            let description = "the time at which the offer ends".to_owned();
            value
                .report_missing(|| ExpectedValue { description, sample: Some(SAMPLE) }, violations);
            None
        }
        Some(Json::String(text)) => {
            let mut found = Vec::new();
            timestamp::check(text, &mut found);
            value.report_all(found, violations);
            timestamp::parse(text).map(jiff::Timestamp::as_millisecond)
        }
        Some(Json::Number(_)) => {
            value.optional_integer(MIN_OFFER_END_MS, MAX_OFFER_END_MS, violations)
        }
        Some(_) => {
            let hint = "write it in milliseconds since 1970, or as `2026-11-15T09:30:00Z`";
            value.report_wrong_type("a number or a string", hint, violations);
            None
        }
    }
}

/// Reports a part of the template that cannot be rendered whatever the values are.
fn report_unknown(what: &str, kind: Option<&str>, violations: &mut ViolationCollector) {
    violations.add(|| {
        let kind = truncated(kind.unwrap_or("?"));
        let message = format!("the template has a {what} `{kind}` that cannot be rendered");
        let hint = "edit the template to meet the current rules";
        let TextViolation { rule, message, hint, span } =
            TextViolation::new(Rule::PartUnknown, message).hint(hint);
        Violation { pointer: String::new(), rule, message, hint, span }
    });
}
