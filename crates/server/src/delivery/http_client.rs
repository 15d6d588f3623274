//! The HTTP client for webhook requests.
//!
//! Receivers are not trusted: they may be slow, broken or hostile. The deadline and the limits
//! below bound what one request can cost. Of a response to a delivery, only the status and
//! `Retry-After` are used; of a response to a `GET` or a test, the status and the beginning of the
//! body. Redirects are not followed, and proxies and cookies are not supported.

mod connection;
mod exchange;
mod pool;
mod read_meter;
mod retry_after;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use galley_domain::id::AccountId;
use http_body_util::Full;
use hyper::{
    Method, Request, Uri,
    body::Bytes,
    header::{HOST, HeaderName, HeaderValue, USER_AGENT},
};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use url::{Position, Url};

use self::{
    connection::{Connection, ResponseHead},
    pool::{Origin, Pool},
};
use super::ssrf::{NameCause, ResolvedTarget, SsrfGuard, UrlError};
pub use exchange::{ExchangeFailure, ExchangeRequest, FullResponse};
pub use retry_after::RetryAfter;

/// Maximum length of [`Failure::detail`].
const MAX_DETAIL_BYTES: usize = 300;

/// Sends webhook requests. A trait, so that deliveries can be tested without a network.
#[async_trait]
pub trait WebhookClient: Send + Sync {
    /// Sends a request once.
    async fn post(&self, request: PostRequest) -> PostReport;

    /// Sends a `GET` request once, to a target that has just been checked.
    async fn get(&self, target: ResolvedTarget) -> Result<ResponseStart, Failure>;
}

/// The beginning of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseStart {
    /// The status; redirects are not followed.
    pub status: u16,
    /// The beginning of the body.
    pub body: Vec<u8>,
}

/// A `POST` request to a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostRequest {
    /// The account that owns the endpoint.
    pub account: AccountId,
    /// The URL of the endpoint.
    pub url: String,
    /// The headers. The client adds `Host`, `User-Agent` and `Content-Length`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Bytes,
}

/// Result of a test request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestReport {
    /// The beginning of the response, or why there is none.
    pub response: Result<ResponseStart, Failure>,
    /// The time from the name lookup to the status, or to the failure.
    pub latency: Duration,
}

/// Result of a `POST` request, and how long it waited for Galley itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostReport {
    /// The result.
    pub outcome: PostOutcome,
    /// How long the request waited for a lookup slot. The receiver has no part in it.
    pub slot_wait: Duration,
}

impl From<PostOutcome> for PostReport {
    fn from(outcome: PostOutcome) -> Self {
        Self { outcome, slot_wait: Duration::ZERO }
    }
}

/// Result of a `POST` request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostOutcome {
    /// The receiver responded, with any status.
    Responded {
        /// The status; redirects are not followed.
        status: u16,
        /// When the receiver asks for the next attempt.
        retry_after: Option<RetryAfter>,
    },
    /// The receiver did not respond.
    Failed(Failure),
    /// Nothing was sent, because Galley had no lookup slot in time. The receiver has no part in it.
    NotSent,
}

/// Why there was no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind, for programs.
    pub kind: FailureKind,
    /// One sentence, for people.
    pub detail: String,
    /// What the sentence does not tell the client, for the operator's log.
    pub hidden_cause: Option<NameCause>,
}

/// Kinds of failure. Each needs a different remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The URL is not allowed.
    Refused,
    /// The name could not be resolved to allowed addresses.
    Unresolved,
    /// No connection could be established.
    Unreachable,
    /// The TLS handshake failed.
    Tls,
    /// The deadline passed.
    Timeout,
    /// The connection ended too early, or the response was not valid HTTP.
    Broken,
}

impl FailureKind {
    /// The stable name of this kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unresolved => "unresolved",
            Self::Unreachable => "unreachable",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
        }
    }
}

impl Failure {
    fn new(kind: FailureKind, detail: String) -> Self {
        let end = detail.floor_char_boundary(MAX_DETAIL_BYTES);
        let detail = if end < detail.len() { format!("{}…", &detail[..end]) } else { detail };
        Self { kind, detail, hidden_cause: None }
    }
}

/// The stored and displayed form. It starts with the kind, so that programs can match it.
impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.kind.as_str(), self.detail)
    }
}

impl From<UrlError> for Failure {
    fn from(error: UrlError) -> Self {
        let hidden_cause = error.hidden_cause();
        let kind = match hidden_cause {
            Some(_) => FailureKind::Unresolved,
            None => FailureKind::Refused,
        };
        Self { hidden_cause, ..Self::new(kind, error.to_string()) }
    }
}

/// A [`WebhookClient`] over HTTP/1.1 with a connection pool.
pub struct HttpWebhookClient {
    guard: SsrfGuard,
    timeout: Duration,
    tls: TlsConnector,
    pool: Pool<Connection>,
}

impl HttpWebhookClient {
    /// Creates a client. `timeout` covers a request from the name lookup to the status, but not the
    /// wait for a lookup slot, `guard`
    /// checks each target, and `roots` verify certificates. Production code passes
    /// [`trusted_roots`].
    pub fn new(guard: SsrfGuard, timeout: Duration, roots: RootCertStore) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring supports TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { guard, timeout, tls: TlsConnector::from(Arc::new(config)), pool: Pool::new() }
    }

    /// Sends a request once, as a delivery does, and reads the beginning of the response for the
    /// person who tests an endpoint.
    pub fn post_test(&self, post: PostRequest) -> BoxFuture<'_, TestReport> {
        Box::pin(async move {
            let started = Instant::now();
            let mut deadline = started + self.timeout;
            let exchange = self.send(&post, &mut deadline).await;
            let latency = started.elapsed();
            let response = match exchange {
                Ok(Some(Exchange { response, connection, .. })) => {
                    let status = response.status;
                    let body = response.read_body_start().await;
                    // It has to stay open until the body is read.
                    drop(connection);
                    Ok(ResponseStart { status, body })
                }
                Ok(None) => Err(Failure::new(
                    FailureKind::Unresolved,
                    "The lookup of the name did not begin in time.".to_owned(),
                )),
                Err(failure) => Err(failure),
            };
            TestReport { response, latency }
        })
    }

    /// Sends a request and reads the response up to the status. Nothing after the status can fail
    /// the attempt. `None` if Galley had no lookup slot. The deadline moves by the wait for the slot.
    async fn send(
        &self,
        post: &PostRequest,
        deadline: &mut Instant,
    ) -> Result<Option<Exchange>, Failure> {
        let url = self.guard.check_url(&post.url)?;
        let origin = Origin::of(&url);
        if let Some(mut connection) = self.pool.take(&origin) {
            let response =
                connection.send(request(Method::POST, &url, &post.headers, post.body.clone())?);
            match self.by(*deadline, &origin, response).await? {
                Ok(response) => return Ok(Some(Exchange { origin, connection, response })),
                // The receiver closed the idle connection, which is not a failed attempt. If it has
                // read the message anyway, it recognises the second one by its id.
                Err(error) if error.is_silent => {}
                Err(error) => return Err(error.failure),
            }
        }
        let wait_start = Instant::now();
        let slot = self.guard.lookup_slot(post.account, &url).await;
        *deadline += wait_start.elapsed();
        let deadline = *deadline;
        let slot = match slot {
            Err(UrlError::NoLookupSlot) => return Ok(None),
            slot => slot?,
        };
        let target = match self.guard.resolve_in(slot, url.clone(), deadline).await {
            Ok(target) => target,
            Err(UrlError::UnusableName { cause: NameCause::LookupTimeout, .. })
                if Instant::now() >= deadline =>
            {
                return Err(self.timeout_failure());
            }
            Err(error) => return Err(error.into()),
        };
        let (connection, response) = self
            .by(deadline, &origin, async {
                let mut connection = Connection::open(&target, &self.tls, deadline).await?;
                let request = request(Method::POST, &url, &post.headers, post.body.clone())?;
                let response = connection.send(request).await.map_err(|error| error.failure)?;
                Ok::<_, Failure>((connection, response))
            })
            .await??;
        Ok(Some(Exchange { origin, connection, response }))
    }

    /// Waits until the deadline. After it, the pooled connections to the origin are dropped, so that
    /// the next attempt opens a new one.
    async fn by<T>(
        &self,
        deadline: Instant,
        origin: &Origin,
        work: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        timeout_at(deadline, work).await.map_err(|_| {
            self.pool.clear(origin);
            self.timeout_failure()
        })
    }

    /// Sends a `GET` request over a new connection, which is not pooled.
    async fn fetch(
        &self,
        target: &ResolvedTarget,
        deadline: Instant,
    ) -> Result<ResponseStart, Failure> {
        let mut connection = Connection::open(target, &self.tls, deadline).await?;
        let request = request(Method::GET, &target.url, &[], Bytes::new())?;
        let response = connection.send(request).await.map_err(|error| error.failure)?;
        Ok(ResponseStart { status: response.status, body: response.read_body_start().await })
    }

    fn timeout_failure(&self) -> Failure {
        let detail = format!("The server did not respond within {:?}.", self.timeout);
        Failure::new(FailureKind::Timeout, detail)
    }
}

#[async_trait]
impl WebhookClient for HttpWebhookClient {
    async fn post(&self, post: PostRequest) -> PostReport {
        let planned = Instant::now() + self.timeout;
        let mut deadline = planned;
        let outcome = match self.send(&post, &mut deadline).await {
            Ok(Some(Exchange { origin, mut connection, response })) => {
                let ResponseHead { status, retry_after, .. } = response;
                if connection.finish(response, deadline).await {
                    self.pool.put(origin, connection);
                }
                PostOutcome::Responded { status, retry_after }
            }
            Ok(None) => PostOutcome::NotSent,
            Err(failure) => PostOutcome::Failed(failure),
        };
        PostReport { outcome, slot_wait: deadline.duration_since(planned) }
    }

    async fn get(&self, target: ResolvedTarget) -> Result<ResponseStart, Failure> {
        let deadline = Instant::now() + self.timeout;
        let response = timeout_at(deadline, self.fetch(&target, deadline)).await;
        response.unwrap_or_else(|_| Err(self.timeout_failure()))
    }
}

/// A response head, and the connection that has the rest of the response.
struct Exchange {
    origin: Origin,
    connection: Connection,
    response: ResponseHead,
}

/// The root certificates of the system, or Mozilla's if the system has none, as in a minimal container.
pub fn trusted_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

fn request(
    method: Method,
    url: &Url,
    added: &[(HeaderName, HeaderValue)],
    body: Bytes,
) -> Result<Request<Full<Bytes>>, Failure> {
    let invalid =
        || Failure::new(FailureKind::Refused, "The URL cannot be used in a request.".to_owned());
    let target = &url[Position::BeforePath..Position::AfterQuery];
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let mut request = Request::builder()
        .method(method)
        .uri(target.parse::<Uri>().map_err(|_| invalid())?)
        .body(Full::new(body))
        .map_err(|_| invalid())?;
    let headers = request.headers_mut();
    headers.extend(added.iter().cloned());
    headers.insert(HOST, HeaderValue::from_str(host).map_err(|_| invalid())?);
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("Galley/", env!("CARGO_PKG_VERSION"))),
    );
    Ok(request)
}
