//! Credentials: the shape of secrets and path segments, and what a token may do.

use std::fmt;

/// What a caller may do with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Read, list, versions, render, events.
    Read,
    /// Create, edit, delete, validate.
    Write,
    /// Decide on templates that wait.
    Review,
    /// Register and change webhooks.
    Webhooks,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 4] = [Scope::Read, Scope::Write, Scope::Review, Scope::Webhooks];

    /// Its name: `read`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Review => "review",
            Self::Webhooks => "webhooks",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of scopes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    /// All four: what a token has that was made without a choice.
    pub const ALL: Scopes = Scopes(0b1111);

    /// Whether `scope` is among them.
    pub fn allow(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Reads names divided by commas: `read,write`. The error names the first unknown one.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut scopes = Scopes(0);
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let scope = Scope::ALL.into_iter().find(|scope| scope.as_str() == word);
            scopes.0 |= scope.ok_or(word)?.bit();
        }
        if scopes.0 == 0 { Err(text.to_owned()) } else { Ok(scopes) }
    }

    /// Its scopes, in their order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.allow(*scope))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.iter().map(Scope::as_str).collect();
        out.write_str(&words.join(","))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Scopes({self})")
    }
}

/// The longest path segment that is looked at.
pub const MAX_SEGMENT_BYTES: usize = 256;

/// The longest secret that may be given.
pub const MAX_SECRET_BYTES: usize = 128;

/// Whether a phone number id or key of a path is written as one: `[A-Za-z0-9._~+-]{1,256}`, but
/// not `.` or `..`, which clients and proxies fold away.
pub fn is_segment(text: &str) -> bool {
    text != "."
        && text != ".."
        && (1..=MAX_SEGMENT_BYTES).contains(&text.len())
        && text.bytes().all(is_url_safe)
}

/// Whether a text can be a key or a token: `[A-Za-z0-9._~+-]{1,128}`.
pub fn is_secret(text: &str) -> bool {
    text.len() <= MAX_SECRET_BYTES && is_segment(text)
}

fn is_url_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_and_shown_as_words() {
        let scopes = Scopes::parse("write, read").unwrap();
        assert_eq!(scopes.to_string(), "read,write");
        assert!(scopes.allow(Scope::Write) && !scopes.allow(Scope::Review));
        assert_eq!(Scopes::parse(&Scopes::ALL.to_string()), Ok(Scopes::ALL));
        assert_eq!(Scopes::parse("read,wirte"), Err("wirte".to_owned()));
        assert_eq!(Scopes::parse(" , "), Err(" , ".to_owned()));
    }

    #[test]
    fn path_segments_and_secrets_are_plain_and_bounded() {
        assert!(is_segment("15550001111") && is_segment("a.B_~+-"));
        assert!(is_segment(&"k".repeat(256)) && !is_segment(&"k".repeat(257)));
        assert!(is_secret(&"k".repeat(128)) && !is_secret(&"k".repeat(129)));
        for odd in ["", ".", "..", "a/b", "a b", "a%2Fb", "ä", "a\0", "a;b", "a:b"] {
            assert!(!is_segment(odd) && !is_secret(odd), "{odd:?}");
        }
    }
}
