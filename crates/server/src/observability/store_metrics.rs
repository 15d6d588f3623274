//! The metrics of the store: what this process counts, and totals of the database, which a background
//! worker reads.

use std::time::Duration;

use galley_store::{StoreActivity, StoreStatistics};
use jiff::Timestamp;

use super::{
    exposition::{Exposition, Kind},
    upstream_metrics,
};

/// Totals of the database, and when they were read.
pub(super) struct StatisticsSample {
    pub(super) at: Timestamp,
    pub(super) statistics: StoreStatistics,
}

/// Adds what this process has counted.
pub(super) fn write_activity(page: &mut Exposition, activity: &StoreActivity) {
    page.value(
        Kind::Gauge,
        "galley_write_queue_depth",
        "Writes that wait for the writer",
        activity.queued_writes,
    );
    page.value(
        Kind::Gauge,
        "galley_write_queue_capacity",
        "Writes that can wait; further ones are refused",
        activity.max_queued_writes,
    );
    page.histogram(
        "galley_write_batch_size",
        "Writes that were committed together",
        &activity.batch_sizes,
        |writes| writes,
    );
    page.histogram(
        "galley_write_commit_duration_seconds",
        "Duration of commits, with their sync",
        &activity.commit_micros,
        |micros| Duration::from_micros(micros).as_secs_f64(),
    );
    let pools = || activity.pools.iter();
    page.values(
        Kind::Gauge,
        "galley_pool_size",
        "Slots or connections of a pool",
        "pool",
        pools().map(|it| (it.name, it.size)),
    );
    page.values(
        Kind::Gauge,
        "galley_pool_in_use",
        "Slots or connections of a pool that are in use",
        "pool",
        pools().map(|it| (it.name, it.in_use)),
    );
    page.values(
        Kind::Counter,
        "galley_pool_waits_total",
        "Calls that had to wait because a pool was in use, or because of their account's share",
        "pool",
        pools().map(|it| (it.name, it.waits)),
    );
    page.values(
        Kind::Counter,
        "galley_pool_wait_seconds_total",
        "Time that these calls waited",
        "pool",
        pools().map(|it| (it.name, it.waited.as_secs_f64())),
    );
}

impl StatisticsSample {
    /// Adds the totals. Ages are those at the time of the reading: after it, nothing is known.
    /// `upstream_calls_per_hour` is the budget of each connection; 0 if it is not known.
    pub(super) fn write(&self, page: &mut Exposition, upstream_calls_per_hour: u32) {
        self.write_reviews(page);
        self.write_webhooks(page);
        upstream_metrics::write(page, &self.statistics.upstream, upstream_calls_per_hour, self.at);
        self.write_search(page);
        let StoreStatistics { part_sizes, free_disk_bytes, .. } = &self.statistics;
        page.values(
            Kind::Gauge,
            "galley_store_size_bytes",
            "Size of the store, by part",
            "part",
            part_sizes.iter().copied(),
        );
        if let Some(free) = free_disk_bytes {
            let name = "galley_store_disk_free_bytes";
            page.value(Kind::Gauge, name, "Free space on the disk of the store", free);
        }
        page.value(
            Kind::Gauge,
            "galley_store_sample_timestamp_seconds",
            "When the metrics that need the database were read, as Unix time",
            self.at.as_duration().as_secs_f64(),
        );
    }

    fn write_reviews(&self, page: &mut Exposition) {
        let reviews = &self.statistics.reviews;
        page.value(
            Kind::Gauge,
            "galley_reviews_pending",
            "Templates that wait for a review",
            reviews.pending,
        );
        page.value(
            Kind::Gauge,
            "galley_reviews_oldest_age_seconds",
            "Time since the oldest of them was submitted; 0 if there is none",
            age(reviews.oldest, self.at),
        );
    }

    fn write_webhooks(&self, page: &mut Exposition) {
        let webhooks = &self.statistics.webhooks;
        let states = [
            ("healthy", webhooks.healthy),
            ("failing", webhooks.failing),
            ("disabled", webhooks.disabled),
        ];
        page.values(
            Kind::Gauge,
            "galley_webhook_endpoints",
            "Webhook endpoints, by state",
            "state",
            states,
        );
        page.value(
            Kind::Gauge,
            "galley_webhook_backlog_events",
            "Events that endpoints have not received yet",
            webhooks.backlog,
        );
        page.value(
            Kind::Gauge,
            "galley_webhook_backlog_age_seconds",
            "Time since the oldest of them; 0 if there is none",
            age(webhooks.oldest, self.at),
        );
        page.value(
            Kind::Gauge,
            "galley_webhook_overdue_seconds",
            "How long a delivery could have been attempted, but was not; 0 if there is none",
            age(webhooks.due_since, self.at),
        );
    }

    fn write_search(&self, page: &mut Exposition) {
        let search = &self.statistics.search;
        page.value(
            Kind::Gauge,
            "galley_search_unindexed_events",
            "Events that are not in the search index yet",
            search.unindexed_events,
        );
        page.value(
            Kind::Gauge,
            "galley_search_lag_seconds",
            "Time since the oldest of them; 0 if there is none",
            age(search.oldest, self.at),
        );
        page.value(
            Kind::Gauge,
            "galley_search_rebuilding",
            "1 while the search index of an account is built from the beginning",
            u8::from(search.is_rebuilding),
        );
    }
}

/// The time since then in seconds; 0 without a time, and for a time in the future.
pub(super) fn age(since: Option<Timestamp>, at: Timestamp) -> f64 {
    since.map_or(0.0, |since| at.duration_since(since).as_secs_f64().max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_never_negative() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let ages = [None, Some(at(70)), Some(at(130))].map(|since| age(since, at(100)));
        assert_eq!(ages.map(|it| it.to_string()), ["0", "30", "0"]);
    }
}
