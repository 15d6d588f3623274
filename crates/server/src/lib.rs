//! How Galley is reached: a request enters at [`Galley::answer`], is routed by `http::routes`,
//! and leaves as JSON or as a problem.

mod accept;
mod access;
mod credentials;
mod event_view;
mod graph;
mod http;
mod metrics;
mod object;
mod upkeep;
pub mod webhooks;

use std::{sync::Arc, time::Duration};

use galley_store::Store;
use jiff::Timestamp;
use tokio::sync::watch;

pub use accept::{Stop, serve};
pub use access::{AccessLog, LogFormat};
pub use event_view::event as event_json;
pub use http::{Galley, openapi};
pub use upkeep::{
    follow_for_search_forever, forget_events_forever, look_for_events_forever, sweep_forever,
};

/// The time, handed in so that tests can choose it.
pub trait Clock: Send + Sync {
    /// The moment, for what is kept and compared with stored moments.
    fn now(&self) -> Timestamp;

    /// Time that never steps back, for measuring how long something took.
    fn monotonic(&self) -> Duration;
}

/// Limits of the server. All but the size of a body are settings.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How long a request header may take from its first byte.
    pub header: Duration,
    /// How long a request body may take.
    pub body: Duration,
    /// How long a whole request may take.
    pub request: Duration,
    /// How long a connection may stand idle between requests.
    pub idle: Duration,
    /// How many connections at once.
    pub connections: usize,
    /// How large a request body may be.
    pub body_bytes: usize,
    /// How many bytes of media an account may keep.
    pub media_bytes: u64,
    /// How long requests are still taken after the signal to stop, so that a balancer notices.
    pub drain_delay: Duration,
    /// How long running requests then have to finish.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(10),
            body: Duration::from_secs(15),
            request: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            connections: 1_024,
            body_bytes: 256 * 1_024,
            media_bytes: 1_024 * 1_024 * 1_024,
            drain_delay: Duration::from_secs(1),
            drain: Duration::from_secs(7),
        }
    }
}

/// Everything a request can reach.
#[derive(Clone)]
pub struct App(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    credentials: credentials::Credentials,
    metrics: metrics::Metrics,
    access: AccessLog,
    webhooks: webhooks::Setup,
    draining: watch::Sender<bool>,
    /// Makes request ids of several instances distinct.
    instance: String,
    /// Where the service is reached from outside, without a slash at the end.
    public_url: String,
}

impl App {
    /// Puts the parts together. `instance` distinguishes this process in request ids; links in
    /// answers begin with `public_url`.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        limits: Limits,
        access: AccessLog,
        webhooks: webhooks::Setup,
        instance: String,
        public_url: &str,
    ) -> Self {
        Self(Arc::new(Inner {
            credentials: credentials::Credentials::new(Arc::clone(&store)),
            metrics: metrics::Metrics::new(),
            draining: watch::Sender::new(false),
            store,
            clock,
            limits,
            access,
            webhooks,
            instance,
            public_url: public_url.trim_end_matches('/').to_owned(),
        }))
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.0.store
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn credentials(&self) -> &credentials::Credentials {
        &self.0.credentials
    }

    pub(crate) fn metrics(&self) -> &metrics::Metrics {
        &self.0.metrics
    }

    pub(crate) fn webhooks(&self) -> &webhooks::Setup {
        &self.0.webhooks
    }

    /// Where the service is reached from outside; never taken from what a caller says.
    pub(crate) fn public_url(&self) -> &str {
        &self.0.public_url
    }

    /// From now on readiness is refused, and nobody waits for events any more.
    pub fn start_draining(&self) {
        self.0.draining.send_replace(true);
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.0.draining.borrow()
    }

    /// Changes when draining begins, for those who wait.
    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.0.draining.subscribe()
    }
}
