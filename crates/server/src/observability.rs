//! Observability: the log writer, the access log, the Prometheus metrics, the traces of requests and
//! of events, and the conditions of `/readyz`.

pub(crate) mod access_log;
pub(crate) mod conditions;
mod exposition;
pub(crate) mod failure_log;
pub(crate) mod log_writer;
pub(crate) mod metrics;
mod process_metrics;
mod store_metrics;
pub(crate) mod trace_context;
mod upstream_metrics;
