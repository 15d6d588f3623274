//! The table of the growth benchmark: each request with few and with many templates, side by side.

use std::iter::once;

use crate::results::{Footprint, Results, met_or_missed};

/// Target: the median at the largest size as a multiple of the median at the smallest. A B-tree
/// with a hundred times as many rows is a level deeper, and less of it is cached.
const MAX_RATIO: f64 = 1.25;

/// Kind of request, its description, and whether the target applies to it.
const KINDS: [(&str, &str, bool); 15] = [
    ("page", "first page", true),
    ("far-page", "page in the middle", true),
    ("status", "status=PAUSED", true),
    ("category", "category=UTILITY", true),
    ("language", "language=de_DE", true),
    ("name", "name=(any)", true),
    ("two-filters", "category and language", false),
    ("search-every", "q: in every template", false),
    ("search-rare", "q: in one of 10,000", false),
    ("search-start", "q: two letters", false),
    ("search-two", "q: two words", false),
    ("search-status", "q: in every, with status", false),
    ("read", "read by id", false),
    ("create", "durable create", false),
    ("crowd", "far-page, 256 connections", false),
];

/// The rows about time, memory and disk space.
const FIGURES: [(&str, Figure); 8] = [
    ("seeding, s", |it| it.seeded_s),
    ("search caught up, s", |it| it.followed_s),
    ("memory then, MiB", |it| it.seeded_kib / 1024.0),
    ("memory after runs, MiB", |it| it.runs_kib / 1024.0),
    ("memory after crowd, MiB", |it| it.crowd_kib / 1024.0),
    ("templates on disk, MiB", |it| it.store_kib / 1024.0),
    ("search on disk, MiB", |it| it.search_kib / 1024.0),
    ("write-ahead logs, MiB", |it| it.logs_kib / 1024.0),
];

type Figure = fn(&Footprint) -> f64;

/// Returns the table; empty without measurements.
pub fn table(results: &Results) -> String {
    let sizes: Vec<u64> = results.footprints.keys().copied().collect();
    if sizes.is_empty() {
        return String::new();
    }
    let mut lines = vec!["growth: 25 templates per page, 8 connections".to_owned()];
    lines.extend(header(&sizes));
    lines.extend(KINDS.iter().filter_map(|kind| row(results, &sizes, kind)));
    lines.extend(FIGURES.iter().map(|(description, figure)| {
        let values = results.footprints.values().map(|it| format!("{:>37.1}", figure(it)));
        line(once(start("", description)).chain(values))
    }));
    lines.join("\n")
}

/// Returns the two header lines.
fn header(sizes: &[u64]) -> [String; 2] {
    let above = sizes.iter().map(|size| format!("{:>37}", format!("{size} templates")));
    let below = sizes.iter().map(|_| cells(["req/s", "p50 ms", "p99 ms", "cpu us"]));
    [
        line(once(start("", "")).chain(above).chain(once(last_cells("cpu", "p50", "")))),
        line(
            once(start("run", "description"))
                .chain(below)
                .chain(once(last_cells("ratio", "ratio", "target"))),
        ),
    ]
}

/// Returns the row of one kind of request, if it was measured.
fn row(
    results: &Results,
    sizes: &[u64],
    (kind, description, has_target): &(&str, &str, bool),
) -> Option<String> {
    let labels: Vec<String> = sizes.iter().map(|size| format!("growth/{kind}/{size}")).collect();
    if !labels.iter().any(|label| results.runs.contains_key(label)) {
        return None;
    }
    let shown = |value: Option<f64>, digits| {
        value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let p50 = |label: &String| results.ms(label, |run| run.p50_us);
    let figures = labels.iter().map(|label| {
        cells([
            &shown(results.rate(label), 0),
            &shown(p50(label), 3),
            &shown(results.ms(label, |run| run.p99_us), 3),
            &shown(server_us(results, label), 0),
        ])
    });
    let cpu_ratio = ratio(&labels, |label| server_us(results, label));
    let p50_ratio = ratio(&labels, p50);
    let target = target(p50_ratio.filter(|_| *has_target));
    let last = last_cells(&shown(cpu_ratio, 2), &shown(p50_ratio, 2), &target);
    Some(line(once(start(kind, description)).chain(figures).chain(once(last))))
}

fn line(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

fn start(kind: &str, description: &str) -> String {
    format!("{kind:<14} {description:<25}")
}

fn cells([rate, p50, p99, cpu]: [&str; 4]) -> String {
    format!("{rate:>9} {p50:>9} {p99:>9} {cpu:>7}")
}

fn last_cells(cpu_ratio: &str, p50_ratio: &str, target: &str) -> String {
    format!("{cpu_ratio:>8} {p50_ratio:>8}  {target}")
}

/// Returns the CPU time of the server per request, in microseconds.
fn server_us(results: &Results, label: &str) -> Option<f64> {
    results.median(label, |run| run.server_us.unwrap_or(f64::NAN)).filter(|us| us.is_finite())
}

/// Returns the figure of the last item as a multiple of the figure of the first.
fn ratio<T>(items: &[T], figure: impl Fn(&T) -> Option<f64>) -> Option<f64> {
    let [first, .., last] = items else { return None };
    Some(figure(last)? / figure(first)?).filter(|ratio| ratio.is_finite())
}

/// Returns the target ratio, and whether it was met.
fn target(ratio: Option<f64>) -> String {
    ratio.map_or(String::new(), |ratio| {
        format!("p50 ratio < {MAX_RATIO}: {}", met_or_missed(ratio < MAX_RATIO))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::run;

    fn footprint(templates: u64, mib: u64) -> String {
        let kib = mib * 1024;
        format!(
            r#"{{"templates":{templates},"seeded_s":1.5,"followed_s":2,"seeded_kib":{kib},"runs_kib":{kib},"crowd_kib":{kib},"store_kib":{kib},"search_kib":{kib},"logs_kib":0}}"#
        ) + "\n"
    }

    fn cells_of<'a>(table: &'a str, start: &str) -> Vec<&'a str> {
        let line = table.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
        line.split_whitespace().collect()
    }

    #[test]
    fn sizes_are_shown_side_by_side_with_the_ratio_of_their_medians() {
        let text = footprint(1_000_000, 500)
            + &footprint(10_000, 5)
            + &run("growth/page/10000", 900.0, 1_000)
            + &run("growth/page/1000000", 800.0, 1_240)
            + &run("growth/name/10000", 900.0, 1_000)
            + &run("growth/name/1000000", 800.0, 1_260)
            + &run("growth/search-two/10000", 900.0, 1_000)
            + &run("growth/search-two/1000000", 800.0, 9_000);
        let table = table(&Results::parse(&text).unwrap());
        let page = cells_of(&table, "page");
        let small = ["900", "1.000", "2.000", "-"];
        assert_eq!(
            page[3..13],
            [&small[..], &["800", "1.240", "2.480", "-", "-", "1.24"]].concat()
        );
        assert!(page.ends_with(&["met"]));
        assert!(cells_of(&table, "name").ends_with(&["MISSED"]));
        assert!(cells_of(&table, "search-two").ends_with(&["9.00"]));
        assert!(cells_of(&table, "memory after").ends_with(&["5.0", "500.0"]));
    }

    #[test]
    fn cpu_time_is_compared_where_it_was_measured() {
        let with_server_time = |label: &str, us: f64| {
            let cores = r#""load_cores":0.5"#;
            run(label, 900.0, 1_000).replace(cores, &format!(r#"{cores},"server_us":{us}"#))
        };
        let text = footprint(10_000, 5)
            + &footprint(20_000, 5)
            + &with_server_time("growth/read/10000", 40.0)
            + &with_server_time("growth/read/20000", 60.0);
        let table = table(&Results::parse(&text).unwrap());
        let read = cells_of(&table, "read");
        assert_eq!(
            (read[7], read[11], read[12], read[13]),
            ("40", "60", "1.50", "1.00"),
            "{table}"
        );
    }

    #[test]
    fn one_size_has_no_ratio_and_no_size_has_no_table() {
        let text = footprint(10_000, 5) + &run("growth/page/10000", 900.0, 1_000);
        let one = table(&Results::parse(&text).unwrap());
        assert!(cells_of(&one, "page").ends_with(&["2.000", "-", "-", "-"]), "{one}");
        assert_eq!(table(&Results::default()), "");
    }
}
