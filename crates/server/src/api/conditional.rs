//! Conditional requests: `If-Match` and `If-None-Match` for the revisions of templates and for
//! files, and `If-Range` with `Range` for files.

mod entity_tag;
mod range;

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts},
};

use self::entity_tag::{EntityTag, EntityTags};
use super::{
    problem::{Problem, ProblemKind},
    query::parse_digits,
};
use crate::app::App;

pub(crate) use range::{RequestedRange, requested_range};

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
        Ok(Self(match parse(&parts.headers, &header::IF_MATCH)? {
            None | Some(EntityTags::Any) => None,
            // `If-Match` compares strongly (RFC 9110), so a weak tag never matches.
            Some(EntityTags::List(tags)) => {
                Some(tags.iter().filter(|tag| !tag.weak).filter_map(revision).collect())
            }
        }))
    }
}

/// The revisions in `If-None-Match`, which the client already has.
pub(crate) enum IfNoneMatch {
    Any,
    Revisions(Vec<u64>),
}

impl FromRequestParts<App> for IfNoneMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        Ok(match parse(&parts.headers, &header::IF_NONE_MATCH)? {
            None => Self::Revisions(Vec::new()),
            Some(EntityTags::Any) => Self::Any,
            Some(EntityTags::List(tags)) => {
                Self::Revisions(tags.iter().filter_map(revision).collect())
            }
        })
    }
}

impl IfNoneMatch {
    /// Whether the client already has this revision.
    pub(crate) fn contains(&self, revision: u64) -> bool {
        match self {
            Self::Any => true,
            Self::Revisions(revisions) => revisions.contains(&revision),
        }
    }
}

/// The revision whose `ETag` this is. Tags are opaque strings: "03" is not the tag of revision 3.
fn revision(tag: &EntityTag<'_>) -> Option<u64> {
    let text = str::from_utf8(tag.opaque).ok()?;
    parse_digits(text).filter(|number: &u64| number.to_string() == text)
}

fn parse<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<EntityTags<'h>>, Problem> {
    EntityTags::parse(headers, name).map_err(|_| {
        let detail =
            format!("The header `{name}` must contain quoted tags such as \"3\", or only `*`.");
        Problem::of(ProblemKind::BadRequest).detail(detail)
    })
}

/// The result of the preconditions of a request for a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FilePrecondition {
    /// `If-Match` is present and does not contain the tag of the file.
    Failed,
    /// The client already has the file.
    NotModified,
    Met,
}

impl FilePrecondition {
    /// Evaluates `If-Match`, then `If-None-Match`. `tag` is the text between the quotes of the
    /// file's tag. A malformed header matches no file.
    pub(crate) fn evaluate(headers: &HeaderMap, tag: &str) -> Self {
        let tag = tag.as_bytes();
        let if_match = EntityTags::parse(headers, &header::IF_MATCH);
        if !if_match.is_ok_and(|tags| tags.is_none_or(|tags| tags.contains_strong(tag))) {
            return Self::Failed;
        }
        let if_none_match = EntityTags::parse(headers, &header::IF_NONE_MATCH);
        if if_none_match.is_ok_and(|tags| tags.is_some_and(|tags| tags.contains_weak(tag))) {
            return Self::NotModified;
        }
        Self::Met
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(name: HeaderName, tags: &'static str) -> FilePrecondition {
        let headers = HeaderMap::from_iter([(name, HeaderValue::from_static(tags))]);
        FilePrecondition::evaluate(&headers, "a")
    }

    #[test]
    fn only_the_exact_digits_are_the_tag_of_a_revision() {
        for (opaque, expected) in [
            ("3", Some(3)),
            ("", None),
            ("03", None),
            ("+3", None),
            ("a,b", None),
            ("99999999999999999999", None),
        ] {
            let tag = EntityTag { weak: false, opaque: opaque.as_bytes() };
            assert_eq!(revision(&tag), expected, "{opaque}");
        }
    }

    #[test]
    fn if_match_fails_without_the_tag_of_the_file() {
        for tags in ["*", "\"a\"", "\"b\", \"a\"", "\"x,y\", \"a\""] {
            assert_eq!(evaluate(header::IF_MATCH, tags), FilePrecondition::Met, "{tags}");
        }
        for tags in ["W/\"a\"", "b", "\"x,*,y\""] {
            assert_eq!(evaluate(header::IF_MATCH, tags), FilePrecondition::Failed, "{tags}");
        }
        assert_eq!(FilePrecondition::evaluate(&HeaderMap::new(), "a"), FilePrecondition::Met);
    }

    #[test]
    fn if_none_match_contains_the_tag_of_the_file() {
        for tags in ["*", "\"a\"", "W/\"a\"", "\"b\", \"a\"", "\"x,y\", \"a\""] {
            let precondition = evaluate(header::IF_NONE_MATCH, tags);
            assert_eq!(precondition, FilePrecondition::NotModified, "{tags}");
        }
        for tags in ["\"b\"", "a", "\"x,*,y\""] {
            assert_eq!(evaluate(header::IF_NONE_MATCH, tags), FilePrecondition::Met, "{tags}");
        }
    }
}
