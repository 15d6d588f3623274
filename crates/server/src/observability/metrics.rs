//! The Prometheus metrics.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use galley_domain::upstream::CallKind;
use galley_store::{StoreActivity, StoreStatistics};
use jiff::Timestamp;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
    TextEncoder,
};

use super::{
    exposition::{Exposition, Kind},
    log_writer::LostLines,
    process_metrics::Process,
    store_metrics::{StatisticsSample, write_activity},
};

/// The limits that throttle requests. Their series exist from the start, so that the first increase
/// is visible; those of other labels, too.
pub(crate) const LIMITS: [&str; 8] = [
    "failed-credentials",
    "requests-in-flight",
    "long-polls",
    "waits",
    "large-bodies",
    "requests-per-second",
    "request-bytes",
    "response-bytes",
];

/// Why the server closes connections.
const CLOSE_REASONS: [&str; 4] = ["header_timeout", "idle_timeout", "send_timeout", "evicted"];

/// The usual outcomes of delivery attempts.
const ATTEMPT_OUTCOMES: [&str; 3] = ["delivered", "will_retry", "gave_up"];

/// Whether a sample of a provider was kept.
const SAMPLE_OUTCOMES: [&str; 2] = ["kept", "failed"];

/// Counts the samples of providers by outcome, with each outcome from the start.
fn sample_counter() -> IntCounterVec {
    let counter = IntCounterVec::new(
        Opts::new(
            "galley_upstream_samples_total",
            "Media samples of providers that this process fetched, by outcome",
        ),
        &["outcome"],
    );
    let counter = counter.expect("the metric definition is valid");
    for outcome in SAMPLE_OUTCOMES {
        counter.with_label_values(&[outcome]);
    }
    counter
}

pub(crate) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    /// Series by the addresses of route and method, and the status. Saves a lookup by labels.
    series_cache: RwLock<BTreeMap<(usize, usize, u16), RequestSeries>>,
    pub(crate) connections: IntGauge,
    closed_connections: IntCounterVec,
    attempts: HistogramVec,
    worker_restarts: IntCounterVec,
    throttled: IntCounterVec,
    upstream_calls: IntCounterVec,
    upstream_samples: IntCounterVec,
    /// The budget of calls of a connection; 0 until the worker of connections tells it.
    upstream_calls_per_hour: AtomicU32,
    process: Process,
    sample: Mutex<Option<StatisticsSample>>,
}

/// What the page reports besides the metrics that are recorded.
pub(crate) struct CurrentState {
    /// Maximum number of open connections.
    pub(crate) max_connections: usize,
    pub(crate) activity: StoreActivity,
}

/// The series of one combination of route, method and status.
struct RequestSeries {
    responses: IntCounter,
    durations: Histogram,
}

impl RequestSeries {
    fn record(&self, latency: Option<Duration>) {
        self.responses.inc();
        if let Some(latency) = latency {
            self.durations.observe(latency.as_secs_f64());
        }
    }
}

impl Metrics {
    pub(crate) fn new(lost_lines: &LostLines) -> Self {
        let buckets =
            vec![0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];
        let requests = IntCounterVec::new(
            Opts::new(
                "galley_http_requests_total",
                "HTTP responses sent, by method, route pattern and status",
            ),
            &["method", "route", "status"],
        );
        let durations = HistogramVec::new(
            HistogramOpts::new(
                "galley_http_request_duration_seconds",
                "Time from request to response, by route pattern",
            )
            .buckets(buckets),
            &["route"],
        );
        let connections = IntGauge::new("galley_http_connections", "Open HTTP connections");
        let closed_connections = IntCounterVec::new(
            Opts::new(
                "galley_http_connections_closed_total",
                "HTTP connections that the server closed although the client kept them open, by reason",
            ),
            &["reason"],
        );
        let attempts = HistogramVec::new(
            HistogramOpts::new(
                "galley_webhook_attempt_duration_seconds",
                "Duration of webhook delivery attempts, by outcome",
            )
            .buckets(vec![0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0]),
            &["outcome"],
        );
        let worker_restarts = IntCounterVec::new(
            Opts::new(
                "galley_worker_restarts_total",
                "Restarts of background workers after a panic or an unexpected end",
            ),
            &["worker"],
        );
        let throttled = IntCounterVec::new(
            Opts::new(
                "galley_http_throttled_total",
                "Requests that were slowed down or refused because of a limit, by limit",
            ),
            &["limit"],
        );
        let upstream_calls = IntCounterVec::new(
            Opts::new(
                "galley_upstream_calls_total",
                "Calls of this process to providers, by kind of call and outcome",
            ),
            &["call", "outcome"],
        );
        let metrics = Self {
            registry: Registry::new(),
            requests: requests.expect("the metric definition is valid"),
            durations: durations.expect("the metric definition is valid"),
            series_cache: RwLock::default(),
            connections: connections.expect("the metric definition is valid"),
            closed_connections: closed_connections.expect("the metric definition is valid"),
            attempts: attempts.expect("the metric definition is valid"),
            worker_restarts: worker_restarts.expect("the metric definition is valid"),
            throttled: throttled.expect("the metric definition is valid"),
            upstream_calls: upstream_calls.expect("the metric definition is valid"),
            upstream_samples: sample_counter(),
            upstream_calls_per_hour: AtomicU32::new(0),
            process: Process::this(),
            sample: Mutex::default(),
        };
        for limit in LIMITS {
            metrics.throttled.with_label_values(&[limit]);
        }
        for reason in CLOSE_REASONS {
            metrics.closed_connections.with_label_values(&[reason]);
        }
        for outcome in ATTEMPT_OUTCOMES {
            metrics.attempts.with_label_values(&[outcome]);
        }
        for call in CallKind::VALUES {
            metrics.upstream_calls.with_label_values(&[*call, "success"]);
        }
        let collectors: [Box<dyn prometheus::core::Collector>; 10] = [
            Box::new(metrics.requests.clone()),
            Box::new(metrics.durations.clone()),
            Box::new(metrics.connections.clone()),
            Box::new(metrics.closed_connections.clone()),
            Box::new(metrics.attempts.clone()),
            Box::new(metrics.worker_restarts.clone()),
            Box::new(metrics.throttled.clone()),
            Box::new(metrics.upstream_calls.clone()),
            Box::new(metrics.upstream_samples.clone()),
            Box::new(lost_lines.counters.clone()),
        ];
        for collector in collectors {
            metrics.registry.register(collector).expect("each metric is registered once");
        }
        metrics
    }

    /// Records a response. A long poll has no latency: it takes as long as the client asked for.
    pub(crate) fn record_request(
        &self,
        method: &'static str,
        route: &str,
        status: u16,
        latency: Option<Duration>,
    ) {
        // Route patterns and methods never move in memory, so their addresses identify them.
        let key = (route.as_ptr().addr(), method.as_ptr().addr(), status);
        let cache = self.series_cache.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = cache.get(&key) {
            return series.record(latency);
        }
        drop(cache);
        let series = RequestSeries {
            responses: self.requests.with_label_values(&[method, route, &status.to_string()]),
            durations: self.durations.with_label_values(&[route]),
        };
        series.record(latency);
        self.series_cache.write().unwrap_or_else(PoisonError::into_inner).insert(key, series);
    }

    /// Records that the server closed a connection for this reason.
    pub(crate) fn record_closed_connection(&self, reason: &str) {
        self.closed_connections.with_label_values(&[reason]).inc();
    }

    /// Records a request that was slowed down or refused because of this limit.
    pub(crate) fn record_throttled(&self, limit: &str) {
        self.throttled.with_label_values(&[limit]).inc();
    }

    /// Records a webhook delivery attempt.
    pub(crate) fn record_delivery_attempt(&self, outcome: &str, took: Duration) {
        self.attempts.with_label_values(&[outcome]).observe(took.as_secs_f64());
    }

    /// Records a call to a provider.
    pub(crate) fn record_upstream_call(&self, call: CallKind, outcome: &str) {
        self.upstream_calls.with_label_values(&[call.as_str(), outcome]).inc();
    }

    /// Records a sample of a provider that was fetched, and whether it is kept.
    pub(crate) fn record_upstream_sample(&self, is_kept: bool) {
        let [kept, failed] = SAMPLE_OUTCOMES;
        self.upstream_samples.with_label_values(&[if is_kept { kept } else { failed }]).inc();
    }

    /// Sets the budget of calls of each connection.
    pub(crate) fn set_upstream_calls_per_hour(&self, calls: u32) {
        self.upstream_calls_per_hour.store(calls, Ordering::Relaxed);
    }

    /// The budget of calls of each connection, if a worker of this process makes them.
    pub(crate) fn upstream_calls_per_hour(&self) -> Option<u32> {
        Some(self.upstream_calls_per_hour.load(Ordering::Relaxed)).filter(|calls| *calls > 0)
    }

    /// The number of restarts of a worker.
    pub(crate) fn worker_restarts(&self, worker: &str) -> IntCounter {
        self.worker_restarts.with_label_values(&[worker])
    }

    /// Records totals of the database that were read now.
    pub(crate) fn record_statistics(&self, now: Timestamp, statistics: StoreStatistics) {
        let sample = StatisticsSample { at: now, statistics };
        *self.sample.lock().unwrap_or_else(PoisonError::into_inner) = Some(sample);
    }

    /// The metrics in the Prometheus text format.
    pub(crate) fn encode(&self, current: &CurrentState) -> String {
        let mut page = Exposition::default();
        page.values(
            Kind::Gauge,
            "galley_build_info",
            "The version of the program; the value is always 1",
            "version",
            [(env!("CARGO_PKG_VERSION"), 1)],
        );
        page.value(
            Kind::Gauge,
            "galley_http_max_connections",
            "HTTP connections that can be open",
            current.max_connections,
        );
        write_activity(&mut page, &current.activity);
        if let Some(sample) = &*self.sample.lock().unwrap_or_else(PoisonError::into_inner) {
            sample.write(&mut page, self.upstream_calls_per_hour.load(Ordering::Relaxed));
        }
        self.process.write(&mut page);
        let recorded = TextEncoder::new().encode_to_string(&self.registry.gather());
        page.into_text() + &recorded.unwrap_or_default()
    }
}
