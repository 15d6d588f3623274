//! Attachments: what kind of file an address leads to. Nothing is fetched; the ending tells.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::message::{Media, Parameter};

/// The endings of the files that WhatsApp takes: `webp` is only taken for stickers, and `csv` not
/// at all.
const ENDINGS: &[(Kind, &[&str])] = &[
    (Kind::Image, &["jpg", "jpeg", "png"]),
    (Kind::Video, &["mp4", "3gp"]),
    (Kind::Document, &["pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "txt"]),
];

/// What kind of file an attachment is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Image,
    Video,
    Document,
}

/// The attachment at an address, if its ending is a known one.
pub(super) fn parameter(url: &str) -> Option<Parameter<'_>> {
    let kind = kind(url)?;
    let filename = if kind == Kind::Document { name(url) } else { None };
    let media = Media { link: Some(url), id: None, filename };
    Some(match kind {
        Kind::Image => Parameter::Image { image: media },
        Kind::Video => Parameter::Video { video: media },
        Kind::Document => Parameter::Document { document: media },
    })
}

/// What the ending of an address says that its file is, if it is a known one.
pub(crate) fn kind(url: &str) -> Option<Kind> {
    let (_, ending) = file(url)?.rsplit_once('.')?;
    let holds = |endings: &[&str]| endings.iter().any(|known| known.eq_ignore_ascii_case(ending));
    ENDINGS.iter().find(|(_, endings)| holds(endings)).map(|(kind, _)| *kind)
}

/// What the file at an address is called.
pub(super) fn name(url: &str) -> Option<Cow<'_, str>> {
    file(url).filter(|file| !file.is_empty()).map(readable)
}

/// The name of a file as people read it, without the signs that an address needs.
fn readable(file: &str) -> Cow<'_, str> {
    match percent_decode_str(file).decode_utf8() {
        Ok(name) if !name.contains(|it: char| it.is_control() || it == '/') => name,
        _ => Cow::Borrowed(file),
    }
}

/// The endings, for people: `.jpg, .jpeg, …`.
pub(super) fn listed() -> String {
    endings().map(|ending| format!(".{ending}")).collect::<Vec<_>>().join(", ")
}

fn endings() -> impl Iterator<Item = &'static str> {
    ENDINGS.iter().flat_map(|(_, endings)| endings.iter().copied())
}

/// The last segment of the path. A host has dots, too, and is none.
fn file(url: &str) -> Option<&str> {
    let place = url.split(['?', '#']).next()?;
    let (_, place) = place.split_once("://")?;
    let (_, path) = place.split_once('/')?;
    path.rsplit('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::Rule;

    #[test]
    fn the_ending_of_the_path_tells_the_kind_in_any_letter_case() {
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
    fn what_is_no_ending_of_a_path_tells_nothing() {
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
    fn a_document_keeps_its_name_and_nothing_else_has_one() {
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
    fn the_rule_names_every_ending() {
        let about = Rule::MediaKindUnknown.about();
        for ending in endings() {
            assert!(about.contains(&format!("`.{ending}`")), "{ending}");
        }
        let named = about.split('`').filter(|word| word.starts_with('.')).count();
        assert_eq!(named, endings().count());
    }
}
