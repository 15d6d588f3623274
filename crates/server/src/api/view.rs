//! How templates, their versions, endpoints and lists look from outside.

mod webhooks;

use galley_domain::template::Status;
use galley_store::{Event, StoredTemplate, Version};

use crate::{event_json, json_writer::Object};

pub(crate) use webhooks::{deliveries, webhook, webhook_with_secret, webhooks};

/// One template. Its content is JSON already and is taken over as it is.
pub(crate) fn template(stored: &StoredTemplate) -> String {
    let mut out = String::with_capacity(stored.template.content().len() + 512);
    write_template(&mut out, stored);
    out
}

fn write_template(out: &mut String, stored: &StoredTemplate) {
    let (template, state) = (&stored.template, &stored.state);
    let mut object = Object::open(out);
    object.word("id", itoa::Buffer::new().format(stored.id.get()));
    object.text("name", template.name());
    object.word("language", template.language());
    object.word("category", template.category().as_str());
    let allow = if template.allow_category_change() { "true" } else { "false" };
    object.raw("allow_category_change", allow);
    object.word("status", state.status().as_str());
    if let Some(phone) = &stored.phone {
        object.text("phone_number_id", phone);
    }
    object.number("version", state.version);
    if let Some(live) = state.live_version() {
        object.number("live_version", live);
    }
    if let Some(reason) = stored.reason.as_ref().filter(|_| state.newest == Status::Rejected) {
        object.text("rejection_reason", reason);
    }
    if let Some(category) = stored.previous_category {
        object.word("previous_category", category.as_str());
    }
    object.plain("created_at", stored.created_at);
    object.plain("updated_at", stored.updated_at);
    let content = template.content();
    out.push(',');
    out.push_str(content.strip_prefix('{').unwrap_or(content));
}

/// One version in the list of a template's versions.
fn write_version(out: &mut String, version: &Version) {
    let mut object = Object::open(out);
    object.number("version", version.number);
    object.word("status", version.status.as_str());
    object.word("category", version.category.as_str());
    if let Some(category) = version.previous_category {
        object.word("previous_category", category.as_str());
    }
    object.plain("created_at", version.created_at);
    object.plain("created_by", version.created_by);
    if let Some(decision) = &version.decision {
        object.plain("decided_at", decision.at);
        object.plain("decided_by", decision.by);
        if let Some(reason) = &decision.reason {
            object.text("reason", reason);
        }
    }
    out.push('}');
}

/// Where a page ends, and where the next one is.
pub(crate) struct Paging {
    /// The last item of the page, as `after` takes it.
    pub(crate) after: Option<String>,
    /// The link to the next page, if there is one.
    pub(crate) next: Option<String>,
}

pub(crate) fn templates(templates: &[StoredTemplate], paging: &Paging) -> String {
    page(templates, paging, write_template)
}

pub(crate) fn versions(versions: &[Version], paging: &Paging) -> String {
    page(versions, paging, write_version)
}

pub(crate) fn events(events: &[Event], paging: &Paging) -> String {
    page(events, paging, event_json::write)
}

fn page<T>(items: &[T], paging: &Paging, write: impl Fn(&mut String, &T)) -> String {
    let mut out = String::with_capacity(1_024 * items.len() + 128);
    write_data(&mut out, items, write);
    out.push_str(",\"paging\":{\"cursors\":{");
    if let Some(after) = &paging.after {
        out.push_str("\"after\":");
        out.push_str(&serde_json::to_string(after).unwrap_or_default());
    }
    out.push('}');
    if let Some(next) = &paging.next {
        out.push_str(",\"next\":");
        out.push_str(&serde_json::to_string(next).unwrap_or_default());
    }
    out.push_str("}}");
    out
}

/// Begins the object of a list: `{"data":[…]`.
fn write_data<T>(out: &mut String, items: &[T], write: impl Fn(&mut String, &T)) {
    out.push_str("{\"data\":[");
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}
