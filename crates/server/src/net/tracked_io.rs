//! A socket that records its reads and writes, and follows the framing of the requests.

use std::{
    cell::RefCell,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use hyper::rt;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead as _, ReadBuf},
    net::TcpStream,
};

use super::{activity::ConnectionActivity, framing::RequestFraming};

/// Maximum number of bytes that one read returns.
const READ_BUFFER_BYTES: usize = 64 * 1_024;

thread_local! {
    /// Receives the bytes of a read. hyper's own buffer can be written but not read here. It is
    /// shared by the connections of a thread, because a read does not wait.
    static READ_BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BUFFER_BYTES]);
}

/// A socket that records its reads and writes in a [`ConnectionActivity`].
pub(super) struct TrackedIo<'s> {
    io: &'s mut TokioIo<TcpStream>,
    activity: Arc<ConnectionActivity>,
    framing: RequestFraming,
}

impl<'s> TrackedIo<'s> {
    pub(super) fn new(io: &'s mut TokioIo<TcpStream>, activity: Arc<ConnectionActivity>) -> Self {
        Self { io, activity, framing: RequestFraming::default() }
    }

    fn record_write(&self, written: &Poll<io::Result<usize>>) {
        self.activity.record_write(match written {
            Poll::Ready(result) => Some(result.as_ref().map_or(0, |length| *length)),
            Poll::Pending => None,
        });
    }
}

impl rt::Read for TrackedIo<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        READ_BUFFER.with_borrow_mut(|bytes| {
            let length = bytes.len().min(buffer.remaining());
            let mut read = ReadBuf::new(&mut bytes[..length]);
            let result = ready!(Pin::new(this.io.inner_mut()).poll_read(context, &mut read));
            if let Some(invalid) = this.framing.observe(read.filled()) {
                this.activity.record_invalid(invalid);
            }
            let bytes = read.filled().len();
            this.activity.record_read(bytes, this.framing.is_within_header());
            buffer.put_slice(read.filled());
            Poll::Ready(result)
        })
    }
}

impl rt::Write for TrackedIo<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.io).poll_write(context, bytes);
        self.record_write(&written);
        written
    }

    /// hyper calls it whenever its write buffer is empty.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut *self.io).poll_flush(context);
        if flushed.is_ready() && self.activity.record_flush() {
            // The body that waits belongs to the same task.
            context.waker().wake_by_ref();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.io).poll_write_vectored(context, buffers);
        self.record_write(&written);
        written
    }
}
