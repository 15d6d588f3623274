//! Decides which failed deliveries are logged as warnings: the first of each outage of an endpoint.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use galley_domain::id::WebhookId;

/// An endpoint that fails and recovers in turn gets one warning per this time.
const MIN_WARNING_INTERVAL: Duration = Duration::from_mins(10);

/// The outages that were logged.
#[derive(Default)]
pub(crate) struct FailureLog(Mutex<HashMap<WebhookId, Outage>>);

struct Outage {
    warned_at: Duration,
    has_ended: bool,
}

impl FailureLog {
    /// Records a failed delivery. Returns whether it is the first of an outage. `now` is a
    /// monotonic time.
    pub(crate) fn is_first(&self, webhook: WebhookId, now: Duration) -> bool {
        let mut outages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: Duration| now.saturating_sub(at) < MIN_WARNING_INTERVAL;
        outages.retain(|_, outage| !outage.has_ended || is_recent(outage.warned_at));
        if let Some(outage) = outages.get_mut(&webhook) {
            outage.has_ended = false;
            return false;
        }
        outages.insert(webhook, Outage { warned_at: now, has_ended: false });
        true
    }

    /// Records a successful delivery: the next failure begins a new outage.
    pub(crate) fn end_outage(&self, webhook: WebhookId) {
        let mut outages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outage) = outages.get_mut(&webhook) {
            outage.has_ended = true;
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
        log.end_outage(webhook);
        assert!(log.is_first(webhook, at(86_400)), "a new outage");
        log.end_outage(webhook);
        assert!(!log.is_first(webhook, at(86_999)), "it fails and recovers in turn");
        assert!(!log.is_first(webhook, at(87_001)), "the same outage");
        log.remove(webhook);
        assert!(log.is_first(webhook, at(87_002)), "it was disabled and enabled");
    }
}
