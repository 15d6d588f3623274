//! Samples of attachments that a document shows as links. The links of a provider expire, and no
//! provider accepts one in place of a handle.

use serde_json::Value;

use crate::{
    document::Document,
    template::sample::{SampleReference, references},
};

/// The most links of one document. A message has a header and up to 10 cards.
const MAX_LINKS: usize = 16;

/// The member of a header's example that contains handles, or links in their place.
const HANDLES: &str = "header_handle";

/// Whether a handle is a link.
pub fn is_link(handle: &str) -> bool {
    let has_scheme =
        |scheme: &str| handle.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme));
    has_scheme("https://") || has_scheme("http://")
}

/// The samples that a document shows as links; none if the document cannot be read.
pub fn linked_samples(document: &str) -> Vec<SampleReference> {
    // Most documents have no sample.
    if !document.contains(HANDLES) {
        return Vec::new();
    }
    let Ok(document) = Document::parse(document.as_bytes()) else { return Vec::new() };
    let found = references(document.root()).into_iter();
    found.filter(|it| is_link(&it.handle)).take(MAX_LINKS).collect()
}

/// A content in which the handles that `replaced` knows are replaced. All other text is unchanged.
pub fn replace_handles(content: &str, replaced: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(content.len());
    let (mut rest, mut is_handle) = (content, false);
    while let Some(start) = rest.find('"') {
        let Some(length) = string_length(&rest[start..]) else { break };
        let (before, token) = (&rest[..start], &rest[start..start + length]);
        rest = &rest[start + length..];
        out.push_str(before);
        let text = || serde_json::from_str::<String>(token).ok();
        let is_key = rest.trim_start().starts_with(':');
        if is_key {
            is_handle = text().as_deref() == Some(HANDLES);
        }
        match text().filter(|_| is_handle && !is_key).and_then(|text| replaced(&text)) {
            Some(handle) => out.push_str(&Value::from(handle).to_string()),
            None => out.push_str(token),
        }
    }
    out.push_str(rest);
    out
}

/// The length of the string of JSON at the beginning of a text, with its quotes.
fn string_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(index + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Meta escapes slashes and ampersands.
    const DOCUMENT: &str = r#"{"components": [ {"type":"HEADER","format":"IMAGE","example":
        {"header_handle":["https:\/\/cdn.example\/a_n.jpg?oh=1\u0026oe=2"]}},
        {"type":"BODY","text":"say \"https://cdn.example/a_n.jpg?oh=1&oe=2\"","mystery":1.50},
        {"type":"CAROUSEL","cards":[{"components":[{"type":"HEADER","format":"VIDEO","example":
        {"header_handle" : "HTTPS://cdn.example/b.mp4"}}]}, {"components":[
        {"type":"HEADER","format":"IMAGE","example":{"header_handle":["4::aW1n"]}}]}]}]}"#;

    #[test]
    fn links_are_found_in_headers_of_messages_and_cards() {
        let found = linked_samples(DOCUMENT);
        let found: Vec<_> = found.iter().map(|it| (&*it.handle, &*it.format)).collect();
        let expected = [
            ("https://cdn.example/a_n.jpg?oh=1&oe=2", "IMAGE"),
            ("HTTPS://cdn.example/b.mp4", "VIDEO"),
        ];
        assert_eq!(found, expected);
        assert_eq!(linked_samples("{\"header_handle\""), []);
        let many = vec![r#""https://cdn.example/a""#; 100].join(",");
        let many = format!(
            r#"{{"components":[{{"format":"IMAGE","example":{{"header_handle":[{many}]}}}}]}}"#
        );
        assert_eq!(linked_samples(&many).len(), MAX_LINKS);
    }

    #[test]
    fn only_handles_are_replaced_and_all_other_text_stays() {
        let replace = |handle: &str| handle.contains("a_n.jpg").then(|| "4::mine".to_owned());
        let replaced = replace_handles(DOCUMENT, replace);
        let expected =
            DOCUMENT.replace(r#""https:\/\/cdn.example\/a_n.jpg?oh=1\u0026oe=2""#, "\"4::mine\"");
        assert_eq!(replaced, expected);
        assert_ne!(replaced, DOCUMENT);
        assert_eq!(replace_handles(DOCUMENT, |_| None), DOCUMENT);
        for broken in ["", "\"", r#"{"header_handle":"a\"#, "{\"header_handle\":[\"é"] {
            assert_eq!(replace_handles(broken, |_| Some("x".to_owned())), broken);
        }
    }

    #[test]
    fn a_link_is_no_handle() {
        for link in ["https://a", "http://a", "HTTPS://A"] {
            assert!(is_link(link), "{link}");
        }
        for other in ["", "4::aW1n", "4::galley.abc", "httpsé", "ftp://a", "https:"] {
            assert!(!is_link(other), "{other}");
        }
    }
}
