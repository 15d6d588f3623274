//! The result lines of a whole benchmark, gathered by what they are about.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::summary::Summary;

/// A line of the results.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    /// A run of the load generator.
    Run(Summary),
    /// Memory that a server held after one.
    Memory { memory: String, kib: f64 },
    /// The median of something measured without a server, as it was printed.
    Micro { micro: String, median: String },
    /// How many events an endpoint got in a second, while so many were created.
    Deliveries { deliveries: String, per_second: f64 },
    /// Memory that a server held with so many events undelivered.
    Undelivered { undelivered: u64, kib: f64 },
    /// What a server with many templates takes.
    Holding(Holding),
}

/// What a server takes for so many templates.
#[derive(Debug, Clone, Deserialize)]
pub struct Holding {
    /// How many it holds.
    pub templates: u64,
    /// Seconds that making them took.
    pub seeded_s: f64,
    /// Seconds after which the search knew the last of them.
    pub followed_s: f64,
    /// Memory of its own then, without mapped files.
    pub seeded_kib: f64,
    /// The same after the runs with few connections.
    pub runs_kib: f64,
    /// The same after the run with many.
    pub crowd_kib: f64,
    /// The file with the templates, its log folded into it.
    pub store_kib: f64,
    /// The file that is searched, likewise.
    pub search_kib: f64,
    /// The write-ahead logs of both, while the server ran.
    pub logs_kib: f64,
}

/// The median.
fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values.get(middle).copied()
    } else {
        Some(f64::midpoint(*values.get(middle.checked_sub(1)?)?, values[middle]))
    }
}

/// All that was measured.
#[derive(Debug, Default)]
pub struct Results {
    /// Runs by their label, one for each round.
    pub runs: BTreeMap<String, Vec<Summary>>,
    /// MiB by server, the most of all rounds.
    pub memory: BTreeMap<String, f64>,
    /// Microseconds of what was measured without a server.
    pub micro: BTreeMap<String, f64>,
    /// Events that an endpoint got in a second, one for each round.
    pub deliveries: BTreeMap<String, Vec<f64>>,
    /// MiB by the number of events undelivered.
    pub undelivered: BTreeMap<u64, f64>,
    /// What a server takes, by the number of templates.
    pub holdings: BTreeMap<u64, Holding>,
}

impl Results {
    /// Reads the lines.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut results = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str(line).map_err(|e| format!("{e}: {line}"))? {
                Line::Run(run) => results.runs.entry(run.label.clone()).or_default().push(run),
                // The largest value over all rounds is the one that has to fit.
                Line::Memory { memory, kib } => {
                    let most = results.memory.entry(memory).or_insert(0.0);
                    *most = most.max(kib / 1024.0);
                }
                Line::Micro { micro, median } => {
                    let us = microseconds(&median).ok_or(format!("not a time: {median}"))?;
                    results.micro.insert(micro, us);
                }
                Line::Deliveries { deliveries, per_second } => {
                    results.deliveries.entry(deliveries).or_default().push(per_second);
                }
                Line::Undelivered { undelivered, kib } => {
                    results.undelivered.insert(undelivered, kib / 1024.0);
                }
                Line::Holding(it) => drop(results.holdings.insert(it.templates, it)),
            }
        }
        Ok(results)
    }

    /// The median of one figure over all rounds.
    pub fn median(&self, label: &str, figure: impl Fn(&Summary) -> f64) -> Option<f64> {
        middle(self.runs.get(label)?.iter().map(figure).collect())
    }

    /// The median of the events that an endpoint got in a second.
    pub fn delivered(&self, run: &str) -> Option<f64> {
        middle(self.deliveries.get(run)?.clone())
    }

    /// The median of the rate.
    pub fn rate(&self, label: &str) -> Option<f64> {
        self.median(label, |run| run.rate)
    }

    /// The median of a latency, in milliseconds.
    pub fn ms(&self, label: &str, figure: impl Fn(&Summary) -> u32) -> Option<f64> {
        Some(self.median(label, |run| f64::from(figure(run)))? / 1000.0)
    }
}

/// What a verdict says.
pub fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

/// A time with its unit, as `1.234 µs`.
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
    fn a_median_is_the_middle_of_all_rounds() {
        let text = run("a", 3.0, 1_000) + &run("a", 1.0, 3_000) + &run("b", 7.0, 1);
        let results = Results::read(&text).unwrap();
        assert_eq!((results.rate("a"), results.rate("b")), (Some(2.0), Some(7.0)));
        assert_eq!(results.ms("a", |run| run.p99_us), Some(4.0));
        assert_eq!(results.rate("c"), None);
    }

    #[test]
    fn the_most_memory_counts() {
        let text = "{\"memory\":\"galley\",\"kib\":2048}\n{\"memory\":\"galley\",\"kib\":1024}\n";
        assert_eq!(Results::read(text).unwrap().memory.get("galley"), Some(&2.0));
        assert!(Results::read("{}").is_err());
    }

    #[test]
    fn times_are_read_in_every_unit() {
        for (text, expected) in
            [("1.5 µs", Some(1.5)), ("250 ns", Some(0.25)), ("2 ms", Some(2_000.0)), ("7", None)]
        {
            assert_eq!(microseconds(text), expected, "{text}");
        }
        let line = "{\"micro\":\"render\",\"median\":\"2.5 µs\"}";
        assert_eq!(Results::read(line).unwrap().micro.get("render"), Some(&2.5));
        assert!(Results::read("{\"micro\":\"render\",\"median\":\"\"}").is_err());
    }
}
