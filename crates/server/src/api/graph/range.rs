//! Range requests for files, and their preconditions.

use std::ops::Range;

use axum::http::{HeaderMap, header};

/// The requested part of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestedRange {
    Full,
    Part(Range<u64>),
    /// The file does not have the requested bytes.
    Unsatisfiable,
}

/// Whether `If-Match` is present and does not contain the tag.
pub(super) fn if_match_fails(headers: &HeaderMap, tag: &str) -> bool {
    let mut lines = headers.get_all(header::IF_MATCH).iter().peekable();
    let is_present = lines.peek().is_some();
    let tags = lines.filter_map(|it| it.to_str().ok()).flat_map(|line| line.split(','));
    is_present && !tags.map(str::trim).any(|it| it == "*" || it == tag)
}

/// Whether `If-None-Match` contains the tag, so that the client already has the file.
pub(super) fn is_not_modified(headers: &HeaderMap, tag: &str) -> bool {
    let lines = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
    let mut tags = lines.flat_map(|line| line.split(',')).map(str::trim);
    tags.any(|it| it == "*" || it.strip_prefix("W/").unwrap_or(it) == tag)
}

/// The requested range. As HTTP requires, an invalid range is ignored; so are several ranges in one
/// request.
pub(super) fn requested(headers: &HeaderMap, tag: &str, length: u64) -> RequestedRange {
    let same = headers.get(header::IF_RANGE).is_none_or(|it| it.as_bytes() == tag.as_bytes());
    let range = headers.get(header::RANGE).filter(|_| same).and_then(|it| it.to_str().ok());
    let (unit, range) = range.and_then(|it| it.split_once('=')).unwrap_or_default();
    let range = Some(range).filter(|_| unit.trim().eq_ignore_ascii_case("bytes"));
    range.and_then(|range| parse(range.trim(), length)).unwrap_or(RequestedRange::Full)
}

/// Parses `first-last`, `first-` or `-suffix_length`.
fn parse(range: &str, length: u64) -> Option<RequestedRange> {
    let part = match range.split_once('-')? {
        ("", suffix_length) => length.saturating_sub(number(suffix_length)?)..length,
        (first, "") => number(first)?..length,
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(length)
        }
    };
    Some(if part.is_empty() { RequestedRange::Unsatisfiable } else { RequestedRange::Part(part) })
}

/// Parses digits. Numbers that are too large become the largest one.
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
    fn a_single_range_is_used_and_any_other_header_is_ignored() {
        for (range, expected) in [
            ("bytes=0-0", RequestedRange::Part(0..1)),
            ("bytes=2-4", RequestedRange::Part(2..5)),
            ("Bytes=2-4", RequestedRange::Part(2..5)),
            ("bytes=2-", RequestedRange::Part(2..10)),
            ("bytes=0-99999999999999999999", RequestedRange::Part(0..10)),
            ("bytes=-3", RequestedRange::Part(7..10)),
            ("bytes=-30", RequestedRange::Part(0..10)),
            ("bytes=10-", RequestedRange::Unsatisfiable),
            ("bytes=12-20", RequestedRange::Unsatisfiable),
            ("bytes=-0", RequestedRange::Unsatisfiable),
            ("bytes=4-2", RequestedRange::Full),
            ("bytes=0-1,3-4", RequestedRange::Full),
            ("bytes=-", RequestedRange::Full),
            ("bytes=a-b", RequestedRange::Full),
            ("bytes=+1-2", RequestedRange::Full),
            ("bytes=", RequestedRange::Full),
            ("lines=0-1", RequestedRange::Full),
        ] {
            let headers = headers(&[(header::RANGE, range)]);
            assert_eq!(requested(&headers, TAG, 10), expected, "{range}");
        }
        assert_eq!(requested(&HeaderMap::new(), TAG, 10), RequestedRange::Full);
    }

    #[test]
    fn a_range_with_another_if_range_tag_is_ignored() {
        for (tag, expected) in [(TAG, RequestedRange::Part(2..5)), ("\"b\"", RequestedRange::Full)]
        {
            let headers = headers(&[(header::RANGE, "bytes=2-4"), (header::IF_RANGE, tag)]);
            assert_eq!(requested(&headers, TAG, 10), expected, "{tag}");
        }
    }

    #[test]
    fn if_match_fails_without_the_tag_of_the_file() {
        for (tags, expected) in
            [("*", false), (TAG, false), ("\"b\", \"a\"", false), ("W/\"a\"", true), ("b", true)]
        {
            let headers = headers(&[(header::IF_MATCH, tags)]);
            assert_eq!(if_match_fails(&headers, TAG), expected, "{tags}");
        }
        assert!(!if_match_fails(&HeaderMap::new(), TAG));
    }

    #[test]
    fn if_none_match_contains_the_tag_of_the_file() {
        for (tags, expected) in [
            ("*", true),
            (TAG, true),
            ("W/\"a\"", true),
            ("\"b\", \"a\"", true),
            ("\"b\"", false),
            ("a", false),
        ] {
            let headers = headers(&[(header::IF_NONE_MATCH, tags)]);
            assert_eq!(is_not_modified(&headers, TAG), expected, "{tags}");
        }
        assert!(!is_not_modified(&HeaderMap::new(), TAG));
    }
}
