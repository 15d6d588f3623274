//! What operators see: the access log and the metrics page.

pub(crate) mod access_log;
pub(crate) mod metrics;
