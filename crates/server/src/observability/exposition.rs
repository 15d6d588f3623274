//! Writes metrics in the Prometheus text format.

use std::fmt::{Display, Write as _};

use galley_store::HistogramSnapshot;

/// A page of metrics. Names, labels and help texts are constants that need no escaping.
#[derive(Default)]
pub(super) struct Exposition(String);

/// The type of a metric that has one value per series.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
}

impl Exposition {
    pub(super) fn into_text(self) -> String {
        self.0
    }

    /// A metric with one series.
    pub(super) fn value(&mut self, kind: Kind, name: &str, help: &str, value: impl Display) {
        self.begin(kind.as_str(), name, help);
        self.line(format_args!("{name} {value}"));
    }

    /// A metric with a series for each value of a label.
    pub(super) fn values<V: Display>(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        label: &str,
        series: impl IntoIterator<Item = (&'static str, V)>,
    ) {
        self.begin(kind.as_str(), name, help);
        for (label_value, value) in series {
            self.line(format_args!("{name}{{{label}=\"{label_value}\"}} {value}"));
        }
    }

    /// A histogram. `in_unit` converts bounds and sum into the unit of the metric.
    pub(super) fn histogram<V: Display>(
        &mut self,
        name: &str,
        help: &str,
        HistogramSnapshot { buckets, count, sum }: &HistogramSnapshot,
        in_unit: impl Fn(u64) -> V,
    ) {
        self.begin("histogram", name, help);
        for (bound, count) in buckets {
            let bound = in_unit(*bound);
            self.line(format_args!("{name}_bucket{{le=\"{bound}\"}} {count}"));
        }
        self.line(format_args!("{name}_bucket{{le=\"+Inf\"}} {count}"));
        self.line(format_args!("{name}_sum {}", in_unit(*sum)));
        self.line(format_args!("{name}_count {count}"));
    }

    fn begin(&mut self, kind: &str, name: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line}");
    }
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn metrics_have_a_help_text_a_type_and_their_series() {
        let mut page = Exposition::default();
        page.value(Kind::Gauge, "depth", "Writes that wait", 3);
        page.values(
            Kind::Counter,
            "waits_total",
            "Waits",
            "pool",
            [("lists", 0.5), ("media", 2.0)],
        );
        let snapshot =
            HistogramSnapshot { buckets: vec![(250, 1), (1_000, 3)], count: 4, sum: 9_000 };
        let seconds = |micros| Duration::from_micros(micros).as_secs_f64();
        page.histogram("took_seconds", "Time", &snapshot, seconds);
        let expected = "# HELP depth Writes that wait\n# TYPE depth gauge\ndepth 3\n\
            # HELP waits_total Waits\n# TYPE waits_total counter\n\
            waits_total{pool=\"lists\"} 0.5\nwaits_total{pool=\"media\"} 2\n\
            # HELP took_seconds Time\n# TYPE took_seconds histogram\n\
            took_seconds_bucket{le=\"0.00025\"} 1\ntook_seconds_bucket{le=\"0.001\"} 3\n\
            took_seconds_bucket{le=\"+Inf\"} 4\ntook_seconds_sum 0.009\ntook_seconds_count 4\n";
        assert_eq!(page.into_text(), expected);
    }
}
