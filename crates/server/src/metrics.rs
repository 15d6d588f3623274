//! Counters for Prometheus.

use std::time::Duration;

use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

pub(crate) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    pub(crate) connections: IntGauge,
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
        let metrics = Self {
            registry: Registry::new(),
            requests: requests.expect("the names above are valid"),
            durations: durations.expect("the names above are valid"),
            connections: connections.expect("the names above are valid"),
        };
        let collectors: [Box<dyn prometheus::core::Collector>; 3] = [
            Box::new(metrics.requests.clone()),
            Box::new(metrics.durations.clone()),
            Box::new(metrics.connections.clone()),
        ];
        for collector in collectors {
            metrics.registry.register(collector).expect("each is registered once");
        }
        metrics
    }

    pub(crate) fn request(&self, method: &str, route: &str, status: &str, took: Duration) {
        self.requests.with_label_values(&[method, route, status]).inc();
        self.durations.with_label_values(&[route]).observe(took.as_secs_f64());
    }

    /// The page that Prometheus reads.
    pub(crate) fn page(&self) -> String {
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_default()
    }
}
