//! Writes JSON objects directly into a response.

use jiff::Timestamp;

/// Writes the members of one JSON object.
pub(crate) struct ObjectWriter<'o>(&'o mut String);

impl<'o> ObjectWriter<'o> {
    pub(crate) fn open(out: &'o mut String) -> Self {
        out.push('{');
        Self(out)
    }

    /// Writes a member whose value is already JSON.
    pub(crate) fn raw(&mut self, key: &str, value: &str) {
        if !self.0.ends_with('{') {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
        self.0.push_str(value);
    }

    /// Writes a string and escapes it.
    pub(crate) fn string(&mut self, key: &str, value: &str) {
        self.raw(key, &serde_json::to_string(value).unwrap_or_default());
    }

    /// Writes a string that needs no escaping.
    pub(crate) fn unescaped(&mut self, key: &str, value: &str) {
        self.raw(key, "\"");
        self.0.push_str(value);
        self.0.push('"');
    }

    /// Writes a value as a string. Its [`Display`](std::fmt::Display) form must need no escaping.
    pub(crate) fn display(&mut self, key: &str, value: impl std::fmt::Display) {
        use std::fmt::Write as _;
        self.raw(key, "\"");
        let _ = write!(self.0, "{value}");
        self.0.push('"');
    }

    /// Writes a value like [`ObjectWriter::display`], or omits the member if there is none.
    pub(crate) fn optional_display(&mut self, key: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.display(key, value);
        }
    }

    /// Writes a timestamp in RFC 3339 format, always with milliseconds, so that timestamps sort as
    /// text.
    pub(crate) fn timestamp(&mut self, key: &str, value: Timestamp) {
        self.display(key, format_args!("{value:.3}"));
    }

    /// Writes a timestamp, or omits the member if there is none.
    pub(crate) fn optional_timestamp(&mut self, key: &str, value: Option<Timestamp>) {
        if let Some(value) = value {
            self.timestamp(key, value);
        }
    }

    pub(crate) fn number(&mut self, key: &str, value: u64) {
        self.raw(key, itoa::Buffer::new().format(value));
    }

    /// Writes a nested object.
    pub(crate) fn object(&mut self, key: &str, write: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.raw(key, "");
        let mut inner = ObjectWriter::open(self.0);
        write(&mut inner);
        inner.close();
    }

    /// Ends the object.
    pub(crate) fn close(self) {
        self.0.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_always_have_three_fractional_digits() {
        for (at, expected) in [
            ("2026-11-15T09:30:00.123Z", "2026-11-15T09:30:00.123Z"),
            ("2026-11-15T09:30:00.1Z", "2026-11-15T09:30:00.100Z"),
            ("2026-11-15T09:30:00Z", "2026-11-15T09:30:00.000Z"),
            // As the store truncates it.
            ("2026-11-15T09:30:00.123987654Z", "2026-11-15T09:30:00.123Z"),
        ] {
            let mut out = String::new();
            let mut object = ObjectWriter::open(&mut out);
            object.timestamp("at", at.parse().expect("a timestamp"));
            object.optional_timestamp("until", None);
            object.close();
            assert_eq!(out, format!(r#"{{"at":"{expected}"}}"#));
        }
    }
}
