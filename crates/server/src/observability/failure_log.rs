//! Decides which failed deliveries are logged as warnings: the first of each outage of an endpoint.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use galley_domain::id::WebhookId;

/// An endpoint that fails and recovers in turn gets one warning per this time.
const MIN_WARNING_INTERVAL: Duration = Duration::from_secs(600);

/// The endpoints whose current outage was logged, with the time of the warning.
#[derive(Default)]
pub(crate) struct FailureLog(Mutex<HashMap<WebhookId, Duration>>);

impl FailureLog {
    /// Records a failed delivery. Returns whether it is the first of an outage. `now` is a
    /// monotonic time.
    pub(crate) fn is_first(&self, webhook: WebhookId, now: Duration) -> bool {
        let mut warned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = !warned.contains_key(&webhook);
        warned.entry(webhook).or_insert(now);
        is_first
    }

    /// Records a successful delivery: the next failure begins a new outage.
    pub(crate) fn end_outage(&self, webhook: WebhookId, now: Duration) {
        let mut warned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.get(&webhook).is_some_and(|at| now.saturating_sub(*at) >= MIN_WARNING_INTERVAL) {
            warned.remove(&webhook);
        }
    }

    /// Forgets an endpoint that gets no deliveries any more.
    pub(crate) fn remove(&self, webhook: WebhookId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&webhook);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_warning_is_logged_per_outage_and_interval() {
        let (log, webhook) = (FailureLog::default(), WebhookId::new(1).unwrap());
        let at = Duration::from_secs;
        assert!(log.is_first(webhook, at(0)));
        assert!(log.is_first(WebhookId::new(2).unwrap(), at(0)), "each endpoint by itself");
        assert!(!log.is_first(webhook, at(9_999)), "the same outage");
        log.end_outage(webhook, at(599));
        assert!(!log.is_first(webhook, at(599)), "it fails and recovers in turn");
        log.end_outage(webhook, at(600));
        assert!(log.is_first(webhook, at(600)), "a new outage");
        log.remove(webhook);
        assert!(log.is_first(webhook, at(601)), "it was disabled and enabled");
    }
}
