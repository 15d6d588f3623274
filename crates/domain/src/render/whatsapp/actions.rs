//! Actions of buttons: flows, catalogues, products, orders and calls. Data that only WhatsApp can
//! validate is passed on unchanged.

use super::{NAME_MAX, header::required_string};
use crate::{
    document::Json,
    render::{
        message::{Action, Parameter},
        value,
        value_reader::{ExpectedValue, ValueReader},
    },
    violation::{Rule, TextViolation, ViolationCollector},
};

/// How long the recipient may call, in minutes.
const MAX_CALL_TTL_MINUTES: i64 = 43_200;
const CALL_PAYLOAD_MAX: usize = 512;
const SECTIONS_MAX: usize = 10;
const PRODUCTS_MAX: usize = 30;

const THUMBNAIL: &str = "thumbnail_product_retailer_id";

/// The action of a `FLOW` button: a token and initial data, both optional.
pub(super) fn flow<'a>(
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Action<'a> {
    let hint = "write `{\"flow_token\": \"…\", \"flow_action_data\": {…}}`";
    if !values.expect_object(hint, violations) {
        return Action::default();
    }
    values.reject_unknown_members(&["flow_token", "flow_action_data"], violations);
    let data = values.field("flow_action_data");
    data.expect_object("write an object with the initial data of the flow", violations);
    Action {
        flow_token: values
            .field("flow_token")
            .optional_string(|it| value::check_text(it, NAME_MAX), violations),
        flow_action_data: data.value(),
        ..Action::default()
    }
}

/// The action of a `CATALOG` button: the product of the thumbnail, optional.
pub(super) fn catalog<'a>(
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Option<Action<'a>> {
    if !values.expect_object("write `{\"thumbnail_product_retailer_id\": \"…\"}`", violations) {
        return None;
    }
    values.reject_unknown_members(&[THUMBNAIL], violations);
    let thumbnail = values
        .field(THUMBNAIL)
        .optional_string(|it| value::check_text(it, NAME_MAX), violations)?;
    Some(Action { thumbnail_product_retailer_id: Some(thumbnail), ..Action::default() })
}

/// The action of an `MPM` button: products in sections.
pub(super) fn products<'a>(
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Option<Action<'a>> {
    let hint = "write `{\"thumbnail_product_retailer_id\": \"…\", \"sections\": […]}`";
    if !values.expect_object(hint, violations) {
        return None;
    }
    values.reject_unknown_members(&[THUMBNAIL, "sections"], violations);
    let thumbnail = required_string(values, THUMBNAIL, "the product of the thumbnail", violations);
    let sections = values.field("sections");
    let mut count = 0;
    read_items(
        &sections,
        "the sections of products",
        SECTIONS_MAX,
        violations,
        |section, violations| {
            let hint = "write `{\"title\": \"…\", \"product_items\": […]}`";
            if !section.expect_object(hint, violations) {
                return;
            }
            section.reject_unknown_members(&["title", "product_items"], violations);
            required_string(section, "title", "the title of the section", violations);
            let items = section.field("product_items");
            read_items(
                &items,
                "the products of the section",
                usize::MAX,
                violations,
                |item, violations| {
                    count += 1;
                    if item.expect_object("write `{\"product_retailer_id\": \"…\"}`", violations)
                    {
                        item.reject_unknown_members(&["product_retailer_id"], violations);
                        required_string(
                            item,
                            "product_retailer_id",
                            "the id of the product",
                            violations,
                        );
                    }
                },
            );
        },
    );
    if count > PRODUCTS_MAX {
        sections.report(violations, || {
            let message = format!("has {count} products; at most {PRODUCTS_MAX} are allowed");
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

/// Calls `read` for every item of an array, which must have at least one.
fn read_items<'v>(
    list: &ValueReader<'v, '_>,
    description: &str,
    max: usize,
    violations: &mut ViolationCollector,
    mut read: impl FnMut(&ValueReader<'v, '_>, &mut ViolationCollector),
) {
    if !list.expect_array("write a list", violations) {
        return;
    }
    let count = list.array().len();
    if count == 0 {
        let description = description.to_owned();
        list.report_missing(|| ExpectedValue { description, sample: None }, violations);
    }
    if count > max {
        list.report(violations, || {
            let message = format!("has {count} items; at most {max} are allowed");
            TextViolation::new(Rule::TooMany, message).hint(format!("remove {}", count - max))
        });
    }
    for index in 0..count.min(max) {
        read(&list.item(index), violations);
    }
}

/// The action of an `ORDER_DETAILS` button. Only WhatsApp knows which details an order has.
pub(super) fn order<'a>(
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Option<Action<'a>> {
    if !values.expect_object("write an object with the details of the order", violations) {
        return None;
    }
    let Some(details @ Json::Object(members)) = values.value() else {
        let description = "the details of the order".to_owned();
        values.report_missing(|| ExpectedValue { description, sample: None }, violations);
        return None;
    };
    if members.is_empty() {
        values.report(violations, || {
            let hint = "write the details of the order in WhatsApp's format";
            TextViolation::new(Rule::Empty, "must not be empty").hint(hint)
        });
    }
    Some(Action { order_details: Some(details), ..Action::default() })
}

/// The parameters of a `VOICE_CALL` button: how long the recipient may call, as a number or in an
/// object, and a payload that identifies the call.
pub(super) fn call<'a>(
    values: &ValueReader<'a, '_>,
    violations: &mut ViolationCollector,
) -> Vec<Parameter<'a>> {
    let minutes = |ttl_minutes| Parameter::TtlMinutes { ttl_minutes };
    if let Some(Json::Number(_)) = values.value() {
        return values
            .optional_integer(1, MAX_CALL_TTL_MINUTES, violations)
            .map(minutes)
            .into_iter()
            .collect();
    }
    if !values.expect_object("write `{\"ttl_minutes\": 60, \"payload\": \"…\"}`", violations) {
        return Vec::new();
    }
    values.reject_unknown_members(&["ttl_minutes", "payload"], violations);
    let ttl = values
        .field("ttl_minutes")
        .optional_integer(1, MAX_CALL_TTL_MINUTES, violations)
        .map(minutes);
    let payload = values
        .field("payload")
        .optional_string(|it| value::check_payload(it, CALL_PAYLOAD_MAX), violations);
    let payload = payload.map(|payload| Parameter::Payload { payload });
    ttl.into_iter().chain(payload).collect()
}
