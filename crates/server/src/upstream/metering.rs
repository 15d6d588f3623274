//! Tells the outcome of each call to the metrics.

use std::sync::Arc;

use async_trait::async_trait;
use galley_domain::upstream::{CallKind, GraphErrorBody, classify};
use galley_upstream::{Request, Response, Transport, TransportError, is_readable};

use super::transport::Transports;

/// The outcome of a call that succeeded; others are those of
/// [`CallFailure::as_str`](galley_domain::upstream::CallFailure::as_str).
pub(crate) const SUCCESS: &str = "success";

/// Receives the kind and the outcome of each call.
type Record = Arc<dyn Fn(CallKind, &'static str) + Send + Sync>;

/// The same transports, which tell the outcome of each call.
pub(crate) fn metered(
    transports: Transports,
    record: impl Fn(CallKind, &'static str) + Send + Sync + 'static,
) -> Transports {
    let record: Record = Arc::new(record);
    Arc::new(move |account| {
        let (inner, record) = (transports(account), Arc::clone(&record));
        Arc::new(MeteredTransport { inner, record }) as Arc<dyn Transport>
    })
}

struct MeteredTransport {
    inner: Arc<dyn Transport>,
    record: Record,
}

#[async_trait]
impl Transport for MeteredTransport {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        let Some(kind) = request.kind else { return self.inner.exchange(request).await };
        let result = self.inner.exchange(request).await;
        (self.record)(kind, outcome(kind, &result));
        result
    }
}

/// The outcome of an exchange in one word. A response of success that the client cannot read is none.
fn outcome(kind: CallKind, result: &Result<Response, TransportError>) -> &'static str {
    match result {
        Ok(response) if response.is_success() && is_readable(kind, &response.body) => SUCCESS,
        Ok(response) => {
            let error = GraphErrorBody::read(&response.body, &[]);
            classify(kind, response.status, error, None).as_str()
        }
        Err(TransportError::NotSent(_)) => "not_sent",
        Err(TransportError::Unknown(_)) => "unknown",
        Err(TransportError::Resting(_)) => "throttled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_that_of_the_provider() {
        let response = |status, body: &str| {
            Ok(Response { status, headers: Vec::new(), body: body.as_bytes().to_vec() })
        };
        let error = |code| format!(r#"{{"error":{{"message":"x","code":{code}}}}}"#);
        for (result, expected) in [
            (response(200, r#"{"data":[]}"#), SUCCESS),
            (response(200, r#"{"data":[{"id":"#), "unknown"),
            (response(200, "<html>"), "unknown"),
            (response(200, &error(190)), "credentials"),
            (response(400, &error(80_008)), "throttled"),
            (response(401, &error(190)), "credentials"),
            (response(400, &error(100)), "refused"),
            (response(503, ""), "unknown"),
            (Err(TransportError::NotSent(String::new())), "not_sent"),
            (Err(TransportError::Unknown(String::new())), "unknown"),
        ] {
            assert_eq!(outcome(CallKind::Page, &result), expected, "{result:?}");
        }
    }
}
