//! When a receiver would like to be asked again.

use std::time::Duration;

use hyper::{HeaderMap, header::RETRY_AFTER};
use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};

/// The two forms of the header `Retry-After`. It is a wish of the receiver: whoever follows it sets
/// an upper limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// So long after the answer.
    After(Duration),
    /// At that moment, by the receiver's clock.
    At(Timestamp),
}

impl RetryAfter {
    /// What the header says, if it can be understood.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        if !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit()) {
            // More seconds than a number holds are as good as the most it holds.
            return Some(Self::After(Duration::from_secs(text.parse().unwrap_or(u64::MAX))));
        }
        DateTimeParser::new().parse_timestamp(text).ok().map(Self::At)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_nonsense_is_nothing() {
        let of = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            RetryAfter::of(&headers)
        };
        let after = |seconds| Some(RetryAfter::After(Duration::from_secs(seconds)));
        assert_eq!(of("0"), after(0));
        assert_eq!(of("120"), after(120));
        assert_eq!(of("99999999999999999999999"), after(u64::MAX));
        let moment = "1994-11-06T08:49:37Z".parse().unwrap();
        assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(RetryAfter::At(moment)));
        for nonsense in ["", "soon", "-1", "1.5", "+3", "Sun, 36 Nov 1994 08:49:37 GMT"] {
            assert_eq!(of(nonsense), None, "{nonsense}");
        }
        assert_eq!(RetryAfter::of(&HeaderMap::new()), None);
    }
}
