//! Sending one message to one receiver, whatever the receiver is like.
//!
//! A receiver is somebody else's machine: it may be slow, broken or hostile, and costs us no more
//! than the deadline and the limits named here. Nothing of its answer counts but the status and
//! `Retry-After`, and the beginning of a page that was asked for; redirects are not followed, and
//! there are no proxies and no cookies.

mod connection;
mod pool;
mod retry_after;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
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
    connection::{Answer, Connection},
    pool::{Origin, Pool},
};
use super::ssrf::{Admitted, Guard, Refused};
pub use retry_after::RetryAfter;

/// More than this of what went wrong helps nobody.
const MOST_DETAIL: usize = 300;

/// Sends messages; a trait, so that the delivery can be tested without a network.
#[async_trait]
pub trait Outgoing: Send + Sync {
    /// Tries once.
    async fn post(&self, post: Post) -> Outcome;

    /// Asks for a page, once, at an address that has just been checked.
    async fn get(&self, address: Admitted) -> Result<Page, Failure>;
}

/// What came of asking for a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The status, also of a redirect.
    pub status: u16,
    /// The beginning of what it says.
    pub body: Vec<u8>,
}

/// One message on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Where to.
    pub url: String,
    /// What to say about it. `Host`, `User-Agent` and `Content-Length` are added.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The message.
    pub body: Bytes,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver answered, with whatever status.
    Answered {
        /// The status, also of a redirect.
        status: u16,
        /// When the receiver would like to be asked again.
        retry_after: Option<RetryAfter>,
    },
    /// There was no answer.
    Failed(Failure),
}

/// Why there was no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// For programs.
    pub kind: FailureKind,
    /// For people: one sentence.
    pub detail: String,
}

/// The kinds of failure, as far as somebody would do something else about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The address may not be called.
    Refused,
    /// The name has no address.
    Unresolved,
    /// Nobody listens there.
    Unreachable,
    /// The receiver could not show that it is the one.
    Tls,
    /// It took too long.
    Timeout,
    /// The connection ended too early, or what came was not HTTP.
    Broken,
}

impl FailureKind {
    /// The stable word for this kind.
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
        let end = detail.floor_char_boundary(MOST_DETAIL);
        let detail = if end < detail.len() { format!("{}…", &detail[..end]) } else { detail };
        Self { kind, detail }
    }
}

/// As it is kept and shown: the word first, so that programs can look for it.
impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.kind.as_str(), self.detail)
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let kind = match refused {
            Refused::Unresolved(_) => FailureKind::Unresolved,
            _ => FailureKind::Refused,
        };
        Self::new(kind, refused.to_string())
    }
}

/// Sends messages over HTTP/1.1 and keeps connections for the next one.
pub struct HttpOutgoing {
    guard: Guard,
    timeout: Duration,
    tls: TlsConnector,
    idle: Pool<Connection>,
}

impl HttpOutgoing {
    /// Sends within `timeout`, from the lookup of the name to the status, to whom `guard` admits
    /// and `roots` vouch for. In use, `roots` are [`trusted_roots`].
    pub fn new(guard: Guard, timeout: Duration, roots: RootCertStore) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring knows the ciphers of TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { guard, timeout, tls: TlsConnector::from(Arc::new(config)), idle: Pool::new() }
    }

    /// Up to the status: what comes after it cannot fail the attempt any more.
    async fn attempt(&self, post: &Post, deadline: Instant) -> Result<Answered, Failure> {
        let url = self.guard.check_form(&post.url)?;
        let origin = Origin::of(&url);
        if let Some(mut connection) = self.idle.take(&origin) {
            match connection.ask(request(Method::POST, &url, post)?).await {
                Ok(answer) => return Ok(Answered { origin, connection, answer }),
                // The receiver had closed it meanwhile, as it may: that is not a failed attempt.
                // Should it have read the message all the same, it knows the second by its id.
                Err(unanswered) if unanswered.silent => {}
                Err(unanswered) => return Err(unanswered.failure),
            }
        }
        let admitted = self.guard.admit(&post.url).await?;
        let mut connection = Connection::open(&admitted, &self.tls, deadline).await?;
        let request = request(Method::POST, &url, post)?;
        let answer = connection.ask(request).await.map_err(|it| it.failure)?;
        Ok(Answered { origin, connection, answer })
    }

    /// Over a connection of its own: it is done once and not again.
    async fn page(&self, address: &Admitted, deadline: Instant) -> Result<Page, Failure> {
        let mut connection = Connection::open(address, &self.tls, deadline).await?;
        let empty = Post { url: String::new(), headers: Vec::new(), body: Bytes::new() };
        let request = request(Method::GET, &address.url, &empty)?;
        let answer = connection.ask(request).await.map_err(|it| it.failure)?;
        Ok(Page { status: answer.status, body: answer.beginning().await })
    }

    fn too_late(&self) -> Failure {
        let detail = format!("The receiver did not answer within {:?}.", self.timeout);
        Failure::new(FailureKind::Timeout, detail)
    }

    /// After a timeout the next attempt begins with a new connection.
    fn give_up(&self, url: &str) {
        if let Ok(url) = Url::parse(url) {
            self.idle.clear(&Origin::of(&url));
        }
    }
}

#[async_trait]
impl Outgoing for HttpOutgoing {
    async fn post(&self, post: Post) -> Outcome {
        let deadline = Instant::now() + self.timeout;
        match timeout_at(deadline, self.attempt(&post, deadline)).await {
            Ok(Ok(Answered { origin, mut connection, answer })) => {
                let Answer { status, retry_after, .. } = answer;
                if connection.finish(answer, deadline).await {
                    self.idle.put(origin, connection);
                }
                Outcome::Answered { status, retry_after }
            }
            Ok(Err(failure)) => Outcome::Failed(failure),
            Err(_) => {
                self.give_up(&post.url);
                Outcome::Failed(self.too_late())
            }
        }
    }

    async fn get(&self, address: Admitted) -> Result<Page, Failure> {
        let deadline = Instant::now() + self.timeout;
        let page = timeout_at(deadline, self.page(&address, deadline)).await;
        page.unwrap_or_else(|_| Err(self.too_late()))
    }
}

/// An answer, and where the rest of it comes from.
struct Answered {
    origin: Origin,
    connection: Connection,
    answer: Answer,
}

/// Whom the system trusts; where it trusts nobody, as in an empty container, whom browsers trust.
pub fn trusted_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

fn request(method: Method, url: &Url, post: &Post) -> Result<Request<Full<Bytes>>, Failure> {
    let unsendable =
        || Failure::new(FailureKind::Refused, "The URL cannot be sent as it is.".to_owned());
    let target = &url[Position::BeforePath..Position::AfterQuery];
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let mut request = Request::builder()
        .method(method)
        .uri(target.parse::<Uri>().map_err(|_| unsendable())?)
        .body(Full::new(post.body.clone()))
        .map_err(|_| unsendable())?;
    let headers = request.headers_mut();
    headers.extend(post.headers.iter().cloned());
    headers.insert(HOST, HeaderValue::from_str(host).map_err(|_| unsendable())?);
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("Galley/", env!("CARGO_PKG_VERSION"))),
    );
    Ok(request)
}
