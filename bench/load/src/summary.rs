//! Counts and latencies of a run, and the summary of its figures.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use serde::{Deserialize, Serialize};

/// Counters of one event loop.
#[derive(Debug, Default)]
pub struct Tally {
    /// Latency of every response within the measured time, in microseconds.
    pub latencies: Vec<u32>,
    /// Number of responses by status, including the warm-up and late responses.
    pub statuses: BTreeMap<u16, u64>,
    /// Responses with an unexpected status.
    pub unexpected: u64,
    /// Failed connections and unreadable responses.
    pub errors: u64,
    /// Description of the first unexpected response or failed connection.
    pub first_error: Option<String>,
    /// Ids of created templates, one per line.
    pub ids: Vec<u8>,
    /// Names of created templates, one per line.
    pub names: Vec<u8>,
}

impl Tally {
    /// Adds the counters of another loop.
    pub fn merge(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.unexpected += other.unexpected;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or(other.first_error);
        self.ids.extend(other.ids);
        self.names.extend(other.names);
    }

    /// Counts every request without a response in time as an error.
    pub fn count_missing(&mut self, requests: Option<u64>) {
        let missing = requests.unwrap_or(0).saturating_sub(self.latencies.len() as u64);
        if missing > 0 {
            self.errors += missing;
            self.first_error.get_or_insert_with(|| format!("{missing} requests got no response"));
        }
    }
}

/// The figures of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// Label of the run: `server/kind/connections`.
    pub label: String,
    /// Responses per second in the measured time.
    pub rate: f64,
    /// Median latency in microseconds.
    pub p50_us: u32,
    /// 99th percentile latency in microseconds.
    pub p99_us: u32,
    /// Number of responses in the measured time.
    pub requests: usize,
    /// Number of responses by status, including the warm-up; JSON requires string keys.
    pub statuses: BTreeMap<String, u64>,
    /// Responses with an unexpected status.
    pub unexpected: u64,
    /// Failed connections and unreadable responses.
    pub errors: u64,
    /// CPU cores used by the load generator, to detect whether it was the bottleneck.
    pub load_cores: f64,
    /// CPU time of the server per request in microseconds, if measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_us: Option<f64>,
}

impl Summary {
    /// Summarises a run of `seconds` measured seconds.
    pub fn new(label: String, seconds: f64, load_cores: f64, tally: &mut Tally) -> Self {
        tally.latencies.sort_unstable();
        let requests = tally.latencies.len();
        #[expect(clippy::cast_precision_loss, reason = "a count of requests is far below 2^52")]
        let rate = requests as f64 / seconds;
        Self {
            label,
            rate,
            p50_us: percentile(&tally.latencies, 50),
            p99_us: percentile(&tally.latencies, 99),
            requests,
            statuses: tally.statuses.iter().map(|(s, count)| (s.to_string(), *count)).collect(),
            unexpected: tally.unexpected,
            errors: tally.errors,
            load_cores,
            server_us: None,
        }
    }

    /// Sets the CPU time per request from the CPU seconds that the server used in total.
    pub fn set_server_time(&mut self, server_seconds: f64) {
        let responses: u64 = self.statuses.values().sum();
        #[expect(clippy::cast_precision_loss, reason = "a count of requests is far below 2^52")]
        let responses = responses.max(1) as f64;
        self.server_us = Some(server_seconds * 1e6 / responses);
    }

    /// Whether there were responses and all of them were as expected.
    pub fn is_clean(&self) -> bool {
        self.unexpected == 0 && self.errors == 0 && self.requests > 0
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |us: u32| f64::from(us) / 1000.0;
        write!(
            f,
            "{:<28} {:>9.0} req/s   p50 {:>8.2} ms   p99 {:>8.2} ms   load {:.2} cores  ",
            self.label,
            self.rate,
            ms(self.p50_us),
            ms(self.p99_us),
            self.load_cores
        )?;
        for (status, count) in &self.statuses {
            write!(f, " {status}: {count}")?;
        }
        write!(f, " errors: {}", self.errors)
    }
}

fn percentile(sorted: &[u32], percent: usize) -> u32 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0)
}

/// Returns the CPU seconds that a process has used (`self` for this one); Linux only.
pub fn cpu_seconds(process: &str) -> f64 {
    // The command in parentheses may contain spaces, so fields are counted from its end. User and
    // system time are the 12th and 13th field after it, in hundredths of a second.
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: f64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_observed_values() {
        let values: Vec<u32> = (1..=200).collect();
        assert_eq!(percentile(&values, 50), 100);
        assert_eq!(percentile(&values, 99), 198);
        assert_eq!(percentile(&[5], 99), 5);
        assert_eq!(percentile(&[], 99), 0);
    }

    #[test]
    fn a_run_with_an_unexpected_status_is_not_clean() {
        let mut tally = Tally { latencies: vec![1, 2, 3], ..Tally::default() };
        assert!(Summary::new("x".into(), 1.0, 0.0, &mut tally).is_clean());
        tally.unexpected = 1;
        assert!(!Summary::new("x".into(), 1.0, 0.0, &mut tally).is_clean());
    }

    #[test]
    fn server_time_is_divided_by_all_responses_including_the_warm_up() {
        let mut tally = Tally { latencies: vec![1, 2], ..Tally::default() };
        tally.statuses.insert(200, 4);
        let mut summary = Summary::new("x".into(), 1.0, 0.0, &mut tally);
        assert!(!serde_json::to_string(&summary).unwrap().contains("server_us"));
        summary.set_server_time(0.002);
        assert_eq!(summary.server_us, Some(500.0));
    }

    #[test]
    fn a_run_with_missing_responses_is_not_clean() {
        let mut tally = Tally { latencies: vec![1, 2, 3], ..Tally::default() };
        tally.count_missing(None);
        tally.count_missing(Some(3));
        assert_eq!((tally.errors, &tally.first_error), (0, &None));
        tally.count_missing(Some(5));
        assert_eq!(tally.errors, 2);
        assert_eq!(tally.first_error.as_deref(), Some("2 requests got no response"));
    }
}
