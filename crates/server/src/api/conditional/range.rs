//! Range requests for files: `Range` and `If-Range`.

use std::ops::Range;

use axum::http::{HeaderMap, header};

use super::entity_tag::EntityTag;

/// The requested part of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestedRange {
    Full,
    Part(Range<u64>),
    /// The file does not have the requested bytes.
    Unsatisfiable,
}

/// The requested range of a file; `tag` is the text between the quotes of the file's tag. As HTTP
/// requires, an invalid range is ignored; so are several ranges in one request.
pub(crate) fn requested_range(headers: &HeaderMap, tag: &str, length: u64) -> RequestedRange {
    // `If-Range` compares strongly. A date never matches, because files have no date.
    let is_same = |it: EntityTag<'_>| !it.weak && it.opaque == tag.as_bytes();
    let if_range = headers.get(header::IF_RANGE).map(EntityTag::parse);
    let same = if_range.is_none_or(|tag| tag.is_some_and(is_same));
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

    const TAG: &str = "a";

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
            assert_eq!(requested_range(&headers, TAG, 10), expected, "{range}");
        }
        assert_eq!(requested_range(&HeaderMap::new(), TAG, 10), RequestedRange::Full);
    }

    #[test]
    fn a_range_with_another_if_range_tag_is_ignored() {
        for (tag, expected) in [
            ("\"a\"", RequestedRange::Part(2..5)),
            ("W/\"a\"", RequestedRange::Full),
            ("\"b\"", RequestedRange::Full),
            ("\"a\", \"b\"", RequestedRange::Full),
            ("Sat, 14 Nov 2026 12:00:00 GMT", RequestedRange::Full),
        ] {
            let headers = headers(&[(header::RANGE, "bytes=2-4"), (header::IF_RANGE, tag)]);
            assert_eq!(requested_range(&headers, TAG, 10), expected, "{tag}");
        }
    }
}
