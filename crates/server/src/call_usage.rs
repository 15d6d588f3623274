//! How much of Meta's hourly budget of calls the emulator accounts have used, for the header
//! `X-Business-Use-Case-Usage`.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use axum::http::HeaderName;
use galley_domain::id::AccountId;
use jiff::Timestamp;

/// The header.
pub(crate) const USAGE: HeaderName = HeaderName::from_static("x-business-use-case-usage");

/// Meta's budget of calls of an active account within an hour.
const CALLS_PER_HOUR: u64 = 5_000;

/// After a failure for want of budget, the minutes until the account can call again.
const REGAIN_MINUTES: u64 = 5;

/// The calls of faithful emulator accounts in the present hour of their clocks. Each process counts
/// its own.
#[derive(Default)]
pub(crate) struct CallUsage(Mutex<HashMap<AccountId, HourlyCalls>>);

#[derive(Default)]
struct HourlyCalls {
    hour: i64,
    calls: u64,
}

impl CallUsage {
    /// Counts a call at a time of the account's clock, and returns the value of the header.
    pub(crate) fn count(&self, account: AccountId, now: Timestamp) -> String {
        let mut accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hourly = accounts.entry(account).or_default();
        let hour = now.as_second() / 3_600;
        if hourly.hour != hour {
            *hourly = HourlyCalls { hour, calls: 0 };
        }
        hourly.calls += 1;
        value(account, (hourly.calls * 100 / CALLS_PER_HOUR).min(100), 0)
    }
}

/// The value of the header of an account that has used its whole budget.
pub(crate) fn used_up(account: AccountId) -> String {
    value(account, 100, REGAIN_MINUTES)
}

fn value(account: AccountId, percent: u64, regain_minutes: u64) -> String {
    format!(
        r#"{{"{account}":[{{"type":"whatsapp_business_management","call_count":{percent},"total_cputime":{percent},"total_time":{percent},"estimated_time_to_regain_access":{regain_minutes}}}]}}"#
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn calls_are_counted_in_percent_of_an_hour() {
        let (usage, account) = (CallUsage::default(), AccountId::new(7).unwrap());
        let at = |second| Timestamp::from_second(second).unwrap();
        let count = |second| -> Value {
            let value: Value = serde_json::from_str(&usage.count(account, at(second))).unwrap();
            value["7"][0]["call_count"].clone()
        };
        for _ in 0..49 {
            assert_eq!(count(3_600), 0);
        }
        assert_eq!(count(7_199), 1);
        assert_eq!(count(7_200), 0, "a new hour");
        let used_up: Value = serde_json::from_str(&used_up(account)).unwrap();
        let expected = json!({"7": [{
            "type": "whatsapp_business_management", "call_count": 100, "total_cputime": 100,
            "total_time": 100, "estimated_time_to_regain_access": 5,
        }]});
        assert_eq!(used_up, expected);
    }
}
