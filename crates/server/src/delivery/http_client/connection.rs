//! One connection to a receiver: opened to a checked address, asked, and perhaps asked again.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    task::AbortHandle,
    time::{Instant, timeout_at},
};
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::{Failure, FailureKind, RetryAfter, pool::Poolable};
use crate::delivery::ssrf::Admitted;

/// The header of an answer may have as many bytes.
const MOST_HEADER: usize = 64 * 1_024;

/// So much of an answer's body is read, to have the connection back; for more a new connection is
/// cheaper.
const MOST_BODY: usize = 64 * 1_024;

/// The same in time. The status is known by then, so waiting gains nothing else.
const BODY: Duration = Duration::from_secs(1);

/// So much of a page is kept.
const MOST_PAGE: usize = 4 * 1_024;

/// A connection that one request at a time may use. Dropped, it is closed at once.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
    /// Whether anything came since the last request.
    heard: Arc<AtomicBool>,
    /// Its address was checked then.
    opened: Instant,
}

/// What counts of an answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) retry_after: Option<RetryAfter>,
    /// What is still to come.
    body: Incoming,
}

/// After so long a connection is made anew, to where the name leads then.
const OLDEST: Duration = Duration::from_mins(5);

/// A request without an answer.
pub(super) struct Unanswered {
    pub(super) failure: Failure,
    /// Not a single byte came, so that the connection may have been dead before the request.
    pub(super) silent: bool,
}

impl Connection {
    /// Connects to one of the admitted addresses, and to nothing else.
    pub(super) async fn open(
        admitted: &Admitted,
        tls: &TlsConnector,
        deadline: Instant,
    ) -> Result<Self, Failure> {
        let stream = connect(admitted, deadline).await?;
        if admitted.url.scheme() != "https" {
            return Self::over(stream).await;
        }
        let failed = |detail| Failure::new(FailureKind::Tls, detail);
        let name = server_name(&admitted.url)
            .ok_or_else(|| failed("The host cannot be named in TLS.".to_owned()))?;
        let stream = tls.connect(name, stream).await;
        Self::over(stream.map_err(|error| failed(format!("TLS failed: {error}.")))?).await
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Self, Failure> {
        let heard = Arc::new(AtomicBool::new(false));
        let stream = TokioIo::new(Heard { stream, heard: Arc::clone(&heard) });
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MOST_HEADER)
            .handshake(stream)
            .await
            .map_err(|error| broken(&error))?;
        // Errors come back through the sender as well.
        let driver = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        Ok(Self { sender, driver, heard, opened: Instant::now() })
    }

    /// Sends a request and waits for the header of the answer.
    pub(super) async fn ask(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, Unanswered> {
        self.heard.store(false, Ordering::Relaxed);
        let response = self.sender.send_request(request).await;
        response.map(Answer::from).map_err(|error| Unanswered {
            failure: broken(&error),
            silent: !self.heard.load(Ordering::Relaxed),
        })
    }

    /// Reads the rest of the answer. Whether the connection can be used again.
    pub(super) async fn finish(&mut self, answer: Answer, deadline: Instant) -> bool {
        if answer.status == StatusCode::SWITCHING_PROTOCOLS || self.opened.elapsed() > OLDEST {
            return false;
        }
        let deadline = deadline.min(Instant::now() + BODY);
        let finished = async { ends(answer.body).await && self.sender.ready().await.is_ok() };
        timeout_at(deadline, finished).await.unwrap_or(false)
    }
}

impl Poolable for Connection {
    fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl From<Response<Incoming>> for Answer {
    fn from(response: Response<Incoming>) -> Self {
        Self {
            status: response.status().as_u16(),
            retry_after: RetryAfter::of(response.headers()),
            body: response.into_body(),
        }
    }
}

impl Answer {
    /// What it says, as far as it is kept and came.
    pub(super) async fn beginning(mut self) -> Vec<u8> {
        let mut kept = Vec::new();
        while let Some(Ok(frame)) = self.body.frame().await {
            let data = frame.into_data().unwrap_or_default();
            kept.extend_from_slice(&data[..data.len().min(MOST_PAGE - kept.len())]);
            if kept.len() == MOST_PAGE {
                break;
            }
        }
        kept
    }
}

/// Tries one address after the other; each may take its share of the time that is left.
async fn connect(admitted: &Admitted, deadline: Instant) -> Result<TcpStream, Failure> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (place, address) in admitted.addresses.iter().enumerate() {
        let now = Instant::now();
        let left = u32::try_from(admitted.addresses.len() - place).unwrap_or(u32::MAX);
        let share = now + deadline.saturating_duration_since(now) / left;
        last = match timeout_at(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // A request is one write; waiting for more of it would only delay it.
                stream.set_nodelay(true).ok();
                return Ok(stream);
            }
            Ok(Err(error)) => error,
            Err(late) => late.into(),
        };
    }
    let kind = match last.kind() {
        io::ErrorKind::TimedOut => FailureKind::Timeout,
        _ => FailureKind::Unreachable,
    };
    Err(Failure::new(kind, format!("No connection to the receiver: {last}.")))
}

fn server_name(url: &Url) -> Option<ServerName<'static>> {
    match url.host()? {
        Host::Domain(name) => ServerName::try_from(name.to_owned()).ok(),
        Host::Ipv4(ip) => Some(ServerName::from(std::net::IpAddr::V4(ip))),
        Host::Ipv6(ip) => Some(ServerName::from(std::net::IpAddr::V6(ip))),
    }
}

/// Whether the body ends, whole, within its limit.
async fn ends(mut body: Incoming) -> bool {
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > MOST_BODY {
            return false;
        }
    }
    true
}

fn broken(error: &hyper::Error) -> Failure {
    let detail = if error.is_parse_too_large() {
        "The header of the receiver's answer is too large.".to_owned()
    } else if error.is_parse() {
        "The receiver's answer is not HTTP/1.1.".to_owned()
    } else {
        "The receiver closed the connection before it had answered.".to_owned()
    };
    Failure::new(FailureKind::Broken, detail)
}

/// Notes that something was read. hyper tells that a connection broke, but not whether before or
/// after the first byte.
struct Heard<S> {
    stream: S,
    heard: Arc<AtomicBool>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.heard.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
