//! Samples of attachments that were uploaded here: how their handles are written, where a document
//! names them, and which files fit which header.

use crate::{document::Json, document::text::has_pair};

/// What a handle of ours begins with. Clients know one by a digit and a colon.
const OURS: &str = "4::galley.";

/// How long the name of a sample is.
const NAME_LENGTH: usize = 32;

/// The handle of the sample with that name.
pub fn handle(name: &str) -> String {
    format!("{OURS}{name}")
}

/// Whether a handle says that it was given out here.
pub fn is_ours(handle: &str) -> bool {
    handle.starts_with(OURS)
}

/// Whether a text can be the name of a sample: 32 letters, digits, `_` and `-`.
pub fn is_name(text: &str) -> bool {
    text.len() == NAME_LENGTH && text.bytes().all(is_of_name)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The name of the sample with that handle, if it is one of ours.
pub fn name(handle: &str) -> Option<&str> {
    handle.strip_prefix(OURS).filter(|name| is_name(name))
}

/// The names of all samples of ours that the content of a template may hold, wherever they stand.
pub fn named_in(content: &str) -> impl Iterator<Item = &str> {
    // Hardly any JSON has two colons in a row.
    let worth_a_search = if has_pair(content, b':') { content } else { "" };
    worth_a_search
        .split(OURS)
        .skip(1)
        .filter_map(|rest| rest.get(..NAME_LENGTH))
        .filter(|it| is_name(it))
}

/// A handle in the header of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// RFC 6901 pointer to it.
    pub pointer: String,
    /// As it is written.
    pub handle: String,
    /// The header's format, in upper case.
    pub format: String,
}

/// Every handle that the headers of a document name, those of cards included.
pub fn mentions(document: &Json<'_>) -> Vec<Mention> {
    let mut found = Vec::new();
    of_components(document, "", &mut found);
    found
}

fn of_components(parent: &Json<'_>, pointer: &str, found: &mut Vec<Mention>) {
    for (index, component) in items(parent.get("components")).iter().enumerate() {
        let pointer = format!("{pointer}/components/{index}");
        for (index, card) in items(component.get("cards")).iter().enumerate() {
            of_components(card, &format!("{pointer}/cards/{index}"), found);
        }
        let Some(format) = component.get("format").and_then(Json::as_str) else { continue };
        let handles = component.get("example").and_then(|example| example.get("header_handle"));
        let pointer = format!("{pointer}/example/header_handle");
        let mut add = |pointer: String, handle: &Json<'_>| {
            let format = format.to_ascii_uppercase();
            let mention = handle.as_str().map(str::to_owned);
            found.extend(mention.map(|handle| Mention { pointer, handle, format }));
        };
        if let Some(text @ Json::String(_)) = handles {
            add(pointer.clone(), text);
        }
        for (index, handle) in items(handles).iter().enumerate() {
            add(format!("{pointer}/{index}"), handle);
        }
    }
}

fn items<'j, 'a>(value: Option<&'j Json<'a>>) -> &'j [Json<'a>] {
    match value {
        Some(Json::Array(items)) => items,
        _ => &[],
    }
}

/// The types of files that fit a header of that format; none if it takes no file.
pub fn types(format: &str) -> &'static [&'static str] {
    match format {
        "IMAGE" => &["image/jpeg", "image/png"],
        "VIDEO" => &["video/mp4", "video/3gpp"],
        // WhatsApp shows a film without sound.
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
    fn a_handle_of_ours_holds_a_name_and_nothing_else() {
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
    fn names_are_found_in_whatever_stands_around_them() {
        let content = format!(r#"{{"a":["4::galley.{NAME}","4::galley.short"],"b":"4::galley."}}"#);
        assert_eq!(named_in(&content).collect::<Vec<_>>(), [NAME]);
        assert_eq!(named_in("4::galley.é").count(), 0);
        assert_eq!(named_in("{}").count(), 0);
    }

    #[test]
    fn mentions_stand_in_headers_and_in_those_of_cards() {
        let text = br#"{"components":[
            {"type":"header","format":"image","example":{"header_handle":["a",7]}},
            {"type":"BODY","text":"x","example":{"body_text":["c"]}},
            {"type":"CAROUSEL","cards":[{},{"components":[
                {"type":"HEADER","format":"VIDEO","example":{"header_handle":"b"}}]}]}]}"#;
        let document = Document::parse(text).unwrap();
        let mention = |pointer: &str, handle: &str, format: &str| Mention {
            pointer: pointer.to_owned(),
            handle: handle.to_owned(),
            format: format.to_owned(),
        };
        let expected = [
            mention("/components/0/example/header_handle/0", "a", "IMAGE"),
            mention("/components/2/cards/1/components/0/example/header_handle", "b", "VIDEO"),
        ];
        assert_eq!(mentions(document.root()), expected);
        for other in ["[]", "{}", r#"{"components":{}}"#, r#"{"components":[7,null]}"#] {
            let document = Document::parse(other.as_bytes()).unwrap();
            assert_eq!(mentions(document.root()), [], "{other}");
        }
    }
}
