//! Accounts and credentials as they go into a store and come out of it, and reports on its upkeep.

use std::fmt;

use galley_domain::{account::Scopes, id::AccountId, template::Review};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// An account to be made.
#[derive(Clone, Debug)]
pub struct NewAccount {
    /// What people call it; no two accounts share a name.
    pub name: String,
    /// Which rulebook its documents are read by.
    pub rulebook: &'static str,
    /// How its templates get their first status.
    pub review: Review,
    /// Its phone numbers; with none it takes any that no other account owns.
    pub phones: Vec<String>,
    /// Its first credentials.
    pub credentials: Vec<NewCredential>,
    /// Only if there is no account yet.
    pub only_as_first: bool,
    /// When.
    pub at: Timestamp,
}

/// What came of making an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateAccountOutcome {
    /// It is there; its credentials have these ids, in the order given.
    Created(AccountId, Vec<CredentialId>),
    /// It was to be the first, and is not.
    NotFirst,
    /// An account of that name exists.
    NameTaken,
    /// Another account owns that phone number.
    PhoneTaken(String),
    /// A key or token with one of these secrets exists.
    SecretTaken(CredentialKind),
}

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Which one.
    pub id: AccountId,
    /// What people call it.
    pub name: String,
    /// Which rulebook its documents are read by.
    pub rulebook: String,
    /// How its templates get their first status.
    pub review: Review,
    /// Whether it takes any phone number that no other account owns.
    pub takes_any_phone: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// Since when it is shut out.
    pub disabled_at: Option<Timestamp>,
    /// The limits it is held to, if it is.
    pub limits: Option<AccountLimits>,
}

/// The limits that an account may be held to, by choice. Beside the number of templates they are
/// the same for all: [`MAX_CREATES_PER_HOUR`], [`MAX_EDITS_PER_DAY`] and [`MAX_EDITS_PER_MONTH`].
///
/// [`MAX_CREATES_PER_HOUR`]: crate::MAX_CREATES_PER_HOUR
/// [`MAX_EDITS_PER_DAY`]: crate::MAX_EDITS_PER_DAY
/// [`MAX_EDITS_PER_MONTH`]: crate::MAX_EDITS_PER_MONTH
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountLimits {
    /// How many templates it may have; each language of a name is one.
    pub templates: u32,
}

impl AccountLimits {
    /// Those of a business that nobody has verified.
    pub const UNVERIFIED: Self = Self { templates: 250 };
    /// Those of a verified business.
    pub const VERIFIED: Self = Self { templates: 6_000 };
}

impl Default for AccountLimits {
    fn default() -> Self {
        Self::UNVERIFIED
    }
}

/// A limit that an account has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// It has made as many templates as one hour takes.
    CreationsPerHour,
    /// It has as many templates as it may have.
    Templates,
    /// This APPROVED template was edited as often as 24 hours take.
    EditsPerDay,
    /// This APPROVED template was edited as often as 30 days take.
    EditsPerMonth,
}

/// What came of giving a phone number to an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddPhoneOutcome {
    /// It is the account's now.
    Added,
    /// It was the account's before.
    Owned,
    /// It belongs to another account.
    Taken,
    /// There is no such account.
    NoAccount,
}

/// Whether a credential stands in the path or in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CredentialKind {
    /// An API key, in the path.
    Key,
    /// An access token, in `Authorization`.
    Token,
}

impl CredentialKind {
    /// How it is kept and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Token => "token",
        }
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Key, Self::Token].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Which credential. Never secret: logs and events carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CredentialId(pub u64);

impl fmt::Display for CredentialId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// Who did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// Whoever called with that token.
    Token(CredentialId),
    /// Whoever runs the service, from the command line.
    Operator,
    /// The service itself.
    Service,
}

impl fmt::Display for Actor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(id) => id.fmt(out),
            Self::Operator => out.write_str("operator"),
            Self::Service => out.write_str("service"),
        }
    }
}

/// The SHA-256 of a secret: all that is ever kept of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    /// Hashes a secret.
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }
}

/// A credential to be made.
#[derive(Clone, Copy, Debug)]
pub struct NewCredential {
    /// Key or token.
    pub kind: CredentialKind,
    /// The hash of its secret.
    pub hash: SecretHash,
    /// What it allows.
    pub scopes: Scopes,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

impl NewCredential {
    /// One that allows everything and does not end by itself.
    pub fn lasting(kind: CredentialKind, secret: &str) -> Self {
        Self { kind, hash: SecretHash::of(secret), scopes: Scopes::ALL, expires_at: None }
    }
}

/// What came of making a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddCredentialOutcome {
    /// It works from now on.
    Added(CredentialId),
    /// A credential of the same kind with the same secret exists.
    SecretTaken,
    /// There is no such account, or no such credential to rotate.
    NoOwner,
}

/// A key or token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Which one.
    pub id: CredentialId,
    /// Whose it is.
    pub account: AccountId,
    /// Key or token.
    pub kind: CredentialKind,
    /// What it allows.
    pub scopes: Scopes,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was ended.
    pub revoked_at: Option<Timestamp>,
}

/// How far a sweep has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionCursor {
    /// The last record that was looked at; none when the sweep is through.
    pub at: Option<[u8; 16]>,
    /// How many records the last step removed.
    pub removed: usize,
    /// How many uploads it forgot.
    pub uploads: usize,
}

/// What one step of following the events did for the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexProgress {
    /// How many templates it looked at.
    pub seen: usize,
    /// Whether there is more to do right away.
    pub more: bool,
}

/// One thing that `galley doctor` looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub subject: &'static str,
    /// What was seen there.
    pub seen: String,
    /// Whether that is as it should be.
    pub good: bool,
}
