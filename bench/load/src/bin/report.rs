//! `report`: reads the result lines of a benchmark and prints medians, ratios and targets.

use std::io::{self, Read};
use std::process::ExitCode;

use load::growth;
use load::results::{Results, met_or_missed};
use load::tail;
use load::webhooks;

/// A row of the table, with its baseline and targets.
struct Row {
    label: &'static str,
    description: &'static str,
    /// Label of the ceiling run to compare with.
    base: Option<&'static str>,
    /// Target: share of the ceiling.
    share: Option<f64>,
    /// Target: multiple of the best peer.
    multiple: Option<f64>,
}

const PEERS: [&str; 2] = ["axum-sqlx/create/256", "bun/create/256"];

const ROWS: [Row; 20] = [
    row("ceiling/create/64", "bare axum, POST", None, None, None),
    row("galley/create/64", "durable create", Some("ceiling/create/64"), None, None),
    row("galley/create-key/64", "with Idempotency-Key", Some("ceiling/create/64"), None, None),
    row("ceiling/create/256", "bare axum, POST", None, None, None),
    row("galley/create/256", "durable create", Some("ceiling/create/256"), Some(0.40), Some(4.0)),
    row(
        "galley/create-key/256",
        "with Idempotency-Key",
        Some("ceiling/create/256"),
        Some(0.32),
        None,
    ),
    row("ceiling-again/create/256", "bare axum, POST", None, None, None),
    row(
        "postgres/create/256",
        "on PostgreSQL, durable",
        Some("ceiling-again/create/256"),
        Some(0.40),
        None,
    ),
    row(
        "postgres/create-key/256",
        "with Idempotency-Key",
        Some("ceiling-again/create/256"),
        None,
        None,
    ),
    row("postgres-2/create/256", "two instances", Some("ceiling-again/create/256"), None, None),
    row("axum-sqlx/create/256", "peer, durable create", Some("ceiling/create/256"), None, None),
    row("bun/create/256", "peer, durable create", Some("ceiling/create/256"), None, None),
    row("ceiling/read/256", "bare axum, GET", None, None, None),
    row("galley/read/256", "read by id", Some("ceiling/read/256"), Some(0.75), None),
    row("postgres/read/256", "on PostgreSQL", Some("ceiling/read/256"), None, None),
    row("ceiling/render/256", "bare axum, POST of values", None, None, None),
    row("galley/render/256", "render", Some("ceiling/render/256"), Some(0.70), None),
    row("postgres/render/256", "on PostgreSQL", Some("ceiling/render/256"), None, None),
    row("galley/slow-sync/256", "create, 5 ms per sync", None, None, None),
    row("axum-sqlx/slow-sync/256", "create, 5 ms per sync", None, None, None),
];

const fn row(
    label: &'static str,
    description: &'static str,
    base: Option<&'static str>,
    share: Option<f64>,
    multiple: Option<f64>,
) -> Row {
    Row { label, description, base, share, multiple }
}

/// Target: resident memory of a server after its runs, in MiB.
const TARGET_MEMORY_MIB: f64 = 64.0;

/// Micro-benchmarks: name, description, and target in microseconds.
const MICRO: [(&str, &str, f64); 1] =
    [("render/values_to_answer", "render without a server, values to response", 10.0)];

fn main() -> ExitCode {
    let mut text = String::new();
    if let Err(error) = io::stdin().read_to_string(&mut text) {
        eprintln!("report: {error}");
        return ExitCode::from(2);
    }
    match Results::parse(&text) {
        Ok(results) => {
            print(&results);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns the share of the ceiling with the same number of connections.
fn share(results: &Results, row: &Row) -> Option<f64> {
    Some(results.rate(row.label)? / results.rate(row.base?)?)
}

/// Returns the multiple of the best peer in the same kind of run.
fn multiple(results: &Results, row: &Row) -> Option<f64> {
    let peers: &[&str] = match row.label {
        "galley/create/256" | "galley/create-key/256" => &PEERS,
        "galley/slow-sync/256" => &["axum-sqlx/slow-sync/256"],
        _ => &[],
    };
    let best = peers.iter().filter_map(|peer| results.rate(peer)).max_by(f64::total_cmp)?;
    Some(results.rate(row.label)? / best)
}

fn print(results: &Results) {
    if ROWS.iter().any(|row| results.runs.contains_key(row.label)) {
        print_rows(results);
    }
    for (server, mib) in &results.memory {
        let result = met_or_missed(*mib < TARGET_MEMORY_MIB);
        println!(
            "{server:<24} resident memory after creates, maximum of all rounds: {mib:.1} MiB   target < {TARGET_MEMORY_MIB} MiB: {result}"
        );
    }
    for (name, description, target) in MICRO {
        let Some(us) = results.micro.get(name) else { continue };
        let result = met_or_missed(*us < target);
        println!("{name:<24} {description}: {us:.2} µs   target < {target} µs: {result}");
    }
    for table in [webhooks::table(results), tail::table(results), growth::table(results)] {
        if !table.is_empty() {
            println!("\n{table}");
        }
    }
}

fn print_rows(results: &Results) {
    println!(
        "{:<24} {:<26} {:>8} {:>17} {:>9} {:>9} {:>6} {:>8} {:>8}  target",
        "run",
        "description",
        "req/s",
        "lowest-highest",
        "p50 ms",
        "p99 ms",
        "load",
        "ceiling",
        "peer"
    );
    for row in &ROWS {
        let Some(runs) = results.runs.get(row.label) else { continue };
        let rates = || runs.iter().map(|run| run.rate);
        let (share, multiple) = (share(results, row), multiple(results, row));
        let line = format!(
            "{:<24} {:<26} {:>8.0} {:>17} {:>9.2} {:>9.2} {:>6.2} {:>8} {:>8}  {}",
            row.label,
            row.description,
            results.rate(row.label).unwrap_or(0.0),
            format!(
                "{:.0}-{:.0}",
                rates().fold(f64::INFINITY, f64::min),
                rates().fold(0.0, f64::max)
            ),
            results.ms(row.label, |run| run.p50_us).unwrap_or(0.0),
            results.ms(row.label, |run| run.p99_us).unwrap_or(0.0),
            results.median(row.label, |run| run.load_cores).unwrap_or(0.0),
            share.map_or(String::from("-"), |share| format!("{share:.3}")),
            multiple.map_or(String::from("-"), |multiple| format!("{multiple:.1}x")),
            targets(row, share, multiple),
        );
        println!("{}", line.trim_end());
    }
}

/// Returns the targets of a row, and whether each one that could be computed was met.
fn targets(row: &Row, share: Option<f64>, multiple: Option<f64>) -> String {
    let mut parts = Vec::new();
    if let (Some(target), Some(share)) = (row.share, share) {
        parts.push(format!("{target:.2} of ceiling: {}", met_or_missed(share >= target)));
    }
    if let (Some(target), Some(multiple)) = (row.multiple, multiple) {
        parts.push(format!("{target:.0}x best peer: {}", met_or_missed(multiple >= target)));
    }
    parts.join(", ")
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
        let results = Results::parse(&text).unwrap();
        let row = find("galley/create/256");
        assert_eq!(share(&results, row), Some(0.5));
        assert_eq!(multiple(&results, row), Some(4.0));
        assert_eq!(
            targets(row, share(&results, row), multiple(&results, row)),
            "0.40 of ceiling: met, 4x best peer: met"
        );
        assert_eq!(targets(row, Some(0.39), None), "0.40 of ceiling: MISSED");
    }

    #[test]
    fn reads_and_renders_are_compared_with_the_ceiling_of_the_same_kind() {
        let text = run("ceiling/read/256", 100.0)
            + &run("galley/read/256", 69.0)
            + &run("ceiling/render/256", 50.0)
            + &run("galley/render/256", 30.0);
        let results = Results::parse(&text).unwrap();
        let read = find("galley/read/256");
        assert_eq!(targets(read, share(&results, read), None), "0.75 of ceiling: MISSED");
        assert_eq!(targets(read, Some(0.75), None), "0.75 of ceiling: met");
        assert_eq!(share(&results, find("galley/render/256")), Some(0.6));
    }
}
