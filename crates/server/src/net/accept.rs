//! The accept loop: a connection limit, deadlines for each connection, and a graceful shutdown.

use std::{future::Future, io, net::IpAddr, pin::pin, sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderValue, header},
    response::Response,
};
use futures_util::future::BoxFuture;
use hyper::{
    body::{Body as _, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::timeout,
};

use super::{
    activity::{CloseReason, CloseRequest, ConnectionActivity, Phase, poll_interval},
    connections::{OpenConnection, OpenConnections},
    lingering_close::{TrackedBody, discard_request_body, discard_small_body},
    response_body::ResponseBody,
    tracked_io::TrackedIo,
};
use crate::{Galley, app::App, fault_effect::CloseConnection, limits::Limits};

/// A refused body up to this size is read, so that the connection can be used again. After a larger
/// one, or one of unknown size, the connection closes.
const MAX_DISCARDED_BODY_BYTES: u64 = 8 * 1_024;

/// Maximum size of a request header. It bounds the memory that an unauthenticated client can use.
const MAX_HEADER_BYTES: usize = 96 * 1_024;

/// Maximum number of header fields in a request.
const MAX_HEADER_FIELDS: usize = 100;

/// Maximum number of open connections of the health listener.
const MAX_HEALTH_CONNECTIONS: usize = 64;

/// Maximum time to discard the rest of a request after its response.
const MAX_LINGER: Duration = Duration::from_secs(5);

/// Maximum time for the requests of the health listener to finish, after all others have.
const HEALTH_DRAIN: Duration = Duration::from_millis(500);

/// Maximum number of bytes of a response that the kernel buffers before it has sent them. Without it,
/// a client that does not read makes the kernel buffer megabytes, and reading some of them would go
/// unnoticed for minutes. The kernel takes more once it has half of it: so each 4 KiB that a client reads
/// are noticed, as far as its own system tells.
#[cfg(target_os = "linux")]
const MAX_UNSENT_BYTES: u32 = 8 * 1_024;

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
/// drain limit. The `health` listener serves only liveness, readiness and metrics, until all
/// requests of the other one are done.
pub fn serve(
    galley: Galley,
    listener: TcpListener,
    health: Option<TcpListener>,
    stop: BoxFuture<'static, Stop>,
) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        let app = galley.app().clone();
        let (done, is_done) = oneshot::channel::<()>();
        let health = health.map(|listener| {
            let galley = Galley::health_only(app.clone());
            let ending = async { drop(is_done.await) };
            let drain = HEALTH_DRAIN;
            tokio::spawn(serve_listener(galley, listener, MAX_HEALTH_CONNECTIONS, ending, drain))
        });
        let ending = async {
            let stop = stop.await;
            app.start_draining();
            if stop == Stop::Drain {
                tokio::time::sleep(app.limits().drain_delay).await;
            }
        };
        let Limits { connections, drain, .. } = *app.limits();
        serve_listener(galley, listener, connections, ending, drain).await;
        drop(done);
        match health {
            Some(health) => health.await.map_err(io::Error::other),
            None => Ok(()),
        }
    })
}

/// Serves the connections of a listener until `ending` resolves, then closes the listener and waits
/// for running requests, for at most `drain`.
async fn serve_listener(
    galley: Galley,
    listener: TcpListener,
    max_connections: usize,
    ending: impl Future<Output = ()>,
    drain: Duration,
) {
    let limits = galley.app().limits().clone();
    let connections = OpenConnections::new(max_connections, poll_interval(&limits) / 4);
    let mut ending = pin!(ending);
    loop {
        let next = async {
            let (stream, peer) = listener.accept().await?;
            io::Result::Ok((stream, peer.ip(), connections.admit().await))
        };
        let accepted = tokio::select! {
            next = next => next,
            () = &mut ending => break,
        };
        let (stream, peer, connection) = match accepted {
            Ok(accepted) => accepted,
            // The client left before its connection was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => {
                // Most likely the process is out of file descriptors: close a connection.
                tracing::warn!(%error, "cannot accept a connection; raise the limit of open files");
                connections.evict(Duration::ZERO);
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        tokio::spawn(handle_connection(galley.clone(), stream, peer, connection));
    }
    drop(listener);
    connections.shut_down();
    if timeout(drain, connections.closed()).await.is_err() {
        tracing::warn!("some requests did not finish within the drain limit");
    }
}

/// Serves one connection until it ends. If the client has not sent all of its last request, the
/// rest is read and discarded, unless the server is shutting down.
async fn handle_connection(
    galley: Galley,
    stream: TcpStream,
    peer: IpAddr,
    connection: OpenConnection,
) {
    let app = galley.app().clone();
    let _counted = CountedConnection::new(&app);
    let _ = stream.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES);
    let mut stream = TokioIo::new(stream);
    let activity = &connection.activity;
    match serve_requests(galley, &mut stream, peer, activity).await {
        Some(reason) => {
            app.metrics().record_closed_connection(reason.as_str());
            if reason == CloseReason::SendTimeout {
                connection.slow_clients().record(peer, app.limits().send);
            }
        }
        None if activity.has_unread_body() && !activity.is_shutting_down() => {
            let time_limit = app.limits().body.min(MAX_LINGER);
            let discard = discard_request_body(stream.inner_mut(), time_limit);
            // The response was sent: the connection can be evicted like an idle one.
            activity.enter(Phase::Idle);
            let closed = tokio::select! {
                () = discard => None,
                request = poll_until_closed(activity, app.limits()) => Some(request),
            };
            if closed == Some(CloseRequest::Evict) {
                app.metrics().record_closed_connection(CloseReason::Evicted.as_str());
            }
        }
        None => {}
    }
}

/// An open connection in the metrics. Dropping it counts the connection out, even after a panic.
struct CountedConnection<'a>(&'a App);

impl<'a> CountedConnection<'a> {
    fn new(app: &'a App) -> Self {
        app.metrics().connections.inc();
        Self(app)
    }
}

impl Drop for CountedConnection<'_> {
    fn drop(&mut self) {
        self.0.metrics().connections.dec();
    }
}

/// Processes a request, or refuses it if its end is ambiguous.
async fn respond(
    galley: &Galley,
    peer: IpAddr,
    request: Request,
    activity: &ConnectionActivity,
    number: u64,
) -> Response {
    if let Some(error) = activity.framing_error(number) {
        // The end of the request is unknown: more of it may follow, and none of it is read.
        activity.set_unread_body(true);
        drop(activity.take_body());
        return galley.refuse(peer, &request, error.detail());
    }
    let length = request.body().size_hint().exact();
    // The client sends the body only if it is asked to.
    let is_held_back = request.headers().contains_key(header::EXPECT);
    let mut response = galley.handle_from(peer, request).await;
    if !is_held_back && length.is_some_and(|length| length <= MAX_DISCARDED_BODY_BYTES) {
        discard_small_body(activity).await;
    }
    drop(activity.take_body());
    if activity.has_unread_body() || activity.framing_error(number).is_some() {
        // The rest of a body that no handler wants is not read. Or the body arrived after its header
        // and is ambiguous, and what follows it is not read.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}

/// Counts how long a connection has been idle, until it is asked to close.
async fn poll_until_closed(activity: &ConnectionActivity, limits: &Limits) -> CloseRequest {
    let mut close = pin!(activity.close_requested());
    let mut poll = tokio::time::interval(poll_interval(limits));
    loop {
        tokio::select! {
            request = &mut close => return request,
            _ = poll.tick() => { activity.poll_deadlines(limits); }
        }
    }
}

/// Serves the requests of a connection. Returns the reason if the server closes it although the
/// client keeps it open.
async fn serve_requests(
    galley: Galley,
    stream: &mut TokioIo<TcpStream>,
    peer: IpAddr,
    activity: &Arc<ConnectionActivity>,
) -> Option<CloseReason> {
    let app = galley.app().clone();
    let io = TrackedIo::new(stream, Arc::clone(activity));
    let tracked = Arc::clone(activity);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (galley, activity) = (galley.clone(), Arc::clone(&tracked));
        let number = activity.begin_request();
        async move {
            let body = |body| Body::new(TrackedBody::new(body, Arc::clone(&activity), number));
            let request: Request = request.map(body);
            let response = respond(&galley, peer, request, &activity, number).await;
            if response.extensions().get::<CloseConnection>().is_some() {
                // hyper closes the connection without a response, at once: what is left of the request
                // is not read.
                activity.set_unread_body(false);
                return Err(io::Error::from(io::ErrorKind::ConnectionAborted));
            }
            Ok(response.map(|body| ResponseBody::new(body, activity)))
        }
    });
    let mut serving = pin!(
        http1::Builder::new()
            .max_headers(MAX_HEADER_FIELDS)
            // Most responses are small: header and body are copied into one buffer and one write.
            // `ResponseBody` splits the others.
            .writev(false)
            .max_buf_size(MAX_HEADER_BYTES)
            .serve_connection(io, service)
    );
    let mut close = pin!(activity.close_requested());
    let mut poll = tokio::time::interval(poll_interval(app.limits()));
    loop {
        tokio::select! {
            biased;
            _ = &mut serving => return None,
            request = &mut close => match request {
                CloseRequest::Evict => return Some(CloseReason::Evicted),
                CloseRequest::ShutDown => {
                    serving.as_mut().graceful_shutdown();
                    close.set(activity.close_requested());
                }
            },
            _ = poll.tick() => if let Some(reason) = activity.poll_deadlines(app.limits()) {
                return Some(reason);
            },
        }
    }
}
