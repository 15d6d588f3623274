//! What deliveries cost, as a table.

use std::fmt::Write as _;

use crate::results::{Results, verdict};

/// The share of creates that has to be left with an endpoint.
const WANTED: f64 = 0.9;

/// MiB that a server may hold with many events undelivered.
const WANTED_MEMORY: f64 = 128.0;

const ROWS: [(&str, &str); 3] = [
    ("none", "creates, no endpoint"),
    ("one", "creates, one endpoint"),
    ("tarpit", "one more that never answers"),
];

/// The table; empty if nothing of it was measured.
pub fn table(results: &Results) -> String {
    let mut table = String::new();
    let base = results.rate("webhooks/none");
    for (name, what) in ROWS {
        let Some(rate) = results.rate(&format!("webhooks/{name}")) else { continue };
        if table.is_empty() {
            table.push_str(
                "webhooks                              creates/s    share  delivered/s  wanted\n",
            );
        }
        let share = base.map(|base| rate / base);
        let delivered = results.delivered(name).unwrap_or(0.0);
        let _ = write!(
            table,
            "{what:<36} {rate:>10.0} {:>8} {delivered:>12.1}",
            share.map_or(String::from("-"), |share| format!("{share:.3}")),
        );
        if let Some(share) = share.filter(|_| name != "none") {
            let _ = write!(table, "  {WANTED:.2} of none: {}", verdict(share >= WANTED));
        }
        if let Some(one) = results.delivered("one").filter(|_| name == "tarpit") {
            let same = delivered >= WANTED * one;
            let _ = write!(table, ", {WANTED:.2} of the deliveries of one: {}", verdict(same));
        }
        table.push('\n');
    }
    for (events, mib) in &results.undelivered {
        let _ = writeln!(
            table,
            "{events} events undelivered: {mib:.1} MiB resident   wanted < {WANTED_MEMORY} MiB: {}",
            verdict(*mib < WANTED_MEMORY)
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creates_with_an_endpoint_are_compared_with_those_without() {
        let run = |name: &str, rate: f64| {
            format!(
                "{{\"label\":\"webhooks/{name}\",\"rate\":{rate},\"p50_us\":1,\"p99_us\":2,\"requests\":1,\"statuses\":{{\"201\":1}},\"unexpected\":0,\"errors\":0,\"load_cores\":0.5}}\n"
            )
        };
        let text = run("none", 100.0)
            + &run("one", 95.0)
            + &run("tarpit", 80.0)
            + "{\"deliveries\":\"one\",\"per_second\":50.0}\n{\"deliveries\":\"tarpit\",\"per_second\":40.0}\n{\"undelivered\":1000000,\"kib\":204800}\n";
        let table = table(&Results::read(&text).unwrap());
        assert!(table.contains("0.950         50.0  0.90 of none: met"), "{table}");
        let tarpit =
            "0.800         40.0  0.90 of none: MISSED, 0.90 of the deliveries of one: MISSED";
        assert!(table.contains(tarpit), "{table}");
        assert!(table.contains("200.0 MiB resident   wanted < 128 MiB: MISSED"), "{table}");
    }

    #[test]
    fn nothing_measured_is_nothing_to_show() {
        assert_eq!(table(&Results::default()), "");
    }
}
