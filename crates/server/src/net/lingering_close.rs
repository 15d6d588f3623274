//! Lingering close: reads and discards the rest of a request whose response was sent early, so that
//! closing the socket does not destroy the response.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{BoxError, body::Bytes};
use galley_store::MAX_UPLOAD_BYTES;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::{io::AsyncReadExt as _, net::TcpStream, time::timeout};

use super::activity::ConnectionActivity;
use crate::api::body::AmbiguousBody;

/// Size of the read buffer.
const BUFFER_BYTES: usize = 16 * 1_024;

/// Maximum time to wait for the rest of a small body before its response. It usually arrives with the
/// header or directly after it.
const MAX_DISCARD: Duration = Duration::from_millis(250);

/// A request body that records in a [`ConnectionActivity`] whether part of it is unread, and that
/// fails if its framing is invalid.
pub(super) struct TrackedBody {
    /// Taken when the value is dropped.
    body: Option<Incoming>,
    activity: Arc<ConnectionActivity>,
    /// The position of the request on the connection.
    request: u64,
}

impl TrackedBody {
    pub(super) fn new(body: Incoming, activity: Arc<ConnectionActivity>, request: u64) -> Self {
        if body.is_end_stream() {
            activity.set_unread_body(false);
        } else {
            activity.set_unread_body(true);
            activity.expect_body();
        }
        Self { body: Some(body), activity, request }
    }
}

impl Drop for TrackedBody {
    /// Leaves a body that no handler has read to its end to [`discard_small_body`].
    fn drop(&mut self) {
        self.activity.end_wait_for_body();
        if self.activity.has_unread_body() {
            self.activity.leave_body(self.body.take());
        }
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = Pin::new(body).poll_frame(context);
        if let Some(error) = self.activity.framing_error(self.request) {
            return Poll::Ready(Some(Err(AmbiguousBody(error.detail()).into())));
        }
        let is_end = match &frame {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => self.is_end_stream(),
            _ => false,
        };
        if is_end {
            self.activity.set_unread_body(false);
        }
        if frame.is_pending() {
            self.activity.wait_for_body();
        } else {
            self.activity.end_wait_for_body();
        }
        frame.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

/// Reads and discards the rest of a body that no handler wanted, so that the connection can be used
/// again. hyper reads only what has arrived already, and then closes the connection, which a client
/// that sends its next request finds out too late.
pub(super) async fn discard_small_body(activity: &ConnectionActivity) {
    let Some(mut body) = activity.take_body() else { return };
    let discard = async {
        // Until the response, the server waits for the client.
        activity.wait_for_body();
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            if frame.is_err() {
                return;
            }
        }
        activity.set_unread_body(false);
    };
    let _ = timeout(MAX_DISCARD, discard).await;
}

/// Reads and discards what the client still sends, up to the maximum upload size and for at most
/// `time_limit`. The kernel resets a socket that is closed with unread bytes, so a client that
/// writes its whole request before it reads would never see the response.
pub(super) async fn discard_request_body(stream: &mut TcpStream, time_limit: Duration) {
    let discard = async {
        let (mut buffer, mut remaining) = (vec![0; BUFFER_BYTES], MAX_UPLOAD_BYTES);
        while remaining > 0 {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(length) => remaining = remaining.saturating_sub(length as u64),
            }
        }
    };
    let _ = timeout(time_limit, discard).await;
}
