//! Writes the canonical JSON of the values that are read.

use super::Reader;
use crate::document::byte_classes::{ByteClasses, ESCAPED};

impl Reader<'_> {
    pub(super) fn write(&mut self, text: &str) {
        self.canonical.extend_from_slice(text.as_bytes());
    }

    /// Writes a string that has these `classes` of bytes.
    pub(super) fn write_string(&mut self, text: &str, classes: ByteClasses) {
        if classes.has(ESCAPED) {
            serde_json::to_writer(&mut self.canonical, text).expect("a string is JSON");
        } else {
            self.write_plain(text);
        }
    }

    /// Writes a string that needs no escaping.
    pub(super) fn write_plain(&mut self, text: &str) {
        self.canonical.push(b'"');
        self.write(text);
        self.canonical.push(b'"');
    }

    pub(super) fn write_key(&mut self, key: &'static str) {
        self.write_comma();
        self.write_plain(key);
        self.canonical.push(b':');
    }

    /// Writes a comma unless the object or list is still empty.
    pub(super) fn write_comma(&mut self) {
        if !matches!(self.canonical.last(), Some(b'{' | b'[')) {
            self.canonical.push(b',');
        }
    }
}
