//! Parses the result lines of a benchmark and groups them by kind.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::summary::Summary;

/// A line of the results.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    /// A run of the load generator.
    Run(Summary),
    /// Resident memory of a server after a run.
    Memory { memory: String, kib: f64 },
    /// Median of a micro-benchmark, with its unit.
    Micro { micro: String, median: String },
    /// Events per second that an endpoint received during a create run.
    Deliveries { deliveries: String, per_second: f64 },
    /// Resident memory of a server with this number of undelivered events.
    Undelivered { undelivered: u64, kib: f64 },
    /// Memory of a server in the tail benchmark.
    TailMemory { tail_anon_kib: f64, tail_file_kib: f64 },
    /// Resources of a server in the growth benchmark.
    Footprint(Footprint),
}

/// Time, memory and disk space of a server with a given number of templates.
#[derive(Debug, Clone, Deserialize)]
pub struct Footprint {
    /// Number of templates.
    pub templates: u64,
    /// Seconds to create them.
    pub seeded_s: f64,
    /// Seconds until the search index had caught up.
    pub followed_s: f64,
    /// Anonymous memory at that time, without mapped files.
    pub seeded_kib: f64,
    /// Anonymous memory after the runs with few connections.
    pub runs_kib: f64,
    /// Anonymous memory after the run with many connections.
    pub crowd_kib: f64,
    /// Size of the store after a checkpoint.
    pub store_kib: f64,
    /// Size of the search index after a checkpoint.
    pub search_kib: f64,
    /// Size of both write-ahead logs while the server ran.
    pub logs_kib: f64,
}

/// Returns the median of the values.
fn median_of(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values.get(middle).copied()
    } else {
        Some(f64::midpoint(*values.get(middle.checked_sub(1)?)?, values[middle]))
    }
}

/// All results of a benchmark.
#[derive(Debug, Default)]
pub struct Results {
    /// Runs by label, one per round.
    pub runs: BTreeMap<String, Vec<Summary>>,
    /// Resident memory by server in MiB, the maximum of all rounds.
    pub memory: BTreeMap<String, f64>,
    /// Medians of micro-benchmarks in microseconds, by name.
    pub micro: BTreeMap<String, f64>,
    /// Events per second that an endpoint received, one value per round.
    pub deliveries: BTreeMap<String, Vec<f64>>,
    /// Resident memory in MiB by number of undelivered events.
    pub undelivered: BTreeMap<u64, f64>,
    /// Anonymous and file-backed memory in the tail benchmark in MiB, the maximum of all rounds.
    pub tail_memory: Option<(f64, f64)>,
    /// Resources by number of templates.
    pub footprints: BTreeMap<u64, Footprint>,
}

impl Results {
    /// Parses the result lines.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut results = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str(line).map_err(|e| format!("{e}: {line}"))? {
                Line::Run(run) => results.runs.entry(run.label.clone()).or_default().push(run),
                // The target applies to the maximum of all rounds.
                Line::Memory { memory, kib } => {
                    let max = results.memory.entry(memory).or_insert(0.0);
                    *max = max.max(kib / 1024.0);
                }
                Line::Micro { micro, median } => {
                    let us = microseconds(&median).ok_or(format!("not a duration: {median}"))?;
                    results.micro.insert(micro, us);
                }
                Line::Deliveries { deliveries, per_second } => {
                    results.deliveries.entry(deliveries).or_default().push(per_second);
                }
                Line::Undelivered { undelivered, kib } => {
                    results.undelivered.insert(undelivered, kib / 1024.0);
                }
                Line::TailMemory { tail_anon_kib, tail_file_kib } => {
                    let (anon, file) = results.tail_memory.unwrap_or_default();
                    results.tail_memory =
                        Some((anon.max(tail_anon_kib / 1024.0), file.max(tail_file_kib / 1024.0)));
                }
                Line::Footprint(it) => drop(results.footprints.insert(it.templates, it)),
            }
        }
        Ok(results)
    }

    /// Returns the median of one figure over all rounds.
    pub fn median(&self, label: &str, figure: impl Fn(&Summary) -> f64) -> Option<f64> {
        median_of(self.runs.get(label)?.iter().map(figure).collect())
    }

    /// Returns the median of the events per second that an endpoint received.
    pub fn delivered(&self, run: &str) -> Option<f64> {
        median_of(self.deliveries.get(run)?.clone())
    }

    /// Returns the median rate in requests per second.
    pub fn rate(&self, label: &str) -> Option<f64> {
        self.median(label, |run| run.rate)
    }

    /// Returns the median of a latency in milliseconds.
    pub fn ms(&self, label: &str, figure: impl Fn(&Summary) -> u32) -> Option<f64> {
        Some(self.median(label, |run| f64::from(figure(run)))? / 1000.0)
    }
}

/// Returns the word for a target that was met or missed.
pub fn met_or_missed(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

/// Parses a time with its unit, such as `1.234 µs`, into microseconds.
fn microseconds(text: &str) -> Option<f64> {
    let (number, unit) = text.trim().split_once(' ')?;
    let factor = match unit {
        "ns" => 0.001,
        "µs" => 1.0,
        "ms" => 1_000.0,
        "s" => 1_000_000.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn run(label: &str, rate: f64, p50_us: u32) -> String {
        format!(
            r#"{{"label":"{label}","rate":{rate},"p50_us":{p50_us},"p99_us":{},"requests":1,"statuses":{{"201":1}},"unexpected":0,"errors":0,"load_cores":0.5}}"#,
            p50_us * 2
        ) + "\n"
    }

    #[test]
    fn the_median_is_taken_over_all_rounds() {
        let text = run("a", 3.0, 1_000) + &run("a", 1.0, 3_000) + &run("b", 7.0, 1);
        let results = Results::parse(&text).unwrap();
        assert_eq!((results.rate("a"), results.rate("b")), (Some(2.0), Some(7.0)));
        assert_eq!(results.ms("a", |run| run.p99_us), Some(4.0));
        assert_eq!(results.rate("c"), None);
    }

    #[test]
    fn memory_is_the_maximum_of_all_rounds() {
        let text = "{\"memory\":\"galley\",\"kib\":2048}\n{\"memory\":\"galley\",\"kib\":1024}\n";
        assert_eq!(Results::parse(text).unwrap().memory.get("galley"), Some(&2.0));
        assert!(Results::parse("{}").is_err());
    }

    #[test]
    fn durations_are_parsed_in_every_unit() {
        for (text, expected) in
            [("1.5 µs", Some(1.5)), ("250 ns", Some(0.25)), ("2 ms", Some(2_000.0)), ("7", None)]
        {
            assert_eq!(microseconds(text), expected, "{text}");
        }
        let line = "{\"micro\":\"render\",\"median\":\"2.5 µs\"}";
        assert_eq!(Results::parse(line).unwrap().micro.get("render"), Some(&2.5));
        assert!(Results::parse("{\"micro\":\"render\",\"median\":\"\"}").is_err());
    }
}
