//! Credentials: the scopes of tokens, names, and the syntax of secrets and path segments.

mod name;

use std::fmt;

pub(crate) use name::check_characters;
pub use name::{MAX_CREDENTIAL_NAME_CHARS, NameError, check_account_name, check_credential_name};

/// A permission of an access token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Read and list templates and versions, render them, read events.
    Read,
    /// Create, edit and delete templates.
    Write,
    /// Approve and reject pending templates.
    Review,
    /// Register and change webhook endpoints.
    Webhooks,
    /// List, create and revoke access tokens.
    Credentials,
    /// Read the audit feed.
    Audit,
    /// Control the emulator: review rules, clock, faults and sandbox messages.
    Emulator,
    /// Read the connection to a provider and its operations, and act on templates there.
    Upstream,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 8] = [
        Scope::Read,
        Scope::Write,
        Scope::Review,
        Scope::Webhooks,
        Scope::Credentials,
        Scope::Audit,
        Scope::Emulator,
        Scope::Upstream,
    ];

    /// The name of every scope.
    pub const VALUES: &'static [&'static str] =
        &["read", "write", "review", "webhooks", "credentials", "audit", "emulator", "upstream"];

    /// The name, such as `read`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Review => "review",
            Self::Webhooks => "webhooks",
            Self::Credentials => "credentials",
            Self::Audit => "audit",
            Self::Emulator => "emulator",
            Self::Upstream => "upstream",
        }
    }

    /// Parses a name; letter case is ignored.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str().eq_ignore_ascii_case(name))
    }

    /// Whether every call that requires the scope only reads.
    pub fn only_reads(self) -> bool {
        matches!(self, Self::Read | Self::Audit)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of scopes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    /// Every scope.
    pub const ALL: Scopes = Scopes(0b1111_1111);

    /// The scopes of a token that is created without a choice: `read`, `write`, `review` and
    /// `webhooks`. The others are granted only by name.
    pub const DEFAULT: Scopes = Scopes(0b1111);

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

    /// The set of these scopes.
    pub fn of(scopes: impl IntoIterator<Item = Scope>) -> Self {
        Scopes(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }

    /// The scopes of this set that `other` lacks.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Scopes(self.0 & !other.0)
    }

    /// Whether the set has no scope.
    pub fn is_empty(self) -> bool {
        self.0 == 0
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

/// The prefixes of random secrets, by which people and secret scanners recognise them.
pub mod prefix {
    /// An API key.
    pub const KEY: &str = "gk_";
    /// An access token.
    pub const TOKEN: &str = "gt_";
    /// A link to the console.
    pub const LINK: &str = "gl_";
    /// The path to which a provider sends webhooks.
    pub const HOOK: &str = "gh_";
}

/// URL-safe characters. Their number is a power of two, so that all are equally likely.
const SECRET_ALPHABET: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A new secret: the prefix, followed by 192 bits of these random bytes.
pub fn new_secret(prefix: &str, random: [u8; 32]) -> String {
    let letters = random.map(|byte| char::from(SECRET_ALPHABET[usize::from(byte & 63)]));
    prefix.chars().chain(letters).collect()
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
        for scope in Scope::ALL {
            assert_eq!(Scopes::parse(scope.as_str()), Ok(Scopes::of([scope])));
            assert_eq!(Scope::parse(&scope.as_str().to_uppercase()), Some(scope));
        }
        assert_eq!(Scope::ALL.map(Scope::as_str), Scope::VALUES);
        assert_eq!(Scopes::parse("read,wirte"), Err("wirte".to_owned()));
        assert_eq!(Scopes::parse(" , "), Err(" , ".to_owned()));
    }

    #[test]
    fn scopes_over_credentials_are_granted_only_by_name() {
        assert_eq!(Scopes::DEFAULT.to_string(), "read,write,review,webhooks");
        let by_name = Scopes::ALL.without(Scopes::DEFAULT);
        assert_eq!(by_name.to_string(), "credentials,audit,emulator,upstream");
        assert!(Scopes::DEFAULT.without(Scopes::ALL).is_empty());
    }

    #[test]
    fn a_new_secret_has_its_prefix_and_a_letter_for_each_random_byte() {
        let random: [u8; 32] = std::array::from_fn(|index| u8::try_from(index * 8).unwrap());
        let secret = new_secret(prefix::TOKEN, random);
        assert_eq!(secret, "gt_AIQYgow4AIQYgow4AIQYgow4AIQYgow4");
        assert!(is_valid_secret(&secret));
        assert_eq!(new_secret(prefix::KEY, [255; 32]), format!("gk_{}", "_".repeat(32)));
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
