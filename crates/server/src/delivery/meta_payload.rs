//! An event as Meta tells it: its envelope, and what stands in it.

use galley_domain::{
    document::{Document, Json},
    id::TemplateId,
    rulebook::Category,
    template::{Status, lifecycle::EventType},
    webhook::{INVALID_FORMAT, Update, rejection_word, status_word},
};
use galley_store::{DueDelivery, Event, EventSubject, Version};

use crate::json_writer::Object;

/// What there is to do about a rejection, whatever the reason is.
const RECOMMENDATION: &str = "Edit the template and submit it again.";

/// A template as it was when something happened to it.
struct Subject<'e> {
    id: TemplateId,
    name: &'e str,
    language: &'e str,
    category: Category,
    status: Status,
}

/// The body of one delivery.
pub(crate) fn envelope(due: &DueDelivery) -> String {
    let (event, version) = (&due.event, due.version.as_ref());
    let changes = match &event.about {
        EventSubject::Template { id, name, language, category, status, .. } => {
            let (category, status) = (*category, *status);
            let subject = Subject { id: *id, name, language, category, status };
            let updates = Update::of(event.kind, Some(status)).iter();
            updates.map(|update| change(*update, event, &subject, version)).collect()
        }
        EventSubject::Webhook { .. } => Vec::new(),
    };
    let mut entry = String::new();
    let mut object = Object::open(&mut entry);
    object.plain("id", due.webhook.account);
    object.raw("time", &event.at.as_second().to_string());
    object.raw("changes", &format!("[{}]", changes.join(",")));
    object.close();
    let mut out = String::with_capacity(entry.len() + 64);
    let mut object = Object::open(&mut out);
    object.word("object", "whatsapp_business_account");
    object.raw("entry", &format!("[{entry}]"));
    object.close();
    out
}

fn change(update: Update, event: &Event, about: &Subject<'_>, version: Option<&Version>) -> String {
    let mut out = String::with_capacity(384);
    let mut object = Object::open(&mut out);
    object.object("value", |value| {
        if update == Update::Status {
            value.word("event", status_word(event.kind, about.status));
        }
        value.number("message_template_id", about.id.get());
        value.text("message_template_name", about.name);
        value.word("message_template_language", about.language);
        match update {
            Update::Status => write_status(value, event, about),
            Update::Components => write_components(value, version),
            Update::Category => {
                if let Some(previous) = version.and_then(|it| it.previous_category) {
                    value.word("previous_category", previous.as_str());
                }
                value.word("new_category", about.category.as_str());
            }
        }
    });
    object.word("field", update.as_str());
    object.close();
    out
}

/// A status with its reason. The words of a reviewer stand where Meta has room for words.
fn write_status(value: &mut Object<'_>, event: &Event, about: &Subject<'_>) {
    let said = event.reason.as_deref();
    let rejected = event.kind == EventType::Rejected && about.status == Status::Rejected;
    let reason = if rejected { rejection_word(said) } else { "NONE" };
    value.word("reason", reason);
    value.word("message_template_category", about.category.as_str());
    if let Some(said) = said.filter(|_| reason == INVALID_FORMAT) {
        value.object("rejection_info", |info| {
            info.text("reason", said);
            info.text("recommendation", RECOMMENDATION);
        });
    }
    let mut other = |title: &str, description: &str| {
        value.object("other_info", |info| {
            info.word("title", title);
            info.text("description", description);
        });
    };
    match event.kind {
        // Of Meta's pauses the one that ends only when somebody ends it.
        EventType::Paused => {
            other("RATE_LIMITING_PAUSE", said.unwrap_or("Paused until somebody resumes it."));
        }
        EventType::Resumed => other("UNPAUSE", said.unwrap_or("The pause has ended.")),
        EventType::Disabled => {
            other("DISABLED", said.unwrap_or("It is not to be sent any more."));
            let date = event.at.as_second();
            value.object("disable_info", |info| info.plain("disable_date", date));
        }
        _ => {}
    }
}

/// What a version says, as far as it is told: texts, and the buttons that lead somewhere.
fn write_components(value: &mut Object<'_>, version: Option<&Version>) {
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
            value.text(key, text);
        }
    }
}

fn write_buttons(value: &mut Object<'_>, component: &Json<'_>) {
    let Some(Json::Array(buttons)) = component.get("buttons") else { return };
    let told: Vec<String> = buttons.iter().filter_map(button).collect();
    if !told.is_empty() {
        value.raw("message_template_buttons", &format!("[{}]", told.join(",")));
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
    let mut object = Object::open(&mut out);
    object.word("message_template_button_type", kind);
    object.text("message_template_button_text", field("text").unwrap_or_default());
    object.text(key, target);
    object.close();
    Some(out)
}
