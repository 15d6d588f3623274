//! A receiver of deliveries for people who develop one: it takes whatever is posted, checks the
//! signature of either format, hands it on, and answers as it was told. Whoever asks with the right
//! token gets his challenge back.

use std::{convert::Infallible, sync::Arc, time::Duration};

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
    meta_signature::{HUB_HEADER, verify_hub},
    signature::{
        ID_HEADER, NotVerified, SIGNATURE_HEADER, Secret, Signed, TIMESTAMP_HEADER, verify,
    },
};
use crate::clock::Clock;

/// How large a delivery may be.
const LARGEST: usize = 256 * 1_024;

/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many connections at once.
const CONNECTIONS: usize = 64;

/// Takes deliveries.
pub struct Receiver {
    /// What signatures are checked with.
    pub secret: Option<Secret>,
    /// What whoever asks whether this wants to be called has to know.
    pub verify_token: Option<String>,
    /// What every delivery is answered with.
    pub answer: StatusCode,
    /// What the age of a delivery is told by.
    pub clock: Arc<dyn Clock>,
    /// Who hears of it. When nobody listens any more, deliveries are refused.
    pub hear: mpsc::Sender<Received>,
}

/// A delivery as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The id it has in every attempt.
    pub id: Option<String>,
    /// When it says that it was sent.
    pub sent_at: Option<Timestamp>,
    /// Whether it is to be believed.
    pub checked: Checked,
    /// What it says.
    pub body: Vec<u8>,
}

/// What can be said of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// It is good.
    Verified,
    /// It is not.
    Refused(NotVerified),
    /// There is none, for want of this header.
    Unsigned(&'static str),
    /// Nobody knows: there is no secret to check it with.
    NoSecret,
}

impl Receiver {
    /// Takes deliveries for ever.
    pub async fn receive(self, listener: TcpListener) {
        let receiver = Arc::new(self);
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let place = Arc::clone(&room).acquire_owned().await;
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let receiver = Arc::clone(&receiver);
            tokio::spawn(async move {
                let service = service_fn(|request| {
                    let receiver = Arc::clone(&receiver);
                    async move { Ok::<_, Infallible>(receiver.answer(request).await) }
                });
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(stream), service);
                // However it ends, the other side knows.
                let _ = connection.await;
                drop(place);
            });
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let mut response = Response::default();
        match *request.method() {
            Method::POST => *response.status_mut() = self.take(request).await,
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

    /// What somebody with the right token wants to hear.
    fn challenge(&self, query: &str) -> Option<String> {
        let asked = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        asked("hub.challenge").filter(|_| asked("hub.verify_token") == self.verify_token)
    }

    async fn take(&self, request: Request<Incoming>) -> StatusCode {
        let (parts, body) = request.into_parts();
        let body = match timeout(PATIENCE, Limited::new(body, LARGEST).collect()).await {
            Ok(Ok(body)) => body.to_bytes().to_vec(),
            Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE,
            Err(_) => return StatusCode::REQUEST_TIMEOUT,
        };
        let header = |name| header(&parts.headers, name);
        let checked = self.check(&parts.headers, &body);
        let seconds = header(TIMESTAMP_HEADER).and_then(|it| it.parse().ok());
        let received = Received {
            id: header(ID_HEADER).map(str::to_owned),
            sent_at: seconds.and_then(|it| Timestamp::from_second(it).ok()),
            checked,
            body,
        };
        match self.hear.send(received).await {
            Ok(()) => self.answer,
            Err(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn check(&self, headers: &HeaderMap, body: &[u8]) -> Checked {
        let verdict = match signed(headers) {
            Err(missing) => return Checked::Unsigned(missing),
            Ok(signed) => self.secret.as_ref().map(|secret| match signed {
                Signature::Hub(signature) => verify_hub(secret, signature, body),
                Signature::Ours(signed) => verify(secret, signed, body, self.clock.now()),
            }),
        };
        match verdict {
            Some(Ok(())) => Checked::Verified,
            Some(Err(refused)) => Checked::Refused(refused),
            None => Checked::NoSecret,
        }
    }
}

/// A signature as its format has it.
enum Signature<'h> {
    Hub(&'h str),
    Ours(Signed<'h>),
}

/// What the headers of a message say, or the first of them that is missing.
fn signed(headers: &HeaderMap) -> Result<Signature<'_>, &'static str> {
    if let Some(signature) = header(headers, HUB_HEADER) {
        return Ok(Signature::Hub(signature));
    }
    let needed = |name| header(headers, name).ok_or(name);
    Ok(Signature::Ours(Signed {
        id: needed(ID_HEADER)?,
        timestamp: needed(TIMESTAMP_HEADER)?,
        signature: needed(SIGNATURE_HEADER)?,
    }))
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|it| it.to_str().ok())
}
