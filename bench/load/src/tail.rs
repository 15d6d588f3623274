//! The table of the slowest requests: with many templates, and beside the load of another account.

use std::fmt::Write as _;

use crate::results::{Results, met_or_missed};
use crate::summary::Summary;

/// What a row is compared with.
enum Target {
    /// p99 at most this multiple of that of another run.
    P99Multiple(f64, &'static str),
    /// p99 at most this number of milliseconds.
    P99Ms(f64),
    /// Rate at least this share of that of another run, in every round.
    Share(f64, &'static str),
    /// p99 as a multiple of that of another run; not a target.
    P99Ratio(&'static str),
    /// The lowest share of the rate of another run; not a target.
    Ratio(&'static str),
}

use Target::{P99Ms, P99Multiple, P99Ratio, Ratio, Share};

const ROWS: [(&str, &str, &[Target]); 15] = [
    ("ceiling/full", "bare axum, full load", &[]),
    ("ceiling/most", "bare axum, 70 % of its rate", &[]),
    ("ceiling/read", "bare axum, GET", &[]),
    ("ceiling/render", "bare axum, POST of values", &[]),
    ("empty/full", "creates, empty store", &[]),
    ("galley/full", "creates", &[Share(0.8, "empty/full"), P99Multiple(3.0, "ceiling/full")]),
    (
        "galley/most",
        "creates, 70 % of its rate",
        &[P99Multiple(2.0, "ceiling/full"), P99Ratio("ceiling/most")],
    ),
    ("galley/key", "with Idempotency-Key", &[Share(0.32, "ceiling/full")]),
    ("galley/read", "reads of 10,000 templates", &[Share(0.75, "ceiling/read")]),
    ("galley/render", "renders of 10,000 templates", &[Share(0.70, "ceiling/render")]),
    ("galley/read-any", "reads of any template", &[Ratio("ceiling/read")]),
    ("galley/render-any", "renders of any template", &[Ratio("ceiling/render")]),
    ("galley/read-during-creates", "reads during creates", &[P99Ms(25.0)]),
    ("neighbour/create", "creates of account B", &[P99Ms(25.0)]),
    ("neighbour/list", "lists of account B", &[P99Ms(25.0)]),
];

/// Target: anonymous memory, in MiB.
const TARGET_MEMORY_MIB: f64 = 64.0;

/// Returns the table; empty without measurements.
pub fn table(results: &Results) -> String {
    let mut table = String::new();
    for (name, description, row_targets) in &ROWS {
        let label = format!("tail/{name}");
        let Some(rate) = results.rate(&label) else { continue };
        if table.is_empty() {
            let _ = writeln!(
                table,
                "{:<32} {:<28} {:>8} {:>9} {:>9}  target",
                "run", "description", "req/s", "p50 ms", "p99 ms"
            );
        }
        let ms = |figure: fn(&Summary) -> u32| results.ms(&label, figure).unwrap_or(0.0);
        let line = format!(
            "{label:<32} {description:<28} {rate:>8.0} {:>9.2} {:>9.2}  {}",
            ms(|run| run.p50_us),
            ms(|run| run.p99_us),
            targets(results, name, row_targets)
        );
        let _ = writeln!(table, "{}", line.trim_end());
    }
    if let Some((anon, file)) = results.tail_memory {
        let _ = writeln!(
            table,
            "memory, maximum of all rounds: {anon:.1} MiB anonymous, {file:.1} MiB of files   target < {TARGET_MEMORY_MIB} MiB anonymous: {}",
            met_or_missed(anon < TARGET_MEMORY_MIB)
        );
    }
    table
}

/// Returns the targets of a row, and whether each one that could be computed was met.
fn targets(results: &Results, name: &str, targets: &[Target]) -> String {
    let of = |target: &Target| match *target {
        P99Multiple(most, base) => p99_multiple(results, name, most, base),
        P99Ms(most) => p99_ms(results, name, most),
        Share(least, base) => share(results, name, least, base),
        P99Ratio(base) => p99_ratio(results, name, base),
        Ratio(base) => ratio(results, name, base),
    };
    targets.iter().filter_map(of).collect::<Vec<_>>().join(", ")
}

fn p99(results: &Results, name: &str) -> Option<f64> {
    results.ms(&format!("tail/{name}"), |run| run.p99_us)
}

fn p99_multiple(results: &Results, name: &str, most: f64, base: &str) -> Option<String> {
    let result = met_or_missed(p99(results, name)? / p99(results, base)? <= most);
    Some(format!("{}, at most {most}: {result}", p99_ratio(results, name, base)?))
}

fn p99_ratio(results: &Results, name: &str, base: &str) -> Option<String> {
    let multiple = p99(results, name)? / p99(results, base)?;
    Some(format!("p99 {multiple:.2} times {base}"))
}

fn p99_ms(results: &Results, name: &str, most: f64) -> Option<String> {
    let result = met_or_missed(p99(results, name)? <= most);
    Some(format!("p99 at most {most} ms: {result}"))
}

fn share(results: &Results, name: &str, least: f64, base: &str) -> Option<String> {
    let result = met_or_missed(lowest_share(results, name, base)? >= least);
    Some(format!("{}, at least {least:.2}: {result}", ratio(results, name, base)?))
}

fn ratio(results: &Results, name: &str, base: &str) -> Option<String> {
    let lowest = lowest_share(results, name, base)?;
    Some(format!("lowest share of {base} {lowest:.3}"))
}

/// The share of another run's rate: the lowest of all rounds, which counts.
fn lowest_share(results: &Results, name: &str, base: &str) -> Option<f64> {
    let rates = |name: &str| results.runs.get(&format!("tail/{name}"));
    let pairs = rates(name)?.iter().zip(rates(base)?);
    Some(pairs.map(|(run, base)| run.rate / base.rate).fold(f64::INFINITY, f64::min))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::run;

    fn line<'a>(table: &'a str, label: &str) -> &'a str {
        table.lines().find(|line| line.starts_with(label)).unwrap()
    }

    #[test]
    fn a_share_is_met_only_if_every_round_reaches_it() {
        let text = run("tail/empty/full", 100.0, 1_000)
            + &run("tail/empty/full", 100.0, 1_000)
            + &run("tail/galley/full", 90.0, 1_000)
            + &run("tail/galley/full", 79.0, 1_000);
        let table = table(&Results::parse(&text).unwrap());
        let row = line(&table, "tail/galley/full");
        assert!(row.ends_with("lowest share of empty/full 0.790, at least 0.80: MISSED"), "{row}");
    }

    #[test]
    fn latencies_are_compared_with_the_ceiling_and_with_a_limit() {
        let text = run("tail/ceiling/full", 100.0, 2_000)
            + &run("tail/ceiling/most", 70.0, 1_000)
            + &run("tail/galley/most", 50.0, 3_800)
            + &run("tail/neighbour/create", 50.0, 13_000)
            + "{\"tail_anon_kib\":40960,\"tail_file_kib\":1024}\n";
        let table = table(&Results::parse(&text).unwrap());
        let most = "p99 1.90 times ceiling/full, at most 2: met, p99 3.80 times ceiling/most";
        assert!(line(&table, "tail/galley/most").ends_with(most), "{table}");
        assert!(line(&table, "tail/neighbour").ends_with("25 ms: MISSED"), "{table}");
        assert!(line(&table, "memory").contains("40.0 MiB anonymous, 1.0 MiB"), "{table}");
        assert_eq!(super::table(&Results::default()), "");
    }
}
