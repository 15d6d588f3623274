//! The settings of events and webhooks.

use std::{sync::Arc, time::Duration};

use galley_domain::webhook::delivery::Schedule;
use galley_server::delivery::{
    Guard, HttpOutgoing, Keyring, Rules, Setup, SystemResolver, trusted_roots,
};

use super::{Meaning, time};
use crate::secrets::SystemRandom;

const DAY: Duration = Duration::from_hours(24);

/// How events are kept and delivered.
#[derive(Debug)]
pub(crate) struct WebhookSettings {
    /// How long events are kept.
    pub(crate) events_kept: Duration,
    /// Whether endpoints may be in private networks and have http addresses.
    pub(crate) allow_private: bool,
    /// Whether this process delivers.
    pub(crate) deliver: bool,
    /// How long one attempt may take.
    pub(crate) timeout: Duration,
    /// How many deliveries an endpoint gets in a second at most.
    pub(crate) per_second: u32,
    /// When attempts are made.
    pub(crate) retries: Schedule,
    /// What seals the secrets that deliveries are signed with.
    pub(crate) keyring: Keyring,
}

impl WebhookSettings {
    /// What endpoints and deliveries need.
    pub(crate) fn setup(&self) -> Setup {
        let rules = Rules { allow_private: self.allow_private };
        // Each has its own places for looking names up: who registers cannot keep events from going.
        let guard = || Guard::new(rules, Arc::new(SystemResolver::new()));
        let outgoing = HttpOutgoing::new(guard(), self.timeout, trusted_roots());
        Setup {
            guard: guard(),
            keyring: self.keyring.clone(),
            random: Arc::new(SystemRandom),
            outgoing: Arc::new(outgoing),
            schedule: self.retries.clone(),
            per_second: self.per_second,
            timeout: self.timeout,
            deliver: self.deliver,
        }
    }
}

impl Meaning<'_> {
    pub(super) fn webhooks(&mut self) -> WebhookSettings {
        // A hundred years are for ever, and still a moment that can be reckoned with.
        let kept = self.within("events_kept", "a time from 5d to 36500d", 5 * DAY, 36_500 * DAY);
        let flag = |text: &str| text.parse().ok();
        WebhookSettings {
            events_kept: kept,
            allow_private: self.read("webhooks_allow_private", "true or false", flag),
            deliver: self.read("webhooks_deliver", "true or false", flag),
            timeout: self.within(
                "webhooks_timeout",
                "a time from 100ms to 60s",
                Duration::from_millis(100),
                Duration::from_mins(1),
            ),
            per_second: self.read("webhooks_per_second", "a number from 1 to 100000", |text| {
                text.parse().ok().filter(|number| (1..=100_000).contains(number))
            }),
            retries: self.read(
                "webhooks_retries",
                "a list of 1 to 100 times, each 30d at most, such as \"0s 5s 5m\",",
                schedule,
            ),
            keyring: self.keyring(),
        }
    }

    fn within(&mut self, name: &str, expected: &str, least: Duration, most: Duration) -> Duration {
        self.read(name, expected, |text| time(text).filter(|it| (least..=most).contains(it)))
    }

    fn keyring(&mut self) -> Keyring {
        // Compose files hand on what is not set as empty.
        let key = self.written.variable("GALLEY_SECRET_KEY").filter(|key| !key.is_empty());
        Keyring::new(key).unwrap_or_else(|error| {
            self.complaints.push(error.to_string());
            Keyring::new(None).expect("no key cannot be too short")
        })
    }
}

fn schedule(text: &str) -> Option<Schedule> {
    let delay = |word: &str| time(word).filter(|delay| *delay <= 30 * DAY);
    Schedule::new(text.split_whitespace().map(delay).collect::<Option<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::super::tests::gather;
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_domain() {
        let webhooks = gather(&[], &[]).unwrap().webhooks;
        assert_eq!(webhooks.retries, Schedule::default());
        assert_eq!(webhooks.events_kept, 30 * DAY);
        assert!(webhooks.deliver && !webhooks.allow_private);
    }

    #[test]
    fn a_schedule_has_one_to_a_hundred_times_and_begins_at_once() {
        let seconds = |all: &[u64]| {
            Schedule::new(all.iter().copied().map(Duration::from_secs).collect()).unwrap()
        };
        assert_eq!(schedule(" 0s  90s 2h "), Some(seconds(&[0, 90, 7_200])));
        assert_eq!(schedule("0s"), Some(seconds(&[0])));
        assert!(schedule(&"0s ".repeat(100)).is_some());
        for bad in ["", " ", "1s", "0s soon", "0s -1s", "0s 31d", "5", &"0s ".repeat(101)] {
            assert_eq!(schedule(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn every_complaint_is_told_and_a_short_key_is_not_repeated() {
        let bad = [
            "events_kept=4d",
            "webhooks_allow_private=maybe",
            "webhooks_deliver=1",
            "webhooks_timeout=61s",
            "webhooks_per_second=0",
            "webhooks_retries=at once",
        ];
        let key = [("GALLEY_SECRET_KEY", "canary")];
        let complaints = gather(&bad, &key).unwrap_err().to_string();
        for setting in bad {
            let (name, value) = setting.split_once('=').unwrap();
            assert!(complaints.contains(&format!("{name} = {value:?}")), "{name}: {complaints}");
        }
        assert!(complaints.contains("GALLEY_SECRET_KEY"), "{complaints}");
        assert!(!complaints.contains("canary"), "{complaints}");
    }

    #[test]
    fn an_empty_key_is_none_and_the_smallest_values_are_taken() {
        let least = ["events_kept=5d", "webhooks_timeout=100ms", "webhooks_per_second=1"];
        gather(&least, &[("GALLEY_SECRET_KEY", "")]).unwrap();
        gather(&least, &[("GALLEY_SECRET_KEY", "sixteen letters!")]).unwrap();
    }
}
