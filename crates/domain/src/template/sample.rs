//! Uploaded samples of attachments: their handles, the references to them in documents, and the file
//! types that each header format accepts.

use crate::document::{
    Json,
    pointer::{Segment, pointer},
    text::has_pair,
};

/// The prefix of Galley's handles. Clients recognise a handle by a digit and a colon.
const HANDLE_PREFIX: &str = "4::galley.";

/// The length of a sample's name.
const NAME_LENGTH: usize = 32;

/// The handle of a sample.
pub fn handle(name: &str) -> String {
    format!("{HANDLE_PREFIX}{name}")
}

/// Whether a handle has the form of Galley's handles.
pub fn is_galley_handle(handle: &str) -> bool {
    handle.starts_with(HANDLE_PREFIX)
}

/// Whether a text is a valid name of a sample: 32 letters, digits, `_` and `-`.
pub fn is_name(text: &str) -> bool {
    text.len() == NAME_LENGTH && text.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The name of the sample with that handle; `None` if it is not one of Galley's handles.
pub fn name(handle: &str) -> Option<&str> {
    handle.strip_prefix(HANDLE_PREFIX).filter(|name| is_name(name))
}

/// The names of all samples that the content of a template refers to.
pub fn referenced_names(content: &str) -> impl Iterator<Item = &str> {
    // Skip the search in most documents: two colons in a row are rare in JSON.
    let candidate = if has_pair(content, b':') { content } else { "" };
    candidate
        .split(HANDLE_PREFIX)
        .skip(1)
        .filter_map(|rest| rest.get(..NAME_LENGTH))
        .filter(|it| is_name(it))
}

/// A reference to a sample in the header of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleReference {
    /// RFC 6901 pointer to the handle.
    pub pointer: String,
    /// The handle as written.
    pub handle: String,
    /// The header's format, in upper case.
    pub format: String,
}

/// The references in all headers of a document, including those of cards.
pub fn references(document: &Json<'_>) -> Vec<SampleReference> {
    let mut found = Vec::new();
    add_references(document, &mut Vec::new(), &mut found);
    found
}

fn add_references<'d>(
    parent: &'d Json<'d>,
    path: &mut Vec<Segment<'d>>,
    found: &mut Vec<SampleReference>,
) {
    let depth = path.len();
    for (index, component) in array(parent.get("components")).iter().enumerate() {
        path.extend([Segment::Key("components"), Segment::Index(index)]);
        for (index, card) in array(component.get("cards")).iter().enumerate() {
            path.extend([Segment::Key("cards"), Segment::Index(index)]);
            add_references(card, path, found);
            path.truncate(depth + 2);
        }
        add_header_references(component, path, found);
        path.truncate(depth);
    }
}

fn add_header_references<'d>(
    component: &'d Json<'d>,
    path: &mut Vec<Segment<'d>>,
    found: &mut Vec<SampleReference>,
) {
    let Some(format) = component.get("format").and_then(Json::as_str) else { return };
    let handles = component.get("example").and_then(|example| example.get("header_handle"));
    path.extend([Segment::Key("example"), Segment::Key("header_handle")]);
    let mut add = |path: &[Segment<'_>], handle: &str| {
        let (pointer, format) = (pointer(path), format.to_ascii_uppercase());
        found.push(SampleReference { pointer, handle: handle.to_owned(), format });
    };
    if let Some(Json::String(handle)) = handles {
        add(path, handle);
    }
    for (index, handle) in array(handles).iter().enumerate() {
        if let Some(handle) = handle.as_str() {
            path.push(Segment::Index(index));
            add(path, handle);
            path.pop();
        }
    }
}

fn array<'j, 'a>(value: Option<&'j Json<'a>>) -> &'j [Json<'a>] {
    match value {
        Some(Json::Array(items)) => items,
        _ => &[],
    }
}

/// The media types that a header format accepts; empty if it does not take a file.
pub fn media_types(format: &str) -> &'static [&'static str] {
    match format {
        "IMAGE" => &["image/jpeg", "image/png"],
        "VIDEO" => &["video/mp4", "video/3gpp"],
        // WhatsApp plays it as a video without sound.
        "GIF" => &["video/mp4"],
        "DOCUMENT" => &["application/pdf"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;

    const NAME: &str = "abcdefghijklmnopqrstuvwxyz_-0123";

    #[test]
    fn a_handle_consists_of_the_prefix_and_a_name() {
        assert_eq!(name(&handle(NAME)), Some(NAME));
        for other in [
            "",
            NAME,
            "4::galley.",
            "4::galley.abc",
            "4::aW1n",
            &format!("4::galley.{NAME}0"),
            &format!("4::galley.../{}", &NAME[3..]),
            &format!("4::galley.é{}", &NAME[2..]),
        ] {
            assert_eq!(name(other), None, "{other}");
        }
    }

    #[test]
    fn referenced_names_are_found_anywhere_in_the_content() {
        let content = format!(r#"{{"a":["4::galley.{NAME}","4::galley.short"],"b":"4::galley."}}"#);
        assert_eq!(referenced_names(&content).collect::<Vec<_>>(), [NAME]);
        assert_eq!(referenced_names("4::galley.é").count(), 0);
        assert_eq!(referenced_names("{}").count(), 0);
    }

    #[test]
    fn references_are_found_in_headers_of_messages_and_cards() {
        let text = br#"{"components":[
            {"type":"header","format":"image","example":{"header_handle":["a",7]}},
            {"type":"BODY","text":"x","example":{"body_text":["c"]}},
            {"type":"CAROUSEL","cards":[{},{"components":[
                {"type":"HEADER","format":"VIDEO","example":{"header_handle":"b"}}]}]}]}"#;
        let document = Document::parse(text).unwrap();
        let reference = |pointer: &str, handle: &str, format: &str| SampleReference {
            pointer: pointer.to_owned(),
            handle: handle.to_owned(),
            format: format.to_owned(),
        };
        let expected = [
            reference("/components/0/example/header_handle/0", "a", "IMAGE"),
            reference("/components/2/cards/1/components/0/example/header_handle", "b", "VIDEO"),
        ];
        assert_eq!(references(document.root()), expected);
        for other in ["[]", "{}", r#"{"components":{}}"#, r#"{"components":[7,null]}"#] {
            let document = Document::parse(other.as_bytes()).unwrap();
            assert_eq!(references(document.root()), [], "{other}");
        }
    }
}
