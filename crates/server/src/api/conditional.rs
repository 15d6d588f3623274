//! Conditional requests: `If-Match` and `If-None-Match`.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts},
};

use super::{
    problem::{Problem, ProblemKind},
    query::parse_digits,
};
use crate::app::App;

/// The `ETag` of a revision.
pub(crate) fn etag(revision: u64) -> HeaderValue {
    let tag = ["\"", itoa::Buffer::new().format(revision), "\""].concat();
    HeaderValue::try_from(tag).expect("digits in quotes")
}

/// The revisions in `If-Match`; `None` if the header is absent or `*`.
pub(crate) struct IfMatch(pub(super) Option<Vec<u64>>);

impl FromRequestParts<App> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        Ok(Self(match parse_entity_tags(&parts.headers, &header::IF_MATCH)? {
            EntityTags::Absent | EntityTags::Any => None,
            // `If-Match` compares strongly (RFC 9110), so a weak tag never matches.
            EntityTags::List(tags) => Some(
                tags.into_iter().filter(|tag| !tag.weak).filter_map(|tag| tag.revision).collect(),
            ),
        }))
    }
}

/// The revisions in `If-None-Match`, which the client already has.
pub(crate) struct IfNoneMatch(EntityTags);

impl FromRequestParts<App> for IfNoneMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        parse_entity_tags(&parts.headers, &header::IF_NONE_MATCH).map(Self)
    }
}

impl IfNoneMatch {
    /// Whether the client already has this revision.
    pub(crate) fn contains(&self, revision: u64) -> bool {
        match &self.0 {
            EntityTags::Absent => false,
            EntityTags::Any => true,
            EntityTags::List(tags) => tags.iter().any(|tag| tag.revision == Some(revision)),
        }
    }
}

/// The entity tags in a conditional header.
enum EntityTags {
    /// There is no such header.
    Absent,
    Any,
    List(Vec<EntityTag>),
}

/// One tag. A tag that is not a revision number matches nothing.
struct EntityTag {
    weak: bool,
    revision: Option<u64>,
}

fn parse_entity_tags(headers: &HeaderMap, name: &HeaderName) -> Result<EntityTags, Problem> {
    let values: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
    match values[..] {
        [] => return Ok(EntityTags::Absent),
        [b"*"] => return Ok(EntityTags::Any),
        _ => {}
    }
    let lists: Option<Vec<Vec<EntityTag>>> = values.into_iter().map(parse_list).collect();
    let tags: Vec<EntityTag> = lists.into_iter().flatten().flatten().collect();
    if tags.is_empty() {
        let detail =
            format!("The header `{name}` must contain quoted tags such as \"3\", or only `*`.");
        return Err(Problem::of(ProblemKind::BadRequest).detail(detail));
    }
    Ok(EntityTags::List(tags))
}

/// Parses a list of tags (RFC 9110): a tag may contain commas, and list items may be empty.
fn parse_list(mut rest: &[u8]) -> Option<Vec<EntityTag>> {
    let mut tags = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        match rest {
            [] => return Some(tags),
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
fn parse_tag(text: &[u8]) -> Option<(EntityTag, &[u8])> {
    let (weak, quoted) = match text.strip_prefix(b"W/") {
        Some(quoted) => (true, quoted),
        None => (false, text),
    };
    let value = quoted.strip_prefix(b"\"")?;
    let (value, rest) = value.split_at(value.iter().position(|byte| *byte == b'"')?);
    if !value.iter().all(|byte| matches!(byte, b'!'..=b'~' | 0x80..)) {
        return None;
    }
    let text = str::from_utf8(value).ok();
    // Tags are opaque strings: "03" is not the tag of revision 3.
    let revision =
        text.and_then(|it| parse_digits(it).filter(|number: &u64| number.to_string() == it));
    Some((EntityTag { weak, revision }, &rest[1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The revisions in the lines of a header; `None` for a tag that is not a revision.
    fn read(lines: &[&'static str]) -> Option<Vec<Option<u64>>> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::IF_MATCH, HeaderValue::from_static(line));
        }
        match parse_entity_tags(&headers, &header::IF_MATCH).ok()? {
            EntityTags::List(tags) => Some(tags.into_iter().map(|tag| tag.revision).collect()),
            EntityTags::Any => Some(vec![Some(u64::MAX)]),
            EntityTags::Absent => Some(Vec::new()),
        }
    }

    #[test]
    fn a_list_of_tags_follows_the_syntax_of_http() {
        assert_eq!(read(&[]), Some(vec![]));
        assert_eq!(read(&["*"]), Some(vec![Some(u64::MAX)]));
        assert_eq!(read(&[r#""3""#]), Some(vec![Some(3)]));
        assert_eq!(
            read(&[r#""3",W/"4" ,, "x""#, r#""5","#]),
            Some(vec![Some(3), Some(4), None, Some(5)])
        );
        assert_eq!(read(&[r#""a,b", "3""#]), Some(vec![None, Some(3)]), "a comma inside a tag");
        for other in [r#""""#, r#""03""#, r#""+3""#, r#""99999999999999999999""#] {
            assert_eq!(read(&[other]), Some(vec![None]), "{other}");
        }
    }

    #[test]
    fn an_invalid_list_of_tags_is_rejected() {
        for odd in
            ["", ",", "3", "\"3", "3\"", "w/\"3\"", "\"3\"4", "\"3\" \"4\"", "\"a b\"", "*, \"3\""]
        {
            assert_eq!(read(&[odd]), None, "{odd}");
        }
        assert_eq!(read(&["*", "\"3\""]), None, "`*` with other tags");
    }
}
