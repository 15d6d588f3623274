//! Observability: the log writer, the access log, the Prometheus metrics, and the conditions of
//! `/readyz`.

pub(crate) mod access_log;
pub(crate) mod conditions;
pub(crate) mod failure_log;
pub(crate) mod log_writer;
pub(crate) mod metrics;
