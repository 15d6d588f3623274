//! The trace of a request: what the header `traceparent` of W3C Trace Context names.

use std::fmt;

/// Length of a header of version 00. Later versions may append further fields.
const HEADER_BYTES: usize = 55;

/// The flags that Galley knows: sampled, and random trace id. It passes on no others.
const KNOWN_FLAGS: u8 = 0b11;

/// A trace, and the span of the client that called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext(
    /// As it is stored: trace id (16 bytes), span id (8 bytes) and flags, big-endian.
    [u8; 25],
);

impl TraceContext {
    /// Reads `{version}-{trace id}-{span id}-{flags}`, in lower-case hexadecimal digits.
    pub fn parse(header: &[u8]) -> Option<Self> {
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
        let flags = u8::try_from(hex(&known[53..])?).ok()?;
        Self::new(trace_id, span_id, flags).filter(|_| is_complete && has_dashes)
    }

    /// `None` if an id is 0, which is not valid.
    fn new(trace_id: u128, span_id: u64, flags: u8) -> Option<Self> {
        let mut bytes = [0; 25];
        bytes[..16].copy_from_slice(&trace_id.to_be_bytes());
        bytes[16..24].copy_from_slice(&span_id.to_be_bytes());
        bytes[24] = flags & KNOWN_FLAGS;
        (trace_id != 0 && span_id != 0).then_some(Self(bytes))
    }

    /// The trace in a stored value. `None` if it is not one.
    pub(crate) fn from_stored(stored: &[u8]) -> Option<Self> {
        let bytes: [u8; 25] = stored.try_into().ok()?;
        let (ids, flags) = (&bytes[..24], bytes[24]);
        let trace_id = u128::from_be_bytes(*ids.first_chunk()?);
        let span_id = u64::from_be_bytes(*ids.last_chunk()?);
        Self::new(trace_id, span_id, flags)
    }

    /// The value to store.
    pub(crate) fn stored(&self) -> &[u8] {
        &self.0
    }

    /// The same trace with another span.
    #[must_use]
    pub fn with_span(mut self, random: [u8; 8]) -> Self {
        // 0 is not a valid id.
        let span_id = u64::from_be_bytes(random).max(1);
        self.0[16..24].copy_from_slice(&span_id.to_be_bytes());
        self
    }

    /// The trace id as the header and the log show it.
    pub fn trace_id(&self) -> impl fmt::Display + fmt::Debug + use<> {
        HexId(*self.0.first_chunk::<16>().expect("25 bytes begin with 16"))
    }

    /// The span id as the header and the log show it.
    pub fn span_id(&self) -> impl fmt::Display + fmt::Debug + use<> {
        HexId(*self.0[16..].first_chunk::<8>().expect("9 bytes begin with 8"))
    }
}

/// The value of the header.
impl fmt::Display for TraceContext {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "00-{}-{}-{:02x}", self.trace_id(), self.span_id(), self.0[24])
    }
}

/// An id of this many bytes.
#[derive(Debug)]
struct HexId<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> fmt::Display for HexId<BYTES> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
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
    fn a_stored_trace_is_read_again_and_a_damaged_one_is_none() {
        let trace = parse(VALID).unwrap();
        assert_eq!(TraceContext::from_stored(trace.stored()), Some(trace));
        assert_eq!(TraceContext::from_stored(&trace.stored()[..24]), None);
        assert_eq!(TraceContext::from_stored(&[0; 25]), None);
    }

    #[test]
    fn another_span_belongs_to_the_same_trace() {
        let other = parse(VALID).unwrap().with_span([0, 0, 0, 0, 0, 0, 0, 7]);
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
}
