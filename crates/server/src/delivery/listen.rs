//! A webhook receiver for developers: accepts deliveries of both formats, checks their signatures,
//! and passes them on. It also responds to Meta's verification requests.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ALLOW, HeaderMap, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc},
    time::timeout,
};

use super::{
    meta_signature::{META_SIGNATURE_HEADER, verify_meta},
    signature::{
        ID_HEADER, SIGNATURE_HEADER, Secret, SignatureError, SignatureHeaders, TIMESTAMP_HEADER,
        verify,
    },
};
use crate::clock::Clock;

/// Maximum size of a delivery.
const MAX_BODY_BYTES: usize = 256 * 1_024;

/// Time limit for reading a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum concurrent connections.
const MAX_CONNECTIONS: usize = 64;

/// Receives deliveries.
pub struct WebhookReceiver {
    /// Verifies the signatures.
    pub secret: Option<Secret>,
    /// The token that a verification request must contain.
    pub verify_token: Option<String>,
    /// The status with which the receiver responds to a verified delivery; to any other, 401.
    pub response_status: StatusCode,
    /// Determines the age of a delivery.
    pub clock: Arc<dyn Clock>,
    /// Gets every delivery. Once its receiving half is closed, deliveries get a 503.
    pub deliveries: mpsc::Sender<ReceivedDelivery>,
}

/// A received delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedDelivery {
    /// The message id, the same in every attempt.
    pub id: Option<String>,
    /// The send time from its headers.
    pub sent_at: Option<Timestamp>,
    /// Result of the signature check.
    pub signature: SignatureCheck,
    /// The body.
    pub body: Vec<u8>,
}

/// Result of a signature check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureCheck {
    /// The signature is valid.
    Verified,
    /// The signature is invalid.
    Invalid(SignatureError),
    /// This header is missing.
    MissingHeader(&'static str),
    /// Not checked, because the receiver has no secret.
    NoSecret,
}

impl WebhookReceiver {
    /// Accepts deliveries until the task is aborted.
    pub fn serve(self, listener: TcpListener) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let receiver = Arc::new(self);
            let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
            loop {
                let permit = Arc::clone(&permits).acquire_owned().await;
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let receiver = Arc::clone(&receiver);
                tokio::spawn(async move {
                    let service = service_fn(|request| {
                        let receiver = Arc::clone(&receiver);
                        async move { Ok::<_, Infallible>(receiver.handle(request).await) }
                    });
                    let connection = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .serve_connection(TokioIo::new(stream), service);
                    // The client notices a connection error itself.
                    let _ = connection.await;
                    drop(permit);
                });
            }
        })
    }

    async fn handle(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let mut response = Response::default();
        match *request.method() {
            Method::POST => *response.status_mut() = self.receive(request).await,
            Method::GET if self.verify_token.is_some() => {
                match self.challenge(request.uri().query().unwrap_or_default()) {
                    Some(challenge) => *response.body_mut() = Full::from(challenge),
                    None => *response.status_mut() = StatusCode::FORBIDDEN,
                }
            }
            _ => {
                *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            }
        }
        response
    }

    /// The challenge of a verification request, if its token is right.
    fn challenge(&self, query: &str) -> Option<String> {
        let parameter = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        parameter("hub.challenge").filter(|_| parameter("hub.verify_token") == self.verify_token)
    }

    async fn receive(&self, request: Request<Incoming>) -> StatusCode {
        let (parts, body) = request.into_parts();
        let body = match timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY_BYTES).collect()).await {
            Ok(Ok(body)) => body.to_bytes().to_vec(),
            Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE,
            Err(_) => return StatusCode::REQUEST_TIMEOUT,
        };
        let header = |name| header(&parts.headers, name);
        let signature = self.check_signature(&parts.headers, &body);
        let seconds = header(TIMESTAMP_HEADER).and_then(|it| it.parse().ok());
        let received = ReceivedDelivery {
            id: header(ID_HEADER).map(str::to_owned),
            sent_at: seconds.and_then(|it| Timestamp::from_second(it).ok()),
            signature,
            body,
        };
        match self.deliveries.send(received).await {
            // The sender repeats what was refused, so nothing is lost that a corrected secret accepts.
            Ok(()) if signature != SignatureCheck::Verified => StatusCode::UNAUTHORIZED,
            Ok(()) => self.response_status,
            Err(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn check_signature(&self, headers: &HeaderMap, body: &[u8]) -> SignatureCheck {
        let result = match read_signature(headers) {
            Err(header) => return SignatureCheck::MissingHeader(header),
            Ok(signature) => self.secret.as_ref().map(|secret| match signature {
                Signature::Meta(signature) => verify_meta(secret, signature, body),
                Signature::Standard(signed) => verify(secret, signed, body, self.clock.now()),
            }),
        };
        match result {
            Some(Ok(())) => SignatureCheck::Verified,
            Some(Err(error)) => SignatureCheck::Invalid(error),
            None => SignatureCheck::NoSecret,
        }
    }
}

/// The signature of a delivery, by format.
enum Signature<'h> {
    Meta(&'h str),
    Standard(SignatureHeaders<'h>),
}

/// Reads the signature headers. The error is the name of the first missing header.
fn read_signature(headers: &HeaderMap) -> Result<Signature<'_>, &'static str> {
    if let Some(signature) = header(headers, META_SIGNATURE_HEADER) {
        return Ok(Signature::Meta(signature));
    }
    let required = |name| header(headers, name).ok_or(name);
    Ok(Signature::Standard(SignatureHeaders {
        id: required(ID_HEADER)?,
        timestamp: required(TIMESTAMP_HEADER)?,
        signature: required(SIGNATURE_HEADER)?,
    }))
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|it| it.to_str().ok())
}
