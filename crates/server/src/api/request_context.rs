//! The context of a request: id, trace, time of arrival, route and token.

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    extract::{MatchedPath, Request},
    http::{Extensions, HeaderMap, HeaderName},
};
use galley_domain::{account, emulator::faults::FaultEffect};
use galley_store::{CredentialId, TraceContext};
use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::revocation::UsedCredentials;
use crate::{
    admission::{InFlight, LargeBody},
    app::App,
    observability::trace_context::trace_of,
};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// The number of requests since the process started.
pub(crate) fn request_count() -> u64 {
    COUNTER.load(Ordering::Relaxed)
}

/// The context of one request, which handlers complete while they process it.
pub(crate) struct RequestContext {
    received_at: Timestamp,
    started: Duration,
    request_id: String,
    trace: Option<TraceContext>,
    peer: IpAddr,
    route: OnceLock<MatchedPath>,
    token: OnceLock<CredentialId>,
    credentials: OnceLock<UsedCredentials>,
    in_flight: OnceLock<InFlight>,
    large_body: Mutex<Option<LargeBody>>,
    turn: Mutex<Option<OwnedSemaphorePermit>>,
    graph: OnceLock<()>,
    upload: OnceLock<()>,
    long_poll: OnceLock<()>,
    fault: OnceLock<FaultEffect>,
    usage: OnceLock<String>,
    used_up: OnceLock<String>,
}

impl RequestContext {
    /// Uses the client's `x-request-id` if it has at most 64 characters, all of them allowed in
    /// path segments; otherwise assigns an id. Uses the client's `traceparent` if it is valid.
    pub(crate) fn new(app: &App, headers: &HeaderMap, peer: IpAddr) -> Self {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed) + 1;
        let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
        let request_id =
            match given.filter(|id| id.len() <= 64 && account::is_valid_path_segment(id)) {
                Some(id) => id.to_owned(),
                None => [&app.0.instance, "-", itoa::Buffer::new().format(number)].concat(),
            };
        let (received_at, started) = (app.clock().now(), app.clock().monotonic());
        Self {
            received_at,
            started,
            request_id,
            trace: trace_of(headers),
            peer,
            route: OnceLock::new(),
            token: OnceLock::new(),
            credentials: OnceLock::new(),
            in_flight: OnceLock::new(),
            large_body: Mutex::default(),
            turn: Mutex::default(),
            graph: OnceLock::new(),
            upload: OnceLock::new(),
            long_poll: OnceLock::new(),
            fault: OnceLock::new(),
            usage: OnceLock::new(),
            used_up: OnceLock::new(),
        }
    }

    /// When the request arrived.
    pub(crate) fn received_at(&self) -> Timestamp {
        self.received_at
    }

    /// When the request arrived, in monotonic time.
    pub(crate) fn started(&self) -> Duration {
        self.started
    }

    pub(crate) fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The trace that the client named.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    /// The address that the connection comes from: the client, or a proxy.
    pub(crate) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// The pattern of the route. An unknown path is never repeated.
    pub(crate) fn route(&self) -> &str {
        self.route.get().map_or("(none)", MatchedPath::as_str)
    }

    pub(crate) fn token(&self) -> Option<CredentialId> {
        self.token.get().copied()
    }

    /// The context of the request with these extensions. Also records its matched route.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Option<&Self> {
        let context = extensions.get::<Arc<RequestContext>>()?;
        if let Some(route) = extensions.get::<MatchedPath>() {
            let _ = context.route.set(route.clone());
        }
        Some(context)
    }

    pub(crate) fn record_token(&self, token: CredentialId) {
        let _ = self.token.set(token);
    }

    /// Records the credentials of an authenticated call.
    pub(crate) fn record_credentials(&self, credentials: UsedCredentials) {
        let _ = self.credentials.set(credentials);
    }

    pub(crate) fn credentials(&self) -> Option<UsedCredentials> {
        self.credentials.get().copied()
    }

    /// Counts the request as one of its account, until its response is complete.
    pub(crate) fn record_in_flight(&self, in_flight: InFlight) {
        let _ = self.in_flight.set(in_flight);
    }

    pub(crate) fn in_flight(&self) -> Option<&InFlight> {
        self.in_flight.get()
    }

    /// Marks a request that waits for events.
    pub(crate) fn mark_long_poll(&self) {
        let _ = self.long_poll.set(());
    }

    pub(crate) fn is_long_poll(&self) -> bool {
        self.long_poll.get().is_some()
    }

    /// Counts the request as one with a large body, until its response is complete or it waits.
    pub(crate) fn record_large_body(&self, large_body: LargeBody) {
        *lock(&self.large_body) = Some(large_body);
    }

    pub(crate) fn has_large_body(&self) -> bool {
        lock(&self.large_body).is_some()
    }

    /// The turns of the account's large bodies, if the request has one and not its turn.
    pub(crate) fn turns(&self) -> Option<Arc<Semaphore>> {
        let has_turn = lock(&self.turn).is_some();
        lock(&self.large_body).as_ref().filter(|_| !has_turn).map(LargeBody::turns)
    }

    /// Keeps the account's turn for a large body, until the response is complete or the request waits.
    pub(crate) fn record_turn(&self, turn: Option<OwnedSemaphorePermit>) {
        *lock(&self.turn) = turn;
    }

    /// Leaves the turn, and the place of a large body in memory, to others of the account.
    pub(crate) fn release_body(&self) {
        lock(&self.turn).take();
        lock(&self.large_body).take();
    }

    /// Marks a request to the Graph surface, so that errors use Meta's format.
    pub(crate) fn mark_graph(&self) {
        let _ = self.graph.set(());
    }

    pub(crate) fn is_graph(&self) -> bool {
        self.graph.get().is_some()
    }

    /// Marks a request that sends a file, which may take longer and has its own deadlines.
    pub(crate) fn mark_upload(extensions: &Extensions) {
        extensions.get::<Arc<RequestContext>>().inspect(|context| {
            let _ = context.upload.set(());
        });
    }

    pub(crate) fn is_upload(&self) -> bool {
        self.upload.get().is_some()
    }

    /// Records the fault that strikes the call of an emulator account. The first one counts.
    pub(crate) fn record_fault(&self, effect: FaultEffect) {
        let _ = self.fault.set(effect);
    }

    pub(crate) fn fault(&self) -> Option<FaultEffect> {
        self.fault.get().copied()
    }

    /// Records what the response says about the budget of calls.
    pub(crate) fn record_usage(&self, value: String) {
        let _ = self.usage.set(value);
    }

    /// Records what the response says about a budget that is used up. It takes precedence.
    pub(crate) fn record_used_up(&self, value: String) {
        let _ = self.used_up.set(value);
    }

    /// What the response says about the budget of calls.
    pub(crate) fn usage(&self) -> Option<&str> {
        self.used_up.get().or(self.usage.get()).map(String::as_str)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Middleware that records the matched route of a request.
pub(crate) async fn record_route(request: Request) -> Request {
    RequestContext::from_extensions(request.extensions());
    request
}
