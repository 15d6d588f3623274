//! The `Retry-After` header of a receiver.

use std::time::Duration;

use hyper::{HeaderMap, header::RETRY_AFTER};
use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};

/// The two forms of the header `Retry-After`. The receiver controls the value, so callers must
/// apply an upper limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// This long after the response.
    After(Duration),
    /// At this time, by the receiver's clock.
    At(Timestamp),
}

impl RetryAfter {
    /// Parses the header; `None` if it is missing or invalid.
    pub(super) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
        if !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit()) {
            // Saturate on overflow.
            return Some(Self::After(Duration::from_secs(text.parse().unwrap_or(u64::MAX))));
        }
        DateTimeParser::new().parse_timestamp(text).ok().map(Self::At)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_parsed_and_invalid_values_are_ignored() {
        let parse = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            RetryAfter::from_headers(&headers)
        };
        let after = |seconds| Some(RetryAfter::After(Duration::from_secs(seconds)));
        assert_eq!(parse("0"), after(0));
        assert_eq!(parse("120"), after(120));
        assert_eq!(parse("99999999999999999999999"), after(u64::MAX));
        let time = "1994-11-06T08:49:37Z".parse().unwrap();
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT"), Some(RetryAfter::At(time)));
        for invalid in ["", "soon", "-1", "1.5", "+3", "Sun, 36 Nov 1994 08:49:37 GMT"] {
            assert_eq!(parse(invalid), None, "{invalid}");
        }
        assert_eq!(RetryAfter::from_headers(&HeaderMap::new()), None);
    }
}
