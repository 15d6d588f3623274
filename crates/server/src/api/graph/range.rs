//! Which bytes of a file are wanted: `Range`, and what the caller has already.

use std::ops::Range;

use axum::http::{HeaderMap, header};

/// What is to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Whole,
    Part(Range<u64>),
    /// Bytes that the file does not have.
    Nothing,
}

/// Whether the caller wants something else than what has that tag.
pub(super) fn is_other(headers: &HeaderMap, tag: &str) -> bool {
    let mut lines = headers.get_all(header::IF_MATCH).iter().peekable();
    let is_asked = lines.peek().is_some();
    let tags = lines.filter_map(|it| it.to_str().ok()).flat_map(|line| line.split(','));
    is_asked && !tags.map(str::trim).any(|it| it == "*" || it == tag)
}

/// Whether the caller has what has that tag.
pub(super) fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let lines = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
    let mut tags = lines.flat_map(|line| line.split(',')).map(str::trim);
    tags.any(|it| it == "*" || it.strip_prefix("W/").unwrap_or(it) == tag)
}

/// The part that the caller wants. One that cannot be made sense of is none, as HTTP has it, and
/// several at once are not sent in parts.
pub(super) fn wanted(headers: &HeaderMap, tag: &str, length: u64) -> Wanted {
    let same = headers.get(header::IF_RANGE).is_none_or(|it| it.as_bytes() == tag.as_bytes());
    let range = headers.get(header::RANGE).filter(|_| same).and_then(|it| it.to_str().ok());
    let (unit, range) = range.and_then(|it| it.split_once('=')).unwrap_or_default();
    let range = Some(range).filter(|_| unit.trim().eq_ignore_ascii_case("bytes"));
    range.and_then(|range| part(range.trim(), length)).unwrap_or(Wanted::Whole)
}

/// `first-last`, `first-` or `-how many from the end`.
fn part(range: &str, length: u64) -> Option<Wanted> {
    let part = match range.split_once('-')? {
        ("", many) => length.saturating_sub(number(many)?)..length,
        (first, "") => number(first)?..length,
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(length)
        }
    };
    Some(if part.is_empty() { Wanted::Nothing } else { Wanted::Part(part) })
}

/// The largest number stands for all beyond it.
fn number(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    const TAG: &str = "\"a\"";

    fn headers(lines: &[(HeaderName, &'static str)]) -> HeaderMap {
        let line = |(name, value): &(HeaderName, &'static str)| {
            (name.clone(), HeaderValue::from_static(value))
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn one_range_is_read_and_whatever_else_is_passed_over() {
        for (range, expected) in [
            ("bytes=0-0", Wanted::Part(0..1)),
            ("bytes=2-4", Wanted::Part(2..5)),
            ("Bytes=2-4", Wanted::Part(2..5)),
            ("bytes=2-", Wanted::Part(2..10)),
            ("bytes=0-99999999999999999999", Wanted::Part(0..10)),
            ("bytes=-3", Wanted::Part(7..10)),
            ("bytes=-30", Wanted::Part(0..10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=12-20", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=4-2", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes=", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
        ] {
            let headers = headers(&[(header::RANGE, range)]);
            assert_eq!(wanted(&headers, TAG, 10), expected, "{range}");
        }
        assert_eq!(wanted(&HeaderMap::new(), TAG, 10), Wanted::Whole);
    }

    #[test]
    fn a_range_of_something_else_is_passed_over() {
        for (since, expected) in [(TAG, Wanted::Part(2..5)), ("\"b\"", Wanted::Whole)] {
            let headers = headers(&[(header::RANGE, "bytes=2-4"), (header::IF_RANGE, since)]);
            assert_eq!(wanted(&headers, TAG, 10), expected, "{since}");
        }
    }

    #[test]
    fn whoever_wants_something_else_is_known_by_its_tag() {
        for (tags, expected) in
            [("*", false), (TAG, false), ("\"b\", \"a\"", false), ("W/\"a\"", true), ("b", true)]
        {
            let headers = headers(&[(header::IF_MATCH, tags)]);
            assert_eq!(is_other(&headers, TAG), expected, "{tags}");
        }
        assert!(!is_other(&HeaderMap::new(), TAG));
    }

    #[test]
    fn what_the_caller_has_is_known_by_its_tag() {
        for (tags, expected) in [
            ("*", true),
            (TAG, true),
            ("W/\"a\"", true),
            ("\"b\", \"a\"", true),
            ("\"b\"", false),
            ("a", false),
        ] {
            let headers = headers(&[(header::IF_NONE_MATCH, tags)]);
            assert_eq!(is_known(&headers, TAG), expected, "{tags}");
        }
        assert!(!is_known(&HeaderMap::new(), TAG));
    }
}
