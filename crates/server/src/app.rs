//! The state shared by all requests and background workers.

use std::sync::Arc;

use galley_store::Store;
use tokio::sync::watch;

use crate::{
    admission::Admission,
    call_usage::CallUsage,
    clock::Clock,
    credential_cache::CredentialCache,
    delivery::WebhookContext,
    emulator_state::EmulatorState,
    held_requests::HeldRequests,
    index_pacer::IndexPacer,
    limits::Limits,
    memory_budget::MemoryBudget,
    observability::{
        access_log::AccessLog, conditions::Conditions, failure_log::FailureLog, metrics::Metrics,
    },
    session_use::SessionUses,
    upstream::UpstreamWaker,
    warning_cache::WarningCache,
};

/// What distinguishes this process from others with the same store.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Identifies this process in request ids.
    pub id: String,
    /// The public base URL: absolute URLs in responses begin with it.
    pub public_url: String,
    /// Whether it serves emulator accounts.
    pub emulator: bool,
}

/// The shared state of the service. Clones refer to the same state.
#[derive(Clone)]
pub struct App(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    request_memory: MemoryBudget,
    response_memory: MemoryBudget,
    admission: Admission,
    credentials: CredentialCache,
    session_uses: SessionUses,
    metrics: Metrics,
    conditions: Conditions,
    failure_log: FailureLog,
    render_warnings: WarningCache,
    index_pacer: Arc<IndexPacer>,
    pub(crate) access: AccessLog,
    webhooks: WebhookContext,
    emulator: EmulatorState,
    held_requests: HeldRequests,
    call_usage: CallUsage,
    upstream: UpstreamWaker,
    draining: watch::Sender<bool>,
    /// Prefix of request ids, which makes those of several instances distinct.
    pub(crate) instance: String,
    /// The public base URL of the service, without a trailing slash.
    public_url: String,
}

impl App {
    /// Creates the shared state.
    pub fn new(
        store: Arc<Store>,
        clock: Arc<dyn Clock>,
        limits: Limits,
        access: AccessLog,
        webhooks: WebhookContext,
        instance: Instance,
    ) -> Self {
        let admission = Admission::new(&limits);
        Self(Arc::new(Inner {
            request_memory: MemoryBudget::default(),
            response_memory: MemoryBudget::default(),
            credentials: CredentialCache::new(Arc::clone(&store), Arc::clone(&admission.loads)),
            session_uses: SessionUses::default(),
            admission,
            metrics: Metrics::new(access.lost_lines()),
            conditions: Conditions::default(),
            failure_log: FailureLog::default(),
            render_warnings: WarningCache::default(),
            index_pacer: Arc::default(),
            held_requests: HeldRequests::default(),
            call_usage: CallUsage::default(),
            upstream: UpstreamWaker::default(),
            draining: watch::Sender::new(false),
            store,
            clock,
            limits,
            access,
            webhooks,
            emulator: EmulatorState::new(instance.emulator),
            instance: instance.id,
            public_url: instance.public_url.trim_end_matches('/').to_owned(),
        }))
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The budget for bodies of requests that are being received or processed.
    pub(crate) fn request_memory(&self) -> &MemoryBudget {
        &self.0.request_memory
    }

    /// The budget for bodies of responses that clients have not read.
    pub(crate) fn response_memory(&self) -> &MemoryBudget {
        &self.0.response_memory
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.0.admission
    }

    pub(crate) fn credentials(&self) -> &CredentialCache {
        &self.0.credentials
    }

    /// The uses of sessions of the console that are not in the store yet.
    pub(crate) fn session_uses(&self) -> &SessionUses {
        &self.0.session_uses
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// What is wrong with this instance; `/readyz` reports it.
    pub(crate) fn conditions(&self) -> &Conditions {
        &self.0.conditions
    }

    /// Where WhatsApp cannot have a template that was rendered.
    pub(crate) fn render_warnings(&self) -> &WarningCache {
        &self.0.render_warnings
    }

    /// Paces index steps for searches that wait.
    pub(crate) fn index_pacer(&self) -> &Arc<IndexPacer> {
        &self.0.index_pacer
    }

    /// The endpoints whose current outage was logged.
    pub(crate) fn failure_log(&self) -> &FailureLog {
        &self.0.failure_log
    }

    pub(crate) fn webhooks(&self) -> &WebhookContext {
        &self.0.webhooks
    }

    /// The calls of faithful emulator accounts.
    pub(crate) fn call_usage(&self) -> &CallUsage {
        &self.0.call_usage
    }

    /// The webhook requests that faults hold back.
    pub(crate) fn held_requests(&self) -> &HeldRequests {
        &self.0.held_requests
    }

    /// Whether this process serves emulator accounts, and the wake-up of their workers.
    pub(crate) fn emulator(&self) -> &EmulatorState {
        &self.0.emulator
    }

    /// Wakes the worker of connections to providers.
    pub fn upstream(&self) -> &UpstreamWaker {
        &self.0.upstream
    }

    /// The public base URL of the service. It comes from the settings, never from a request.
    pub(crate) fn public_url(&self) -> &str {
        &self.0.public_url
    }

    /// Starts draining: readiness checks fail, and requests no longer wait for events.
    pub fn start_draining(&self) {
        self.0.draining.send_replace(true);
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.0.draining.borrow()
    }

    /// A receiver that is notified when draining starts.
    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.0.draining.subscribe()
    }
}
