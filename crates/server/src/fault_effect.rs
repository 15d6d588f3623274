//! What a fault of an emulator account does to a complete response: it comes late, breaks off in the
//! middle, or never comes because the connection closes.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, to_bytes},
    response::Response,
};
use galley_domain::emulator::faults::FaultEffect;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// Marks a response that is not sent: the connection closes without a byte of it.
#[derive(Clone, Copy)]
pub(crate) struct CloseConnection;

/// Applies a fault to a response. The change that the response reports has been made.
pub(crate) async fn apply(effect: FaultEffect, mut response: Response) -> Response {
    match effect {
        FaultEffect::Delay(delay) => {
            tokio::time::sleep(Duration::try_from(delay).unwrap_or_default()).await;
            response
        }
        FaultEffect::CloseBefore | FaultEffect::CloseAfterCommit => {
            response.extensions_mut().insert(CloseConnection);
            response
        }
        FaultEffect::Truncate => {
            let (head, body) = response.into_parts();
            let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
            Response::from_parts(head, Body::new(TruncatedBody::new(&body)))
        }
        // These are not about responses.
        FaultEffect::Error(_)
        | FaultEffect::Duplicate
        | FaultEffect::Drop
        | FaultEffect::Reorder => response,
    }
}

/// The first half of a body. After it the connection breaks, because the announced rest is missing.
struct TruncatedBody {
    half: Bytes,
    missing: u64,
}

impl TruncatedBody {
    fn new(body: &Bytes) -> Self {
        let half = body.slice(..body.len() / 2);
        Self { missing: (body.len() - half.len()) as u64, half }
    }
}

impl HttpBody for TruncatedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let half = std::mem::take(&mut self.half);
        let frame = if half.is_empty() {
            Err(io::ErrorKind::UnexpectedEof.into())
        } else {
            Ok(Frame::data(half))
        };
        Poll::Ready(Some(frame))
    }

    /// The rest never comes, but the header announces it.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.half.len() as u64 + self.missing)
    }
}
