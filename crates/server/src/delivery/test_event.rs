//! A test event: a signed message to one endpoint. It is no event of the feed, so sending it changes
//! nothing.

use galley_domain::{
    id::TemplateId,
    rulebook::Category,
    template::{Status, lifecycle::EventType},
    webhook::Format,
};
use galley_store::{Actor, Event, EventSubject, Webhook, origin};
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
            Format::Whatsapp => meta_payload::body(webhook.account, &sample_event(now), None),
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
fn sample_event(now: Timestamp) -> Event {
    let (id, name) = SAMPLE_TEMPLATE;
    Event {
        seq: 0,
        kind: EventType::Approved,
        subject: EventSubject::Template {
            id: TemplateId::new(id).expect("the id is positive and below 2^53"),
            version: 1,
            name: name.to_owned(),
            language: "en_US".to_owned(),
            category: Category::Utility,
            status: Status::Approved,
        },
        at: now,
        emulated_at: None,
        actor: Actor::Operator,
        actor_name: String::new(),
        reason: None,
        trace: None,
    }
}
