//! `If-Match` and `If-None-Match`: changing and reading only what is as the caller knows it.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts},
};

use super::{
    problem::{Kind, Problem},
    query::whole,
};
use crate::App;

/// The tag of a revision.
pub(super) fn etag(revision: u64) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{revision}\"")).expect("digits in quotes")
}

/// The revisions that a change is meant for, if the caller says so.
pub(super) struct IfMatch(pub(super) Option<Vec<u64>>);

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
pub(super) struct IfNoneMatch(Tags);

impl FromRequestParts<App> for IfNoneMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        tags(&parts.headers, &header::IF_NONE_MATCH).map(Self)
    }
}

impl IfNoneMatch {
    /// Whether the caller has this revision already.
    pub(super) fn has(&self, revision: u64) -> bool {
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
    let mut tags = Vec::new();
    let mut any = false;
    for value in headers.get_all(name) {
        let bad = || {
            let form = format!("{name} holds tags in quotes, such as \"3\", or `*`.");
            Problem::of(Kind::BadRequest).detail(form)
        };
        for written in value.to_str().map_err(|_| bad())?.split(',').map(str::trim) {
            if written == "*" {
                any = true;
                continue;
            }
            let (weak, rest) = match written.strip_prefix("W/") {
                Some(rest) => (true, rest),
                None => (false, written),
            };
            let quoted = rest.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            tags.push(Tag { weak, revision: whole(quoted.ok_or_else(bad)?) });
        }
    }
    Ok(if any {
        Tags::Any
    } else if tags.is_empty() {
        Tags::None
    } else {
        Tags::These(tags)
    })
}
