//! A stream that counts the bytes read from it, and fails beyond a limit.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Counts the bytes read from a [`MeteredStream`] since the last [`ReadMeter::restart`].
#[derive(Clone, Default)]
pub(super) struct ReadMeter(Arc<Counters>);

#[derive(Default)]
struct Counters {
    read: AtomicU64,
    /// Zero for no limit.
    limit: AtomicU64,
}

impl ReadMeter {
    /// Counts from zero again. Reads fail once more than `limit` bytes have been read.
    pub(super) fn restart(&self, limit: u64) {
        self.0.read.store(0, Ordering::Relaxed);
        self.0.limit.store(limit, Ordering::Relaxed);
    }

    /// Whether bytes were read.
    pub(super) fn has_read(&self) -> bool {
        self.0.read.load(Ordering::Relaxed) > 0
    }

    /// Whether more bytes were read than the limit allows.
    pub(super) fn is_exceeded(&self) -> bool {
        let limit = self.0.limit.load(Ordering::Relaxed);
        limit > 0 && self.0.read.load(Ordering::Relaxed) > limit
    }
}

/// A stream whose reads are counted and limited by a [`ReadMeter`].
pub(super) struct MeteredStream<S> {
    pub(super) stream: S,
    pub(super) meter: ReadMeter,
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        self.meter.0.read.fetch_add(read.try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
        if self.meter.is_exceeded() {
            return Poll::Ready(Err(io::Error::other("the limit of read bytes is exceeded")));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn reads_fail_beyond_the_limit_and_writes_are_not_counted() {
        let (stream, mut peer) = duplex(64);
        let meter = ReadMeter::default();
        let mut stream = MeteredStream { stream, meter: meter.clone() };
        meter.restart(4);
        stream.write_all(b"a request").await.unwrap();
        let mut request = [0; 9];
        peer.read_exact(&mut request).await.unwrap();
        assert_eq!(&request, b"a request");
        assert!(!meter.has_read());
        peer.write_all(b"12345").await.unwrap();
        // One buffer: what it holds already is not read again.
        let mut read = Vec::with_capacity(64);
        for _ in 0..2 {
            (&mut stream).take(2).read_buf(&mut read).await.unwrap();
        }
        assert_eq!((&read[..], meter.is_exceeded()), (&b"1234"[..], false));
        assert!(stream.read_buf(&mut read).await.is_err());
        assert!(meter.is_exceeded());
        meter.restart(0);
        peer.write_all(b"without a limit").await.unwrap();
        assert_eq!(stream.read_buf(&mut read).await.unwrap(), 15);
        stream.shutdown().await.unwrap();
        assert_eq!(peer.read(&mut request).await.unwrap(), 0, "the peer sees the end");
    }
}
