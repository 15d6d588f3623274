//! Whether two documents have the same content, although a provider shows some of it in another form
//! than it was sent.

use std::{borrow::Cow, collections::BTreeMap};

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{items, text};
use crate::{
    document::{Document, Json, Member},
    rulebook::Category,
    template::Template,
};

/// The SHA-256 of a comparable content. Two contents with the same one cannot be made, so that it
/// decides which version a provider has.
pub type ContentKey = [u8; 32];

/// The content of a template without what a provider rewrites: a canonical text. Two documents have
/// the same content if their texts are equal.
///
/// The text does not contain the category, which the provider owns, except that it leaves out the
/// default of the category for the time to live. It contains of an attachment only that it has a sample.
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

/// Whether a provider shows what the account has in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentMatch {
    /// It shows another content.
    Different,
    /// It shows nothing else, and not all of it: whether the provider has the version follows only
    /// from a call that sent it.
    Alike,
    /// It shows all of it.
    Equal,
}

/// The content of a version of the account, with its category.
#[derive(Clone, Copy, Debug)]
pub struct VersionContent<'a> {
    /// The category.
    pub category: Category,
    /// The members of its document.
    pub content: &'a str,
}

impl<'a> VersionContent<'a> {
    /// The newest version of a template.
    pub fn of(template: &'a Template) -> Self {
        Self { category: template.category(), content: template.content() }
    }

    /// Compares the version with the document of a provider.
    pub fn compare(self, document: &str) -> ContentMatch {
        let documents = [self.content, document].map(|it| Document::parse(it.as_bytes()));
        let [Ok(own), Ok(shown)] = &documents else { return ContentMatch::Different };
        let (own, shown) = (own.root(), shown.root());
        let canonical = |document, detail| canonical_text(document, self.category.as_str(), detail);
        let is_equal = |detail| canonical(own, detail) == canonical(shown, detail);
        let is_as_written = is_equal(Detail::All);
        let loosest = self.loosest(text(shown, "category").unwrap_or_default());
        let is_code = loosest == Detail::Options;
        let is_alike = || is_equal(loosest) && (!is_code || shows_labels(own, shown));
        if !is_as_written && !is_alike() {
            return ContentMatch::Different;
        }
        let shows_texts =
            is_as_written || (is_code && is_equal(Detail::Labels) && !has_unshown_texts(own));
        if shows_texts && shows_options(own, shown) {
            ContentMatch::Equal
        } else {
            ContentMatch::Alike
        }
    }

    /// Whether a document of the provider with this fingerprint shows all of the version.
    pub fn is_shown_by(self, key: Option<ContentKey>) -> bool {
        let Ok(own) = Document::parse(self.content.as_bytes()) else { return false };
        let own = own.root();
        let content = canonical_text(own, self.category.as_str(), Detail::All);
        key == Some(content.key()) && shows_options(own, &Json::Null)
    }

    /// The least detail in which a document has to equal the version. Meta writes the texts of a message
    /// only if both sides say that it delivers a one-time code.
    fn loosest(self, shown_category: &str) -> Detail {
        let code = Category::Authentication;
        if self.category == code && shown_category.eq_ignore_ascii_case(code.as_str()) {
            Detail::Options
        } else {
            Detail::Numbers
        }
    }
}

/// Whether a document shows the options of a version that are no part of the canonical text, since not
/// every provider shows them.
fn shows_options(own: &Json<'_>, shown: &Json<'_>) -> bool {
    let Json::Object(members) = own else { return false };
    let is_compared = |it: &Member<'_>| COMPARED.contains(&&*it.key);
    let is_shown = |it: &Member<'_>| canonical(&it.value) == shown.get(&it.key).and_then(canonical);
    members.iter().all(|it| is_compared(it) || is_shown(it))
}

/// The label of a button for a one-time code that Meta writes in the language of the template.
const CODE_LABEL: &str = "Copy code";

/// Whether the buttons for a one-time code that are shown have the labels that the account has written.
/// A button shows one of its two labels, and Meta translates its own one.
fn shows_labels(own: &Json<'_>, shown: &Json<'_>) -> bool {
    let [own, shown] = [own, shown].map(|document| {
        let components = items(document, "components").iter();
        components.flat_map(|it| items(it, "buttons")).filter(|it| otp_type(it).is_some())
    });
    own.zip(shown).all(|(own, shown)| {
        let label = text(own, "text").filter(|it| !it.eq_ignore_ascii_case(CODE_LABEL));
        let (Some(label), Some(shown)) = (label, text(shown, "text")) else { return true };
        shown == label || text(own, "autofill_text") == Some(shown)
    })
}

/// Whether a version has members that a comparison of [`Detail::Labels`] ignores.
fn has_unshown_texts(own: &Json<'_>) -> bool {
    let has_text = |it: &Json<'_>| it.get("text").or_else(|| it.get("example")).is_some();
    let is_shown = |it: &Member<'_>| ["type", "otp_type", "text"].contains(&&*it.key);
    let has_unshown = |button: &Json<'_>| match button {
        Json::Object(members) => !members.iter().all(is_shown),
        _ => true,
    };
    items(own, "components")
        .iter()
        .any(|it| has_text(it) || items(it, "buttons").iter().any(has_unshown))
}

/// The members of a document that its canonical text is made of.
const COMPARED: [&str; 7] = [
    "components",
    "parameter_format",
    "sub_category",
    "display_format",
    "cta_url_link_tracking_opted_out",
    "message_send_ttl_seconds",
    "degrees_of_freedom_spec",
];

/// How much of two documents is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detail {
    /// All of it, as it is written.
    All,
    /// Phone numbers without spaces and punctuation, which a provider may write in another way.
    Numbers,
    /// A message with a one-time code without the texts that Meta writes, with the labels of the buttons.
    Labels,
    /// Such a message without texts and labels.
    Options,
}

impl Detail {
    fn is_of_code(self) -> bool {
        matches!(self, Self::Labels | Self::Options)
    }
}

/// The comparable content of a document, either one that Galley sends or one that a provider shows.
pub fn comparable(document: &Json<'_>) -> ComparableContent {
    canonical_text(document, text(document, "category").unwrap_or_default(), Detail::All)
}

fn canonical_text(document: &Json<'_>, category: &str, detail: Detail) -> ComparableContent {
    let mut content = BTreeMap::new();
    let mut add = |key: &str, value: Option<Canonical>| {
        if let Some(value) = value {
            content.insert(key.to_owned(), value);
        }
    };
    let shown = components(items(document, "components"), detail);
    add(
        "components",
        if detail == Detail::Numbers { shown.map(Canonical::in_digits) } else { shown },
    );
    for (key, default) in
        [("parameter_format", "POSITIONAL"), ("sub_category", "CUSTOM"), ("display_format", "")]
    {
        let word = text(document, key).map(str::to_uppercase).filter(|word| word != default);
        add(key, word.map(Canonical::text));
    }
    let tracking = "cta_url_link_tracking_opted_out";
    add(tracking, document.get(tracking).and_then(canonical));
    add("message_send_ttl_seconds", time_to_live(document, category).map(Canonical::number));
    add("degrees_of_freedom_spec", features(document));
    let text = serde_json::to_string(&Canonical::Object(content));
    ComparableContent(text.expect("a tree of strings serialises"))
}

/// The fingerprint of a document that the provider shows; `None` if it cannot be read.
pub fn document_key(document: &str) -> Option<ContentKey> {
    let document = Document::parse(document.as_bytes()).ok()?;
    Some(comparable(document.root()).key())
}

/// A JSON value in which every member says something.
#[derive(PartialEq, Serialize)]
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

    /// The value with phone numbers that consist of digits only.
    fn in_digits(self) -> Self {
        match self {
            Self::List(items) => Self::List(items.into_iter().map(Self::in_digits).collect()),
            Self::Object(members) => {
                let member = |(key, value): (String, Self)| match value {
                    Self::Scalar(Value::String(number)) if key == "phone_number" => {
                        (key, Self::text(number.replace(|it: char| !it.is_ascii_digit(), "")))
                    }
                    value => (key, value.in_digits()),
                };
                Self::Object(members.into_iter().map(member).collect())
            }
            scalar @ Self::Scalar(_) => scalar,
        }
    }
}

/// The type of a one-time code button. Meta shows such a button as a link to a page of its own.
fn otp_type<'j>(button: &'j Json<'_>) -> Option<Cow<'j, str>> {
    let is_type = |name: &str| text(button, "type").is_some_and(|it| it.eq_ignore_ascii_case(name));
    if is_type("OTP") {
        return Some(text(button, "otp_type").unwrap_or_default().into());
    }
    let url = text(button, "url").filter(|_| is_type("URL"))?;
    let query = url.strip_prefix("https://www.whatsapp.com/otp/code/?")?;
    let parameter = query.split('&').find_map(|it| it.strip_prefix("otp_type="));
    Some(parameter.unwrap_or_default().into())
}

/// The components by type: each type appears once, and the order says nothing.
fn components(components: &[Json<'_>], detail: Detail) -> Option<Canonical> {
    let mut typed: Vec<(String, Canonical)> = components
        .iter()
        .filter_map(|component| {
            let kind = text(component, "type").unwrap_or_default().to_uppercase();
            let component = if detail.is_of_code() {
                code_component(&kind, component, detail)
            } else {
                canonical(component)
            };
            Some((kind, component?))
        })
        .collect();
    typed.sort_by(|left, right| left.0.cmp(&right.0));
    Canonical::list(typed.into_iter().map(|(_, component)| component).collect())
}

/// A component of a message with a one-time code, without the texts that Meta writes.
fn code_component(kind: &str, component: &Json<'_>, detail: Detail) -> Option<Canonical> {
    let Json::Object(members) = component else { return canonical(component) };
    let is_own = |member: &&Member<'_>| !["text", "example", "buttons"].contains(&&*member.key);
    let mut members = object(members.iter().filter(is_own));
    if kind == "BUTTONS" {
        let buttons = items(component, "buttons").iter();
        let buttons = buttons.filter_map(|it| code_button(it, detail)).collect();
        members.extend(Canonical::list(buttons).map(|it| ("buttons".to_owned(), it)));
    }
    // An empty footer is not shown.
    let is_shown = kind != "FOOTER" || members.len() > 1;
    Canonical::object(members).filter(|_| is_shown)
}

fn code_button(button: &Json<'_>, detail: Detail) -> Option<Canonical> {
    let Some(otp_type) = otp_type(button) else { return canonical(button) };
    let label = text(button, "text").filter(|_| detail == Detail::Labels).unwrap_or_default();
    let members = [("type", "OTP"), ("otp_type", &*otp_type.to_uppercase()), ("text", label)];
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
            ("components", Json::Array(items)) => components(Json::kept(items), Detail::All),
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
fn time_to_live(document: &Json<'_>, category: &str) -> Option<i64> {
    const THIRTY_DAYS: i64 = 30 * 24 * 60 * 60;
    const TEN_MINUTES: i64 = 10 * 60;
    let seconds = document.get("message_send_ttl_seconds")?.as_i64()?;
    let seconds = if seconds == -1 { THIRTY_DAYS } else { seconds };
    let is_code = category.eq_ignore_ascii_case(Category::Authentication.as_str());
    let default = if is_code { TEN_MINUTES } else { THIRTY_DAYS };
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
