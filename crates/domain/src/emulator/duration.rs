//! Durations in the emulator's documents and names: `90s`, `10m`, `24h`, `7d`, `1h30m`.

use std::fmt::Write as _;

use jiff::SignedDuration;

use crate::violation::{Rule, TextViolation, truncated};

/// The seconds of a day.
pub(super) const DAY_SECONDS: i64 = 24 * 60 * 60;

/// The longest duration.
pub const MAX: SignedDuration = SignedDuration::from_secs(365 * DAY_SECONDS);

/// The units, in the order in which they are combined, with their seconds.
const UNITS: [(char, i64); 4] = [('d', DAY_SECONDS), ('h', 3_600), ('m', 60), ('s', 1)];

/// The longest number in a duration: `31536000s` are 365 days.
const MAX_DIGITS: usize = 8;

/// How a duration is written, for hints.
pub(super) const HINT: &str = "write it like `90s`, `10m`, `24h`, `7d` or `1h30m`, at most `365d`";

/// Parses a duration from `0s` to `365d`: numbers with units in descending order.
pub fn parse(text: &str) -> Option<SignedDuration> {
    let mut rest = text;
    let mut seconds = 0;
    let mut units = UNITS.iter();
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if !(1..=MAX_DIGITS).contains(&digits) {
            return None;
        }
        let (number, tail) = rest.split_at(digits);
        let unit = tail.chars().next()?;
        let (_, unit_seconds) = units.find(|(letter, _)| *letter == unit)?;
        seconds += number.parse::<i64>().ok()? * unit_seconds;
        rest = &tail[unit.len_utf8()..];
        if rest.is_empty() {
            break;
        }
    }
    let duration = SignedDuration::from_secs(seconds);
    (duration <= MAX).then_some(duration)
}

/// Writes a duration of whole seconds as [`parse`] reads it: `1h30m`.
pub fn format(duration: SignedDuration) -> String {
    let mut seconds = duration.as_secs().max(0);
    let mut text = String::new();
    for (letter, unit_seconds) in UNITS {
        let number = seconds / unit_seconds;
        seconds %= unit_seconds;
        if number > 0 {
            let _ = write!(text, "{number}{letter}");
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// The violation of a text that is not a duration from `min` to `max`.
pub(super) fn check(
    text: &str,
    min: SignedDuration,
    max: SignedDuration,
) -> Result<SignedDuration, TextViolation> {
    let quoted = truncated(text);
    match parse(text) {
        Some(duration) if duration < min => {
            let message = format!("`{quoted}` is shorter than {}", format(min));
            Err(TextViolation::new(Rule::DurationForm, message))
        }
        Some(duration) if duration > max => {
            let message = format!("`{quoted}` is longer than {}", format(max));
            Err(TextViolation::new(Rule::DurationForm, message))
        }
        Some(duration) => Ok(duration),
        None => {
            let message = format!("`{quoted}` is not a duration");
            Err(TextViolation::new(Rule::DurationForm, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_with_units_in_descending_order_are_durations() {
        for (text, seconds) in [
            ("0s", 0),
            ("1s", 1),
            ("90s", 90),
            ("10m", 600),
            ("24h", 86_400),
            ("1h30m", 5_400),
            ("1d2h3m4s", 93_784),
            ("007d", 604_800),
            ("365d", 31_536_000),
            ("31536000s", 31_536_000),
        ] {
            assert_eq!(parse(text), Some(SignedDuration::from_secs(seconds)), "{text}");
        }
        for text in [
            "",
            "s",
            "5",
            "5x",
            "-5s",
            "+5s",
            "5 s",
            "5S",
            "1.5h",
            "30m1h",
            "1h1h",
            "1h ",
            "366d",
            "365d1s",
            "99999999d",
            "123456789s",
            "1hü",
            "٣s",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_duration_is_parsed_as_it_is_written(seconds in 0_i64..=31_536_000) {
            let duration = SignedDuration::from_secs(seconds);
            prop_assert_eq!(parse(&format(duration)), Some(duration));
        }

        #[test]
        fn any_text_is_parsed_or_refused(text in "[0-9smhd]{0,12}") {
            if let Some(duration) = parse(&text) {
                prop_assert!(duration <= MAX && !duration.is_negative());
            }
        }
    }
}
