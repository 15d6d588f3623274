//! The accept loop: a connection limit, deadlines for each connection, and a graceful shutdown.

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use axum::{body::Body, extract::Request};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    time::timeout,
};

use super::{
    activity::{ConnectionActivity, DeadlineMonitor, Phase, TrackedIo},
    lingering_close::{TrackedBody, discard_request_body},
};
use crate::Galley;

/// Maximum size of a request header. It bounds the memory that an unauthenticated client can use.
const MAX_HEADER_BYTES: usize = 96 * 1_024;

/// Maximum number of header fields in a request.
const MAX_HEADER_FIELDS: usize = 100;

/// Pause after a failed `accept`.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// How the server shuts down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Report not ready, keep serving for the drain delay so that a load balancer notices, then
    /// finish running requests.
    Drain,
    /// Accept no more connections and finish running requests.
    Now,
}

/// Serves until `stop` resolves, then shuts down gracefully: running requests may finish within the
/// drain limit.
pub async fn serve(
    galley: Galley,
    listener: TcpListener,
    stop: impl Future<Output = Stop>,
) -> io::Result<()> {
    let limits = galley.app().limits().clone();
    let slots = Arc::new(Semaphore::new(limits.connections));
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
            let slot = Arc::clone(&slots).acquire_owned().await;
            (listener.accept().await, slot)
        };
        let (accepted, slot) = tokio::select! {
            next = next => next,
            () = &mut ending => break,
        };
        let Ok((stream, _)) = accepted else {
            // Most likely the process is out of file descriptors: wait for a connection to close.
            tracing::warn!("a connection could not be accepted");
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let connection = handle_connection(galley.clone(), stream, close.clone());
        tokio::spawn(async move {
            connection.await;
            drop(slot);
        });
    }
    drop(listener);
    let _ = closing.send(true);
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    if timeout(limits.drain, slots.acquire_many(all)).await.is_err() {
        tracing::warn!("some requests did not finish within the drain limit");
    }
    Ok(())
}

/// Serves one connection until it ends. If the client has not sent all of its last request, the
/// rest is read and discarded, unless the server is shutting down.
async fn handle_connection(galley: Galley, stream: TcpStream, mut close: watch::Receiver<bool>) {
    let app = galley.app().clone();
    app.metrics().connections.inc();
    let _ = stream.set_nodelay(true);
    let mut stream = TokioIo::new(stream);
    let activity = Arc::new(ConnectionActivity::new(Phase::Idle));
    if serve_requests(galley, &mut stream, &activity, &mut close).await
        && activity.has_unread_body()
    {
        let discard = discard_request_body(stream.inner_mut(), app.limits().body);
        tokio::select! {
            () = discard => {}
            _ = close.wait_for(|closing| *closing) => {}
        }
    }
    app.metrics().connections.dec();
}

/// Serves the requests of a connection. Returns `false` if the connection missed a deadline.
async fn serve_requests(
    galley: Galley,
    stream: &mut TokioIo<TcpStream>,
    activity: &Arc<ConnectionActivity>,
    close: &mut watch::Receiver<bool>,
) -> bool {
    let app = galley.app().clone();
    let io = TrackedIo::new(stream, Arc::clone(activity));
    let tracked = Arc::clone(activity);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (galley, activity) = (galley.clone(), Arc::clone(&tracked));
        activity.enter(Phase::Processing);
        async move {
            let body = |body| Body::new(TrackedBody::new(body, Arc::clone(&activity)));
            let response = galley.handle(request.map(body) as Request).await;
            activity.enter(Phase::Idle);
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let mut serving = pin!(
        http1::Builder::new()
            .max_headers(MAX_HEADER_FIELDS)
            // Responses are small: header and body are copied into one buffer and one write.
            .writev(false)
            .max_buf_size(MAX_HEADER_BYTES)
            .serve_connection(io, service)
    );
    let mut monitor = DeadlineMonitor::new(app.limits());
    let mut poll = tokio::time::interval(monitor.poll_interval());
    loop {
        tokio::select! {
            biased;
            _ = &mut serving => return true,
            _ = close.changed() => serving.as_mut().graceful_shutdown(),
            _ = poll.tick() => if monitor.is_overdue(activity, app.limits()) { return false },
        }
    }
}
