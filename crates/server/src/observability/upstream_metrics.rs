//! The metrics of connections to providers, of all accounts together.

use galley_store::UpstreamStatistics;
use jiff::Timestamp;

use super::{
    exposition::{Exposition, Kind},
    store_metrics::age,
};

/// Adds the totals that were read at a time.
pub(super) fn write(
    page: &mut Exposition,
    upstream: &UpstreamStatistics,
    calls_per_hour: u32,
    at: Timestamp,
) {
    let states = [
        ("connected", upstream.connected),
        ("degraded", upstream.degraded),
        ("suspicious", upstream.suspicious),
        ("paused", upstream.paused),
        ("disabled", upstream.disabled),
    ];
    page.values(
        Kind::Gauge,
        "galley_upstream_connections",
        "Connections to providers, by state",
        "state",
        states,
    );
    page.value(
        Kind::Gauge,
        "galley_upstream_call_budget_used_ratio",
        "Used part of the hourly budget of calls, of the connection that has used most",
        used_ratio(upstream, calls_per_hour, at),
    );
    page.value(
        Kind::Gauge,
        "galley_upstream_oldest_operation_seconds",
        "Time since the oldest operation that is not settled was queued; 0 if there is none. Operations that a provider holds back for days do not count",
        age(upstream.oldest_operation, at),
    );
    page.value(
        Kind::Gauge,
        "galley_upstream_last_sweep_seconds",
        "Time since the last complete sweep, of the connection for which it is longest; 0 if there is none",
        age(upstream.oldest_sweep, at),
    );
    let expiry = upstream.token_expires_at.map(|expires_at| expires_at.duration_since(at));
    page.value(
        Kind::Gauge,
        "galley_upstream_token_expiry_seconds",
        "Time until the first token expires, negative once it has expired; +Inf if none expires",
        expiry.map_or_else(|| "+Inf".to_owned(), |left| left.as_secs_f64().to_string()),
    );
}

/// The used part of the budget of the connection that has used most.
fn used_ratio(upstream: &UpstreamStatistics, calls_per_hour: u32, at: Timestamp) -> f64 {
    let used = upstream.calls.iter().map(|calls| calls.used(at)).max().unwrap_or_default();
    if calls_per_hour == 0 { 0.0 } else { f64::from(used) / f64::from(calls_per_hour) }
}

#[cfg(test)]
mod tests {
    use galley_domain::upstream::budget::RollingHour;

    use super::*;

    #[test]
    fn the_connection_that_is_worst_off_is_shown() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut upstream = UpstreamStatistics {
            connected: 2,
            oldest_sweep: Some(at(6_000)),
            calls: vec![RollingHour::parse("99:10 100:40"), RollingHour::parse("1:190 100:20")],
            ..UpstreamStatistics::default()
        };
        let text = |upstream: &UpstreamStatistics| {
            let mut page = Exposition::default();
            write(&mut page, upstream, 200, at(6_030));
            page.into_text()
        };
        let shown = text(&upstream);
        for line in [
            "galley_upstream_connections{state=\"connected\"} 2\n",
            "galley_upstream_call_budget_used_ratio 0.25\n",
            "galley_upstream_oldest_operation_seconds 0\n",
            "galley_upstream_last_sweep_seconds 30\n",
        ] {
            assert!(shown.contains(line), "{line} in {shown}");
        }
        assert!(shown.contains("galley_upstream_token_expiry_seconds +Inf\n"), "no token expires");
        upstream.token_expires_at = Some(at(6_000));
        assert!(text(&upstream).contains("galley_upstream_token_expiry_seconds -30\n"));
    }
}
