//! Everything a request or a background worker can reach.

use std::sync::Arc;

use galley_store::Store;
use tokio::sync::watch;

use crate::{
    clock::Clock,
    credential_cache::Credentials,
    delivery::Setup,
    limits::Limits,
    observability::{access_log::AccessLog, metrics::Metrics},
};

/// Everything a request can reach.
#[derive(Clone)]
pub struct App(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    credentials: Credentials,
    metrics: Metrics,
    pub(crate) access: AccessLog,
    webhooks: Setup,
    draining: watch::Sender<bool>,
    /// Makes request ids of several instances distinct.
    pub(crate) instance: String,
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
        webhooks: Setup,
        instance: String,
        public_url: &str,
    ) -> Self {
        Self(Arc::new(Inner {
            credentials: Credentials::new(Arc::clone(&store)),
            metrics: Metrics::new(),
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

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.0.credentials
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn webhooks(&self) -> &Setup {
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
