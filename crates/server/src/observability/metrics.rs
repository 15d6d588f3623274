//! Counters for Prometheus.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock},
    time::Duration,
};

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
    TextEncoder,
};

pub(crate) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    /// The series that were asked for, so that they are not looked up by their labels each time.
    known: RwLock<BTreeMap<(usize, usize, u16), Series>>,
    pub(crate) connections: IntGauge,
    attempts: HistogramVec,
}

/// What one kind of answer is counted by.
struct Series {
    answers: IntCounter,
    durations: Histogram,
}

impl Series {
    fn count(&self, took: Duration) {
        self.answers.inc();
        self.durations.observe(took.as_secs_f64());
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let buckets =
            vec![0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];
        let requests = IntCounterVec::new(
            Opts::new(
                "galley_http_requests_total",
                "Answers given, by method, route pattern and status",
            ),
            &["method", "route", "status"],
        );
        let durations = HistogramVec::new(
            HistogramOpts::new(
                "galley_http_request_duration_seconds",
                "Time from request to answer, by route pattern",
            )
            .buckets(buckets),
            &["route"],
        );
        let connections = IntGauge::new("galley_http_connections", "Open connections");
        let attempts = HistogramVec::new(
            HistogramOpts::new(
                "galley_webhook_attempt_duration_seconds",
                "Time an attempt to deliver an event took, by what came of it",
            )
            .buckets(vec![0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0]),
            &["outcome"],
        );
        let metrics = Self {
            registry: Registry::new(),
            requests: requests.expect("the names above are valid"),
            durations: durations.expect("the names above are valid"),
            known: RwLock::default(),
            connections: connections.expect("the names above are valid"),
            attempts: attempts.expect("the names above are valid"),
        };
        let collectors: [Box<dyn prometheus::core::Collector>; 4] = [
            Box::new(metrics.requests.clone()),
            Box::new(metrics.durations.clone()),
            Box::new(metrics.connections.clone()),
            Box::new(metrics.attempts.clone()),
        ];
        for collector in collectors {
            metrics.registry.register(collector).expect("each is registered once");
        }
        metrics
    }

    pub(crate) fn request(&self, method: &'static str, route: &str, status: u16, took: Duration) {
        // Patterns and methods stay where they are: their places tell them apart.
        let key = (route.as_ptr().addr(), method.as_ptr().addr(), status);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = known.get(&key) {
            return series.count(took);
        }
        drop(known);
        let series = Series {
            answers: self.requests.with_label_values(&[method, route, &status.to_string()]),
            durations: self.durations.with_label_values(&[route]),
        };
        series.count(took);
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(key, series);
    }

    pub(crate) fn attempt(&self, outcome: &str, took: Duration) {
        self.attempts.with_label_values(&[outcome]).observe(took.as_secs_f64());
    }

    /// The page that Prometheus reads.
    pub(crate) fn page(&self) -> String {
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_default()
    }
}
