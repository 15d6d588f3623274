//! Error responses in the format of RFC 9457.

mod catalogue;
mod constructors;
mod document;

use std::{error::Error, sync::Arc, time::Duration};

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use galley_domain::{
    emulator::failures::Failure, id::TemplateId, rulebook::graph_codes::GraphError, send::Refusal,
    upstream::ProviderError, violation::Violations,
};
use galley_store::Limit;
use jiff::Timestamp;

use super::conditional::etag;

pub(crate) use catalogue::ProblemKind;

/// An error response: what the client sees, and the cause, which only the log contains.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    kind: ProblemKind,
    detail: Option<String>,
    extra: Extra,
    cause: Option<Arc<dyn Error + Send + Sync>>,
    /// The code on the Graph surface, if it does not follow from the kind.
    graph: Option<GraphError>,
}

/// Additional data of some kinds.
#[derive(Clone, Debug)]
enum Extra {
    None,
    /// The template of the caller's own account that has the name.
    Existing(TemplateId),
    Violations(Violations),
    /// The allowed actions.
    Possible(Vec<&'static str>),
    /// The current revision of the template, sent as `ETag`.
    Revision(u64),
    /// The oldest stored event.
    Oldest(u64),
    /// The end of the rotation, or of the lock of a name.
    Until(Timestamp),
    /// The length of the file in bytes, sent as `Content-Range`.
    Length(u64),
    /// The limit that the account has reached.
    Limit(Limit),
    /// When to send the request again, sent as `Retry-After` and `RateLimit`.
    Throttle(Box<Throttle>),
    /// The failure of Meta's API that was provoked.
    Failure(Box<Failure>),
    /// Why the sandbox refuses a message.
    Refusal(Box<Refusal>),
    /// Why the provider of the account refuses a change.
    Provider(Box<ProviderError>),
}

/// A limit of the rate or the number of requests, as the client sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throttle {
    /// The name of the limit.
    pub(crate) policy: &'static str,
    /// The number of requests, in each window or at a time.
    pub(crate) quota: u64,
    /// Seconds; `None` for requests at a time.
    pub(crate) window: Option<u32>,
    pub(crate) retry_after: Duration,
    /// Whether the connection closes.
    pub(crate) closes: bool,
}

impl Throttle {
    /// `Retry-After`, and `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers.
    fn headers(self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let Self { policy, quota, window, retry_after, closes } = self;
        let seconds = retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0);
        let seconds = seconds.max(1);
        let unit = match window {
            Some(window) => format!("w={window}"),
            None => "qu=\"concurrent-requests\"".to_owned(),
        };
        let closing = closes.then(|| (header::CONNECTION, "close".to_owned()));
        let headers = [
            (header::RETRY_AFTER, seconds.to_string()),
            (RATE_LIMIT_POLICY, format!("\"{policy}\";q={quota};{unit}")),
            (RATE_LIMIT, format!("\"{policy}\";r=0;t={seconds}")),
        ];
        let headers = headers.into_iter().chain(closing);
        headers.filter_map(|(name, value)| Some((name, HeaderValue::try_from(value).ok()?)))
    }
}

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

impl Problem {
    pub(crate) fn of(kind: ProblemKind) -> Self {
        Self { kind, detail: None, extra: Extra::None, cause: None, graph: None }
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The id of the caller's template that has the name.
    pub(crate) fn existing(&self) -> Option<String> {
        match &self.extra {
            Extra::Existing(id) => Some(id.to_string()),
            _ => None,
        }
    }

    /// The allowed actions.
    pub(crate) fn possible(&self) -> Option<&[&'static str]> {
        match &self.extra {
            Extra::Possible(actions) => Some(actions),
            _ => None,
        }
    }

    /// The limit that the account has reached.
    pub(crate) fn limit(&self) -> Option<Limit> {
        match self.extra {
            Extra::Limit(limit) => Some(limit),
            _ => None,
        }
    }

    /// Sets the code on the Graph surface.
    pub(crate) fn graph(mut self, graph: GraphError) -> Self {
        self.graph = Some(graph);
        self
    }

    pub(crate) fn graph_code(&self) -> Option<GraphError> {
        self.graph
    }

    pub(crate) fn kind(&self) -> ProblemKind {
        self.kind
    }

    pub(crate) fn slug(&self) -> &'static str {
        self.kind.slug()
    }

    /// The detail, or the remedy of the kind if there is none.
    pub(crate) fn detail_text(&self) -> &str {
        self.detail.as_deref().unwrap_or(self.kind.remedy())
    }

    /// The violations of the document.
    pub(crate) fn violations(&self) -> Option<&Violations> {
        match &self.extra {
            Extra::Violations(violations) => Some(violations),
            _ => None,
        }
    }

    /// The failure of Meta's API that was provoked.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        match &self.extra {
            Extra::Failure(failure) => Some(failure),
            _ => None,
        }
    }

    /// Why the sandbox refuses the message.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match &self.extra {
            Extra::Refusal(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Why the provider refuses the change.
    pub(crate) fn provider_error(&self) -> Option<&ProviderError> {
        match &self.extra {
            Extra::Provider(error) => Some(error),
            _ => None,
        }
    }

    /// The cause with its sources, for the log.
    pub(crate) fn cause_chain(&self) -> Option<String> {
        let mut cause: &dyn Error = self.cause.as_deref()?;
        let mut chain = cause.to_string();
        while let Some(source) = cause.source() {
            chain.push_str(": ");
            chain.push_str(&source.to_string());
            cause = source;
        }
        Some(chain)
    }
}

impl IntoResponse for Problem {
    /// `Galley::handle` writes the body, because it knows the id of the request.
    fn into_response(self) -> Response {
        const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
        let status = self.kind.status();
        let mut response = (status, [(header::CONTENT_TYPE, PROBLEM)]).into_response();
        let extra: Option<(HeaderName, &str)> = match status {
            // The console has sessions, which no header can replace.
            StatusCode::UNAUTHORIZED if self.kind == ProblemKind::SessionEnded => None,
            // A webhook shows its origin by its signature, not by a token.
            StatusCode::UNAUTHORIZED if self.kind == ProblemKind::HookSignature => None,
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "1")),
            // The client has not sent the whole body, so the connection cannot be reused.
            StatusCode::REQUEST_TIMEOUT => Some((header::CONNECTION, "close")),
            _ => None,
        };
        if let Some((name, value)) = extra {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        if let Extra::Revision(revision) = self.extra {
            response.headers_mut().insert(header::ETAG, etag(revision));
        }
        if let Extra::Length(length) = self.extra {
            let range = HeaderValue::try_from(format!("bytes */{length}"));
            response.headers_mut().extend(range.map(|it| (header::CONTENT_RANGE, it)).ok());
        }
        if let Extra::Throttle(throttle) = &self.extra {
            response.headers_mut().extend(throttle.headers());
        }
        response.extensions_mut().insert(self);
        response
    }
}
