//! The JSON form of templates, versions, endpoints, emulators and lists on API v1.0.

mod credentials;
mod emulator;
mod groups;
mod session;
mod upstream;
mod webhooks;

use galley_domain::template::Status;
use galley_store::{Event, StoredTemplate, VersionSummary};

use super::at_provider::{AllAtProvider, AtProvider};
use crate::{event_json, json_writer::ObjectWriter};

pub(crate) use credentials::{audit_entries, token_with_secret, tokens};
pub(crate) use emulator::{clock, fault, faults, messages};
pub(crate) use groups::groups;
pub(crate) use session::session;
pub(crate) use upstream::{connection, operation, operations, provided, template_at_provider};
pub(crate) use webhooks::{deliveries, webhook, webhook_with_secret, webhooks};

/// One template, and what is known of it at the provider of a connected account. Its content is
/// stored as JSON and copied unchanged.
pub(crate) fn template(stored: &StoredTemplate, at: Option<&AtProvider>) -> String {
    let mut out = String::with_capacity(stored.template.content().len() + 512);
    write_template(&mut out, stored, at);
    out
}

fn write_template(out: &mut String, stored: &StoredTemplate, at: Option<&AtProvider>) {
    let (template, state) = (&stored.template, &stored.state);
    let mut object = ObjectWriter::open(out);
    object.unescaped("id", itoa::Buffer::new().format(stored.id.get()));
    object.string("name", template.name());
    object.unescaped("language", template.language());
    object.unescaped("category", template.category().as_str());
    let allow = if template.allow_category_change() { "true" } else { "false" };
    object.raw("allow_category_change", allow);
    object.unescaped("status", state.status().as_str());
    if let Some(phone) = &stored.phone {
        object.string("phone_number_id", phone);
    }
    object.number("version", state.version);
    if let Some(live) = state.live_version() {
        object.number("live_version", live);
    }
    if let Some(reason) = stored.reason.as_ref().filter(|_| state.newest_status == Status::Rejected)
    {
        object.string("rejection_reason", reason);
    }
    if let Some(category) = stored.previous_category {
        object.unescaped("previous_category", category.as_str());
    }
    object.timestamp("created_at", stored.created_at);
    object.timestamp("updated_at", stored.updated_at);
    if let Some(at) = at {
        upstream::write_member(&mut object, at);
    }
    let content = template.content();
    out.push(',');
    out.push_str(content.strip_prefix('{').unwrap_or(content));
}

/// One entry in the list of a template's versions.
fn write_version(out: &mut String, version: &VersionSummary) {
    let mut object = ObjectWriter::open(out);
    object.number("version", version.number);
    object.unescaped("status", version.status.as_str());
    object.unescaped("category", version.category.as_str());
    if let Some(category) = version.previous_category {
        object.unescaped("previous_category", category.as_str());
    }
    object.timestamp("created_at", version.created_at);
    object.display("created_by", version.created_by);
    object.string("created_by_name", &version.created_by_name);
    if let Some(decision) = &version.decision {
        object.timestamp("decided_at", decision.at);
        object.display("decided_by", decision.by);
        object.string("decided_by_name", &version.decided_by_name);
        if let Some(reason) = &decision.reason {
            object.string("reason", reason);
        }
    }
    out.push('}');
}

/// The cursors of a page.
pub(crate) struct Paging {
    /// The cursor of the last item of the page, a value for `after`.
    pub(crate) after: Option<String>,
    /// The link to the next page; `None` on the last page.
    pub(crate) next: Option<String>,
}

pub(crate) fn templates(
    templates: &[StoredTemplate],
    all: &AllAtProvider,
    paging: &Paging,
) -> String {
    page(templates, paging, |out, stored| write_template(out, stored, all.get(stored.id)))
}

pub(crate) fn versions(versions: &[VersionSummary], paging: &Paging) -> String {
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

/// Writes the beginning of a list: `{"data":[…]`.
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
