//! How templates and accounts look to clients of the Graph API: only the fields that are asked
//! for, never a `null`, and samples of attachments as addresses.

use std::fmt::Write as _;

use galley_domain::{
    document::{Document, Json, Member},
    template::Status,
    webhook::rejection_word,
};
use galley_store::{Account, StoredTemplate};

use super::parameters::Query;
use crate::{
    api::{media_url, problem::Problem},
    app::App,
    json_writer::Object,
};

/// What is shown of a template when nobody says what to show.
const USUAL: &[&str] = &[
    "name",
    "parameter_format",
    "components",
    "language",
    "status",
    "category",
    "sub_category",
    "previous_category",
    "message_send_ttl_seconds",
];

/// What is shown of an account.
const ACCOUNT: &[&str] = &["name", "timezone_id"];

/// Which fields are wanted; the id always is.
pub(super) struct Fields(Option<Vec<String>>);

impl Fields {
    pub(super) fn of(query: &Query) -> Result<Self, Problem> {
        query.list("fields").map(Self)
    }

    /// Whether a field of a template is wanted.
    fn want(&self, field: &str) -> bool {
        self.want_of(field, USUAL)
    }

    fn want_of(&self, field: &str, usual: &[&str]) -> bool {
        match &self.0 {
            Some(fields) => fields.iter().any(|wanted| wanted == field),
            None => usual.contains(&field),
        }
    }
}

/// One template.
pub(super) fn template(app: &App, stored: &StoredTemplate, fields: &Fields) -> String {
    let mut out = String::with_capacity(stored.template.content().len() + 256);
    write_template(&mut out, app, stored, fields);
    out
}

pub(super) fn write_template(
    out: &mut String,
    app: &App,
    stored: &StoredTemplate,
    fields: &Fields,
) {
    let (template, status) = (&stored.template, stored.state.status());
    let mut object = Object::open(out);
    if fields.want("name") {
        object.text("name", template.name());
    }
    if fields.want("language") {
        object.word("language", template.language());
    }
    if fields.want("status") {
        object.word("status", status.as_str());
    }
    if fields.want("category") {
        object.word("category", template.category().as_str());
    }
    if let Some(previous) = stored.previous_category.filter(|_| fields.want("previous_category")) {
        object.word("previous_category", previous.as_str());
    }
    if fields.want("rejected_reason") {
        object.word("rejected_reason", rejected_reason(stored));
    }
    if fields.want("quality_score") {
        // Nothing is sent from here, so that nobody has judged it.
        let date = stored.created_at.as_second();
        object.raw("quality_score", &format!(r#"{{"score":"UNKNOWN","date":{date}}}"#));
    }
    write_content(&mut object, app, template.content(), fields);
    object.word("id", itoa::Buffer::new().format(stored.id.get()));
    object.close();
}

/// What the rulebook keeps beside identity, field by field.
fn write_content(object: &mut Object<'_>, app: &App, content: &str, fields: &Fields) {
    let document = Document::parse(content.as_bytes()).ok();
    let Some(Json::Object(members)) = document.as_ref().map(Document::root) else { return };
    for member in members.iter().filter(|member| fields.want(&member.key)) {
        let mut value = String::new();
        match &*member.key {
            "degrees_of_freedom_spec" => write_features(&mut value, &member.value),
            "components" => write_components(&mut value, &member.value, app),
            _ => write_json(&mut value, &member.value, Some(app)),
        }
        object.raw(&member.key, &value);
    }
}

/// The components. Those of an authentication template may have nothing to say, and clients cannot
/// make anything of them then: a footer is left out, and a body says that it recommends nothing.
fn write_components(out: &mut String, components: &Json<'_>, app: &App) {
    let items = match components {
        Json::Array(items) => &items[..],
        _ => &[],
    };
    out.push('[');
    let mut first = true;
    for item in items.iter().filter(|item| !is_only(item, "FOOTER")) {
        if !first {
            out.push(',');
        }
        first = false;
        if is_only(item, "BODY") {
            out.push_str(r#"{"type":"BODY","add_security_recommendation":false}"#);
        } else {
            write_json(out, item, Some(app));
        }
    }
    out.push(']');
}

/// Whether a component of that type holds nothing else.
fn is_only(component: &Json<'_>, word: &str) -> bool {
    let Json::Object(members) = component else { return false };
    members.len() == 1 && component.get("type").and_then(Json::as_str) == Some(word)
}

/// What may be improved: sent as a map of features, but read as a list of keys and values.
fn write_features(out: &mut String, specification: &Json<'_>) {
    const FEATURES: &str = "creative_features_spec";
    let features = match specification.get(FEATURES) {
        Some(Json::Object(features)) => &features[..],
        _ => &[],
    };
    let mut list = String::from("[");
    for (index, Member { key, value, .. }) in features.iter().enumerate() {
        if index > 0 {
            list.push(',');
        }
        let mut feature = String::new();
        write_json(&mut feature, value, None);
        let mut object = Object::open(&mut list);
        object.text("key", key);
        object.raw("value", &feature);
        object.close();
    }
    list.push(']');
    let mut object = Object::open(out);
    object.raw(FEATURES, &list);
    object.close();
}

/// Writes a value. With `samples`, the handles of attachments become the addresses where they are.
pub(super) fn write_json(out: &mut String, value: &Json<'_>, samples: Option<&App>) {
    let _ = match value {
        Json::Null => write!(out, "null"),
        Json::Bool(flag) => write!(out, "{flag}"),
        Json::Number(number) => write!(out, "{number}"),
        Json::String(text) => return write_text(out, text),
        Json::Array(items) => {
            return write_list(out, items, |out, item| write_json(out, item, samples));
        }
        Json::Object(members) => {
            for (index, Member { key, value, .. }) in members.iter().enumerate() {
                out.push(if index == 0 { '{' } else { ',' });
                write_text(out, key);
                out.push(':');
                match (samples, value) {
                    (Some(app), Json::Array(handles)) if key == "header_handle" => {
                        write_list(out, handles, |out, handle| write_handle(out, handle, app));
                    }
                    _ => write_json(out, value, samples),
                }
            }
            return out.push_str(if members.is_empty() { "{}" } else { "}" });
        }
    };
}

fn write_list(out: &mut String, items: &[Json<'_>], write: impl Fn(&mut String, &Json<'_>)) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

/// Attachments that were uploaded here are shown where they are served; other handles as they are.
fn write_handle(out: &mut String, handle: &Json<'_>, app: &App) {
    match handle.as_str().and_then(|handle| media_url::address(app, handle)) {
        Some(address) => write_text(out, &address),
        None => write_json(out, handle, None),
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// One of the words that clients know. A reviewer's own words are told on API v1.0.
fn rejected_reason(stored: &StoredTemplate) -> &'static str {
    if stored.state.newest != Status::Rejected {
        return "NONE";
    }
    rejection_word(stored.reason.as_deref())
}

/// What an edit answers. Meta tells less; some clients insist on a name and a category, one on a
/// status.
pub(super) fn edited(stored: &StoredTemplate) -> String {
    let mut out = String::new();
    let mut object = Object::open(&mut out);
    object.raw("success", "true");
    object.plain("id", stored.id);
    object.text("name", stored.template.name());
    object.word("category", stored.template.category().as_str());
    object.word("status", stored.state.status().as_str());
    object.close();
    out
}

/// An account. Clients that read it whole insist on a time zone: there is none here, which has the
/// number 0.
pub(super) fn account(account: &Account, fields: &Fields) -> String {
    let mut out = String::new();
    let mut object = Object::open(&mut out);
    object.plain("id", account.id);
    if fields.want_of("name", ACCOUNT) {
        object.text("name", &account.name);
    }
    if fields.want_of("timezone_id", ACCOUNT) {
        object.word("timezone_id", "0");
    }
    object.close();
    out
}
