//! Timestamps in RFC 3339 format.

use jiff::Timestamp;

use crate::violation::{Rule, TextViolation, truncated};

/// Parses a timestamp.
pub fn parse(text: &str) -> Option<Timestamp> {
    // `jiff` accepts more than RFC 3339: missing seconds, other separators, named time zones.
    is_rfc_3339(text).then(|| text.parse().ok()).flatten()
}

/// Reports a text that is not a timestamp.
pub(crate) fn check(text: &str, violations: &mut Vec<TextViolation>) {
    if parse(text).is_none() {
        let message = format!("`{}` is not a timestamp", truncated(text));
        let hint = "write date, time and time zone in RFC 3339 format: `2026-11-15T09:30:00Z`";
        violations.push(TextViolation::new(Rule::MomentForm, message).hint(hint));
    }
}

fn is_rfc_3339(text: &str) -> bool {
    let Some((start, rest)) = text.split_at_checked("2026-11-15T09:30:00".len()) else {
        return false;
    };
    let rest = match rest.strip_prefix('.') {
        Some(fraction) => {
            let rest = fraction.trim_start_matches(|it: char| it.is_ascii_digit());
            if !(1..=9).contains(&(fraction.len() - rest.len())) {
                return false;
            }
            rest
        }
        None => rest,
    };
    // Leap seconds and the year 0 are rejected.
    let is_unsupported = start.get(17..) == Some("60") || start.starts_with("0000");
    let has_zone = rest == "Z"
        || (matches_form(rest, "+00:00") || matches_form(rest, "-00:00")) && &rest[1..] < "24";
    matches_form(start, "0000-00-00T00:00:00") && has_zone && !is_unsupported
}

/// Whether a text matches `form`, in which every `0` stands for any digit.
fn matches_form(text: &str, form: &str) -> bool {
    let is_match =
        |(byte, form): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(is_match)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rfc_3339_timestamps_are_accepted() {
        for (valid, expected) in [
            ("2026-11-15T09:30:00Z", "2026-11-15T09:30:00Z"),
            ("2026-11-15T09:30:00.123456789Z", "2026-11-15T09:30:00.123456789Z"),
            ("2026-11-15T09:30:00+05:30", "2026-11-15T04:00:00Z"),
            ("2026-11-15T09:30:00.5-23:59", "2026-11-16T09:29:00.5Z"),
            ("2024-02-29T23:59:59Z", "2024-02-29T23:59:59Z"),
        ] {
            assert_eq!(parse(valid).map(|it| it.to_string()).as_deref(), Some(expected), "{valid}");
        }
        for invalid in [
            "",
            "2026-11-15",
            "2026-11-15T09:30Z",
            "2026-11-15T09:30:00",
            "2026-11-15 09:30:00Z",
            "2026-11-15t09:30:00z",
            "2026-11-15T09:30:00.Z",
            "2026-11-15T09:30:00.1234567890Z",
            "2026-11-15T09:30:00,5Z",
            "2026-11-15T09:30:00+0530",
            "2026-11-15T09:30:00+24:00",
            "2026-11-15T09:30:00+05:60",
            "2026-11-15T09:30:00Z[UTC]",
            "2026-02-29T09:30:00Z",
            "2016-12-31T23:59:60Z",
            "0000-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "2026-13-01T09:30:00Z",
            "2026-11-15T24:00:00Z",
            "+002026-11-15T09:30:00Z",
            "2026-11-15T09:30:0ü",
            "yesterday",
        ] {
            assert_eq!(parse(invalid), None, "{invalid}");
        }
    }
}
