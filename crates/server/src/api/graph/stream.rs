//! A file as a response body, read from the store chunk by chunk.

use std::{
    io,
    ops::Range,
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Bytes;
use galley_store::StoreError;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use super::uploads::TRANSFER_TIMEOUT;
use crate::app::App;

/// A body that sends a range of a file. Only one chunk is in memory at a time. A download has the
/// same time limit as an upload.
pub(super) struct Stream {
    app: App,
    name: String,
    remaining: Range<u64>,
    read: Option<ChunkRead>,
    timeout: Pin<Box<Sleep>>,
}

/// A pending read of a chunk.
type ChunkRead = Pin<Box<dyn Future<Output = Result<Vec<u8>, StoreError>> + Send>>;

impl Stream {
    pub(super) fn new(app: App, name: String, range: Range<u64>) -> Self {
        let timeout = Box::pin(tokio::time::sleep(TRANSFER_TIMEOUT));
        Self { app, name, remaining: range, read: None, timeout }
    }

    /// Starts to read the next chunk.
    fn read_chunk(&self) -> ChunkRead {
        let (app, name, offset) = (self.app.clone(), self.name.clone(), self.remaining.start);
        Box::pin(async move { app.store().media_chunk(&name, offset).await })
    }
}

impl Body for Stream {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let length = self.remaining.end - self.remaining.start;
        if length == 0 {
            return Poll::Ready(None);
        }
        if self.timeout.as_mut().poll(context).is_ready() {
            return failed(io::ErrorKind::TimedOut.into());
        }
        let mut read = self.read.take().unwrap_or_else(|| self.read_chunk());
        let Poll::Ready(chunk) = read.as_mut().poll(context) else {
            self.read = Some(read);
            return Poll::Pending;
        };
        let bytes = match chunk {
            // The file was deleted during the download: the response ends early.
            Ok(bytes) if bytes.is_empty() => return failed(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => Bytes::from(bytes),
            Err(error) => return failed(io::Error::other(error)),
        };
        let count = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len());
        self.remaining.start += count as u64;
        Poll::Ready(Some(Ok(Frame::data(bytes.slice(..count)))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining.end - self.remaining.start)
    }
}

fn failed(error: io::Error) -> Poll<Option<io::Result<Frame<Bytes>>>> {
    Poll::Ready(Some(Err(error)))
}
