//! How a change alters a webhook endpoint.

use galley_domain::webhook::delivery::DisableReason;
use jiff::Timestamp;

use crate::{Webhook, WebhookChange};

/// Whether a change enables a disabled endpoint.
pub(crate) fn enables(before: &Webhook, change: &WebhookChange) -> bool {
    change.disabled == Some(false) && before.disabled.is_some()
}

/// An endpoint after a change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChangedWebhook {
    pub(crate) webhook: Webhook,
    /// Whether its failure history is deleted.
    pub(crate) resets_failures: bool,
    /// Whether its URL, its events or its state differ from before, which the audit feed records.
    pub(crate) is_changed: bool,
}

/// Applies a change. `oldest` is the account's oldest stored event: an endpoint that is enabled
/// continues at its cursor, or there if that is later.
pub(crate) fn apply_change(
    before: Webhook,
    change: &WebhookChange,
    oldest: u64,
    at: Timestamp,
) -> ChangedWebhook {
    let is_enabled = enables(&before, change);
    // A new URL has no failures.
    let is_moved = change.url.as_ref().is_some_and(|url| *url != before.url);
    let resets_failures = is_enabled || is_moved;
    let disabled = match change.disabled {
        Some(true) => before.disabled.or(Some((at, DisableReason::SwitchedOff))),
        Some(false) => None,
        None => before.disabled,
    };
    let has_other_events = change.events.as_ref().is_some_and(|it| *it != before.events);
    let is_changed = is_moved || has_other_events || disabled != before.disabled;
    let is_newly_disabled = before.disabled.is_none() && disabled.is_some();
    let cursor =
        if is_enabled { before.cursor.max(oldest.saturating_sub(1)) } else { before.cursor };
    let webhook = Webhook {
        url: change.url.clone().unwrap_or(before.url),
        events: change.events.clone().unwrap_or(before.events),
        behind: before.behind.saturating_sub(cursor - before.cursor),
        cursor,
        failing_since: before.failing_since.filter(|_| !resets_failures),
        resting_until: before.resting_until.filter(|_| !resets_failures && !is_newly_disabled),
        disabled,
        updated_at: at,
        ..before
    };
    ChangedWebhook { webhook, resets_failures, is_changed }
}

#[cfg(test)]
mod tests {
    use galley_domain::{
        id::{AccountId, WebhookId},
        template::lifecycle::EventType,
        webhook::Format,
    };

    use super::*;
    use crate::StoredSecret;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_790_000_000 + seconds).unwrap()
    }

    fn id(id: u64) -> WebhookId {
        WebhookId::new(id).unwrap()
    }

    fn failing_webhook() -> Webhook {
        Webhook {
            id: id(7),
            account: AccountId::new(1).unwrap(),
            url: "https://example.com/old".to_owned(),
            events: vec![EventType::Paused],
            format: Format::Galley,
            subscribed: false,
            secret: StoredSecret(vec![1]),
            former_secret: None,
            cursor: 10,
            behind: 30,
            failing_since: Some(at(-60)),
            resting_until: Some(at(60)),
            disabled: None,
            created_at: at(-100),
            updated_at: at(-100),
        }
    }

    #[test]
    fn a_change_keeps_the_failures_unless_the_url_is_new() {
        let changed = |url: &str| {
            let change = WebhookChange { url: Some(url.to_owned()), ..WebhookChange::default() };
            apply_change(failing_webhook(), &change, 1, at(0))
        };
        let same = changed("https://example.com/old");
        let unchanged = Webhook { updated_at: at(0), ..failing_webhook() };
        assert_eq!(
            same,
            ChangedWebhook { webhook: unchanged, resets_failures: false, is_changed: false }
        );
        let moved = changed("https://example.com/new");
        assert!(moved.resets_failures && moved.is_changed);
        assert_eq!((moved.webhook.failing_since, moved.webhook.resting_until), (None, None));
        assert_eq!(moved.webhook.events, [EventType::Paused]);
    }

    #[test]
    fn a_disabled_endpoint_keeps_its_reason_and_an_enabled_one_skips_expired_events() {
        let set = |before, disabled, oldest| {
            let change = WebhookChange { disabled: Some(disabled), ..WebhookChange::default() };
            apply_change(before, &change, oldest, at(0))
        };
        let off = set(failing_webhook(), true, 1);
        assert_eq!(off.webhook.disabled, Some((at(0), DisableReason::SwitchedOff)));
        assert_eq!(off.webhook.resting_until, None);
        assert_eq!((off.webhook.failing_since, off.resets_failures), (Some(at(-60)), false));
        let gone = Some((at(-5), DisableReason::Gone));
        let still_off = set(Webhook { disabled: gone, ..failing_webhook() }, true, 1);
        assert_eq!(still_off.webhook.disabled, gone);
        let on = set(off.webhook, false, 16);
        assert_eq!((on.webhook.disabled, on.resets_failures), (None, true));
        assert_eq!((on.webhook.cursor, on.webhook.behind), (15, 25));
        assert_eq!(set(still_off.webhook, false, 5).webhook.cursor, 10);
        assert_eq!(set(failing_webhook(), false, 16).webhook.cursor, 10, "it was enabled before");
    }
}
