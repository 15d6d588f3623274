//! Templates as a provider shows them.

use std::fmt;

use jiff::Timestamp;

use super::{bounded, bounded_text, text};
use crate::{
    document::{Document, Json},
    template::{Status, lifecycle::Hold, quality::Quality},
};

/// The id of a template at a provider. It is a text, because not every provider uses numbers, and
/// those of Meta exceed 2^53.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteId(String);

impl RemoteId {
    /// The longest id.
    pub const MAX_BYTES: usize = 64;

    /// The id with this text: 1 to 64 letters, digits and `_.:-`. It is safe in a path.
    pub fn parse(text: &str) -> Option<Self> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
        // `.` and `..` would change the path of a request.
        let is_path = text.bytes().all(|byte| byte == b'.');
        let is_valid = text.len() <= Self::MAX_BYTES && text.bytes().all(is_allowed) && !is_path;
        is_valid.then(|| Self(text.to_owned()))
    }

    /// The id in a JSON value. Webhooks contain numbers, responses strings.
    pub fn read(value: &Json<'_>) -> Option<Self> {
        match value {
            Json::String(text) => Self::parse(text),
            Json::Number(number) => number.as_u64().map(|number| Self(number.to_string())),
            _ => None,
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RemoteId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The status of a template at a provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RemoteStatus {
    /// `APPROVED`: the only one that can be sent.
    Approved,
    /// `PENDING`.
    Pending,
    /// `REJECTED`.
    Rejected,
    /// `PAUSED`.
    Paused,
    /// `DISABLED`.
    Disabled,
    /// `ARCHIVED`.
    Archived,
    /// `IN_APPEAL`: a rejection is reviewed again.
    InAppeal,
    /// `PENDING_DELETION`: deleted, while messages are still delivered.
    PendingDeletion,
    /// `DELETED`.
    Deleted,
    /// `LIMIT_EXCEEDED`: one template too many.
    LimitExceeded,
    /// Any other word, in upper case.
    Other(String),
}

/// What Galley shows of the status at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownState {
    /// The status of the newest version: PENDING, APPROVED or REJECTED. `None` if the provider does
    /// not tell it, so that it stays as it was.
    pub version_status: Option<Status>,
    /// The hold.
    pub hold: Option<Hold>,
}

/// Every word that is known.
const STATUSES: [(&str, RemoteStatus); 10] = [
    ("APPROVED", RemoteStatus::Approved),
    ("PENDING", RemoteStatus::Pending),
    ("REJECTED", RemoteStatus::Rejected),
    ("PAUSED", RemoteStatus::Paused),
    ("DISABLED", RemoteStatus::Disabled),
    ("ARCHIVED", RemoteStatus::Archived),
    ("IN_APPEAL", RemoteStatus::InAppeal),
    ("PENDING_DELETION", RemoteStatus::PendingDeletion),
    ("DELETED", RemoteStatus::Deleted),
    ("LIMIT_EXCEEDED", RemoteStatus::LimitExceeded),
];

impl RemoteStatus {
    /// The status with this word; letter case is ignored. An unknown word is kept.
    pub fn parse(word: &str) -> Self {
        let known = STATUSES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
        known.map_or_else(|| Self::Other(bounded(word).to_uppercase()), |(_, status)| status)
    }

    /// The word of the provider, as it is stored and displayed.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Other(word) => word,
            known => STATUSES.iter().find(|(_, it)| it == known).map_or("", |(word, _)| word),
        }
    }

    /// Whether the provider has deleted the template.
    pub fn is_deleted(&self) -> bool {
        matches!(self, Self::Deleted | Self::PendingDeletion)
    }

    /// What Galley shows. Everything that cannot be sent, except a review, is a hold.
    pub fn state(&self) -> ShownState {
        let (version_status, hold) = match self {
            Self::Approved => (Some(Status::Approved), None),
            Self::Pending | Self::InAppeal => (Some(Status::Pending), None),
            Self::Rejected => (Some(Status::Rejected), None),
            Self::Paused => (Some(Status::Approved), Some(Hold::Paused)),
            Self::Archived => (None, Some(Hold::Archived)),
            Self::Disabled | Self::PendingDeletion | Self::Deleted => (None, Some(Hold::Disabled)),
            Self::LimitExceeded | Self::Other(_) => (None, Some(Hold::Paused)),
        };
        ShownState { version_status, hold }
    }
}

/// How a template came into being, in the word of the provider.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TemplateSource(String);

impl TemplateSource {
    /// The word for templates that the provider generates from messages that are sent without one. A
    /// business can neither edit nor delete them, and the provider removes them by itself.
    pub const GENERATED: &str = "AUTO_GENERATED";

    /// The source with this word, in upper case.
    pub fn parse(word: &str) -> Self {
        Self(bounded(word).to_uppercase())
    }

    /// The word, as it is stored and displayed.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the provider generated the template.
    pub fn is_generated(&self) -> bool {
        self.0 == Self::GENERATED
    }
}

/// A template as a page, a node or a create response shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteTemplate {
    /// The id.
    pub id: RemoteId,
    /// The name.
    pub name: String,
    /// The language, written with an underscore.
    pub language: String,
    /// The status.
    pub status: RemoteStatus,
    /// The category, as the provider writes it.
    pub category: String,
    /// The category that the provider had before it changed it.
    pub previous_category: Option<String>,
    /// The category that the provider will change to.
    pub correct_category: Option<String>,
    /// The quality; `None` if the provider does not tell it or uses an unknown word.
    pub quality: Option<Quality>,
    /// The reason of a rejection; `NONE` is absent.
    pub rejected_reason: Option<String>,
    /// When the provider changed it.
    pub updated_at: Option<Timestamp>,
    /// How it came into being, if the provider tells.
    pub source: Option<TemplateSource>,
    /// The object as it was received, byte for byte; `None` if it has no components.
    pub document: Option<String>,
}

/// The response to a create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Created {
    /// The id.
    pub id: RemoteId,
    /// The status; PENDING if the provider does not tell it.
    pub status: RemoteStatus,
    /// The category, which the provider may have changed.
    pub category: Option<String>,
}

/// Why a template of a provider cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The text is not JSON, is nested too deeply, or is not an object.
    #[error("the provider's template is not a JSON object")]
    NotAnObject,
    /// A member is missing or has a wrong type.
    #[error("the provider's template has no valid `{0}`")]
    Missing(&'static str),
}

/// The longest name, language and category that Galley keeps.
pub(super) const MAX_NAME_CHARS: usize = 512;

impl RemoteTemplate {
    /// Reads the text of an object, and keeps the text if it has components.
    pub fn parse(object: &str) -> Result<Self, ReadError> {
        let document = Document::parse(object.as_bytes()).map_err(|_| ReadError::NotAnObject)?;
        let template = Self::read(document.root())?;
        let has_components = document.root().get("components").is_some();
        Ok(Self { document: has_components.then(|| object.to_owned()), ..template })
    }

    /// Reads an object. The document is that of [`parse`](Self::parse) only.
    pub fn read(object: &Json<'_>) -> Result<Self, ReadError> {
        if !matches!(object, Json::Object(_)) {
            return Err(ReadError::NotAnObject);
        }
        let required = |key: &'static str| {
            let text = text(object, key).filter(|text| !text.is_empty());
            let text = text.filter(|text| text.chars().nth(MAX_NAME_CHARS).is_none());
            text.ok_or(ReadError::Missing(key))
        };
        let id = object.get("id").and_then(RemoteId::read).ok_or(ReadError::Missing("id"))?;
        let rejected_reason = bounded_text(object, "rejected_reason");
        Ok(Self {
            id,
            name: required("name")?.to_owned(),
            language: language(required("language")?),
            status: RemoteStatus::parse(required("status")?),
            category: required("category")?.to_uppercase(),
            previous_category: bounded_text(object, "previous_category"),
            correct_category: bounded_text(object, "correct_category"),
            quality: quality(object),
            rejected_reason: rejected_reason.filter(|reason| reason != "NONE"),
            updated_at: timestamp(object, "last_updated_time"),
            source: bounded_text(object, "source").map(|word| TemplateSource::parse(&word)),
            document: None,
        })
    }

    /// Whether the provider generated it, so that it is no template of the business.
    pub fn is_generated(&self) -> bool {
        self.source.as_ref().is_some_and(TemplateSource::is_generated)
    }
}

impl Created {
    /// Reads the response to a create; `None` if it names no id.
    pub fn parse(object: &str) -> Option<Self> {
        let document = Document::parse(object.as_bytes()).ok()?;
        let root = document.root();
        Some(Self {
            id: root.get("id").and_then(RemoteId::read)?,
            status: text(root, "status").map_or(RemoteStatus::Pending, RemoteStatus::parse),
            category: bounded_text(root, "category").map(|category| category.to_uppercase()),
        })
    }
}

/// A language code with an underscore: some webhooks write `en-US`.
pub(super) fn language(code: &str) -> String {
    code.replace('-', "_")
}

/// The time in a member: seconds since the Unix epoch, as a number or a string.
pub(super) fn timestamp(object: &Json<'_>, key: &str) -> Option<Timestamp> {
    let value = object.get(key)?;
    let seconds = value.as_i64().or_else(|| value.as_str()?.parse().ok())?;
    Timestamp::from_second(seconds).ok()
}

/// The quality: an object with a score, or the score itself.
fn quality(object: &Json<'_>) -> Option<Quality> {
    let quality = object.get("quality_score")?;
    quality.as_str().or_else(|| text(quality, "score")).and_then(Quality::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_short_text_or_a_number_and_never_leaves_its_path_segment() {
        for text in ["1", "1234567890123456789", "upload:abc", "A_b-c.d", &"7".repeat(64)] {
            assert_eq!(RemoteId::parse(text).unwrap().as_str(), text);
        }
        for text in ["", ".", "..", "a/b", "a?b", "a b", "ä", "a%2f", &"7".repeat(65)] {
            assert_eq!(RemoteId::parse(text), None, "{text}");
        }
        let read = |json: &str| RemoteId::read(Document::parse(json.as_bytes()).unwrap().root());
        // Beyond 2^53.
        assert_eq!(read("1234567890123456789"), RemoteId::parse("1234567890123456789"));
        assert_eq!(read("\"17\"").unwrap().to_string(), "17");
        for json in ["1.5", "-1", "true", "null", "[]", "\"\""] {
            assert_eq!(read(json), None, "{json}");
        }
    }

    #[test]
    fn only_approved_can_be_sent_and_an_unknown_word_is_kept_as_a_hold() {
        let shown = |word: &str| {
            let status = RemoteStatus::parse(&word.to_lowercase());
            assert_eq!(status.as_str(), word);
            let ShownState { version_status, hold } = status.state();
            (version_status.map(Status::as_str), hold.map(Hold::as_str))
        };
        for (word, version_status, hold) in [
            ("APPROVED", Some("APPROVED"), None),
            ("PENDING", Some("PENDING"), None),
            ("IN_APPEAL", Some("PENDING"), None),
            ("REJECTED", Some("REJECTED"), None),
            ("PAUSED", Some("APPROVED"), Some("PAUSED")),
            ("DISABLED", None, Some("DISABLED")),
            ("ARCHIVED", None, Some("ARCHIVED")),
            ("PENDING_DELETION", None, Some("DISABLED")),
            ("DELETED", None, Some("DISABLED")),
            ("LIMIT_EXCEEDED", None, Some("PAUSED")),
            ("UNDER_A_SPELL", None, Some("PAUSED")),
        ] {
            assert_eq!(shown(word), (version_status, hold), "{word}");
        }
        let deleted = |word: &&&str| RemoteStatus::parse(word).is_deleted();
        let words = STATUSES.map(|it| it.0);
        let deleted: Vec<&&str> = words.iter().filter(deleted).collect();
        assert_eq!(deleted, [&"PENDING_DELETION", &"DELETED"]);
    }

    const TEMPLATE: &str = r#"{"name":"order","language":"en-US","status":"APPROVED",
        "category":"utility","previous_category":"MARKETING","correct_category":"MARKETING",
        "quality_score":{"score":"GREEN","date":1}, "rejected_reason":"NONE",
        "last_updated_time":1800000000, "components": [ {"type":"BODY","new_thing":{"x":1.50}} ],
        "id":1234567890123456789}"#;

    #[test]
    fn a_template_is_read_and_its_text_is_kept_byte_for_byte() {
        let template = RemoteTemplate::parse(TEMPLATE).unwrap();
        assert_eq!(template.document.as_deref(), Some(TEMPLATE));
        assert_eq!(template.id.as_str(), "1234567890123456789");
        let RemoteTemplate { name, language, status, category, .. } = &template;
        assert_eq!((&**name, &**language, &**category), ("order", "en_US", "UTILITY"));
        assert_eq!((status, template.quality), (&RemoteStatus::Approved, Some(Quality::Green)));
        assert_eq!(template.correct_category.as_deref(), Some("MARKETING"));
        assert_eq!(template.rejected_reason, None);
        assert_eq!(template.updated_at, Timestamp::from_second(1_800_000_000).ok());
        let header = r#"{"id":"7","name":"a","language":"de","status":"REJECTED",
            "category":"FREE_SERVICE","rejected_reason":"SCAM","quality_score":"VIOLET"}"#;
        let header = RemoteTemplate::parse(header).unwrap();
        assert_eq!((header.document, header.quality), (None, None));
        assert_eq!(header.rejected_reason.as_deref(), Some("SCAM"));
        assert_eq!(header.category, "FREE_SERVICE");
    }

    #[test]
    fn the_source_is_kept_as_one_bounded_word_and_only_one_word_means_generated() {
        let read = |source: &str| {
            let text = TEMPLATE.replace("{\"name\"", &format!("{{\"source\":{source},\"name\""));
            RemoteTemplate::parse(&text).unwrap()
        };
        for (source, word, is_generated) in [
            ("\"AUTO_GENERATED\"", Some("AUTO_GENERATED"), true),
            ("\"auto_generated\"", Some("AUTO_GENERATED"), true),
            ("\"LIBRARY\\u0000\"", Some("LIBRARY "), false),
            ("\" \"", None, false),
            ("null", None, false),
            ("{\"a\":1}", None, false),
        ] {
            let template = read(source);
            let shown = template.source.as_ref().map(TemplateSource::as_str);
            assert_eq!((shown, template.is_generated()), (word, is_generated), "{source}");
        }
        let long = read(&format!("\"{}\"", "a".repeat(10_000))).source.unwrap();
        assert_eq!(long.as_str().len(), 300);
        assert_eq!(RemoteTemplate::parse(TEMPLATE).unwrap().source, None);
    }

    #[test]
    fn a_template_without_identity_or_status_is_not_read() {
        for key in ["id", "name", "language", "status", "category"] {
            let text = TEMPLATE.replace(&format!("\"{key}\":"), "\"other\":");
            assert_eq!(RemoteTemplate::parse(&text), Err(ReadError::Missing(key)));
        }
        let long = TEMPLATE.replace("order", &"o".repeat(513));
        assert_eq!(RemoteTemplate::parse(&long), Err(ReadError::Missing("name")));
        for text in ["", "[]", "7", &TEMPLATE[..100]] {
            assert_eq!(RemoteTemplate::parse(text), Err(ReadError::NotAnObject), "{text}");
        }
    }

    #[test]
    fn a_create_response_needs_an_id_only() {
        let full = Created::parse(r#"{"id":"7","status":"APPROVED","category":"MARKETING"}"#);
        assert_eq!(
            full,
            Some(Created {
                id: RemoteId("7".to_owned()),
                status: RemoteStatus::Approved,
                category: Some("MARKETING".to_owned()),
            })
        );
        let short = Created::parse(r#"{"id":7}"#).unwrap();
        assert_eq!((short.status, short.category), (RemoteStatus::Pending, None));
        for text in [r#"{"success":true}"#, r#"{"id":"7","#, "", "[]"] {
            assert_eq!(Created::parse(text), None, "{text}");
        }
    }
}
