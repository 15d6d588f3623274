//! Entity tags (RFC 9110, section 8.8.3): the lists in `If-Match` and `If-None-Match`, and the one
//! tag in `If-Range`.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The value of a header with entity tags.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EntityTags<'h> {
    /// `*`, which matches whatever exists.
    Any,
    List(Vec<EntityTag<'h>>),
}

/// One tag: the bytes between its quotes, which have no meaning to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntityTag<'h> {
    pub(super) weak: bool,
    pub(super) opaque: &'h [u8],
}

/// A header that does not have the syntax of RFC 9110.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MalformedTags;

impl<'h> EntityTags<'h> {
    /// Parses all lines of a header; `None` if there are none.
    pub(super) fn parse(
        headers: &'h HeaderMap,
        name: &HeaderName,
    ) -> Result<Option<Self>, MalformedTags> {
        let lines: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        match lines[..] {
            [] => return Ok(None),
            [b"*"] => return Ok(Some(Self::Any)),
            _ => {}
        }
        let mut tags = Vec::new();
        for line in lines {
            parse_list(line, &mut tags).ok_or(MalformedTags)?;
        }
        if tags.is_empty() { Err(MalformedTags) } else { Ok(Some(Self::List(tags))) }
    }

    /// Whether the tag is listed, by strong comparison: a weak tag never matches.
    pub(super) fn contains_strong(&self, opaque: &[u8]) -> bool {
        self.contains(|tag| !tag.weak && tag.opaque == opaque)
    }

    /// Whether the tag is listed, weak or not.
    pub(super) fn contains_weak(&self, opaque: &[u8]) -> bool {
        self.contains(|tag| tag.opaque == opaque)
    }

    fn contains(&self, is_match: impl Fn(&EntityTag<'h>) -> bool) -> bool {
        match self {
            Self::Any => true,
            Self::List(tags) => tags.iter().any(is_match),
        }
    }
}

impl<'h> EntityTag<'h> {
    /// Parses a header that contains exactly one tag.
    pub(super) fn parse(header: &'h HeaderValue) -> Option<Self> {
        let (tag, rest) = parse_tag(header.as_bytes())?;
        rest.is_empty().then_some(tag)
    }
}

/// Adds the tags of one line. A tag may contain commas, and list items may be empty.
fn parse_list<'h>(mut rest: &'h [u8], tags: &mut Vec<EntityTag<'h>>) -> Option<()> {
    loop {
        rest = rest.trim_ascii_start();
        match rest {
            [] => return Some(()),
            [b',', remaining @ ..] => rest = remaining,
            _ => {
                let (tag, remaining) = parse_tag(rest)?;
                tags.push(tag);
                rest = remaining.trim_ascii_start();
                if !matches!(rest, [] | [b',', ..]) {
                    return None;
                }
            }
        }
    }
}

/// Parses the tag at the beginning of a text; returns it and the rest of the text.
fn parse_tag(text: &[u8]) -> Option<(EntityTag<'_>, &[u8])> {
    let (weak, quoted) = match text.strip_prefix(b"W/") {
        Some(quoted) => (true, quoted),
        None => (false, text),
    };
    let value = quoted.strip_prefix(b"\"")?;
    let (opaque, rest) = value.split_at(value.iter().position(|byte| *byte == b'"')?);
    let is_valid = opaque.iter().all(|byte| matches!(byte, b'!'..=b'~' | 0x80..));
    is_valid.then_some((EntityTag { weak, opaque }, &rest[1..]))
}

#[cfg(test)]
mod tests {
    use axum::http::header;

    use super::*;

    /// The tags in the lines of a header, weak ones with `W/`, and `*` for any.
    fn read(lines: &[&'static str]) -> Result<Option<String>, MalformedTags> {
        let lines = lines.iter().map(|it| (header::IF_MATCH, HeaderValue::from_static(it)));
        let headers: HeaderMap = lines.collect();
        let written = |tag: &EntityTag<'_>| {
            let weak = if tag.weak { "W/" } else { "" };
            format!("{weak}{}", String::from_utf8_lossy(tag.opaque))
        };
        Ok(EntityTags::parse(&headers, &header::IF_MATCH)?.map(|tags| match tags {
            EntityTags::Any => "*".to_owned(),
            EntityTags::List(tags) => tags.iter().map(written).collect::<Vec<_>>().join(" "),
        }))
    }

    #[test]
    fn a_list_of_tags_follows_the_syntax_of_http() {
        assert_eq!(read(&[]), Ok(None));
        for (lines, expected) in [
            (&["*"][..], "*"),
            (&[r#""3""#], "3"),
            (&[r#""""#], ""),
            (&[r#""3",W/"4" ,, "x""#, r#""5","#], "3 W/4 x 5"),
            (&[r#""a,b", "3""#], "a,b 3"),
            (&[r#""a,*,b""#], "a,*,b"),
        ] {
            assert_eq!(read(lines), Ok(Some(expected.to_owned())), "{lines:?}");
        }
    }

    #[test]
    fn an_invalid_list_of_tags_is_rejected() {
        for odd in
            ["", ",", "3", "\"3", "3\"", "w/\"3\"", "\"3\"4", "\"3\" \"4\"", "\"a b\"", "*, \"3\""]
        {
            assert_eq!(read(&[odd]), Err(MalformedTags), "{odd}");
        }
        assert_eq!(read(&["*", "\"3\""]), Err(MalformedTags), "`*` with other tags");
    }

    #[test]
    fn a_weak_tag_matches_only_by_weak_comparison() {
        let lines = [(header::IF_MATCH, HeaderValue::from_static(r#"W/"a", "b""#))];
        let headers: HeaderMap = lines.into_iter().collect();
        let tags = EntityTags::parse(&headers, &header::IF_MATCH).unwrap().unwrap();
        assert_eq!((tags.contains_strong(b"a"), tags.contains_weak(b"a")), (false, true));
        assert_eq!((tags.contains_strong(b"b"), tags.contains_weak(b"b")), (true, true));
        assert_eq!((tags.contains_strong(b"c"), tags.contains_weak(b"c")), (false, false));
        assert!(EntityTags::Any.contains_strong(b"c"));
    }
}
