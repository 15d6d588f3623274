//! The trace that a request belongs to: the header `traceparent` of W3C Trace Context.
//!
//! Galley exports no spans. It logs the ids of the client, and passes the trace on to webhook
//! endpoints.

use std::fmt;

use axum::http::{HeaderMap, HeaderName};

/// The header that names a trace.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Length of a header of version 00. Later versions may append further fields.
const HEADER_BYTES: usize = 55;

/// The flags that Galley knows: sampled, and random trace id. It passes on no others.
const KNOWN_FLAGS: u8 = 0b11;

/// A trace, and the span of the client that called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceContext {
    trace_id: u128,
    span_id: u64,
    flags: u8,
}

impl TraceContext {
    /// The trace of a request. `None` if it names none, several, or an invalid one.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(TRACEPARENT)?;
        let is_single = headers.get_all(TRACEPARENT).iter().nth(1).is_none();
        Self::parse(value.as_bytes()).filter(|_| is_single)
    }

    /// Reads `{version}-{trace id}-{span id}-{flags}`, in lower-case hexadecimal digits.
    fn parse(header: &[u8]) -> Option<Self> {
        let (known, rest) = header.split_at_checked(HEADER_BYTES)?;
        let version = hex(&known[..2])?;
        let is_complete = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.first().is_none_or(|byte| *byte == b'-'),
        };
        let has_dashes = [2, 35, 52].iter().all(|index| known[*index] == b'-');
        let trace_id = hex(&known[3..35])?;
        let span_id = u64::try_from(hex(&known[36..52])?).ok()?;
        let flags = u8::try_from(hex(&known[53..])?).ok()? & KNOWN_FLAGS;
        let is_valid = is_complete && has_dashes && trace_id != 0 && span_id != 0;
        is_valid.then_some(Self { trace_id, span_id, flags })
    }

    /// The same trace with another span.
    pub(crate) fn with_span(self, random: [u8; 8]) -> Self {
        // 0 is not a valid id.
        Self { span_id: u64::from_le_bytes(random).max(1), ..self }
    }

    /// The trace id as the log shows it.
    pub(crate) fn trace_id(self) -> impl fmt::Display + fmt::Debug {
        HexId::<32>(self.trace_id)
    }

    /// The span id as the log shows it.
    pub(crate) fn span_id(self) -> impl fmt::Display + fmt::Debug {
        HexId::<16>(self.span_id.into())
    }
}

/// The value of the header.
impl fmt::Display for TraceContext {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "00-{}-{}-{:02x}", self.trace_id(), self.span_id(), self.flags)
    }
}

/// An id of this many hexadecimal digits.
#[derive(Debug)]
struct HexId<const DIGITS: usize>(u128);

impl<const DIGITS: usize> fmt::Display for HexId<DIGITS> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:0DIGITS$x}", self.0)
    }
}

/// The number of at most 32 lower-case hexadecimal digits.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn parse(header: &str) -> Option<TraceContext> {
        TraceContext::parse(header.as_bytes())
    }

    #[test]
    fn a_valid_header_is_read_and_written_again() {
        let trace = parse(VALID).unwrap();
        assert_eq!(trace.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(trace.span_id().to_string(), "00f067aa0ba902b7");
        assert_eq!(trace.to_string(), VALID);
    }

    #[test]
    fn another_span_belongs_to_the_same_trace() {
        let other = parse(VALID).unwrap().with_span([7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(other.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000007-01");
        let zero = other.with_span([0; 8]);
        assert_eq!(zero.span_id().to_string(), "0000000000000001");
    }

    #[test]
    fn unknown_flags_are_not_passed_on() {
        let trace = parse(&VALID.replace("-01", "-ff")).unwrap();
        assert!(trace.to_string().ends_with("-03"), "{trace}");
    }

    #[test]
    fn a_later_version_may_have_more_fields() {
        let later = VALID.replacen("00", "cc", 1);
        assert_eq!(parse(&later), parse(VALID));
        assert_eq!(parse(&format!("{later}-more")), parse(VALID));
        assert_eq!(parse(&format!("{later}more")), None);
    }

    #[test]
    fn an_invalid_header_is_ignored() {
        for invalid in [
            "",
            "00",
            &VALID[..54],
            &format!("{VALID}-"),
            &format!("{VALID}0"),
            &VALID.to_uppercase(),
            &VALID.replacen("00", "ff", 1),
            &VALID.replacen("00", "0x", 1),
            &VALID.replace('-', "_"),
            &VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &VALID.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &VALID.replace("-01", "-0g"),
            &VALID.replace("4bf", "4\u{e9}"),
        ] {
            assert_eq!(parse(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn two_headers_name_no_trace() {
        let mut headers = HeaderMap::new();
        assert_eq!(TraceContext::from_headers(&headers), None);
        headers.append(TRACEPARENT, VALID.parse().unwrap());
        assert_eq!(TraceContext::from_headers(&headers), parse(VALID));
        headers.append(TRACEPARENT, VALID.parse().unwrap());
        assert_eq!(TraceContext::from_headers(&headers), None);
    }
}
