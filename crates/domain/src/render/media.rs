//! Attachments: the type of a file, determined by the extension in its URL. Nothing is fetched.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::message::{Media, Parameter};

/// The extensions of the files that WhatsApp accepts in headers. It accepts `webp` for stickers
/// only, and not `csv`.
const EXTENSIONS: &[(Kind, &[&str])] = &[
    (Kind::Image, &["jpg", "jpeg", "png"]),
    (Kind::Video, &["mp4", "3gp"]),
    (Kind::Document, &["pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "txt"]),
];

/// The type of an attachment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Image,
    Video,
    Document,
}

impl Kind {
    /// The name in JSON.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Video => "video",
            Self::Document => "document",
        }
    }
}

/// The parameter for the file at a URL; `None` if its extension is unknown.
pub(super) fn parameter(url: &str) -> Option<Parameter<'_>> {
    let kind = kind(url)?;
    let filename = if kind == Kind::Document { file_name(url) } else { None };
    let media = Media { link: Some(url), id: None, filename };
    Some(match kind {
        Kind::Image => Parameter::Image { image: media },
        Kind::Video => Parameter::Video { video: media },
        Kind::Document => Parameter::Document { document: media },
    })
}

/// The type of the file at a URL; `None` if its extension is unknown.
pub(crate) fn kind(url: &str) -> Option<Kind> {
    let (_, extension) = last_segment(url)?.rsplit_once('.')?;
    let has = |known: &[&str]| known.iter().any(|it| it.eq_ignore_ascii_case(extension));
    EXTENSIONS.iter().find(|(_, known)| has(known)).map(|(kind, _)| *kind)
}

/// The name of the file at a URL.
pub(crate) fn file_name(url: &str) -> Option<Cow<'_, str>> {
    last_segment(url).filter(|segment| !segment.is_empty()).map(decoded)
}

/// Decodes percent-encoding, unless the result would not be a safe file name.
fn decoded(segment: &str) -> Cow<'_, str> {
    match percent_decode_str(segment).decode_utf8() {
        Ok(name) if !name.contains(|it: char| it.is_control() || it == '/') => name,
        _ => Cow::Borrowed(segment),
    }
}

/// The known extensions for messages: `.jpg, .jpeg, …`.
pub(super) fn extension_list() -> String {
    extensions().map(|extension| format!(".{extension}")).collect::<Vec<_>>().join(", ")
}

fn extensions() -> impl Iterator<Item = &'static str> {
    EXTENSIONS.iter().flat_map(|(_, extensions)| extensions.iter().copied())
}

/// The last segment of the path; `None` if the URL has no path.
fn last_segment(url: &str) -> Option<&str> {
    let url = url.split(['?', '#']).next()?;
    let (_, rest) = url.split_once("://")?;
    let (_, path) = rest.split_once('/')?;
    path.rsplit('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::Rule;

    #[test]
    fn the_extension_determines_the_type_ignoring_case() {
        for (url, kind) in [
            ("https://a.b/c.jpg", "image"),
            ("https://a.b/c.JPeG?size=1.pdf#x.mp4", "image"),
            ("https://a.b/c/d.e.png", "image"),
            ("https://a.b/c.mp4", "video"),
            ("https://a.b/c.3GP", "video"),
            ("https://a.b/c.docx", "document"),
            ("https://a.b/c.txt", "document"),
        ] {
            let parameter = serde_json::to_value(parameter(url).unwrap()).unwrap();
            assert_eq!((&parameter["type"], &parameter[kind]["link"]), (&kind.into(), &url.into()));
        }
    }

    #[test]
    fn urls_without_a_known_extension_in_the_path_have_no_type() {
        for url in [
            "https://a.jpg",
            "https://a.b/",
            "https://a.b/jpg",
            "https://a.b/c.jpg/",
            "https://a.b/c.jpg/d",
            "https://a.b/c?d.jpg",
            "https://a.b#/c.jpg",
            "https://a.b/c.webp",
            "https://a.b/c.csv",
            "https://a.b/c.",
            "c.jpg",
            "",
        ] {
            assert!(parameter(url).is_none(), "{url}");
        }
    }

    #[test]
    fn only_documents_have_a_file_name() {
        let name = |url: &str| {
            let media = match parameter(url).unwrap() {
                Parameter::Document { document: media }
                | Parameter::Image { image: media }
                | Parameter::Video { video: media } => media,
                other => panic!("{other:?}"),
            };
            media.filename.map(Cow::into_owned)
        };
        assert_eq!(name("https://a.b/c/Your%20bill.PDF?x=/y.txt").unwrap(), "Your bill.PDF");
        assert_eq!(name("https://a.b/c/r%C3%A9sum%C3%A9.pdf").unwrap(), "r\u{e9}sum\u{e9}.pdf");
        for odd in ["a%2Fb.pdf", "a%00.pdf", "a%FF.pdf", "a%.pdf"] {
            assert_eq!(name(&format!("https://a.b/{odd}")).unwrap(), odd);
        }
        assert_eq!(name("https://a.b/c.png"), None);
        assert_eq!(name("https://a.b/c.mp4"), None);
    }

    #[test]
    fn the_rule_lists_every_extension() {
        let about = Rule::MediaKindUnknown.about();
        for extension in extensions() {
            assert!(about.contains(&format!("`.{extension}`")), "{extension}");
        }
        let named = about.split('`').filter(|word| word.starts_with('.')).count();
        assert_eq!(named, extensions().count());
    }
}
