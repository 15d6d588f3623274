//! One HTTP/1.1 connection to a receiver, which can carry several requests in sequence.

use std::{io, time::Duration};

use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::AbortHandle,
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::{
    Failure, FailureKind, FullResponse, RetryAfter,
    pool::Poolable,
    read_meter::{MeteredStream, ReadMeter},
};
use crate::delivery::ssrf::ResolvedTarget;

/// Maximum size of a response header, and of all that a receiver sends before it: interim (1xx)
/// responses and, over TLS, protocol messages.
const MAX_HEADER_BYTES: usize = 64 * 1_024;

/// Maximum size of all that a receiver sends during the TLS handshake, mostly certificates.
const MAX_HANDSHAKE_BYTES: u64 = 256 * 1_024;

/// Maximum size of all that a receiver sends after the response header and until the next request:
/// the body with its framing and, over TLS, protocol messages, also while the connection is pooled.
const MAX_REST_BYTES: u64 = 256 * 1_024;

/// Maximum size of a response body that is read to reuse the connection. Beyond it a new connection
/// is cheaper.
const MAX_DRAINED_BYTES: usize = 64 * 1_024;

/// Maximum time for reading a response body to reuse the connection. The status is already known.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum size of the body of a [`super::ResponseStart`].
const MAX_BODY_START_BYTES: usize = 4 * 1_024;

/// A connection for one request at a time. Dropping it closes it.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    driver: AbortHandle,
    /// Count what was read since the last request or response header.
    meters: Meters,
    /// When its address was checked.
    opened: Instant,
}

/// Two meters, because only one of them can tell each fact: below TLS arrives everything that costs
/// processor time, and above TLS only what the receiver's program sends.
#[derive(Clone, Default)]
struct Meters {
    below_tls: ReadMeter,
    above_tls: ReadMeter,
}

/// The relevant parts of a response header.
pub(super) struct ResponseHead {
    pub(super) status: u16,
    pub(super) retry_after: Option<RetryAfter>,
    headers: HeaderMap,
    /// The unread body.
    body: Incoming,
}

/// Maximum age of a pooled connection. A new connection resolves the name again.
const MAX_CONNECTION_AGE: Duration = Duration::from_mins(5);

/// A request without a response.
pub(super) struct SendError {
    pub(super) failure: Failure,
    /// No byte was received: the connection may have been closed before the request.
    pub(super) is_silent: bool,
}

impl Connection {
    /// Connects to one of the checked addresses, and to no other.
    pub(super) async fn open(
        target: &ResolvedTarget,
        tls: &TlsConnector,
        deadline: Instant,
    ) -> Result<Self, Failure> {
        let stream = connect(target, deadline).await?;
        let meters = Meters::default();
        let stream = MeteredStream { stream, meter: meters.below_tls.clone() };
        if target.url.scheme() != "https" {
            return Self::handshake(stream, meters).await;
        }
        let failed = |detail| Failure::new(FailureKind::Tls, detail);
        let name = server_name(&target.url)
            .ok_or_else(|| failed("The host is not a valid TLS server name.".to_owned()))?;
        meters.below_tls.restart(MAX_HANDSHAKE_BYTES);
        let stream = tls.connect(name, stream).await;
        let stream =
            stream.map_err(|error| failed(format!("The TLS handshake failed: {error}.")))?;
        Self::handshake(stream, meters).await
    }

    async fn handshake(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        meters: Meters,
    ) -> Result<Self, Failure> {
        let stream = MeteredStream { stream, meter: meters.above_tls.clone() };
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MAX_HEADER_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| broken(&error))?;
        // The sender reports the errors of the connection.
        let driver = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        Ok(Self { sender, driver, meters, opened: Instant::now() })
    }

    /// Sends a request and waits for the response header.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<ResponseHead, SendError> {
        let Meters { below_tls, above_tls } = &self.meters;
        below_tls.restart(MAX_HEADER_BYTES as u64);
        above_tls.restart(0);
        let response = self.sender.send_request(request).await;
        let is_exceeded = below_tls.is_exceeded();
        below_tls.restart(MAX_REST_BYTES);
        response.map(ResponseHead::from).map_err(|error| SendError {
            failure: if is_exceeded { too_much() } else { broken(&error) },
            is_silent: !above_tls.has_read() && !is_exceeded,
        })
    }

    /// Lets the receiver send a body of this size, with its framing.
    pub(super) fn allow_body(&self, max_bytes: usize) {
        self.meters.below_tls.restart(MAX_REST_BYTES + 2 * max_bytes as u64);
    }

    /// Reads the rest of the response. Returns whether the connection can be reused.
    pub(super) async fn finish(&mut self, response: ResponseHead, deadline: Instant) -> bool {
        if !is_reusable(response.status, self.opened.elapsed()) {
            return false;
        }
        let deadline = deadline.min(Instant::now() + DRAIN_TIMEOUT);
        let finished = async { drain(response.body).await && self.sender.ready().await.is_ok() };
        timeout_at(deadline, finished).await.unwrap_or(false)
    }
}

/// Whether a connection of this age can be reused after a response with this status.
fn is_reusable(status: u16, age: Duration) -> bool {
    status != StatusCode::SWITCHING_PROTOCOLS && age <= MAX_CONNECTION_AGE
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

impl From<Response<Incoming>> for ResponseHead {
    fn from(mut response: Response<Incoming>) -> Self {
        Self {
            status: response.status().as_u16(),
            retry_after: RetryAfter::from_headers(response.headers()),
            headers: std::mem::take(response.headers_mut()),
            body: response.into_body(),
        }
    }
}

impl ResponseHead {
    /// Reads the beginning of the body, up to the limit, the first error, or a short time: a body may
    /// be slow or never end.
    pub(super) async fn read_body_start(mut self) -> Vec<u8> {
        let mut start = Vec::new();
        let _ = timeout(DRAIN_TIMEOUT, self.append_body_start(&mut start)).await;
        start
    }

    /// Reads the whole body, up to a size.
    pub(super) async fn read_whole_body(self, max_bytes: usize) -> Result<FullResponse, Failure> {
        let Self { status, headers, mut body, .. } = self;
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            let data = frame.map_err(|error| broken(&error))?.into_data().unwrap_or_default();
            if whole.len() + data.len() > max_bytes {
                let detail = format!("The response has more than {} KiB.", max_bytes / 1_024);
                return Err(Failure::new(FailureKind::Broken, detail));
            }
            whole.extend_from_slice(&data);
        }
        Ok(FullResponse { status, headers, body: whole.into() })
    }

    async fn append_body_start(&mut self, start: &mut Vec<u8>) {
        while let Some(Ok(frame)) = self.body.frame().await {
            let data = frame.into_data().unwrap_or_default();
            start.extend_from_slice(&data[..data.len().min(MAX_BODY_START_BYTES - start.len())]);
            if start.len() == MAX_BODY_START_BYTES {
                break;
            }
        }
    }
}

/// Tries the addresses in order. Each gets an equal share of the remaining time.
async fn connect(target: &ResolvedTarget, deadline: Instant) -> Result<TcpStream, Failure> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (index, address) in target.addresses.iter().enumerate() {
        let now = Instant::now();
        let remaining = deadline.saturating_duration_since(now);
        let share = share_of(remaining, target.addresses.len(), index);
        last = match timeout_at(now + share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // A request is a single write, so Nagle's algorithm would only delay it.
                stream.set_nodelay(true).ok();
                return Ok(stream);
            }
            Ok(Err(error)) => error,
            Err(elapsed) => elapsed.into(),
        };
    }
    let kind = match last.kind() {
        io::ErrorKind::TimedOut => FailureKind::Timeout,
        _ => FailureKind::Unreachable,
    };
    Err(Failure::new(kind, format!("Could not connect to the server: {last}.")))
}

/// The share of the remaining time for the address at this index.
fn share_of(remaining: Duration, addresses: usize, index: usize) -> Duration {
    remaining / u32::try_from(addresses - index).unwrap_or(u32::MAX)
}

fn server_name(url: &Url) -> Option<ServerName<'static>> {
    match url.host()? {
        Host::Domain(name) => ServerName::try_from(name.to_owned()).ok(),
        Host::Ipv4(ip) => Some(ServerName::from(std::net::IpAddr::V4(ip))),
        Host::Ipv6(ip) => Some(ServerName::from(std::net::IpAddr::V6(ip))),
    }
}

/// Reads a body to its end. Returns whether it is complete and within the limit.
async fn drain(mut body: Incoming) -> bool {
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > MAX_DRAINED_BYTES {
            return false;
        }
    }
    true
}

fn too_much() -> Failure {
    let detail = format!(
        "The server sent more than {} KiB before its final status.",
        MAX_HEADER_BYTES / 1_024
    );
    Failure::new(FailureKind::Broken, detail)
}

fn broken(error: &hyper::Error) -> Failure {
    let detail = if error.is_parse_too_large() {
        "The header of the server's response is too large.".to_owned()
    } else if error.is_parse() {
        "The server's response is not valid HTTP/1.1.".to_owned()
    } else {
        "The server closed the connection before it responded.".to_owned()
    };
    Failure::new(FailureKind::Broken, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_reused_while_its_address_was_checked_lately_and_the_protocol_stays() {
        assert!(is_reusable(200, MAX_CONNECTION_AGE));
        assert!(!is_reusable(200, MAX_CONNECTION_AGE + Duration::from_millis(1)));
        assert!(!is_reusable(101, Duration::ZERO));
    }

    #[test]
    fn each_address_gets_an_equal_share_of_the_time() {
        let seconds = Duration::from_secs;
        assert_eq!(share_of(seconds(9), 3, 0), seconds(3));
        assert_eq!(share_of(seconds(6), 3, 1), seconds(3));
        assert_eq!(share_of(seconds(9), 3, 2), seconds(9), "the others failed at once");
    }
}
