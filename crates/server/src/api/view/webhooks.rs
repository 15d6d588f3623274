//! How endpoints and deliveries look from outside.

use galley_store::{Delivery, Webhook};
use jiff::Timestamp;

use super::{Object, Paging, page, write_data};

/// One endpoint as it is at this moment, without its secret.
pub(crate) fn webhook(webhook: &Webhook, now: Timestamp) -> String {
    let mut out = String::with_capacity(512);
    write_webhook(&mut out, webhook, None, now);
    out
}

/// One endpoint with its new secret, which is never told again.
pub(crate) fn webhook_with_secret(webhook: &Webhook, secret: &str, now: Timestamp) -> String {
    let mut out = String::with_capacity(512);
    write_webhook(&mut out, webhook, Some(secret), now);
    out
}

/// All endpoints of an account. There are few: they stand on one page.
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
    // What is over stands in the row until something else takes its place.
    let to_come = |moment: Option<Timestamp>| moment.filter(|moment| *moment > now);
    let mut object = Object::open(out);
    object.plain("id", webhook.id);
    object.text("url", &webhook.url);
    if !webhook.events.is_empty() {
        let words: Vec<&str> = webhook.events.iter().map(|event| event.as_str()).collect();
        object.raw("events", &serde_json::to_string(&words).unwrap_or_default());
    }
    object.word("format", webhook.format.as_str());
    if let Some(secret) = secret {
        object.text("secret", secret);
    }
    let former_until = webhook.former_secret.as_ref().map(|(_, until)| *until);
    object.plain_if("former_secret_until", to_come(former_until));
    object.number("behind", webhook.behind);
    object.plain_if("failing_since", webhook.failing_since);
    object.plain_if("resting_until", to_come(webhook.resting_until));
    if let Some((at, because)) = webhook.disabled {
        object.plain("disabled_at", at);
        object.word("disabled_because", because.as_str());
    }
    object.plain("created_at", webhook.created_at);
    object.plain("updated_at", webhook.updated_at);
    object.close();
}

fn write_delivery(out: &mut String, delivery: &Delivery) {
    let mut object = Object::open(out);
    object.number("seq", delivery.seq);
    object.word("type", delivery.kind.as_str());
    object.plain_if("template_id", delivery.template);
    object.word("status", delivery.status.as_str());
    object.number("attempts", delivery.attempts.into());
    object.plain_if("last_attempt_at", delivery.attempted_at);
    object.plain_if("next_attempt_at", delivery.due_at);
    if let Some(status) = delivery.answer {
        object.number("response_status", status.into());
    }
    if let Some(failure) = &delivery.failure {
        object.text("failure", failure);
    }
    object.close();
}
