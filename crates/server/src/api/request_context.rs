//! What is known of a request while it is answered: its id, its route, who called.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    extract::{MatchedPath, Request},
    http::{Extensions, HeaderMap, HeaderName},
};
use galley_domain::account;
use galley_store::CredentialId;
use jiff::Timestamp;

use crate::app::App;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// How many requests have come in since the process began.
pub(crate) fn requests_so_far() -> u64 {
    COUNTER.load(Ordering::Relaxed)
}

pub(crate) struct Trace {
    at: Timestamp,
    started: Duration,
    request_id: String,
    route: OnceLock<MatchedPath>,
    token: OnceLock<CredentialId>,
    graph: OnceLock<()>,
    slow: OnceLock<()>,
}

impl Trace {
    /// Takes over the caller's `x-request-id` if it is a plain word of up to 64 characters.
    pub(crate) fn new(app: &App, headers: &HeaderMap) -> Self {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed) + 1;
        let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
        let request_id = match given.filter(|id| id.len() <= 64 && account::is_segment(id)) {
            Some(id) => id.to_owned(),
            None => [&app.0.instance, "-", itoa::Buffer::new().format(number)].concat(),
        };
        let (at, started) = (app.clock().now(), app.clock().monotonic());
        Self {
            at,
            started,
            request_id,
            route: OnceLock::new(),
            token: OnceLock::new(),
            graph: OnceLock::new(),
            slow: OnceLock::new(),
        }
    }

    /// When the request came in.
    pub(crate) fn at(&self) -> Timestamp {
        self.at
    }

    /// The same on the clock that never steps back.
    pub(crate) fn started(&self) -> Duration {
        self.started
    }

    pub(crate) fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The route's pattern; a path that no route has is not repeated.
    pub(crate) fn route(&self) -> &str {
        self.route.get().map_or("(none)", MatchedPath::as_str)
    }

    pub(crate) fn token(&self) -> Option<CredentialId> {
        self.token.get().copied()
    }

    /// Notes which route the request with these extensions took.
    pub(crate) fn note_route(extensions: &Extensions) -> Option<&Self> {
        let trace = extensions.get::<Arc<Trace>>()?;
        if let Some(route) = extensions.get::<MatchedPath>() {
            let _ = trace.route.set(route.clone());
        }
        Some(trace)
    }

    pub(crate) fn note_token(&self, token: CredentialId) {
        let _ = self.token.set(token);
    }

    /// Notes that the caller speaks with the Graph surface, so that refusals have its form.
    pub(crate) fn note_graph(&self) {
        let _ = self.graph.set(());
    }

    pub(crate) fn is_graph(&self) -> bool {
        self.graph.get().is_some()
    }

    /// Notes that the request sends a file, which may take longer and has deadlines of its own.
    pub(crate) fn note_upload(extensions: &Extensions) {
        extensions.get::<Arc<Trace>>().inspect(|trace| {
            let _ = trace.slow.set(());
        });
    }

    pub(crate) fn is_upload(&self) -> bool {
        self.slow.get().is_some()
    }
}

/// Notes which route a request took.
pub(crate) async fn note_route(request: Request) -> Request {
    Trace::note_route(request.extensions());
    request
}
