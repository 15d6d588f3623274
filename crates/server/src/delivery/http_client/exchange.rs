//! One complete exchange: a request whose whole response is read, for calls to providers.

use std::time::Duration;

use galley_domain::id::AccountId;
use hyper::{
    HeaderMap, Method,
    body::Bytes,
    header::{HeaderName, HeaderValue},
};
use tokio::time::{Instant, timeout_at};

use super::{Failure, FailureKind, HttpWebhookClient, connection::Connection, request};

/// A request.
#[derive(Clone, Debug)]
pub struct ExchangeRequest {
    /// The account for which it is sent.
    pub account: AccountId,
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: String,
    /// The headers. The client adds `Host`, `User-Agent` and `Content-Length`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Bytes,
    /// The time for the whole exchange, from the name lookup to the last byte.
    pub timeout: Duration,
    /// When no byte of the request may leave any more.
    pub send_by: Option<Instant>,
    /// Maximum size of the body of the response.
    pub max_body_bytes: usize,
}

/// A whole response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullResponse {
    /// The status; redirects are not followed.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Why there is no whole response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeFailure {
    /// No byte of the request has left: the receiver cannot have acted on it.
    NotSent(Failure),
    /// The receiver may have acted on the request.
    Unknown(Failure),
}

impl HttpWebhookClient {
    /// Sends a request over a connection of its own and reads the whole response.
    pub async fn exchange(&self, wanted: ExchangeRequest) -> Result<FullResponse, ExchangeFailure> {
        let deadline = Instant::now() + wanted.timeout;
        let not_sent = ExchangeFailure::NotSent;
        let late = || {
            let detail = format!("There was no whole response within {:?}.", wanted.timeout);
            Failure::new(FailureKind::Timeout, detail)
        };
        let open = async {
            let target = self.guard.resolve(wanted.account, &wanted.url).await?;
            let connection = Connection::open(&target, &self.tls, deadline).await?;
            let request =
                request(wanted.method, &target.url, &wanted.headers, wanted.body.clone())?;
            Ok::<_, Failure>((connection, request))
        };
        let opened = timeout_at(deadline, open).await.map_err(|_| not_sent(late()))?;
        let (mut connection, request) = opened.map_err(not_sent)?;
        // The process may have been frozen while the connection was opened.
        if wanted.send_by.is_some_and(|send_by| Instant::now() >= send_by) {
            let detail = "The connection was opened too late for the request.";
            return Err(not_sent(Failure::new(FailureKind::Timeout, detail.to_owned())));
        }
        let exchange = async {
            let response = connection.send(request).await.map_err(|error| error.failure)?;
            connection.allow_body(wanted.max_body_bytes);
            response.read_whole_body(wanted.max_body_bytes).await
        };
        let response = timeout_at(deadline, exchange).await.unwrap_or_else(|_| Err(late()));
        response.map_err(ExchangeFailure::Unknown)
    }
}
