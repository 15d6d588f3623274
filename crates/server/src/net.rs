//! The accept loop: HTTP/1.1 with deadlines, a cap on connections, and an orderly end.

mod lingering_close;

use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::{body::Body, extract::Request};
use hyper::{body::Incoming, rt, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    time::timeout,
};

use self::lingering_close::Followed;
use crate::{Galley, limits::Limits};

/// How many bytes a request's header may have: what a stranger can make us keep.
const LARGEST_HEADER: usize = 96 * 1_024;

/// How the service is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Refuse readiness, go on for a moment so that a balancer notices, then finish.
    Drain,
    /// Finish what runs, take nothing new.
    Now,
}

/// Serves until `stop` says how to end, then ends in order: running requests are finished, up to
/// their limit.
pub async fn serve(
    galley: Galley,
    listener: TcpListener,
    stop: impl Future<Output = Stop>,
) -> io::Result<()> {
    let limits = galley.app().limits().clone();
    let room = Arc::new(Semaphore::new(limits.connections));
    let (closing, close) = watch::channel(false);
    let mut ending = pin!(async {
        let stop = stop.await;
        galley.app().start_draining();
        if stop == Stop::Drain {
            tokio::time::sleep(limits.drain_delay).await;
        }
    });
    loop {
        let next = async {
            let place = Arc::clone(&room).acquire_owned().await;
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            next = next => next,
            () = &mut ending => break,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, most likely: give some connection time to end.
            tracing::warn!("a connection could not be accepted");
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let connection = connection(galley.clone(), stream, close.clone());
        tokio::spawn(async move {
            connection.await;
            drop(place);
        });
    }
    drop(listener);
    let _ = closing.send(true);
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    if timeout(limits.drain, room.acquire_many(all)).await.is_err() {
        tracing::warn!("some requests did not finish in time");
    }
    Ok(())
}

/// Serves one connection to its end, and hears out a client that was answered before it had said
/// everything. When the service ends, nobody is waited for.
async fn connection(galley: Galley, stream: TcpStream, mut close: watch::Receiver<bool>) {
    let app = galley.app().clone();
    app.metrics().connections.inc();
    let _ = stream.set_nodelay(true);
    let mut stream = TokioIo::new(stream);
    let watch = Arc::new(Watch::new(Phase::Idle));
    if is_answered(galley, &mut stream, &watch, &mut close).await && watch.has_rest() {
        let rest = lingering_close::drop_rest(stream.inner_mut(), app.limits().body);
        tokio::select! {
            () = rest => {}
            _ = close.wait_for(|closing| *closing) => {}
        }
    }
    app.metrics().connections.dec();
}

/// Answers what comes in on a connection; whether it ended otherwise than by waiting too long.
async fn is_answered(
    galley: Galley,
    stream: &mut TokioIo<TcpStream>,
    watch: &Arc<Watch>,
    close: &mut watch::Receiver<bool>,
) -> bool {
    let app = galley.app().clone();
    let io = Watched { io: stream, watch: Arc::clone(watch) };
    let seen = Arc::clone(watch);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (galley, watch) = (galley.clone(), Arc::clone(&seen));
        watch.enter(Phase::Answering);
        async move {
            let body = |body| Body::new(Followed::new(body, Arc::clone(&watch)));
            let response = galley.answer(request.map(body) as Request).await;
            watch.enter(Phase::Idle);
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let mut serving = pin!(
        http1::Builder::new()
            .max_headers(100)
            // Answers are small: copied behind their header they go out in one plain write.
            .writev(false)
            .max_buf_size(LARGEST_HEADER)
            .serve_connection(io, service)
    );
    let mut lookout = Lookout::new(app.limits());
    let mut look = tokio::time::interval(lookout.every);
    loop {
        tokio::select! {
            biased;
            _ = &mut serving => return true,
            _ = close.changed() => serving.as_mut().graceful_shutdown(),
            _ = look.tick() => if lookout.is_overdue(watch, app.limits()) { return false },
        }
    }
}

/// What a connection is doing. hyper's own header timer runs while a connection stands idle too,
/// so that it cannot be short for headers and long for keep-alive; this can. It reads no clock on
/// the way of a request: whoever looks at it regularly counts how often nothing had changed.
struct Watch {
    /// How often the phase has changed, and in the lowest two bits the phase.
    state: AtomicU64,
    /// Whether some of the last request's body is still to come.
    rest: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Header,
    Answering,
}

impl Watch {
    fn new(phase: Phase) -> Self {
        Self { state: AtomicU64::new(phase as u64), rest: AtomicBool::new(false) }
    }

    fn note_rest(&self, is_to_come: bool) {
        self.rest.store(is_to_come, Ordering::Relaxed);
    }

    fn has_rest(&self) -> bool {
        self.rest.load(Ordering::Relaxed)
    }

    fn enter(&self, phase: Phase) {
        // Only the connection's own task changes it.
        let changes = (self.state.load(Ordering::Relaxed) >> 2) + 1;
        self.state.store((changes << 2) | phase as u64, Ordering::Relaxed);
    }

    /// Some of an answer has gone out: whoever reads it, however slowly, is not idle.
    fn told(&self) {
        if self.state.load(Ordering::Relaxed) & 3 == Phase::Idle as u64 {
            self.enter(Phase::Idle);
        }
    }

    /// The first bytes of a request have come.
    fn heard(&self) {
        if self.state.load(Ordering::Relaxed) & 3 == Phase::Idle as u64 {
            self.enter(Phase::Header);
        }
    }
}

/// Looks at a watch regularly.
struct Lookout {
    every: Duration,
    seen: u64,
    unchanged: u32,
}

impl Lookout {
    /// Often enough that a deadline is kept to about a tenth.
    fn new(limits: &Limits) -> Self {
        let every = (limits.header.min(limits.idle) / 10).max(Duration::from_millis(10));
        Self { every, seen: 0, unchanged: 0 }
    }

    /// Whether the connection has been waiting for its client too long.
    fn is_overdue(&mut self, watch: &Watch, limits: &Limits) -> bool {
        let state = watch.state.load(Ordering::Relaxed);
        self.unchanged = if state == self.seen { self.unchanged + 1 } else { 0 };
        self.seen = state;
        let lasted = self.every * self.unchanged;
        match state & 3 {
            phase if phase == Phase::Idle as u64 => lasted > limits.idle,
            phase if phase == Phase::Header as u64 => lasted > limits.header,
            // A request has its own deadlines.
            _ => false,
        }
    }
}

/// A socket that tells its watch when something comes in.
struct Watched<'s> {
    io: &'s mut TokioIo<TcpStream>,
    watch: Arc<Watch>,
}

impl rt::Read for Watched<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut *self.io).poll_read(context, buffer);
        if read.is_ready() {
            self.watch.heard();
        }
        read
    }
}

impl rt::Write for Watched<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut *self.io).poll_write(context, bytes);
        if written.is_ready() {
            self.watch.told();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.io).poll_flush(context)
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
        if written.is_ready() {
            self.watch.told();
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks `times` times; whether the connection was overdue in the end.
    fn overdue_after(times: u32, watch: &Watch, between: impl Fn(&Watch)) -> bool {
        let limits = Limits {
            header: Duration::from_secs(1),
            idle: Duration::from_secs(3),
            ..Limits::default()
        };
        let mut lookout = Lookout::new(&limits);
        (0..times).fold(false, |_, _| {
            between(watch);
            lookout.is_overdue(watch, &limits)
        })
    }

    fn watch(phase: Phase) -> Watch {
        Watch::new(phase)
    }

    #[test]
    fn headers_have_their_own_deadline_and_idle_connections_a_longer_one() {
        assert!(!overdue_after(11, &watch(Phase::Header), |_| {}));
        assert!(overdue_after(13, &watch(Phase::Header), |_| {}));
        assert!(!overdue_after(30, &watch(Phase::Idle), |_| {}));
        assert!(overdue_after(33, &watch(Phase::Idle), |_| {}));
    }

    #[test]
    fn a_drop_of_header_now_and_then_does_not_help_a_slow_client() {
        assert!(overdue_after(13, &watch(Phase::Header), Watch::heard));
    }

    #[test]
    fn whoever_still_reads_an_answer_is_not_idle_and_a_running_request_is_left_alone() {
        assert!(!overdue_after(1_000, &watch(Phase::Idle), Watch::told));
        assert!(!overdue_after(1_000, &watch(Phase::Answering), |_| {}));
    }
}
