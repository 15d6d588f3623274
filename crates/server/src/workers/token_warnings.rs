//! Warns in the log before the token of a connection expires.

use std::collections::HashMap;

use galley_domain::id::AccountId;
use galley_store::{Store, UpstreamConnection};
use jiff::{SignedDuration, Timestamp};

/// So many days before the expiry there is a warning, and one after it.
const WARNING_DAYS: [i64; 4] = [14, 3, 1, 0];

/// How often the connections are looked at.
const INTERVAL: SignedDuration = SignedDuration::from_hours(1);

/// The warnings of this process.
#[derive(Default)]
pub(super) struct TokenWarnings {
    next_at: Option<Timestamp>,
    /// The expiry of the token of each account, and the days of the last warning about it.
    logged: HashMap<AccountId, (Timestamp, i64)>,
}

impl TokenWarnings {
    /// Logs the warnings that are due, once each. Reads the connections once an hour.
    pub(super) async fn log_due(&mut self, store: &Store, now: Timestamp) {
        if self.next_at.is_some_and(|next_at| now < next_at) {
            return;
        }
        // The worker logs what is wrong with the store.
        let Ok(connections) = store.connections().await else { return };
        self.next_at = now.checked_add(INTERVAL).ok();
        for connection in connections {
            let UpstreamConnection { account, token_expires_at, .. } = connection;
            let Some(expires_at) = token_expires_at else { continue };
            match self.due(account, expires_at, now) {
                Some(0) => tracing::warn!(
                    %account,
                    %expires_at,
                    "the token for the provider has expired: replace it with `galley upstream token`"
                ),
                Some(days) => tracing::warn!(
                    %account,
                    %expires_at,
                    days,
                    "the token for the provider expires soon: replace it with `galley upstream token`"
                ),
                None => {}
            }
        }
    }

    /// The days of a warning that this process has not logged.
    fn due(&mut self, account: AccountId, expires_at: Timestamp, now: Timestamp) -> Option<i64> {
        let days = warning_days(expires_at, now)?;
        let logged = self.logged.get(&account);
        if logged.is_some_and(|(expiry, last)| *expiry == expires_at && *last <= days) {
            return None;
        }
        self.logged.insert(account, (expires_at, days));
        Some(days)
    }
}

/// The last of the days before the expiry that have begun.
fn warning_days(expires_at: Timestamp, now: Timestamp) -> Option<i64> {
    let left = expires_at.duration_since(now);
    let has_begun = |days: &i64| left <= SignedDuration::from_hours(24 * *days);
    WARNING_DAYS.into_iter().rev().find(has_begun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_come_14_3_and_1_days_before_the_expiry_and_after_it() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        for (hours, expected) in [
            (15 * 24, None),
            (14 * 24, Some(14)),
            (3 * 24 + 1, Some(14)),
            (3 * 24, Some(3)),
            (24, Some(1)),
            (1, Some(1)),
            (0, Some(0)),
            (-100, Some(0)),
        ] {
            let expires_at = now + SignedDuration::from_hours(hours);
            assert_eq!(warning_days(expires_at, now), expected, "{hours} hours");
        }
    }

    #[test]
    fn each_warning_is_logged_once_until_the_token_is_replaced() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let (account, hours) = (AccountId::new(7).unwrap(), SignedDuration::from_hours);
        let mut warnings = TokenWarnings::default();
        let mut logged = |expires_at, at| warnings.due(account, expires_at, at);
        let expires_at = now + hours(14 * 24);
        assert_eq!(logged(expires_at, now), Some(14));
        assert_eq!(logged(expires_at, now + hours(1)), None);
        assert_eq!(logged(expires_at, now + hours(11 * 24)), Some(3));
        assert_eq!(logged(expires_at, now + hours(12 * 24)), None);
        let later = expires_at + hours(60 * 24);
        assert_eq!(logged(later, now + hours(13 * 24)), None, "another token");
        assert_eq!(logged(later, later - hours(24)), Some(1));
    }
}
