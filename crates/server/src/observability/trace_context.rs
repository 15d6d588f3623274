//! The trace that a request belongs to: the header `traceparent` of W3C Trace Context.
//!
//! Galley exports no spans. It logs the ids of the client, and passes the trace on to webhook
//! endpoints.

use axum::http::{HeaderMap, HeaderName};
use galley_store::TraceContext;

/// The header that names a trace.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The trace of a request. `None` if it names none, several, or an invalid one.
pub(crate) fn trace_of(headers: &HeaderMap) -> Option<TraceContext> {
    let value = headers.get(TRACEPARENT)?;
    let is_single = headers.get_all(TRACEPARENT).iter().nth(1).is_none();
    TraceContext::parse(value.as_bytes()).filter(|_| is_single)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn two_headers_name_no_trace() {
        let mut headers = HeaderMap::new();
        assert_eq!(trace_of(&headers), None);
        headers.append(TRACEPARENT, VALID.parse().unwrap());
        assert_eq!(trace_of(&headers).map(|it| it.to_string()).as_deref(), Some(VALID));
        headers.append(TRACEPARENT, VALID.parse().unwrap());
        assert_eq!(trace_of(&headers), None);
    }
}
