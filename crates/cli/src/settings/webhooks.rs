//! The settings of events and webhooks.

use std::{sync::Arc, time::Duration};

use galley_domain::webhook::delivery::RetrySchedule;
use galley_server::delivery::{
    HttpWebhookClient, Keyring, SsrfGuard, SsrfPolicy, SystemResolver, WebhookContext,
    trusted_roots,
};

use super::{Resolver, duration};
use crate::secrets::SystemRandom;

const DAY: Duration = Duration::from_hours(24);

/// Settings of event retention and webhook delivery.
#[derive(Debug)]
pub(crate) struct WebhookSettings {
    /// Retention period of events.
    pub(crate) events_kept: Duration,
    /// Whether endpoints may be in private networks and use plain http.
    pub(crate) allow_private: bool,
    /// Whether this process delivers webhooks.
    pub(crate) deliver: bool,
    /// Timeout of one attempt.
    pub(crate) timeout: Duration,
    /// Maximum number of deliveries per second and endpoint.
    pub(crate) per_second: u32,
    /// Delays before each attempt.
    pub(crate) retries: RetrySchedule,
    /// Seals the signing secrets.
    pub(crate) keyring: Keyring,
}

impl WebhookSettings {
    /// The context of webhook delivery.
    pub(crate) fn context(&self) -> WebhookContext {
        self.context_and_client().0
    }

    /// The context of webhook delivery, and its client.
    pub(crate) fn context_and_client(&self) -> (WebhookContext, Arc<HttpWebhookClient>) {
        let resolver = Arc::new(SystemResolver::new());
        let client = Arc::new(HttpWebhookClient::new(
            self.guard(Arc::clone(&resolver)),
            self.timeout,
            trusted_roots(),
        ));
        let context = WebhookContext {
            // Registration and delivery have separate lookup slots, so that one cannot block the
            // other.
            guard: self.guard(resolver),
            keyring: self.keyring.clone(),
            random: Arc::new(SystemRandom),
            client: Arc::clone(&client) as _,
            schedule: self.retries.clone(),
            per_second: self.per_second,
            timeout: self.timeout,
            deliver: self.deliver,
        };
        (context, client)
    }

    fn guard(&self, resolver: Arc<SystemResolver>) -> SsrfGuard {
        SsrfGuard::new(SsrfPolicy { allow_private: self.allow_private }, resolver)
    }
}

impl Resolver<'_> {
    pub(super) fn webhooks(&mut self) -> WebhookSettings {
        // A hundred years is practically unlimited, and timestamps can still represent it.
        let kept =
            self.within("events_kept", "a duration from 5d to 36500d", 5 * DAY, 36_500 * DAY);
        let flag = |text: &str| text.parse().ok();
        WebhookSettings {
            events_kept: kept,
            allow_private: self.read("webhooks_allow_private", "true or false", flag),
            deliver: self.read("webhooks_deliver", "true or false", flag),
            timeout: self.within(
                "webhooks_timeout",
                "a duration from 100ms to 60s",
                Duration::from_millis(100),
                Duration::from_mins(1),
            ),
            per_second: self.read("webhooks_per_second", "a number from 1 to 100000", |text| {
                text.parse().ok().filter(|number| (1..=100_000).contains(number))
            }),
            retries: self.read(
                "webhooks_retries",
                "1 to 100 durations of at most 30d, such as \"0s 5s 5m\"",
                schedule,
            ),
            keyring: self.keyring(),
        }
    }

    pub(super) fn within(
        &mut self,
        name: &str,
        expected: &str,
        min: Duration,
        max: Duration,
    ) -> Duration {
        self.read(name, expected, |text| duration(text).filter(|it| (min..=max).contains(it)))
    }

    fn keyring(&mut self) -> Keyring {
        let key = self.secret("GALLEY_SECRET_KEY");
        Keyring::new(key.as_deref()).unwrap_or_else(|error| {
            self.errors.push(error.to_string());
            Keyring::new(None).expect("no key cannot be too short")
        })
    }
}

fn schedule(text: &str) -> Option<RetrySchedule> {
    let delay = |word: &str| duration(word).filter(|delay| *delay <= 30 * DAY);
    RetrySchedule::new(text.split_whitespace().map(delay).collect::<Option<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::super::tests::gather;
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_domain() {
        let webhooks = gather(&[], &[]).unwrap().webhooks;
        assert_eq!(webhooks.retries, RetrySchedule::default());
        assert_eq!(webhooks.events_kept, 30 * DAY);
        assert!(webhooks.deliver && !webhooks.allow_private);
    }

    #[test]
    fn a_schedule_has_one_to_a_hundred_delays_and_begins_immediately() {
        let seconds = |all: &[u64]| {
            RetrySchedule::new(all.iter().copied().map(Duration::from_secs).collect()).unwrap()
        };
        assert_eq!(schedule(" 0s  90s 2h "), Some(seconds(&[0, 90, 7_200])));
        assert_eq!(schedule("0s"), Some(seconds(&[0])));
        assert!(schedule(&"0s ".repeat(100)).is_some());
        for bad in ["", " ", "1s", "0s soon", "0s -1s", "0s 31d", "5", &"0s ".repeat(101)] {
            assert_eq!(schedule(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn every_invalid_setting_is_reported_and_a_short_key_is_not_repeated() {
        let bad = [
            "events_kept=4d",
            "webhooks_allow_private=maybe",
            "webhooks_deliver=1",
            "webhooks_timeout=61s",
            "webhooks_per_second=0",
            "webhooks_retries=at once",
        ];
        let key = [("GALLEY_SECRET_KEY", "canary")];
        let errors = gather(&bad, &key).unwrap_err().to_string();
        for setting in bad {
            let (name, value) = setting.split_once('=').unwrap();
            assert!(errors.contains(&format!("{name} = {value:?}")), "{name}: {errors}");
        }
        assert!(errors.contains("GALLEY_SECRET_KEY"), "{errors}");
        assert!(!errors.contains("canary"), "{errors}");
    }

    #[test]
    fn an_empty_key_is_no_key_and_the_smallest_values_are_accepted() {
        let least = ["events_kept=5d", "webhooks_timeout=100ms", "webhooks_per_second=1"];
        gather(&least, &[("GALLEY_SECRET_KEY", "")]).unwrap();
        gather(&least, &[("GALLEY_SECRET_KEY", "sixteen letters!")]).unwrap();
    }
}
