//! Identifiers: positive integers that increase over time and are displayed as decimal strings.
//! They are below 2^53, so that JavaScript represents them exactly.

use std::{fmt, num::ParseIntError, str::FromStr};

/// The epoch of ids: 2026-01-01T00:00:00Z, in milliseconds since the Unix epoch.
const EPOCH_MS: i64 = 1_767_225_600_000;

/// Bits below the millisecond, for the slot of an instance and a counter.
const LOW_BITS: u32 = 13;

/// Number of ids per millisecond.
pub const IDS_PER_MILLISECOND: u64 = 1 << LOW_BITS;

/// The largest id: JavaScript's `Number.MAX_SAFE_INTEGER`.
const MAX: u64 = (1 << 53) - 1;

/// The id that follows `previous` at the time `unix_ms`. It contains the time if the clock has
/// advanced, and is `previous + 1` otherwise: ids increase even if the clock is set back.
pub fn next(previous: u64, unix_ms: i64) -> u64 {
    let elapsed_ms = u64::try_from(unix_ms.saturating_sub(EPOCH_MS)).unwrap_or(0);
    (elapsed_ms << LOW_BITS).max(previous + 1)
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// The id with this number, if the number is positive and below 2^53.
            pub fn new(raw: u64) -> Option<Self> {
                (1..=MAX).contains(&raw).then_some(Self(raw))
            }

            /// The id as a number.
            pub fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(out)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            /// Parses the decimal form that [`fmt::Display`] writes; other spellings are errors.
            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let is_canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
                let raw: u64 = text.parse().map_err(|_: ParseIntError| ParseIdError)?;
                Self::new(raw).filter(|_| is_canonical).ok_or(ParseIdError)
            }
        }
    };
}

id!(
    /// Identifies an account.
    AccountId
);
id!(
    /// Identifies a template.
    TemplateId
);
id!(
    /// Identifies a webhook endpoint.
    WebhookId
);

/// The text is not a decimal id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an id: expected a positive whole number")]
pub struct ParseIdError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_even_if_the_clock_stops_or_is_set_back() {
        let first = next(0, EPOCH_MS + 5);
        let second = next(first, EPOCH_MS + 5);
        let third = next(second, EPOCH_MS - 1_000);
        let fourth = next(third, EPOCH_MS + 6);
        assert_eq!([first, second, third], [5 << 13, (5 << 13) + 1, (5 << 13) + 2]);
        assert_eq!(fourth, 6 << 13);
        assert_eq!(next(0, 0), 1, "a clock before 2026 yields a positive id");
    }

    #[test]
    fn ids_stay_exact_in_javascript_until_2060() {
        let new_year_2060 = 2_840_140_800_000;
        assert!(next(0, new_year_2060) < MAX);
    }

    #[test]
    fn only_the_canonical_spelling_is_parsed() {
        assert_eq!("42".parse(), Ok(TemplateId(42)));
        for text in ["", "0", "042", "+42", "-1", "4.2", "9007199254740992", "99999999999999999999"]
        {
            assert_eq!(text.parse::<TemplateId>(), Err(ParseIdError), "{text}");
        }
    }
}
