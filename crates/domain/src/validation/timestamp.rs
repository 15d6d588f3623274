//! Moments as RFC 3339 writes them.

use jiff::Timestamp;

use crate::violation::{Rule, TextViolation, shortened};

/// The moment that a text names.
pub(crate) fn read(text: &str) -> Option<Timestamp> {
    // The library takes more spellings than the standard has: no seconds, other separators, zones.
    is_spelt_right(text).then(|| text.parse().ok()).flatten()
}

/// Notes what is wrong with a text that is no moment.
pub(crate) fn check(text: &str, faults: &mut Vec<TextViolation>) -> Option<usize> {
    if read(text).is_none() {
        let message = format!("`{}` is not a moment", shortened(text));
        let hint = "write date, time and zone as RFC 3339 says: `2026-11-15T09:30:00Z`";
        faults.push(TextViolation::new(Rule::MomentForm, message).hint(hint));
    }
    None
}

fn is_spelt_right(text: &str) -> bool {
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
    // A leap second is not told: nobody dates anything by one. Neither is there a year 0.
    let odd = start.get(17..) == Some("60") || start.starts_with("0000");
    let zone = rest == "Z"
        || (looks_like(rest, "+00:00") || looks_like(rest, "-00:00")) && &rest[1..] < "24";
    looks_like(start, "0000-00-00T00:00:00") && zone && !odd
}

/// Whether a text is like `form`, in which every `0` stands for a digit.
fn looks_like(text: &str, form: &str) -> bool {
    let alike = |(it, form): (u8, u8)| if form == b'0' { it.is_ascii_digit() } else { it == form };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(alike)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_rfc_3339_writes_is_a_moment() {
        for (good, told) in [
            ("2026-11-15T09:30:00Z", "2026-11-15T09:30:00Z"),
            ("2026-11-15T09:30:00.123456789Z", "2026-11-15T09:30:00.123456789Z"),
            ("2026-11-15T09:30:00+05:30", "2026-11-15T04:00:00Z"),
            ("2026-11-15T09:30:00.5-23:59", "2026-11-16T09:29:00.5Z"),
            ("2024-02-29T23:59:59Z", "2024-02-29T23:59:59Z"),
        ] {
            assert_eq!(read(good).map(|it| it.to_string()).as_deref(), Some(told), "{good}");
        }
        for bad in [
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
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
