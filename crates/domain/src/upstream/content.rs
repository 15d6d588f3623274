//! Whether two documents have the same content, although a provider shows some of it in another form
//! than it was sent.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{items, text};
use crate::document::{Document, Json, Member};

/// The SHA-256 of a comparable content. Two contents with the same one cannot be made, so that it
/// decides which version a provider has.
pub type ContentKey = [u8; 32];

/// The content of a template without what a provider rewrites: a canonical text. Two documents have
/// the same content if their texts are equal.
///
/// The text does not contain the category, which the provider owns, and contains of an attachment
/// only that it has a sample, and of a message with a one-time code only what Meta shows of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ComparableContent(String);

impl ComparableContent {
    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The fingerprint of the text, which never changes.
    pub fn key(&self) -> ContentKey {
        Sha256::digest(&self.0).into()
    }
}

/// The comparable content of a document, either one that Galley sends or one that a provider shows.
pub fn comparable(document: &Json<'_>) -> ComparableContent {
    let is_code = is_authentication(document);
    let mut content = BTreeMap::new();
    let mut add = |key: &str, value: Option<Canonical>| {
        if let Some(value) = value {
            content.insert(key.to_owned(), value);
        }
    };
    add("components", components(items(document, "components"), is_code));
    for (key, default) in
        [("parameter_format", "POSITIONAL"), ("sub_category", "CUSTOM"), ("display_format", "")]
    {
        let word = text(document, key).map(str::to_uppercase).filter(|word| word != default);
        add(key, word.map(Canonical::text));
    }
    let tracking = "cta_url_link_tracking_opted_out";
    add(tracking, document.get(tracking).and_then(canonical));
    add("message_send_ttl_seconds", time_to_live(document).map(Canonical::number));
    add("degrees_of_freedom_spec", features(document));
    let text = serde_json::to_string(&Canonical::Object(content));
    ComparableContent(text.expect("a tree of strings serialises"))
}

/// The fingerprint of a document that the provider shows; `None` if it cannot be read.
pub fn document_key(document: &str) -> Option<ContentKey> {
    let document = Document::parse(document.as_bytes()).ok()?;
    Some(comparable(document.root()).key())
}

/// The fingerprint of a stored version. `category` is that of the provider, which owns it: it decides
/// how messages with one-time codes are compared.
pub fn version_key(category: &str, content: &str) -> Option<ContentKey> {
    let members = content.strip_prefix('{')?;
    let separator = if members.trim_start().starts_with('}') { "" } else { "," };
    let category = Value::from(category);
    document_key(&format!(r#"{{"category":{category}{separator}{members}"#))
}

/// A JSON value in which every member says something.
#[derive(Serialize)]
#[serde(untagged)]
enum Canonical {
    Scalar(Value),
    List(Vec<Canonical>),
    Object(BTreeMap<String, Canonical>),
}

impl Canonical {
    fn text(text: impl Into<String>) -> Self {
        Self::Scalar(Value::String(text.into()))
    }

    fn number(number: i64) -> Self {
        Self::Scalar(number.into())
    }

    fn list(items: Vec<Self>) -> Option<Self> {
        (!items.is_empty()).then_some(Self::List(items))
    }

    fn object(members: BTreeMap<String, Self>) -> Option<Self> {
        (!members.is_empty()).then_some(Self::Object(members))
    }
}

/// Whether Meta writes the texts, because the template delivers a one-time code.
fn is_authentication(document: &Json<'_>) -> bool {
    let is_category = |it: &str| it.eq_ignore_ascii_case("AUTHENTICATION");
    let mut components = items(document, "components").iter();
    text(document, "category").is_some_and(is_category)
        || components.any(|it| items(it, "buttons").iter().any(|it| otp_type(it).is_some()))
}

/// The type of a one-time code button. Meta shows such a button as a link to a page of its own.
fn otp_type<'j>(button: &'j Json<'_>) -> Option<Cow<'j, str>> {
    let is_type = |name: &str| text(button, "type").is_some_and(|it| it.eq_ignore_ascii_case(name));
    if is_type("OTP") {
        return Some(text(button, "otp_type").unwrap_or_default().into());
    }
    let url = text(button, "url").filter(|_| is_type("URL"))?;
    let (_, query) = url.split_once("whatsapp.com/otp/code/?")?;
    let parameter = query.split('&').find_map(|it| it.strip_prefix("otp_type="));
    Some(parameter.unwrap_or_default().into())
}

/// The components by type: each type appears once, and the order says nothing.
fn components(components: &[Json<'_>], is_code: bool) -> Option<Canonical> {
    let mut typed: Vec<(String, Canonical)> = components
        .iter()
        .filter_map(|component| {
            let kind = text(component, "type").unwrap_or_default().to_uppercase();
            let component =
                if is_code { code_component(&kind, component) } else { canonical(component) };
            Some((kind, component?))
        })
        .collect();
    typed.sort_by(|left, right| left.0.cmp(&right.0));
    Canonical::list(typed.into_iter().map(|(_, component)| component).collect())
}

/// A component of a message with a one-time code, without the texts that Meta writes.
fn code_component(kind: &str, component: &Json<'_>) -> Option<Canonical> {
    let Json::Object(members) = component else { return canonical(component) };
    let is_own = |member: &&Member<'_>| !["text", "example", "buttons"].contains(&&*member.key);
    let mut members = object(members.iter().filter(is_own));
    if kind == "BUTTONS" {
        let buttons = items(component, "buttons").iter().filter_map(code_button).collect();
        members.extend(Canonical::list(buttons).map(|it| ("buttons".to_owned(), it)));
    }
    // An empty footer is not shown.
    let is_shown = kind != "FOOTER" || members.len() > 1;
    Canonical::object(members).filter(|_| is_shown)
}

fn code_button(button: &Json<'_>) -> Option<Canonical> {
    let Some(otp_type) = otp_type(button) else { return canonical(button) };
    let members = [("type", "OTP"), ("otp_type", &*otp_type.to_uppercase())];
    let members = members.map(|(key, value)| (key.to_owned(), Canonical::text(value)));
    Some(Canonical::Object(BTreeMap::from(members)))
}

/// A value; `None` if it says the same as an absent one.
fn canonical(value: &Json<'_>) -> Option<Canonical> {
    match value {
        Json::Null | Json::Bool(false) => None,
        Json::String(text) if text.is_empty() => None,
        Json::Object(members) => Canonical::object(object(members.iter())),
        Json::Array(items) => Canonical::list(items.iter().map(item).collect()),
        scalar => Some(item(scalar)),
    }
}

/// An item of a list, where an empty value has a meaning by its position.
fn item(value: &Json<'_>) -> Canonical {
    match value {
        Json::Null => Canonical::Scalar(Value::Null),
        Json::Bool(flag) => Canonical::Scalar((*flag).into()),
        Json::String(text) => Canonical::text(&**text),
        Json::Number(number) => match value.as_i64() {
            Some(whole) => Canonical::number(whole),
            None => Canonical::Scalar(Value::Number(number.clone())),
        },
        Json::Omitted(count) => Canonical::text(format!("{count} more items")),
        Json::Array(items) => Canonical::List(items.iter().map(item).collect()),
        Json::Object(members) => Canonical::Object(object(members.iter())),
    }
}

/// Members whose values are words in any letter case.
const WORDS: [&str; 5] = ["type", "format", "otp_type", "flow_action", "icon"];

fn object<'j, 'a: 'j>(
    members: impl Iterator<Item = &'j Member<'a>> + Clone,
) -> BTreeMap<String, Canonical> {
    let url = members.clone().find(|it| it.key == "url").and_then(|it| it.value.as_str());
    let member = |member: &Member<'_>| {
        let (key, value) = (&*member.key, &member.value);
        let value = match (key, value) {
            (key, Json::String(word)) if WORDS.contains(&key) => {
                let is_default = key == "flow_action" && word.eq_ignore_ascii_case("navigate");
                (!is_default).then(|| Canonical::text(word.to_uppercase()))
            }
            // Spaces and punctuation do not change the number.
            ("phone_number", Json::String(number)) => {
                Some(Canonical::text(number.replace(|it: char| !it.is_ascii_digit(), "")))
            }
            ("components", Json::Array(items)) => components(Json::kept(items), false),
            ("example", Json::Object(members)) => samples(members),
            ("example", value) => button_sample(value, url),
            _ => canonical(value),
        };
        value.map(|value| (key.to_owned(), value))
    };
    members.filter(|member| !member.repeated).filter_map(member).collect()
}

/// The samples of a header or a body. An attachment is sent as a handle and shown as a link that
/// expires; texts are sent in several notations.
fn samples(members: &[Member<'_>]) -> Option<Canonical> {
    let sample = |Member { key, value, .. }: &Member<'_>| {
        let value = match (&**key, value) {
            ("header_handle" | "header_url", value) => {
                let has_sample = canonical(value).is_some();
                return has_sample
                    .then(|| ("has_sample".to_owned(), Canonical::Scalar(true.into())));
            }
            ("body_text", value) => body_samples(value),
            ("header_text", value @ Json::String(_)) => Canonical::list(vec![item(value)]),
            (key, Json::Array(items)) if key.ends_with("_named_params") => {
                let mut items: Vec<&Json<'_>> = items.iter().collect();
                items.sort_by_key(|it| text(it, "param_name"));
                Canonical::list(items.into_iter().map(item).collect())
            }
            (_, value) => canonical(value),
        };
        value.map(|value| (key.clone().into_owned(), value))
    };
    Canonical::object(members.iter().filter_map(sample).collect())
}

/// The samples of a body: `[["a","b"]]`, also written as `["a","b"]` or `"a"`.
fn body_samples(value: &Json<'_>) -> Option<Canonical> {
    let inner = match value {
        Json::Array(items) if matches!(items.first(), Some(Json::Array(_))) => {
            return canonical(value);
        }
        Json::Array(items) => items.iter().map(item).collect(),
        Json::String(_) => vec![item(value)],
        other => return canonical(other),
    };
    Some(Canonical::List(vec![Canonical::list(inner)?]))
}

/// The sample of a button: one value or a list. For a link it is the variable or the whole link.
fn button_sample(value: &Json<'_>, url: Option<&str>) -> Option<Canonical> {
    let prefix = url.and_then(|url| url.split("{{").next()).unwrap_or_default();
    let sample = |value: &Json<'_>| match value {
        Json::String(text) => Canonical::text(text.strip_prefix(prefix).unwrap_or(text)),
        other => item(other),
    };
    match value {
        Json::Array(items) => Canonical::list(items.iter().map(sample).collect()),
        Json::String(text) if !text.is_empty() => Canonical::list(vec![sample(value)]),
        other => canonical(other),
    }
}

/// The time to live, unless it is the default of the category.
fn time_to_live(document: &Json<'_>) -> Option<i64> {
    const THIRTY_DAYS: i64 = 30 * 24 * 60 * 60;
    const TEN_MINUTES: i64 = 10 * 60;
    let seconds = document.get("message_send_ttl_seconds")?.as_i64()?;
    let seconds = if seconds == -1 { THIRTY_DAYS } else { seconds };
    let default = if is_authentication(document) { TEN_MINUTES } else { THIRTY_DAYS };
    (seconds != default).then_some(seconds)
}

/// The creative features, which are sent as an object and shown as a list of keys and values.
fn features(document: &Json<'_>) -> Option<Canonical> {
    let specification = document.get("degrees_of_freedom_spec")?;
    let features = specification.get("creative_features_spec").unwrap_or(specification);
    let Json::Array(pairs) = features else { return canonical(features) };
    let pair =
        |pair: &Json<'_>| Some((text(pair, "key")?.to_owned(), canonical(pair.get("value")?)?));
    Canonical::object(pairs.iter().filter_map(pair).collect())
}

#[cfg(test)]
mod tests;
