//! `report`: reads the result lines of a whole benchmark and prints medians, ratios and what is wanted.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::process::ExitCode;

use load::summary::Summary;
use serde::Deserialize;

/// A line of the results: a run of the load generator, or memory that a server held after one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Run(Summary),
    Memory { memory: String, kib: f64 },
}

/// A row of the table: what it shows, what it is compared with, and what is wanted of it.
struct Row {
    label: &'static str,
    what: &'static str,
    base: Option<&'static str>,
    share: Option<f64>,
    multiple: Option<f64>,
}

const PEERS: [&str; 2] = ["axum-sqlx/create/256", "bun/create/256"];

const ROWS: [Row; 12] = [
    row("ceiling/create/64", "bare axum, POST", None, None, None),
    row("galley/create/64", "durable create", Some("ceiling/create/64"), None, None),
    row("galley/create-key/64", "with Idempotency-Key", Some("ceiling/create/64"), None, None),
    row("ceiling/create/256", "bare axum, POST", None, None, None),
    row("galley/create/256", "durable create", Some("ceiling/create/256"), Some(0.40), Some(4.0)),
    row(
        "galley/create-key/256",
        "with Idempotency-Key",
        Some("ceiling/create/256"),
        Some(0.30),
        None,
    ),
    row("axum-sqlx/create/256", "peer, durable create", Some("ceiling/create/256"), None, None),
    row("bun/create/256", "peer, durable create", Some("ceiling/create/256"), None, None),
    row("ceiling/read/256", "bare axum, GET", None, None, None),
    row("galley/read/256", "read by id", Some("ceiling/read/256"), Some(0.70), None),
    row("galley/slow-sync/256", "create, 5 ms in each sync", None, None, None),
    row("axum-sqlx/slow-sync/256", "create, 5 ms in each sync", None, None, None),
];

const fn row(
    label: &'static str,
    what: &'static str,
    base: Option<&'static str>,
    share: Option<f64>,
    multiple: Option<f64>,
) -> Row {
    Row { label, what, base, share, multiple }
}

/// MiB that a server may hold after its runs.
const WANTED_MEMORY: f64 = 64.0;

fn main() -> ExitCode {
    let mut text = String::new();
    if let Err(error) = io::stdin().read_to_string(&mut text) {
        eprintln!("report: {error}");
        return ExitCode::from(2);
    }
    match Results::read(&text) {
        Ok(results) => {
            results.print();
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::from(2)
        }
    }
}

#[derive(Debug, Default)]
struct Results {
    runs: BTreeMap<String, Vec<Summary>>,
    memory: BTreeMap<String, f64>,
}

impl Results {
    fn read(text: &str) -> Result<Self, String> {
        let mut results = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str(line).map_err(|e| format!("{e}: {line}"))? {
                Line::Run(run) => results.runs.entry(run.label.clone()).or_default().push(run),
                // The largest value over all rounds is the one that has to fit.
                Line::Memory { memory, kib } => {
                    let most = results.memory.entry(memory).or_insert(0.0);
                    *most = most.max(kib / 1024.0);
                }
            }
        }
        Ok(results)
    }

    /// The median of one figure over all rounds.
    fn median(&self, label: &str, figure: impl Fn(&Summary) -> f64) -> Option<f64> {
        let mut values: Vec<f64> = self.runs.get(label)?.iter().map(figure).collect();
        values.sort_unstable_by(f64::total_cmp);
        let middle = values.len() / 2;
        if values.len() % 2 == 1 {
            values.get(middle).copied()
        } else {
            Some(f64::midpoint(values[middle - 1], values[middle]))
        }
    }

    fn rate(&self, label: &str) -> Option<f64> {
        self.median(label, |run| run.rate)
    }

    /// Share of the ceiling with as many connections.
    fn share(&self, row: &Row) -> Option<f64> {
        Some(self.rate(row.label)? / self.rate(row.base?)?)
    }

    /// Multiple of the best peer that was measured in the same way.
    fn multiple(&self, row: &Row) -> Option<f64> {
        let peers: &[&str] = match row.label {
            "galley/create/256" | "galley/create-key/256" => &PEERS,
            "galley/slow-sync/256" => &["axum-sqlx/slow-sync/256"],
            _ => &[],
        };
        let best = peers.iter().filter_map(|peer| self.rate(peer)).max_by(f64::total_cmp)?;
        Some(self.rate(row.label)? / best)
    }

    fn print(&self) {
        println!(
            "{:<24} {:<26} {:>8} {:>17} {:>9} {:>9} {:>6} {:>8} {:>8}  wanted",
            "run", "what", "req/s", "lowest-highest", "p50 ms", "p99 ms", "load", "ceiling", "peer"
        );
        for row in &ROWS {
            let Some(runs) = self.runs.get(row.label) else { continue };
            let rates = || runs.iter().map(|run| run.rate);
            let ms = |figure: fn(&Summary) -> u32| {
                let us = self.median(row.label, |run| f64::from(figure(run)));
                us.map_or(0.0, |us| us / 1000.0)
            };
            let (share, multiple) = (self.share(row), self.multiple(row));
            let line = format!(
                "{:<24} {:<26} {:>8.0} {:>17} {:>9.2} {:>9.2} {:>6.2} {:>8} {:>8}  {}",
                row.label,
                row.what,
                self.rate(row.label).unwrap_or(0.0),
                format!(
                    "{:.0}-{:.0}",
                    rates().fold(f64::INFINITY, f64::min),
                    rates().fold(0.0, f64::max)
                ),
                ms(|run| run.p50_us),
                ms(|run| run.p99_us),
                self.median(row.label, |run| run.load_cores).unwrap_or(0.0),
                share.map_or(String::from("-"), |share| format!("{share:.3}")),
                multiple.map_or(String::from("-"), |multiple| format!("{multiple:.1}x")),
                wanted(row, share, multiple),
            );
            println!("{}", line.trim_end());
        }
        for (server, mib) in &self.memory {
            let verdict = verdict(*mib < WANTED_MEMORY);
            println!(
                "{server:<24} resident memory after creates, most of all rounds: {mib:.1} MiB   wanted < {WANTED_MEMORY} MiB: {verdict}"
            );
        }
    }
}

/// The wanted figures of a row with a verdict on each that could be computed.
fn wanted(row: &Row, share: Option<f64>, multiple: Option<f64>) -> String {
    let mut parts = Vec::new();
    if let (Some(wanted), Some(share)) = (row.share, share) {
        parts.push(format!("{wanted:.2} of ceiling: {}", verdict(share >= wanted)));
    }
    if let (Some(wanted), Some(multiple)) = (row.multiple, multiple) {
        parts.push(format!("{wanted:.0}x best peer: {}", verdict(multiple >= wanted)));
    }
    parts.join(", ")
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(label: &str, rate: f64) -> String {
        format!(
            r#"{{"label":"{label}","rate":{rate},"p50_us":1,"p99_us":2,"requests":1,"statuses":{{"201":1}},"unexpected":0,"errors":0,"load_cores":0.5}}"#
        ) + "\n"
    }

    fn find(label: &str) -> &'static Row {
        ROWS.iter().find(|row| row.label == label).unwrap()
    }

    #[test]
    fn ratios_compare_medians_with_the_same_connections_and_the_best_peer() {
        let text = run("ceiling/create/256", 100.0)
            + &run("ceiling/create/256", 300.0)
            + &run("ceiling/create/256", 200.0)
            + &run("ceiling/create/64", 7.0)
            + &run("galley/create/256", 90.0)
            + &run("galley/create/256", 110.0)
            + &run("axum-sqlx/create/256", 20.0)
            + &run("bun/create/256", 25.0);
        let results = Results::read(&text).unwrap();
        let row = find("galley/create/256");
        assert_eq!(results.share(row), Some(0.5));
        assert_eq!(results.multiple(row), Some(4.0));
        assert_eq!(
            wanted(row, results.share(row), results.multiple(row)),
            "0.40 of ceiling: met, 4x best peer: met"
        );
        assert_eq!(wanted(row, Some(0.39), None), "0.40 of ceiling: MISSED");
    }

    #[test]
    fn the_most_memory_counts() {
        let text = "{\"memory\":\"galley\",\"kib\":2048}\n{\"memory\":\"galley\",\"kib\":1024}\n";
        assert_eq!(Results::read(text).unwrap().memory.get("galley"), Some(&2.0));
        assert!(Results::read("{}").is_err());
    }
}
