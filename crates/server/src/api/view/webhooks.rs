//! The JSON form of endpoints and deliveries.

use galley_store::{Delivery, Webhook};
use jiff::Timestamp;

use super::{ObjectWriter, Paging, page, write_data};

/// One endpoint without its secret.
pub(crate) fn webhook(webhook: &Webhook, now: Timestamp) -> String {
    let mut out = String::with_capacity(512);
    write_webhook(&mut out, webhook, None, now);
    out
}

/// One endpoint with its new secret, which no later response contains.
pub(crate) fn webhook_with_secret(webhook: &Webhook, secret: &str, now: Timestamp) -> String {
    let mut out = String::with_capacity(512);
    write_webhook(&mut out, webhook, Some(secret), now);
    out
}

/// All endpoints of an account. They are few, so the list has only one page.
pub(crate) fn webhooks(webhooks: &[Webhook], now: Timestamp) -> String {
    let mut out = String::with_capacity(512 * webhooks.len() + 16);
    write_data(&mut out, webhooks, |out, webhook| write_webhook(out, webhook, None, now));
    out.push('}');
    out
}

pub(crate) fn deliveries(deliveries: &[Delivery], paging: &Paging) -> String {
    page(deliveries, paging, write_delivery)
}

fn write_webhook(out: &mut String, webhook: &Webhook, secret: Option<&str>, now: Timestamp) {
    // The row keeps a time that has passed until the next change overwrites it.
    let future = |time: Option<Timestamp>| time.filter(|time| *time > now);
    let mut object = ObjectWriter::open(out);
    object.display("id", webhook.id);
    object.string("url", &webhook.url);
    if !webhook.events.is_empty() {
        let types: Vec<&str> = webhook.events.iter().map(|event| event.as_str()).collect();
        object.raw("events", &serde_json::to_string(&types).unwrap_or_default());
    }
    object.unescaped("format", webhook.format.as_str());
    if let Some(secret) = secret {
        object.string("secret", secret);
    }
    let former_until = webhook.former_secret.as_ref().map(|(_, until)| *until);
    object.optional_timestamp("former_secret_until", future(former_until));
    object.number("behind", webhook.behind);
    object.optional_timestamp("failing_since", webhook.failing_since);
    object.optional_timestamp("resting_until", future(webhook.resting_until));
    if let Some((at, reason)) = webhook.disabled {
        object.timestamp("disabled_at", at);
        object.unescaped("disabled_because", reason.as_str());
    }
    object.timestamp("created_at", webhook.created_at);
    object.timestamp("updated_at", webhook.updated_at);
    object.close();
}

fn write_delivery(out: &mut String, delivery: &Delivery) {
    let mut object = ObjectWriter::open(out);
    object.number("seq", delivery.seq);
    if let Some(kind) = delivery.kind {
        object.unescaped("type", kind.as_str());
    }
    object.optional_display("template_id", delivery.template);
    object.unescaped("status", delivery.status.as_str());
    object.number("attempts", delivery.attempts.into());
    object.optional_timestamp("last_attempt_at", delivery.attempted_at);
    object.optional_timestamp("next_attempt_at", delivery.due_at);
    if let Some(status) = delivery.response_status {
        object.number("response_status", status.into());
    }
    if let Some(failure) = &delivery.failure {
        object.string("failure", failure);
    }
    object.close();
}
