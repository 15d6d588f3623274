//! Examples of events and endpoints: what is sent, and answers written by the code that answers.

use galley_domain::{
    rulebook::Category,
    template::{Status, lifecycle::EventType},
    webhook::{Format, delivery::DeliveryStatus},
};
use galley_store::{Actor, CredentialId, Delivery, Event, EventSubject, StoredSecret, Webhook};
use serde_json::{Value, json};

use super::{
    super::shared::ID,
    answers::{CHANGED, CREATED, moment, written},
};
use crate::api::view::{self, Paging};

const URL: &str = "https://shop.example/hooks/galley";

/// A secret that nothing is signed with.
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Endpoints to be registered.
pub(in crate::openapi) fn of_webhooks() -> Value {
    json!({
        "everything": {"summary": "Every event", "value": {"url": URL}},
        "decisions": {
            "summary": "Only what a reviewer decides",
            "value": {"url": URL, "events": ["template.approved", "template.rejected"]},
        },
        "whatsapp": {
            "summary": "As Meta sends it, with the secret that the receiver knows",
            "value": {
                "url": URL,
                "format": "whatsapp",
                "verify_token": "what-the-receiver-knows",
                "secret": "0123456789abcdef0123456789abcdef",
            },
        },
    })
}

/// Changes of an endpoint.
pub(in crate::openapi) fn of_webhook_changes() -> Value {
    json!({
        "address": {"summary": "Another address", "value": {"url": "https://shop.example/hooks/v2"}},
        "events": {"summary": "Every type of event", "value": {"events": []}},
        "off": {"summary": "Switched off", "value": {"disabled": true}},
        "on": {"summary": "Switched on again", "value": {"disabled": false}},
    })
}

pub(in crate::openapi) fn of_rotations() -> Value {
    json!({
        "forced": {"summary": "At once, because a secret leaked", "value": {"force": true}},
        "usual": {"summary": "When the rotation before has ended", "value": {}},
    })
}

pub(in crate::openapi) fn of_replays() -> Value {
    json!({
        "one": {"summary": "One event", "value": {"event": 1}},
        "since": {"summary": "Every event since a moment", "value": {"since": CREATED}},
    })
}

pub(in crate::openapi) fn page_of_events() -> Value {
    let created = Event {
        seq: 12,
        kind: EventType::Created,
        subject: EventSubject::Template {
            id: ID.parse().expect("an id"),
            version: 1,
            name: "order_shipped".to_owned(),
            language: "en_US".to_owned(),
            category: Category::Utility,
            status: Status::Approved,
        },
        at: moment(CREATED),
        actor: Actor::Token(CredentialId(2)),
        reason: None,
    };
    let disabled = Event {
        seq: 13,
        kind: EventType::WebhookDisabled,
        subject: EventSubject::Webhook {
            id: ID.parse().expect("an id"),
            origin: "https://shop.example".to_owned(),
        },
        at: moment(CHANGED),
        actor: Actor::Service,
        reason: Some("gone".to_owned()),
    };
    let paging =
        Paging { after: Some("13".to_owned()), next: Some("?limit=2&after=13".to_owned()) };
    written(&view::events(&[created, disabled], &paging))
}

pub(in crate::openapi) fn webhook() -> Value {
    written(&view::webhook(&kept(), moment(CREATED)))
}

pub(in crate::openapi) fn list_of_webhooks() -> Value {
    written(&view::webhooks(&[kept()], moment(CREATED)))
}

pub(in crate::openapi) fn registered() -> Value {
    written(&view::webhook_with_secret(&kept(), SECRET, moment(CREATED)))
}

pub(in crate::openapi) fn rotated() -> Value {
    let former_secret = Some((StoredSecret(Vec::new()), moment(CHANGED)));
    written(&view::webhook_with_secret(
        &Webhook { former_secret, ..kept() },
        SECRET,
        moment(CREATED),
    ))
}

pub(in crate::openapi) fn failing_webhook() -> Value {
    let failing = Webhook {
        events: vec![EventType::Approved, EventType::Rejected],
        behind: 3,
        failing_since: Some(moment(CREATED)),
        resting_until: Some(moment(CHANGED)),
        ..kept()
    };
    written(&view::webhook(&failing, moment(CREATED)))
}

pub(in crate::openapi) fn page_of_deliveries() -> Value {
    let waiting = Delivery {
        seq: 14,
        kind: EventType::Paused,
        template: ID.parse().ok(),
        status: DeliveryStatus::Waiting,
        attempts: 2,
        attempted_at: Some(moment(CREATED)),
        due_at: Some(moment(CHANGED)),
        response_status: None,
        failure: Some("no answer within 15 s".to_owned()),
    };
    let delivered = Delivery {
        seq: 12,
        kind: EventType::Created,
        status: DeliveryStatus::Delivered,
        attempts: 1,
        due_at: None,
        response_status: Some(204),
        failure: None,
        ..waiting.clone()
    };
    let paging = Paging { after: Some("12".to_owned()), next: None };
    written(&view::deliveries(&[waiting, delivered], &paging))
}

pub(in crate::openapi) fn replayed() -> Value {
    json!({"events": 1})
}

/// An endpoint as it is kept right after its registration.
fn kept() -> Webhook {
    Webhook {
        id: ID.parse().expect("an id"),
        account: ID.parse().expect("an id"),
        url: URL.to_owned(),
        events: Vec::new(),
        format: Format::Galley,
        subscribed: false,
        secret: StoredSecret(Vec::new()),
        former_secret: None,
        cursor: 0,
        behind: 0,
        failing_since: None,
        resting_until: None,
        disabled: None,
        created_at: moment(CREATED),
        updated_at: moment(CREATED),
    }
}
