//! What a run found: counts and latencies while it runs, one summary when it is over.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use serde::{Deserialize, Serialize};

/// What one event loop saw.
#[derive(Debug, Default)]
pub struct Tally {
    /// Latency of every answer inside the measured time, in microseconds.
    pub latencies: Vec<u32>,
    /// Answers of each status, warm-up and leftovers included.
    pub statuses: BTreeMap<u16, u64>,
    /// Answers with a status that was not wanted.
    pub unexpected: u64,
    /// Connections that failed and answers that could not be read.
    pub errors: u64,
    /// The first answer or failure that was not wanted, so that somebody can find the cause.
    pub complaint: Option<String>,
    /// Ids of what was created, a line each.
    pub ids: Vec<u8>,
    /// Names of what was created, a line each.
    pub names: Vec<u8>,
}

impl Tally {
    /// Adds what another loop saw.
    pub fn merge(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.unexpected += other.unexpected;
        self.errors += other.errors;
        self.complaint = self.complaint.take().or(other.complaint);
        self.ids.extend(other.ids);
        self.names.extend(other.names);
    }

    /// Makes every request that the time did not suffice for an error.
    pub fn expect_all(&mut self, requests: Option<u64>) {
        let missing = requests.unwrap_or(0).saturating_sub(self.latencies.len() as u64);
        if missing > 0 {
            self.errors += missing;
            self.complaint.get_or_insert_with(|| format!("{missing} requests were not answered"));
        }
    }
}

/// The figures of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Summary {
    /// What was measured, as `server/kind/connections`.
    pub label: String,
    /// Answers a second in the measured time.
    pub rate: f64,
    /// Median latency in microseconds.
    pub p50_us: u32,
    /// 99th percentile of the latency in microseconds.
    pub p99_us: u32,
    /// Answers in the measured time.
    pub requests: usize,
    /// Answers of each status, warm-up included; as text, as the members of JSON are.
    pub statuses: BTreeMap<String, u64>,
    /// Answers with a status that was not wanted.
    pub unexpected: u64,
    /// Connections that failed and answers that could not be read.
    pub errors: u64,
    /// Cores that the load generator itself used, to see whether it held the server back.
    pub load_cores: f64,
    /// Microseconds of processor time that the server used for each request, if it was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_us: Option<f64>,
}

impl Summary {
    /// Sums up a run of `seconds` measured seconds.
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

    /// Shares processor seconds that the server used out to all that it answered.
    pub fn share_out(&mut self, server_seconds: f64) {
        let answered: u64 = self.statuses.values().sum();
        #[expect(clippy::cast_precision_loss, reason = "a count of requests is far below 2^52")]
        let answered = answered.max(1) as f64;
        self.server_us = Some(server_seconds * 1e6 / answered);
    }

    /// Whether every answer was the wanted one, and there were any.
    pub fn clean(&self) -> bool {
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

/// Processor seconds that a process has used (`self` is this one), where the system tells (Linux).
pub fn cpu_seconds(process: &str) -> f64 {
    // The command in parentheses may hold spaces, so the fields are counted from its end;
    // user and system time are the 12th and 13th after it, in hundredths of a second.
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
    fn percentiles_are_values_that_occurred() {
        let values: Vec<u32> = (1..=200).collect();
        assert_eq!(percentile(&values, 50), 100);
        assert_eq!(percentile(&values, 99), 198);
        assert_eq!(percentile(&[5], 99), 5);
        assert_eq!(percentile(&[], 99), 0);
    }

    #[test]
    fn a_run_with_an_unexpected_status_is_not_clean() {
        let mut tally = Tally { latencies: vec![1, 2, 3], ..Tally::default() };
        assert!(Summary::new("x".into(), 1.0, 0.0, &mut tally).clean());
        tally.unexpected = 1;
        assert!(!Summary::new("x".into(), 1.0, 0.0, &mut tally).clean());
    }

    #[test]
    fn what_a_server_used_is_shared_out_to_all_answers_the_warm_up_included() {
        let mut tally = Tally { latencies: vec![1, 2], ..Tally::default() };
        tally.statuses.insert(200, 4);
        let mut summary = Summary::new("x".into(), 1.0, 0.0, &mut tally);
        assert!(!serde_json::to_string(&summary).unwrap().contains("server_us"));
        summary.share_out(0.002);
        assert_eq!(summary.server_us, Some(500.0));
    }

    #[test]
    fn a_run_with_fewer_answers_than_asked_for_is_not_clean() {
        let mut tally = Tally { latencies: vec![1, 2, 3], ..Tally::default() };
        tally.expect_all(None);
        tally.expect_all(Some(3));
        assert_eq!((tally.errors, &tally.complaint), (0, &None));
        tally.expect_all(Some(5));
        assert_eq!(tally.errors, 2);
        assert_eq!(tally.complaint.as_deref(), Some("2 requests were not answered"));
    }
}
