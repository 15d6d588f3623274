//! The schemas of events, endpoints and deliveries.

use galley_domain::{
    template::{Status, lifecycle::EventType},
    webhook::{
        Format,
        delivery::{DeliveryStatus, DisableReason},
    },
};
use galley_store::MAX_WEBHOOKS;
use serde_json::{Value, json};

use super::{super::shared, actor, category, described, moment, number, page, reference, status};

/// An event about a template, or about an endpoint.
pub(super) fn event() -> Value {
    let (of_webhooks, of_templates): (Vec<&str>, Vec<&str>) =
        EventType::VALUES.iter().partition(|word| word.starts_with("webhook."));
    let reason = json!({"type": "string", "description": "The reason that the actor gave."});
    let about_template = json!({
        "type": "object",
        "description": "The template as it was then.",
        "properties": {
            "name": {"type": "string", "description": "Its name."},
            "language": {"type": "string", "description": "Its language."},
            "category": category("What it was sent for."),
            "status": status(Status::VALUES),
            "reason": reason,
        },
        "required": ["name", "language", "category", "status"],
    });
    let about_webhook = json!({
        "type": "object",
        "description": "The endpoint as it was then.",
        "properties": {
            "origin": {"type": "string", "description": "Scheme and host of where events were sent."},
            "reason": reason,
        },
        "required": ["origin"],
    });
    let template = json!({
        "template_id": described(shared::id(), "Which template."),
        "version": number("Its version."),
    });
    let webhook = json!({"webhook_id": described(shared::id(), "Which endpoint.")});
    json!({
        "description": "One fact. The feed and what is delivered to endpoints have the same.",
        "anyOf": [
            one_event("About a template", &of_templates, template, &about_template),
            one_event("About an endpoint", &of_webhooks, webhook, &about_webhook),
        ],
    })
}

fn one_event(title: &str, types: &[&str], about: Value, data: &Value) -> Value {
    let mut schema = json!({
        "type": "object",
        "title": title,
        "properties": {
            "seq": number("Its number: 1, 2, 3 … in each account, without gaps."),
            "type": {"type": "string", "enum": types, "description": "What happened."},
            "at": moment("When."),
            "actor": actor("Who did it"),
            "data": data,
        },
        "required": ["seq", "type", "at", "actor", "data"],
    });
    if let Value::Object(about) = about {
        for (name, property) in about {
            if let Some(required) = schema["required"].as_array_mut() {
                required.push(json!(name));
            }
            schema["properties"][name] = property;
        }
    }
    schema
}

/// Like other pages, but one always knows where it ended.
pub(super) fn page_of_events() -> Value {
    let mut schema = page("Some events, oldest first.", "Event");
    let paging = &mut schema["properties"]["paging"]["properties"];
    paging["cursors"]["required"] = json!(["after"]);
    paging["cursors"]["properties"]["after"] = json!({
        "type": "string",
        "pattern": "^(?:0|[1-9][0-9]*)$",
        "description": "Where to go on, as `after` takes it: the last event of the page, or the place where an empty page stands.",
    });
    paging["next"]["description"] = json!(
        "The same question for what comes behind a full page, to be put behind the path; relative, so that no key stands in an answer. Absent when the page was not full: go on with `cursors.after` then."
    );
    schema
}

pub(super) fn webhook() -> Value {
    let since = "since when";
    json!({
        "type": "object",
        "description": "An endpoint that events are delivered to.",
        "properties": {
            "id": described(shared::id(), "Its id."),
            "url": {"type": "string", "description": "Where events are sent."},
            "events": {
                "type": "array",
                "items": {"type": "string", "enum": EventType::VALUES},
                "minItems": 1,
                "maxItems": EventType::VALUES.len(),
                "uniqueItems": true,
                "description": "Which types of event are sent. Absent when all are.",
            },
            "format": {"type": "string", "enum": Format::VALUES, "description": "How events are sent: as the feed has them, signed as Standard Webhooks 1.0 says; or as Meta sends changes of templates, signed in `X-Hub-Signature-256`."},
            "former_secret_until": moment("Until when what is sent is signed with the former secret, too. Absent when it is not."),
            "behind": {"type": "integer", "minimum": 0, "description": "Number of the account's events that are not yet processed for this endpoint."},
            "failing_since": moment("Since when nothing could be delivered. Absent when the last attempt went well, and before the first."),
            "resting_until": moment("Until when nothing is sent, because the endpoint asked for it or failed too often."),
            "disabled_at": moment(&format!("When it is switched off: {since}.")),
            "disabled_because": {"type": "string", "enum": DisableReason::VALUES, "description": "When it is switched off: why. `gone`: it answered 410. `failing`: nothing could be delivered for five days. `switched_off`: it was switched off by a request or a command."},
            "created_at": moment("When it was registered."),
            "updated_at": moment("When it was last changed."),
        },
        "required": ["id", "url", "format", "behind", "created_at", "updated_at"],
        "dependentRequired": {
            "disabled_at": ["disabled_because"],
            "disabled_because": ["disabled_at"],
        },
    })
}

pub(super) fn webhook_with_secret() -> Value {
    let mut schema = webhook();
    schema["description"] = json!("An endpoint with its new secret.");
    schema["properties"]["secret"] = json!({
        "type": "string",
        "pattern": "^(?:whsec_[A-Za-z0-9+/]{32,88}={0,2}|[!-~]{16,256})$",
        "description": "What is sent is signed with this: as Standard Webhooks 1.0 says, or with the format `whatsapp` as Meta does, where the text itself is the key. It is not told again.",
    });
    if let Some(required) = schema["required"].as_array_mut() {
        required.push(json!("secret"));
    }
    schema
}

pub(super) fn list() -> Value {
    json!({
        "type": "object",
        "description": "All endpoints of an account, oldest first.",
        "properties": {
            "data": {"type": "array", "maxItems": MAX_WEBHOOKS, "items": reference("schemas", "Webhook")},
        },
        "required": ["data"],
    })
}

pub(super) fn delivery() -> Value {
    json!({
        "type": "object",
        "description": "One event on its way to one endpoint.",
        "properties": {
            "seq": number("Which event."),
            "type": {"type": "string", "enum": EventType::VALUES, "description": "What happened."},
            "template_id": described(shared::id(), "To which template, if to one."),
            "status": {"type": "string", "enum": DeliveryStatus::VALUES, "description": "What has become of it. `failed`: the last attempt failed, too, and there will be no other."},
            "attempts": {"type": "integer", "minimum": 0, "description": "How many attempts were made."},
            "last_attempt_at": moment("When the last one was made."),
            "next_attempt_at": moment("When the next one is made. Absent while an earlier event of the template is in the way, and when there will be none."),
            "response_status": {"type": "integer", "minimum": 100, "maximum": 999, "description": "The status that the last attempt was answered with."},
            "failure": {"type": "string", "description": "Why the last attempt got no answer."},
        },
        "required": ["seq", "type", "status", "attempts"],
    })
}

pub(super) fn replayed() -> Value {
    json!({
        "type": "object",
        "description": "What came of asking for a replay.",
        "properties": {
            "events": {"type": "integer", "minimum": 0, "description": "How many events will be looked at once more."},
        },
        "required": ["events"],
    })
}
