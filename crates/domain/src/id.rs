//! Identifiers: positive integers below 2^53, so that JavaScript keeps them exactly, growing
//! with time, and shown as decimal strings.

use std::{fmt, num::ParseIntError, str::FromStr};

/// Milliseconds from the Unix epoch to 2026-01-01T00:00:00Z, where our counting begins.
const EPOCH_MS: i64 = 1_767_225_600_000;

/// Bits below the millisecond: room for an instance's slot and a counter.
const LOW_BITS: u32 = 13;

/// How many ids one millisecond has.
pub const PER_MILLISECOND: u64 = 1 << LOW_BITS;

/// The largest id: JavaScript's `Number.MAX_SAFE_INTEGER`.
const MAX: u64 = (1 << 53) - 1;

/// The id that follows `previous` at the moment `unix_ms`: it carries the time when the clock
/// has moved on, and counts up from `previous` when it has not (or stepped back), so that it
/// grows whatever the clock does.
pub fn next(previous: u64, unix_ms: i64) -> u64 {
    let since = u64::try_from(unix_ms.saturating_sub(EPOCH_MS)).unwrap_or(0);
    (since << LOW_BITS).max(previous + 1)
}

macro_rules! id {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// Takes a number that is an id: positive and below 2^53.
            pub fn new(raw: u64) -> Option<Self> {
                (1..=MAX).contains(&raw).then_some(Self(raw))
            }

            /// The number itself.
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
            type Err = NotAnId;

            /// Reads the decimal form that [`fmt::Display`] writes, and no other spelling.
            fn from_str(text: &str) -> Result<Self, NotAnId> {
                let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
                let raw: u64 = text.parse().map_err(|_: ParseIntError| NotAnId)?;
                Self::new(raw).filter(|_| canonical).ok_or(NotAnId)
            }
        }
    };
}

id!(
    /// Which account.
    AccountId
);
id!(
    /// Which template.
    TemplateId
);
id!(
    /// Which endpoint that events are delivered to.
    WebhookId
);

/// The text is not a decimal id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an id: a positive whole number is expected")]
pub struct NotAnId;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_even_when_the_clock_stands_still_or_steps_back() {
        let first = next(0, EPOCH_MS + 5);
        let second = next(first, EPOCH_MS + 5);
        let third = next(second, EPOCH_MS - 1_000);
        let fourth = next(third, EPOCH_MS + 6);
        assert_eq!([first, second, third], [5 << 13, (5 << 13) + 1, (5 << 13) + 2]);
        assert_eq!(fourth, 6 << 13);
        assert_eq!(next(0, 0), 1, "a clock before 2026 still gives a positive id");
    }

    #[test]
    fn ids_stay_exact_in_javascript_until_2060() {
        let new_year_2060 = 2_840_140_800_000;
        assert!(next(0, new_year_2060) < MAX);
    }

    #[test]
    fn only_the_canonical_spelling_is_read() {
        assert_eq!("42".parse(), Ok(TemplateId(42)));
        for text in ["", "0", "042", "+42", "-1", "4.2", "9007199254740992", "99999999999999999999"]
        {
            assert_eq!(text.parse::<TemplateId>(), Err(NotAnId), "{text}");
        }
    }
}
