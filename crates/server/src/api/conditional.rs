//! `If-Match` and `If-None-Match`: changing and reading only what is as the caller knows it.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts},
};

use super::{
    problem::{Kind, Problem},
    query::whole,
};
use crate::app::App;

/// The tag of a revision.
pub(crate) fn etag(revision: u64) -> HeaderValue {
    let tag = ["\"", itoa::Buffer::new().format(revision), "\""].concat();
    HeaderValue::try_from(tag).expect("digits in quotes")
}

/// The revisions that a change is meant for, if the caller says so.
pub(crate) struct IfMatch(pub(super) Option<Vec<u64>>);

impl FromRequestParts<App> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        Ok(Self(match tags(&parts.headers, &header::IF_MATCH)? {
            Tags::None | Tags::Any => None,
            // A weak tag never matches here: it promises less than a change needs.
            Tags::These(tags) => Some(
                tags.into_iter().filter(|tag| !tag.weak).filter_map(|tag| tag.revision).collect(),
            ),
        }))
    }
}

/// The revisions that the caller has already.
pub(crate) struct IfNoneMatch(Tags);

impl FromRequestParts<App> for IfNoneMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        tags(&parts.headers, &header::IF_NONE_MATCH).map(Self)
    }
}

impl IfNoneMatch {
    /// Whether the caller has this revision already.
    pub(crate) fn has(&self, revision: u64) -> bool {
        match &self.0 {
            Tags::None => false,
            Tags::Any => true,
            Tags::These(tags) => tags.iter().any(|tag| tag.revision == Some(revision)),
        }
    }
}

enum Tags {
    None,
    Any,
    These(Vec<Tag>),
}

/// A tag; one that is no revision of ours is somebody else's and matches nothing.
struct Tag {
    weak: bool,
    revision: Option<u64>,
}

fn tags(headers: &HeaderMap, name: &HeaderName) -> Result<Tags, Problem> {
    let values: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
    match values[..] {
        [] => return Ok(Tags::None),
        [b"*"] => return Ok(Tags::Any),
        _ => {}
    }
    let lists: Option<Vec<Vec<Tag>>> = values.into_iter().map(list).collect();
    let tags: Vec<Tag> = lists.into_iter().flatten().flatten().collect();
    if tags.is_empty() {
        let form = format!("{name} holds tags in quotes, such as \"3\", or `*`.");
        return Err(Problem::of(Kind::BadRequest).detail(form));
    }
    Ok(Tags::These(tags))
}

/// The tags of a list as RFC 9110 writes it: a tag may hold commas, and an item may be empty.
fn list(mut rest: &[u8]) -> Option<Vec<Tag>> {
    let mut tags = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        match rest {
            [] => return Some(tags),
            [b',', behind @ ..] => rest = behind,
            _ => {
                let (tag, behind) = tag(rest)?;
                tags.push(tag);
                rest = behind.trim_ascii_start();
                if !matches!(rest, [] | [b',', ..]) {
                    return None;
                }
            }
        }
    }
}

/// The tag that a text begins with, and what follows it.
fn tag(text: &[u8]) -> Option<(Tag, &[u8])> {
    let (weak, quoted) = match text.strip_prefix(b"W/") {
        Some(quoted) => (true, quoted),
        None => (false, text),
    };
    let inside = quoted.strip_prefix(b"\"")?;
    let (inside, behind) = inside.split_at(inside.iter().position(|byte| *byte == b'"')?);
    if !inside.iter().all(|byte| matches!(byte, b'!'..=b'~' | 0x80..)) {
        return None;
    }
    let written = str::from_utf8(inside).ok();
    // Tags are compared letter by letter: "03" is not ours.
    let revision = written.and_then(|it| whole(it).filter(|number: &u64| number.to_string() == it));
    Some((Tag { weak, revision }, &behind[1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The revisions that the lines of a header name; none for a tag of somebody else.
    fn read(lines: &[&'static str]) -> Option<Vec<Option<u64>>> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::IF_MATCH, HeaderValue::from_static(line));
        }
        match tags(&headers, &header::IF_MATCH).ok()? {
            Tags::These(tags) => Some(tags.into_iter().map(|tag| tag.revision).collect()),
            Tags::Any => Some(vec![Some(u64::MAX)]),
            Tags::None => Some(Vec::new()),
        }
    }

    #[test]
    fn a_list_of_tags_is_read_as_http_writes_it() {
        assert_eq!(read(&[]), Some(vec![]));
        assert_eq!(read(&["*"]), Some(vec![Some(u64::MAX)]));
        assert_eq!(read(&[r#""3""#]), Some(vec![Some(3)]));
        assert_eq!(
            read(&[r#""3",W/"4" ,, "x""#, r#""5","#]),
            Some(vec![Some(3), Some(4), None, Some(5)])
        );
        assert_eq!(read(&[r#""a,b", "3""#]), Some(vec![None, Some(3)]), "a comma inside of a tag");
        for other in [r#""""#, r#""03""#, r#""+3""#, r#""99999999999999999999""#] {
            assert_eq!(read(&[other]), Some(vec![None]), "{other}");
        }
    }

    #[test]
    fn what_is_no_list_of_tags_is_refused() {
        for odd in
            ["", ",", "3", "\"3", "3\"", "w/\"3\"", "\"3\"4", "\"3\" \"4\"", "\"a b\"", "*, \"3\""]
        {
            assert_eq!(read(&[odd]), None, "{odd}");
        }
        assert_eq!(read(&["*", "\"3\""]), None, "anything, and yet only this");
    }
}
