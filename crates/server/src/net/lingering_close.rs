//! Lingering close: reads and discards the rest of a request whose response was sent early, so that
//! closing the socket does not destroy the response.

use std::{
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

/// A request body that records in a [`ConnectionActivity`] whether part of it is unread, and that
/// fails if its framing is invalid.
pub(super) struct TrackedBody {
    body: Incoming,
    activity: Arc<ConnectionActivity>,
    /// The position of the request on the connection.
    request: u64,
}

impl TrackedBody {
    pub(super) fn new(body: Incoming, activity: Arc<ConnectionActivity>, request: u64) -> Self {
        activity.set_unread_body(!body.is_end_stream());
        Self { body, activity, request }
    }
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Some(error) = self.activity.framing_error(self.request) {
            return Poll::Ready(Some(Err(AmbiguousBody(error.detail()).into())));
        }
        let is_end = match &frame {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => self.body.is_end_stream(),
            _ => false,
        };
        if is_end {
            self.activity.set_unread_body(false);
        }
        frame.map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
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
