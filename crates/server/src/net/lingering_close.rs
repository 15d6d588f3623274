//! What is left of a request that was answered before all of it had come: it is read and dropped, so
//! that the answer is not lost with it.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Bytes;
use galley_store::MAX_UPLOAD_BYTES;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::{io::AsyncReadExt as _, net::TcpStream, time::timeout};

use super::Watch;

/// How much is read at once.
const AT_ONCE: usize = 16 * 1_024;

/// A body that tells its watch whether some of it is still to come.
pub(super) struct Followed {
    body: Incoming,
    watch: Arc<Watch>,
}

impl Followed {
    pub(super) fn new(body: Incoming, watch: Arc<Watch>) -> Self {
        watch.note_rest(!body.is_end_stream());
        Self { body, watch }
    }
}

impl Body for Followed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        let ends = match &frame {
            Poll::Ready(None) => true,
            Poll::Ready(Some(Ok(_))) => self.body.is_end_stream(),
            _ => false,
        };
        if ends {
            self.watch.note_rest(false);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads what a client still sends, as much as the largest file has and for no longer than a body
/// may take. A socket that is closed with bytes unread is reset, and whoever writes everything
/// before reading anything would never see the answer.
pub(super) async fn drop_rest(stream: &mut TcpStream, longest: Duration) {
    let rest = async {
        let (mut bytes, mut left) = (vec![0; AT_ONCE], MAX_UPLOAD_BYTES);
        while left > 0 {
            match stream.read(&mut bytes).await {
                Ok(0) | Err(_) => break,
                Ok(length) => left = left.saturating_sub(length as u64),
            }
        }
    };
    let _ = timeout(longest, rest).await;
}
