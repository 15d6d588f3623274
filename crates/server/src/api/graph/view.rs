//! The JSON form of templates and accounts on the Graph surface: only the requested fields, never
//! `null`, and samples of attachments as URLs.

use std::fmt::Write as _;

use galley_domain::{
    document::{Document, Json, Member, raw},
    rulebook::Category,
    template::{Status, Template, quality::Quality, sample},
    webhook::RejectionReason,
};
use galley_store::{Account, StoredTemplate};

use super::{
    faithful::{self, Faithful},
    ids::{ProviderIds, ShownId},
    parameters::Query,
    submission::Submission,
};
use crate::{
    api::{media_url, problem::Problem},
    app::App,
    json_writer::ObjectWriter,
};

/// The default fields of a template.
const TEMPLATE_FIELDS: &[&str] = &[
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

/// The default fields of an account.
const ACCOUNT_FIELDS: &[&str] = &["name", "timezone_id"];

/// The requested fields. Every response contains the id.
pub(super) struct Fields(Option<Vec<String>>);

impl Fields {
    pub(super) fn of(query: &Query) -> Result<Self, Problem> {
        query.list("fields").map(Self)
    }

    /// Whether the response contains this field of a template.
    fn contains(&self, field: &str) -> bool {
        self.contains_or_default(field, TEMPLATE_FIELDS)
    }

    fn contains_or_default(&self, field: &str, defaults: &[&str]) -> bool {
        match &self.0 {
            Some(fields) => fields.iter().any(|requested| requested == field),
            None => defaults.contains(&field),
        }
    }
}

/// How templates are shown to a caller.
pub(super) struct View<'a> {
    pub(super) app: &'a App,
    pub(super) fields: &'a Fields,
    /// For a faithful emulator account, which shows what Meta shows.
    pub(super) faithful: Option<Faithful>,
    /// The ids of the provider of a connected account.
    pub(super) ids: ProviderIds,
}

/// One template.
pub(super) fn template(view: &View<'_>, stored: &StoredTemplate) -> String {
    let mut out = String::with_capacity(stored.template.content().len() + 256);
    write_template(&mut out, view, stored);
    out
}

pub(super) fn write_template(out: &mut String, view: &View<'_>, stored: &StoredTemplate) {
    let (template, status, fields) = (&stored.template, stored.state.status(), view.fields);
    let mut object = ObjectWriter::open(out);
    if fields.contains("name") {
        object.string("name", template.name());
    }
    if fields.contains("language") {
        object.unescaped("language", template.language());
    }
    if fields.contains("status") {
        object.unescaped("status", status.as_str());
    }
    if fields.contains("category") {
        object.unescaped("category", template.category().as_str());
    }
    if let Some(previous) =
        stored.previous_category.filter(|_| fields.contains("previous_category"))
    {
        object.unescaped("previous_category", previous.as_str());
    }
    if fields.contains("rejected_reason") {
        object.unescaped("rejected_reason", rejected_reason(stored));
    }
    if let Some(correct) = stored.announced_category.filter(|_| fields.contains("correct_category"))
    {
        object.unescaped("correct_category", correct.as_str());
    }
    if fields.contains("quality_score") {
        write_quality(&mut object, stored);
    }
    if fields.contains("last_updated_time") {
        object.raw("last_updated_time", &stored.updated_at.as_second().to_string());
    }
    write_content(&mut object, view, template);
    match view.ids.shown(stored.id) {
        ShownId::Own(id) => object.unescaped("id", itoa::Buffer::new().format(id.get())),
        ShownId::Provider(id) => object.unescaped("id", id.as_str()),
    }
    object.close();
}

/// Writes the quality. Only providers and the review scripts of emulator accounts rate templates.
fn write_quality(object: &mut ObjectWriter<'_>, stored: &StoredTemplate) {
    let date = match stored.quality {
        Quality::Unknown => stored.created_at,
        _ => stored.updated_at,
    };
    object.object("quality_score", |quality| {
        quality.unescaped("score", stored.quality.as_str());
        quality.raw("date", &date.as_second().to_string());
    });
}

/// Writes the content of a template, field by field. The stored text of a field is copied, except
/// where clients read another form than they send.
fn write_content(object: &mut ObjectWriter<'_>, view: &View<'_>, template: &Template) {
    let has_code = view.faithful.is_some() && template.category() == Category::Authentication;
    let members = raw::members(template.content()).unwrap_or_default();
    for (key, value) in members.iter().filter(|(key, _)| view.fields.contains(key)) {
        let shows_code = has_code && *key == "components";
        if !shows_code && is_shown_as_stored(key, value) {
            object.raw(key, value);
        } else if let Ok(document) = Document::parse(value.as_bytes()) {
            let root = document.root();
            object.raw(
                key,
                &if shows_code {
                    faithful::authentication_components(root, template.language())
                } else {
                    rewritten(key, root, view)
                },
            );
        }
    }
}

/// Whether a response contains the stored text of a field unchanged.
fn is_shown_as_stored(key: &str, value: &str) -> bool {
    let has_empty_component = || EMPTY_COMPONENTS.iter().any(|component| value.contains(component));
    key != "degrees_of_freedom_spec"
        && sample::referenced_names(value).next().is_none()
        && (key != "components" || !has_empty_component())
}

/// The components that [`write_components`] changes, as they are stored.
const EMPTY_COMPONENTS: [&str; 2] = [r#"{"type":"BODY"}"#, r#"{"type":"FOOTER"}"#];

/// The text of a field that clients read in another form.
fn rewritten(key: &str, value: &Json<'_>, view: &View<'_>) -> String {
    let mut out = String::new();
    match key {
        "degrees_of_freedom_spec" => write_features(&mut out, value),
        "components" => write_components(&mut out, value, view),
        _ => write_json(&mut out, value, Some(view)),
    }
    out
}

/// Writes the components. Clients cannot process the empty components that an authentication
/// template may have: an empty footer is omitted, and an empty body gets
/// `add_security_recommendation`.
fn write_components(out: &mut String, components: &Json<'_>, view: &View<'_>) {
    let items = match components {
        Json::Array(items) => &items[..],
        _ => &[],
    };
    out.push('[');
    let mut first = true;
    for item in items.iter().filter(|item| !is_empty(item, "FOOTER")) {
        if !first {
            out.push(',');
        }
        first = false;
        if is_empty(item, "BODY") {
            out.push_str(r#"{"type":"BODY","add_security_recommendation":false}"#);
        } else {
            write_json(out, item, Some(view));
        }
    }
    out.push(']');
}

/// Whether a component has this type and no other members.
fn is_empty(component: &Json<'_>, component_type: &str) -> bool {
    let Json::Object(members) = component else { return false };
    members.len() == 1 && component.get("type").and_then(Json::as_str) == Some(component_type)
}

/// Writes the creative features. Clients send them as a map, but read them as a list of keys and
/// values.
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
        let mut object = ObjectWriter::open(&mut list);
        object.string("key", key);
        object.raw("value", &feature);
        object.close();
    }
    list.push(']');
    let mut object = ObjectWriter::open(out);
    object.raw(FEATURES, &list);
    object.close();
}

/// Writes a value. With `samples`, the handles of attachments become URLs.
fn write_json(out: &mut String, value: &Json<'_>, samples: Option<&View<'_>>) {
    let _ = match value {
        Json::Null | Json::Omitted(_) => write!(out, "null"),
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
                    (Some(view), Json::Array(handles)) if key == "header_handle" => {
                        write_list(out, handles, |out, handle| write_handle(out, handle, view));
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

/// Writes the URL of an attachment that was uploaded to Galley; other handles unchanged.
fn write_handle(out: &mut String, handle: &Json<'_>, view: &View<'_>) {
    let url = |handle: &str| match view.faithful {
        Some(faithful) => faithful.sample_link(view.app, handle),
        None => media_url::for_handle(view.app, handle),
    };
    match handle.as_str().and_then(url) {
        Some(url) => write_text(out, &url),
        None => write_json(out, handle, None),
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// The rejection reason as one of Meta's values. API v1.0 shows the reviewer's own text.
fn rejected_reason(stored: &StoredTemplate) -> &'static str {
    if stored.state.newest_status != Status::Rejected {
        return "NONE";
    }
    RejectionReason::of(stored.reason.as_deref()).as_str()
}

/// The response to an edit. It has more members than Meta's, because some clients require a name and
/// a category, and one requires a status.
pub(super) fn edited(
    stored: &StoredTemplate,
    ids: &ProviderIds,
    submission: &Submission,
) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object.raw("success", "true");
    object.display("id", ids.shown(stored.id));
    object.string("name", stored.template.name());
    object.unescaped("category", stored.template.category().as_str());
    object.unescaped("status", stored.state.status().as_str());
    submission.write(&mut object);
    object.close();
    out
}

/// An account. Some clients require a time zone; Galley has none, which is `0` in the Graph API.
pub(super) fn account(account: &Account, fields: &Fields) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object.display("id", account.id);
    if fields.contains_or_default("name", ACCOUNT_FIELDS) {
        object.string("name", &account.name);
    }
    if fields.contains_or_default("timezone_id", ACCOUNT_FIELDS) {
        object.unescaped("timezone_id", "0");
    }
    object.close();
    out
}
