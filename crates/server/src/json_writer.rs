//! Writing JSON objects straight into an answer.

/// Writes the members of one JSON object; absent ones are left out.
pub(crate) struct Object<'o>(&'o mut String);

impl<'o> Object<'o> {
    pub(crate) fn open(out: &'o mut String) -> Self {
        out.push('{');
        Self(out)
    }

    /// A member whose value is JSON already.
    pub(crate) fn raw(&mut self, key: &str, value: &str) {
        if !self.0.ends_with('{') {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(key);
        self.0.push_str("\":");
        self.0.push_str(value);
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.raw(key, &serde_json::to_string(value).unwrap_or_default());
    }

    /// A word that needs no escaping.
    pub(crate) fn word(&mut self, key: &str, word: &str) {
        self.raw(key, "\"");
        self.0.push_str(word);
        self.0.push('"');
    }

    /// What needs no escaping once it is written.
    pub(crate) fn plain(&mut self, key: &str, value: impl std::fmt::Display) {
        use std::fmt::Write as _;
        self.raw(key, "\"");
        let _ = write!(self.0, "{value}");
        self.0.push('"');
    }

    pub(crate) fn number(&mut self, key: &str, value: u64) {
        self.raw(key, itoa::Buffer::new().format(value));
    }
    /// What stands there only sometimes.
    pub(crate) fn plain_if(&mut self, key: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.plain(key, value);
        }
    }

    /// A member that is an object itself.
    pub(crate) fn object(&mut self, key: &str, write: impl FnOnce(&mut Object<'_>)) {
        self.raw(key, "");
        let mut inner = Object::open(self.0);
        write(&mut inner);
        inner.close();
    }

    /// The object is whole.
    pub(crate) fn close(self) {
        self.0.push('}');
    }
}
