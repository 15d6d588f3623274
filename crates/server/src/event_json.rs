//! The JSON form of an event, which the event feed and webhook deliveries share.

use galley_store::{Event, EventSubject};

use crate::json_writer::ObjectWriter;

/// One event as JSON, as in the event feed and in deliveries to endpoints.
pub fn event(event: &Event) -> String {
    let mut out = String::with_capacity(512);
    write(&mut out, event);
    out
}

pub(crate) fn write(out: &mut String, event: &Event) {
    let mut object = ObjectWriter::open(out);
    object.number("seq", event.seq);
    object.unescaped("type", event.kind.as_str());
    match &event.subject {
        EventSubject::Template { id, version, .. } => {
            object.display("template_id", id);
            object.number("version", *version);
        }
        EventSubject::Webhook { id, .. } => object.display("webhook_id", id),
        EventSubject::Upstream { .. } => {}
    }
    object.timestamp("at", event.at);
    object.display("actor", event.actor);
    object.string("actor_name", &event.actor_name);
    object.object("data", |data| {
        match &event.subject {
            EventSubject::Template { name, language, category, status, .. } => {
                data.string("name", name);
                data.unescaped("language", language);
                data.unescaped("category", category.as_str());
                data.unescaped("status", status.as_str());
            }
            EventSubject::Webhook { origin, .. } | EventSubject::Upstream { origin } => {
                data.string("origin", origin);
            }
        }
        if let Some(reason) = &event.reason {
            data.string("reason", reason);
        }
    });
    object.close();
}

#[cfg(test)]
mod tests {
    use galley_domain::{
        rulebook::Category,
        template::{Status, lifecycle::EventType},
    };
    use galley_store::{Actor, CredentialId, TraceContext};

    use super::*;

    #[test]
    fn an_event_names_its_subject_and_the_state_at_that_time() {
        let rejected = Event {
            seq: 12,
            kind: EventType::Rejected,
            subject: EventSubject::Template {
                id: "226542649344000".parse().unwrap(),
                version: 2,
                name: "say \"hi\"".to_owned(),
                language: "en_US".to_owned(),
                category: Category::Utility,
                status: Status::Rejected,
            },
            at: "2026-11-15T09:30:00.123Z".parse().unwrap(),
            emulated_at: None,
            actor: Actor::Token(CredentialId(4)),
            actor_name: "CI \"nightly\"".to_owned(),
            reason: Some("too\nloud".to_owned()),
            trace: TraceContext::parse(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        };
        assert_eq!(
            event(&rejected),
            r#"{"seq":12,"type":"template.rejected","template_id":"226542649344000","version":2,"at":"2026-11-15T09:30:00.123Z","actor":"4","actor_name":"CI \"nightly\"","data":{"name":"say \"hi\"","language":"en_US","category":"UTILITY","status":"REJECTED","reason":"too\nloud"}}"#
        );
        let disabled = Event {
            kind: EventType::WebhookDisabled,
            subject: EventSubject::Webhook {
                id: "226542649344001".parse().unwrap(),
                origin: "https://shop.example".to_owned(),
            },
            actor: Actor::Service,
            actor_name: String::new(),
            reason: None,
            ..rejected
        };
        assert_eq!(
            event(&disabled),
            r#"{"seq":12,"type":"webhook.disabled","webhook_id":"226542649344001","at":"2026-11-15T09:30:00.123Z","actor":"service","actor_name":"","data":{"origin":"https://shop.example"}}"#
        );
    }
}
