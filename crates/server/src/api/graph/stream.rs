//! A file as the body of an answer: read chunk by chunk, each when the one before has gone out.

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

use super::uploads::LONGEST;
use crate::app::App;

/// The bytes of a file that are still to be sent. Only one chunk of them is in memory, and whoever
/// reads them takes no longer than whoever sends them may.
pub(super) struct Stream {
    app: App,
    name: String,
    left: Range<u64>,
    reading: Option<Reading>,
    over: Pin<Box<Sleep>>,
}

type Reading = Pin<Box<dyn Future<Output = Result<Vec<u8>, StoreError>> + Send>>;

impl Stream {
    pub(super) fn of(app: App, name: String, left: Range<u64>) -> Self {
        let over = Box::pin(tokio::time::sleep(LONGEST));
        Self { app, name, left, reading: None, over }
    }

    /// Begins to read what comes next.
    fn read(&self) -> Reading {
        let (app, name, place) = (self.app.clone(), self.name.clone(), self.left.start);
        Box::pin(async move { app.store().media_chunk(&name, place).await })
    }
}

impl Body for Stream {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let length = self.left.end - self.left.start;
        if length == 0 {
            return Poll::Ready(None);
        }
        if self.over.as_mut().poll(context).is_ready() {
            return failed(io::ErrorKind::TimedOut.into());
        }
        let mut reading = self.reading.take().unwrap_or_else(|| self.read());
        let Poll::Ready(read) = reading.as_mut().poll(context) else {
            self.reading = Some(reading);
            return Poll::Pending;
        };
        let bytes = match read {
            // It was forgotten meanwhile: an answer that ends too early says so.
            Ok(bytes) if bytes.is_empty() => return failed(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => Bytes::from(bytes),
            Err(error) => return failed(io::Error::other(error)),
        };
        let wanted = usize::try_from(length).unwrap_or(usize::MAX).min(bytes.len());
        self.left.start += wanted as u64;
        Poll::Ready(Some(Ok(Frame::data(bytes.slice(..wanted)))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.end - self.left.start)
    }
}

fn failed(error: io::Error) -> Poll<Option<io::Result<Frame<Bytes>>>> {
    Poll::Ready(Some(Err(error)))
}
