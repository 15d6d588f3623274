//! One HTTP exchange, which the server makes.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use galley_domain::upstream::{CallKind, Usage};
use jiff::SignedDuration;
use url::Url;

use crate::secret::Secret;

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
    /// `DELETE`.
    Delete,
}

impl Method {
    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// A request. Its `Debug` form shows neither the query nor the values of headers.
#[derive(Clone)]
pub struct Request {
    /// The call that it is part of; `None` for a file from another host, which is no call.
    pub kind: Option<CallKind>,
    /// The method.
    pub method: Method,
    /// The URL. Its query may contain the proof of the app secret.
    pub url: Url,
    /// The headers, in lower case.
    pub headers: Vec<(String, Secret)>,
    /// The body.
    pub body: Vec<u8>,
    /// How long the exchange may take, from the connection to the last byte of the response.
    pub deadline: Duration,
    /// When the caller may no longer make the call: no byte leaves from then on.
    pub send_by: Option<Instant>,
    /// The longest body of a response. A longer one is [`TransportError::Unknown`].
    pub max_response_bytes: usize,
}

/// A response.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The headers, in lower case.
    pub headers: Vec<(String, String)>,
    /// The complete body.
    pub body: Vec<u8>,
}

/// Why an exchange has no response. The texts name no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No byte of the request left.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The other side may have received the request.
    #[error("unknown: {0}")]
    Unknown(String),
    /// No byte of the request left, because the budget of calls is used up.
    #[error("no call for {} s", .0.as_secs())]
    Resting(SignedDuration),
}

/// Makes HTTP exchanges: one connection attempt to a checked address, no redirects, no retries.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends a request and reads the response completely.
    async fn exchange(&self, request: Request) -> Result<Response, TransportError>;
}

#[async_trait]
impl<T: Transport + ?Sized> Transport for Arc<T> {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        (**self).exchange(request).await
    }
}

impl Response {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// How much of the budget of calls of an account at the provider is used, if the headers tell.
    pub fn usage(&self, waba: &str) -> Option<Usage> {
        let account = self.header("x-business-use-case-usage");
        let account = account.and_then(|it| Usage::read(it, waba));
        let app = self.header("x-app-usage").and_then(Usage::read_app);
        account.into_iter().chain(app).reduce(Usage::or_more)
    }

    /// Whether the status is one of success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        out.debug_struct("Request")
            .field("kind", &self.kind)
            .field("method", &self.method)
            .field("host", &self.url.host_str())
            .field("path", &self.url.path())
            .field("headers", &headers)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
