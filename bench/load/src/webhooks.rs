//! The table of the webhook benchmark.

use std::fmt::Write as _;

use crate::results::{Results, met_or_missed};

/// Target: creates with an endpoint as a share of creates without one.
const TARGET_SHARE: f64 = 0.9;

/// Target: resident memory with many undelivered events, in MiB.
const TARGET_MEMORY_MIB: f64 = 128.0;

const ROWS: [(&str, &str); 3] = [
    ("none", "creates, no endpoint"),
    ("one", "creates, one endpoint"),
    ("tarpit", "plus one that never responds"),
];

/// Returns the table; empty without measurements.
pub fn table(results: &Results) -> String {
    let mut table = String::new();
    let base = results.rate("webhooks/none");
    for (name, what) in ROWS {
        let Some(rate) = results.rate(&format!("webhooks/{name}")) else { continue };
        if table.is_empty() {
            table.push_str(
                "webhooks                              creates/s    share  delivered/s  target\n",
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
            let _ = write!(
                table,
                "  {TARGET_SHARE:.2} of none: {}",
                met_or_missed(share >= TARGET_SHARE)
            );
        }
        if let Some(one) = results.delivered("one").filter(|_| name == "tarpit") {
            let same = delivered >= TARGET_SHARE * one;
            let _ = write!(
                table,
                ", {TARGET_SHARE:.2} of the deliveries of one: {}",
                met_or_missed(same)
            );
        }
        table.push('\n');
    }
    for (events, mib) in &results.undelivered {
        let _ = writeln!(
            table,
            "{events} undelivered events: {mib:.1} MiB resident   target < {TARGET_MEMORY_MIB} MiB: {}",
            met_or_missed(*mib < TARGET_MEMORY_MIB)
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
        let table = table(&Results::parse(&text).unwrap());
        assert!(table.contains("0.950         50.0  0.90 of none: met"), "{table}");
        let tarpit =
            "0.800         40.0  0.90 of none: MISSED, 0.90 of the deliveries of one: MISSED";
        assert!(table.contains(tarpit), "{table}");
        assert!(table.contains("200.0 MiB resident   target < 128 MiB: MISSED"), "{table}");
    }

    #[test]
    fn there_is_no_table_without_measurements() {
        assert_eq!(table(&Results::default()), "");
    }
}
