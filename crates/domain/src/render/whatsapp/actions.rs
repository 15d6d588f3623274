//! What some buttons do when they are tapped: forms, products, orders and calls. What only
//! WhatsApp can judge is passed on as it was given.

use super::{LONGEST, header::string, spot::Spot};
use crate::{
    document::Json,
    render::{
        intake::Need,
        message::{Action, Parameter},
        value,
    },
    violation::{Rule, TextViolation, ViolationCollector},
};

/// For how many minutes a call may be made.
const LONGEST_CALL: i64 = 43_200;
const CALL_PAYLOAD_MAX: usize = 512;
const SECTIONS_MAX: usize = 10;
const PRODUCTS_MAX: usize = 30;

const THUMBNAIL: &str = "thumbnail_product_retailer_id";

/// A form: what it is told by, and what it begins with. Both may be left out.
pub(super) fn flow<'a>(spot: &Spot<'a, '_>, report: &mut ViolationCollector) -> Action<'a> {
    let hint = "write `{\"flow_token\": \"…\", \"flow_action_data\": {…}}`";
    if !spot.is_object(hint, report) {
        return Action::default();
    }
    spot.only(&["flow_token", "flow_action_data"], report);
    let data = spot.key("flow_action_data");
    data.is_object("write an object with what the form begins with", report);
    Action {
        flow_token: spot.key("flow_token").optional(|it| value::plain(it, LONGEST), report),
        flow_action_data: data.value(),
        ..Action::default()
    }
}

/// The catalogue, with the product whose picture is shown, if one is chosen.
pub(super) fn catalog<'a>(
    spot: &Spot<'a, '_>,
    report: &mut ViolationCollector,
) -> Option<Action<'a>> {
    if !spot.is_object("write `{\"thumbnail_product_retailer_id\": \"…\"}`", report) {
        return None;
    }
    spot.only(&[THUMBNAIL], report);
    let thumbnail = spot.key(THUMBNAIL).optional(|it| value::plain(it, LONGEST), report)?;
    Some(Action { thumbnail_product_retailer_id: Some(thumbnail), ..Action::default() })
}

/// Some products in sections.
pub(super) fn products<'a>(
    spot: &Spot<'a, '_>,
    report: &mut ViolationCollector,
) -> Option<Action<'a>> {
    let hint = "write `{\"thumbnail_product_retailer_id\": \"…\", \"sections\": […]}`";
    if !spot.is_object(hint, report) {
        return None;
    }
    spot.only(&[THUMBNAIL, "sections"], report);
    let thumbnail = string(spot, THUMBNAIL, "the product whose picture is shown", report);
    let sections = spot.key("sections");
    let mut count = 0;
    each(&sections, "the sections of products", SECTIONS_MAX, report, |section, report| {
        let hint = "write `{\"title\": \"…\", \"product_items\": […]}`";
        if !section.is_object(hint, report) {
            return;
        }
        section.only(&["title", "product_items"], report);
        string(section, "title", "what the section is called", report);
        let items = section.key("product_items");
        each(&items, "the products of the section", usize::MAX, report, |item, report| {
            count += 1;
            if item.is_object("write `{\"product_retailer_id\": \"…\"}`", report) {
                item.only(&["product_retailer_id"], report);
                string(item, "product_retailer_id", "the id of the product", report);
            }
        });
    });
    if count > PRODUCTS_MAX {
        sections.tell(report, || {
            let message = format!("holds {count} products; at most {PRODUCTS_MAX} are allowed");
            let hint = format!("remove {}", count - PRODUCTS_MAX);
            TextViolation::new(Rule::TooMany, message).hint(hint)
        });
    }
    Some(Action {
        thumbnail_product_retailer_id: Some(thumbnail?),
        sections: sections.value(),
        ..Action::default()
    })
}

/// Looks at every item of a list that has at least one.
fn each<'v>(
    list: &Spot<'v, '_>,
    what: &str,
    most: usize,
    report: &mut ViolationCollector,
    mut look: impl FnMut(&Spot<'v, '_>, &mut ViolationCollector),
) {
    if !list.is_list("write a list", report) {
        return;
    }
    let count = list.items().len();
    if count == 0 {
        list.missing(|| Need { what: what.to_owned(), sample: None }, report);
    }
    if count > most {
        list.tell(report, || {
            let message = format!("has {count} items; at most {most} are allowed");
            TextViolation::new(Rule::TooMany, message).hint(format!("remove {}", count - most))
        });
    }
    for index in 0..count.min(most) {
        look(&list.item(index), report);
    }
}

/// What was ordered: WhatsApp alone knows what belongs to it.
pub(super) fn order<'a>(
    spot: &Spot<'a, '_>,
    report: &mut ViolationCollector,
) -> Option<Action<'a>> {
    if !spot.is_object("write an object with the details of the order", report) {
        return None;
    }
    let Some(details @ Json::Object(members)) = spot.value() else {
        spot.missing(|| Need { what: "the details of the order".to_owned(), sample: None }, report);
        return None;
    };
    if members.is_empty() {
        spot.tell(report, || {
            let hint = "write the details of the order as WhatsApp takes them";
            TextViolation::new(Rule::Empty, "must not be empty").hint(hint)
        });
    }
    Some(Action { order_details: Some(details), ..Action::default() })
}

/// For how long a call may be made, by itself or in an object, and what is told of who calls.
pub(super) fn call<'a>(spot: &Spot<'a, '_>, report: &mut ViolationCollector) -> Vec<Parameter<'a>> {
    let minutes = |ttl_minutes| Parameter::TtlMinutes { ttl_minutes };
    if let Some(Json::Number(_)) = spot.value() {
        return spot.integer(1, LONGEST_CALL, report).map(minutes).into_iter().collect();
    }
    if !spot.is_object("write `{\"ttl_minutes\": 60, \"payload\": \"…\"}`", report) {
        return Vec::new();
    }
    spot.only(&["ttl_minutes", "payload"], report);
    let ttl = spot.key("ttl_minutes").integer(1, LONGEST_CALL, report).map(minutes);
    let payload = spot.key("payload").optional(|it| value::payload(it, CALL_PAYLOAD_MAX), report);
    let payload = payload.map(|payload| Parameter::Payload { payload });
    ttl.into_iter().chain(payload).collect()
}
