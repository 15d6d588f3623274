//! A test event: a signed message to one endpoint. It is no event of the feed, so sending it changes
//! nothing.

use galley_domain::{
    rulebook::Category,
    template::{Status, lifecycle::EventType},
    webhook::{Format, Update, status_event},
};
use galley_store::{Actor, Webhook, origin};
use jiff::Timestamp;

use super::{
    context::WebhookContext, http_client::PostRequest, keyring::DecryptError, meta_payload,
};
use crate::json_writer::ObjectWriter;

/// The type of a test event in the format galley. The event feed never contains it.
const TYPE: &str = "webhook.test";

/// The template in a test event of the format whatsapp. Meta's own test events have the same id.
const SAMPLE_TEMPLATE: (u64, &str) = (12_345_678, "galley_webhook_test");

impl WebhookContext {
    /// The request with a test event for an endpoint.
    pub fn test_request(
        &self,
        webhook: &Webhook,
        now: Timestamp,
    ) -> Result<PostRequest, DecryptError> {
        let id = format!("test_{}_{}", webhook.id, now.as_millisecond());
        let body = match webhook.format {
            Format::Galley => galley_body(webhook, now),
            Format::Whatsapp => meta_payload::envelope(webhook.account, now, &[status_update()]),
        };
        self.signed_request(webhook, id, body, now)
    }
}

/// The form of an event of the feed, with the number 0, which no event has.
fn galley_body(webhook: &Webhook, now: Timestamp) -> String {
    let mut out = String::with_capacity(256);
    let mut object = ObjectWriter::open(&mut out);
    object.number("seq", 0);
    object.unescaped("type", TYPE);
    object.display("webhook_id", webhook.id);
    object.timestamp("at", now);
    object.display("actor", Actor::Operator);
    object.object("data", |data| data.string("origin", &origin(&webhook.url)));
    object.close();
    out
}

/// The approval of a template that does not exist.
fn status_update() -> String {
    let (id, name) = SAMPLE_TEMPLATE;
    let mut out = String::with_capacity(256);
    let mut object = ObjectWriter::open(&mut out);
    object.object("value", |value| {
        value.unescaped("event", status_event(EventType::Approved, Status::Approved));
        value.number("message_template_id", id);
        value.unescaped("message_template_name", name);
        value.unescaped("message_template_language", "en_US");
        value.unescaped("reason", "NONE");
        value.unescaped("message_template_category", Category::Utility.as_str());
    });
    object.unescaped("field", Update::Status.as_str());
    object.close();
    out
}
