//! Credentials: the scopes of tokens, and the syntax of secrets and path segments.

use std::fmt;

/// A permission of an access token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Read and list templates and versions, render them, read events.
    Read,
    /// Create, edit, delete and validate templates.
    Write,
    /// Approve and reject pending templates.
    Review,
    /// Register and change webhook endpoints.
    Webhooks,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 4] = [Scope::Read, Scope::Write, Scope::Review, Scope::Webhooks];

    /// The name, such as `read`.
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
    /// All four scopes, the default of a new token.
    pub const ALL: Scopes = Scopes(0b1111);

    /// Whether the set contains `scope`.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Parses comma-separated names: `read,write`. The error is the first unknown name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut scopes = Scopes(0);
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let scope = Scope::ALL.into_iter().find(|scope| scope.as_str() == name);
            scopes.0 |= scope.ok_or(name)?.bit();
        }
        if scopes.0 == 0 { Err(text.to_owned()) } else { Ok(scopes) }
    }

    /// The scopes of the set, in declaration order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Scope::as_str).collect();
        out.write_str(&names.join(","))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Scopes({self})")
    }
}

/// Maximum length of a path segment, in bytes.
pub const MAX_SEGMENT_BYTES: usize = 256;

/// Maximum length of a secret, in bytes.
pub const MAX_SECRET_BYTES: usize = 128;

/// Whether a path segment is a valid phone number id or key: `[A-Za-z0-9._~+-]{1,256}`, except
/// `.` and `..`, which clients and proxies remove from paths.
pub fn is_valid_path_segment(text: &str) -> bool {
    text != "."
        && text != ".."
        && (1..=MAX_SEGMENT_BYTES).contains(&text.len())
        && text.bytes().all(is_url_safe)
}

/// Whether a string is a valid key or token: `[A-Za-z0-9._~+-]{1,128}`.
pub fn is_valid_secret(text: &str) -> bool {
    text.len() <= MAX_SECRET_BYTES && is_valid_path_segment(text)
}

fn is_url_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_parsed_from_and_displayed_as_names() {
        let scopes = Scopes::parse("write, read").unwrap();
        assert_eq!(scopes.to_string(), "read,write");
        assert!(scopes.contains(Scope::Write) && !scopes.contains(Scope::Review));
        assert_eq!(Scopes::parse(&Scopes::ALL.to_string()), Ok(Scopes::ALL));
        assert_eq!(Scopes::parse("read,wirte"), Err("wirte".to_owned()));
        assert_eq!(Scopes::parse(" , "), Err(" , ".to_owned()));
    }

    #[test]
    fn path_segments_and_secrets_are_url_safe_and_have_a_maximum_length() {
        assert!(is_valid_path_segment("15550001111") && is_valid_path_segment("a.B_~+-"));
        assert!(
            is_valid_path_segment(&"k".repeat(256)) && !is_valid_path_segment(&"k".repeat(257))
        );
        assert!(is_valid_secret(&"k".repeat(128)) && !is_valid_secret(&"k".repeat(129)));
        for invalid in ["", ".", "..", "a/b", "a b", "a%2Fb", "ä", "a\0", "a;b", "a:b"] {
            assert!(!is_valid_path_segment(invalid) && !is_valid_secret(invalid), "{invalid:?}");
        }
    }
}
