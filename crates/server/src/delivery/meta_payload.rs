//! Webhook payloads in Meta's format.

use galley_domain::{
    document::{Document, Json},
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{Status, lifecycle::EventType, quality::QualityChange},
    webhook::{CATEGORY_NOTICE, PauseTitle, RejectionReason, Update, status_event},
};
use galley_store::{Actor, DueDelivery, Event, EventSubject, Version};
use jiff::Timestamp;

use crate::json_writer::ObjectWriter;

/// The recommendation after a rejection, for all reasons.
const RECOMMENDATION: &str = "Edit the template and submit it again.";

/// The template at the time of the event.
struct TemplateSnapshot<'e> {
    id: TemplateId,
    name: &'e str,
    language: &'e str,
    category: Category,
    status: Status,
}

/// Builds the request body of a delivery.
pub(crate) fn build(due: &DueDelivery) -> String {
    body(due.webhook.account, &due.event, due.version.as_ref())
}

/// The request body for an event of an account.
pub(super) fn body(account: AccountId, event: &Event, version: Option<&Version>) -> String {
    let changes: Vec<String> = match &event.subject {
        EventSubject::Template { id, name, language, category, status, .. } => {
            let (category, status) = (*category, *status);
            let template = TemplateSnapshot { id: *id, name, language, category, status };
            let updates = Update::for_event(event.kind, Some(status)).iter();
            updates.map(|update| change(*update, event, &template, version)).collect()
        }
        EventSubject::Webhook { .. } | EventSubject::Upstream { .. } => Vec::new(),
    };
    envelope(account, shown_time(event), &changes)
}

/// The time of an event: on the clock of an emulator account, or real.
fn shown_time(event: &Event) -> Timestamp {
    event.emulated_at.unwrap_or(event.at)
}

/// The request body with these changes of an account.
fn envelope(account: AccountId, at: Timestamp, changes: &[String]) -> String {
    let mut entry = String::new();
    let mut object = ObjectWriter::open(&mut entry);
    object.display("id", account);
    object.raw("time", &at.as_second().to_string());
    object.raw("changes", &format!("[{}]", changes.join(",")));
    object.close();
    let mut out = String::with_capacity(entry.len() + 64);
    let mut object = ObjectWriter::open(&mut out);
    object.unescaped("object", "whatsapp_business_account");
    object.raw("entry", &format!("[{entry}]"));
    object.close();
    out
}

fn change(
    update: Update,
    event: &Event,
    template: &TemplateSnapshot<'_>,
    version: Option<&Version>,
) -> String {
    let mut out = String::with_capacity(384);
    let mut object = ObjectWriter::open(&mut out);
    object.object("value", |value| {
        if update == Update::Status {
            value.unescaped("event", status_event(event.kind, template.status));
        }
        value.number("message_template_id", template.id.get());
        value.string("message_template_name", template.name);
        value.unescaped("message_template_language", template.language);
        match update {
            Update::Status => write_status(value, event, template),
            Update::Components => write_components(value, version),
            Update::Category => write_category(value, event, template, version),
            Update::Quality => {
                if let Some(change) = event.reason.as_deref().and_then(QualityChange::parse) {
                    value.unescaped("previous_quality_score", change.from.as_str());
                    value.unescaped("new_quality_score", change.to.as_str());
                }
            }
        }
    });
    object.unescaped("field", update.as_str());
    object.close();
    out
}

/// Writes a change of the category. In an announcement, the new category is still the present one.
fn write_category(
    value: &mut ObjectWriter<'_>,
    event: &Event,
    template: &TemplateSnapshot<'_>,
    version: Option<&Version>,
) {
    if event.kind == EventType::CategoryAnnounced {
        if let Some(category) = event.reason.as_deref().and_then(Category::parse) {
            value.unescaped("correct_category", category.as_str());
        }
        let announced_at = shown_time(event);
        let changes_at = announced_at.checked_add(CATEGORY_NOTICE).unwrap_or(announced_at);
        value.raw("category_update_timestamp", &changes_at.as_second().to_string());
    } else if let Some(previous) = version.and_then(|it| it.previous_category) {
        value.unescaped("previous_category", previous.as_str());
    }
    value.unescaped("new_category", template.category.as_str());
}

/// Writes a status and its reason. A reviewer's free text goes into the fields that allow it.
fn write_status(value: &mut ObjectWriter<'_>, event: &Event, template: &TemplateSnapshot<'_>) {
    let text = event.reason.as_deref();
    let is_rejection = event.kind == EventType::Rejected && template.status == Status::Rejected;
    let reason = is_rejection.then(|| RejectionReason::of(text));
    value.unescaped("reason", reason.map_or("NONE", RejectionReason::as_str));
    value.unescaped("message_template_category", template.category.as_str());
    if let Some(text) = text.filter(|_| reason == Some(RejectionReason::InvalidFormat)) {
        value.object("rejection_info", |info| {
            info.string("reason", text);
            info.string("recommendation", RECOMMENDATION);
        });
    }
    let mut write_other_info = |title: &str, description: &str| {
        value.object("other_info", |info| {
            info.unescaped("title", title);
            info.string("description", description);
        });
    };
    match event.kind {
        EventType::Paused => {
            // What a person writes is not one of Meta's titles.
            let (title, description) = match event.actor {
                Actor::Service => PauseTitle::of(text),
                _ => (PauseTitle::RateLimiting, text),
            };
            let description = description.unwrap_or("Paused until it is resumed.");
            write_other_info(title.as_str(), description);
        }
        EventType::Resumed => write_other_info("UNPAUSE", text.unwrap_or("The pause has ended.")),
        EventType::Disabled => {
            write_other_info("DISABLED", text.unwrap_or("The template can no longer be sent."));
            let date = shown_time(event).as_second();
            value.object("disable_info", |info| info.display("disable_date", date));
        }
        _ => {}
    }
}

/// Writes the texts of a version, and its URL and phone number buttons.
fn write_components(value: &mut ObjectWriter<'_>, version: Option<&Version>) {
    let document = version.and_then(|it| Document::parse(it.content.as_bytes()).ok());
    let components = document.as_ref().and_then(|document| document.root().get("components"));
    let Some(Json::Array(components)) = components else { return };
    for component in components {
        let text = component.get("text").and_then(Json::as_str);
        let key = match component.get("type").and_then(Json::as_str) {
            Some("BODY") => "message_template_element",
            Some("HEADER") => "message_template_title",
            Some("FOOTER") => "message_template_footer",
            Some("BUTTONS") => {
                write_buttons(value, component);
                continue;
            }
            _ => continue,
        };
        if let Some(text) = text {
            value.string(key, text);
        }
    }
}

fn write_buttons(value: &mut ObjectWriter<'_>, component: &Json<'_>) {
    let Some(Json::Array(buttons)) = component.get("buttons") else { return };
    let buttons: Vec<String> = buttons.iter().filter_map(button).collect();
    if !buttons.is_empty() {
        value.raw("message_template_buttons", &format!("[{}]", buttons.join(",")));
    }
}

fn button(button: &Json<'_>) -> Option<String> {
    let field = |key: &str| button.get(key).and_then(Json::as_str);
    let kind = field("type")?;
    let (key, target) = match kind {
        "URL" => ("message_template_button_url", field("url")?),
        "PHONE_NUMBER" => ("message_template_button_phone_number", field("phone_number")?),
        _ => return None,
    };
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object.unescaped("message_template_button_type", kind);
    object.string("message_template_button_text", field("text").unwrap_or_default());
    object.string(key, target);
    object.close();
    Some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The value of the only change that is sent for an event of an approved UTILITY template.
    fn value(kind: EventType, status: Status, reason: &str) -> (String, Value) {
        value_by(Actor::Service, kind, status, reason)
    }

    fn value_by(actor: Actor, kind: EventType, status: Status, reason: &str) -> (String, Value) {
        let event = Event {
            seq: 1,
            kind,
            subject: EventSubject::Template {
                id: TemplateId::new(7).unwrap(),
                version: 1,
                name: "order".to_owned(),
                language: "en_US".to_owned(),
                category: Category::Utility,
                status,
            },
            at: Timestamp::from_second(1_000).unwrap(),
            emulated_at: None,
            actor,
            actor_name: String::new(),
            reason: Some(reason.to_owned()).filter(|it| !it.is_empty()),
            trace: None,
        };
        let body = body(AccountId::new(1).unwrap(), &event, None);
        let mut body: Value = serde_json::from_str(&body).unwrap();
        let changes = body["entry"][0]["changes"].take();
        let [change] = &changes.as_array().unwrap()[..] else { panic!("{changes}") };
        let mut value = change["value"].clone();
        let members = value.as_object_mut().unwrap();
        for (key, expected) in [
            ("message_template_id", json!(7)),
            ("message_template_name", json!("order")),
            ("message_template_language", json!("en_US")),
        ] {
            assert_eq!(members.remove(key), Some(expected), "{key}");
        }
        (change["field"].as_str().unwrap().to_owned(), value)
    }

    #[test]
    fn the_steps_of_a_review_script_are_sent_as_meta_sends_them() {
        let status = "message_template_status_update";
        let of_status = |event: &str| json!({"event": event, "reason": "NONE", "message_template_category": "UTILITY"});
        for (kind, at, reason, field, expected) in [
            (EventType::Flagged, Status::Approved, "", status, of_status("FLAGGED")),
            (EventType::Archived, Status::Archived, "", status, of_status("ARCHIVED")),
            (EventType::Unarchived, Status::Rejected, "", status, of_status("UNARCHIVED")),
            (
                EventType::QualityChanged,
                Status::Approved,
                "GREEN to RED",
                "message_template_quality_update",
                json!({"previous_quality_score": "GREEN", "new_quality_score": "RED"}),
            ),
            (
                EventType::CategoryAnnounced,
                Status::Approved,
                "MARKETING",
                "template_category_update",
                json!({
                    "correct_category": "MARKETING",
                    "category_update_timestamp": 1_000 + 24 * 60 * 60,
                    "new_category": "UTILITY",
                }),
            ),
        ] {
            assert_eq!(value(kind, at, reason), (field.to_owned(), expected), "{kind:?}");
        }
        let (_, paused) = value(EventType::Paused, Status::Paused, "FIRST_PAUSE: low quality");
        let expected = json!({"title": "FIRST_PAUSE", "description": "low quality"});
        assert_eq!(paused["other_info"], expected);
        let text = "FIRST_PAUSE: low quality";
        let (_, paused) = value_by(Actor::Operator, EventType::Paused, Status::Paused, text);
        let expected = json!({"title": "RATE_LIMITING_PAUSE", "description": text});
        assert_eq!(paused["other_info"], expected, "a person's reason is not a title");
    }
}
