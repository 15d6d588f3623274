//! Observability: the access log and the Prometheus metrics.

pub(crate) mod access_log;
pub(crate) mod metrics;
