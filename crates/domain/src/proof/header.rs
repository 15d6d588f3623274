//! The header of a proof. An attachment is only named: Galley never loads it.

use serde::Serialize;

use super::{
    runs::{self, Run},
    source::{Member, Source, one_string},
    text::{Budget, FilledText},
};
use crate::{document::Json, render::media};

/// The header of a message or card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Header {
    /// The format, in upper case; `TEXT` if the document has a text and no format.
    pub format: String,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Vec<Run>>,
    /// The attachment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<Media>,
    /// The location.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
}

/// An attachment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Media {
    /// Its URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The handle of an uploaded sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// The id that WhatsApp assigned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `image`, `video` or `document`, if the format or the URL tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The name of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
}

/// A location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

impl Header {
    /// The header of a component; `None` if nothing of it is readable.
    pub(super) fn of<'v>(
        component: &'v Json<'v>,
        source: Source<'v>,
        budget: &mut Budget,
    ) -> Option<Self> {
        let text = component.get("text").and_then(Json::as_str);
        let format = component.get("format").and_then(Json::as_str);
        let format = format.or(text.map(|_| "TEXT"))?.to_ascii_uppercase();
        let mut header = Self { format, text: None, media: None, location: None };
        match &*header.format {
            "TEXT" => {
                let values = source.text_values(component, Member::Header);
                header.text =
                    Some(runs::plain(&FilledText::new(text.unwrap_or_default(), &values, budget)));
            }
            "LOCATION" => header.location = source.sent("header").map(location),
            "PRODUCT" => {}
            format => header.media = media(component, format, source),
        }
        Some(header)
    }
}

fn text(object: &Json<'_>, key: &str) -> Option<String> {
    object.get(key).and_then(Json::as_str).map(str::to_owned)
}

fn location(value: &Json<'_>) -> Location {
    Location { name: text(value, "name"), address: text(value, "address") }
}

/// The attachment of a header: the one that was sent, or the sample.
fn media<'v>(component: &'v Json<'v>, format: &str, source: Source<'v>) -> Option<Media> {
    let mut media = match source {
        Source::Samples => sample(component.get("example")?)?,
        Source::Sent(_) => sent(source.sent("header")?)?,
    };
    let kind = media.url.as_deref().and_then(media::kind);
    media.kind = match format {
        "IMAGE" => Some("image"),
        "VIDEO" | "GIF" => Some("video"),
        "DOCUMENT" => Some("document"),
        _ => kind.map(media::Kind::as_str),
    };
    if media.kind == Some("document") && media.filename.is_none() {
        let name = media.url.as_deref().and_then(media::file_name);
        media.filename = name.map(std::borrow::Cow::into_owned);
    }
    Some(media)
}

/// The sample: a URL under the rulebook `v1`, a handle under `whatsapp`.
fn sample<'v>(example: &'v Json<'v>) -> Option<Media> {
    let mention = example.get("media_url").or_else(|| example.get("header_handle"))?;
    let mention = one_string(mention)?.to_owned();
    let is_url = mention.starts_with("https://") || mention.starts_with("http://");
    let (url, handle) = if is_url { (Some(mention), None) } else { (None, Some(mention)) };
    Some(Media { url, handle, ..Media::default() })
}

/// What a client has sent: a URL, or an object with a URL or an id.
fn sent<'v>(value: &'v Json<'v>) -> Option<Media> {
    if let Json::Object(_) = value {
        let (url, id) = (text(value, "link"), text(value, "id"));
        let filename = text(value, "filename");
        let media = Media { url, id, filename, ..Media::default() };
        return (media != Media::default()).then_some(media);
    }
    Some(Media { url: Some(one_string(value)?.to_owned()), ..Media::default() })
}
