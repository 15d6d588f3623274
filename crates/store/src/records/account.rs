//! Accounts, phone numbers, credentials, and the results of maintenance work.

use std::fmt;

use galley_domain::{account::Scopes, emulator::EmulatorKind, id::AccountId, template::Review};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

/// An account to create.
#[derive(Clone, Debug)]
pub struct NewAccount {
    /// The id of the first account of a store; without one, the store chooses. An account with a
    /// given id is created only if the store has no account yet.
    pub id: Option<AccountId>,
    /// A unique display name.
    pub name: String,
    /// The id of the rulebook that validates its documents.
    pub rulebook: &'static str,
    /// How its templates get their first status. An emulator account always has
    /// [`Review::Scripted`], and no other account has it.
    pub review: Review,
    /// Makes it an emulator of this kind, for ever.
    pub emulator: Option<EmulatorKind>,
    /// The limits that it begins with, if any.
    pub limits: Option<AccountLimits>,
    /// Its phone numbers. Without any, the account accepts every number that no other account owns.
    pub phones: Vec<String>,
    /// Its first credentials.
    pub credentials: Vec<NewCredential>,
    /// Creates the account only if the store has no account yet.
    pub only_if_first: bool,
    /// Who creates it, and when.
    pub by: Author,
}

impl NewAccount {
    /// How its templates get their first status.
    pub(crate) fn first_review(&self) -> Review {
        if self.emulator.is_some() { Review::Scripted } else { self.review }
    }
}

/// The result of [`create_account`](crate::Store::create_account).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateAccountOutcome {
    /// The account was created; the credential ids are in the order given.
    Created(AccountId, Vec<CredentialId>),
    /// `only_if_first` or `id` was set, and an account exists.
    NotFirst,
    /// Another account has that name.
    NameTaken,
    /// Another account owns this phone number.
    PhoneTaken(String),
    /// A credential of this kind with the same secret exists.
    SecretTaken(CredentialKind),
}

/// A tenant of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The account's id.
    pub id: AccountId,
    /// Its unique display name.
    pub name: String,
    /// The id of the rulebook that validates its documents.
    pub rulebook: String,
    /// How its templates get their first status, as the operator chose it. What applies is
    /// [`effective_review`](Self::effective_review).
    pub review: Review,
    /// The kind of an emulator account.
    pub emulator: Option<EmulatorKind>,
    /// Whether a version is decided on by another token than the one that created it.
    pub four_eyes: bool,
    /// Whether it is connected to a provider.
    pub is_connected: bool,
    /// Whether it accepts every phone number that no other account owns.
    pub takes_any_phone: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was disabled, if it is.
    pub disabled_at: Option<Timestamp>,
    /// Its limits, if it has any.
    pub limits: Option<AccountLimits>,
    /// Its quotas.
    pub quotas: AccountQuotas,
    /// What it stored when this record was read.
    pub usage: AccountUsage,
}

impl Account {
    /// How its templates get their status. In a connected account, the provider decides.
    pub fn effective_review(&self) -> Review {
        if self.is_connected { self.review.of_connected() } else { self.review }
    }
}

/// What an account stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountUsage {
    /// The quota bytes of all versions of its templates; `None` while they are counted
    /// again.
    pub template_bytes: Option<u64>,
    /// The quota bytes of its media samples.
    pub media_bytes: u64,
}

/// How many bytes the templates of an account may take by default: 32 GiB, more than
/// ten million templates of usual length.
pub const DEFAULT_STORED_BYTES: u64 = 32 << 30;

/// What a stored version counts towards the quota besides its content, for its row, its index
/// entries and its events.
pub const VERSION_OVERHEAD_BYTES: u64 = 512;

/// How many phone numbers an account may claim by default.
pub const DEFAULT_PHONE_NUMBERS: u64 = 1_000;

/// What the operator has set for one account, to protect the other accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountQuotas {
    /// The maximum number of requests per second; `None` without a limit.
    pub requests_per_second: Option<u64>,
    /// The maximum number of bytes that its templates take.
    pub stored_bytes: Quota,
    /// The maximum number of phone numbers that it claims.
    pub phone_numbers: Quota,
}

/// A quota of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quota {
    /// The program's default.
    #[default]
    Default,
    /// No limit.
    Unlimited,
    /// A maximum of the operator's choice, at least 1.
    Max(u64),
}

impl Quota {
    /// The maximum; `None` without a limit.
    pub fn max(self, default: u64) -> Option<u64> {
        match self {
            Self::Default => Some(default),
            Self::Unlimited => None,
            Self::Max(max) => Some(max),
        }
    }
}

/// How many templates an account with limits may create per hour.
pub const MAX_CREATES_PER_HOUR: usize = 100;

/// The optional limits of an account. Only the number of templates differs between accounts; the
/// other limits are [`MAX_CREATES_PER_HOUR`], [`MAX_EDITS_PER_DAY`] and [`MAX_EDITS_PER_MONTH`].
///
/// [`MAX_EDITS_PER_DAY`]: crate::MAX_EDITS_PER_DAY
/// [`MAX_EDITS_PER_MONTH`]: crate::MAX_EDITS_PER_MONTH
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountLimits {
    /// The maximum number of templates; each language of a name counts as one.
    pub templates: u32,
}

impl AccountLimits {
    /// The limits of an unverified business.
    pub const UNVERIFIED: Self = Self { templates: 250 };
    /// The limits of a verified business.
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
    /// Templates created by the account within an hour.
    CreationsPerHour,
    /// Templates of the account.
    Templates,
    /// Edits of this APPROVED template within 24 hours.
    EditsPerDay,
    /// Edits of this APPROVED template within 30 days.
    EditsPerMonth,
    /// Bytes that the versions of all templates of the account take.
    StoredBytes {
        /// How many they take now.
        used: u64,
        /// How many they may take.
        max: u64,
    },
}

/// The result of [`add_phone`](crate::Store::add_phone).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddPhoneOutcome {
    /// The account now owns the number.
    Added,
    /// The account already owned the number.
    AlreadyOwned,
    /// Another account owns the number.
    OwnedByOther,
    /// The account has as many numbers as it may claim.
    TooMany,
    /// The account does not exist.
    NoAccount,
}

/// The kind of a credential, which decides where a request carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CredentialKind {
    /// An API key, in the path.
    Key,
    /// An access token, in `Authorization`.
    Token,
}

impl CredentialKind {
    /// The stored and displayed value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Token => "token",
        }
    }

    /// Parses a value that [`as_str`](Self::as_str) returns.
    pub fn parse(value: &str) -> Option<Self> {
        [Self::Key, Self::Token].into_iter().find(|kind| kind.as_str() == value)
    }
}

/// The id of a credential. It is not secret; logs and events contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CredentialId(pub u64);

impl fmt::Display for CredentialId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// The originator of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A client that used this token.
    Token(CredentialId),
    /// The operator, from the command line.
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

/// Who makes a change of accounts, credentials or endpoints, and when. The audit feed records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Author {
    /// The originator of the change.
    pub actor: Actor,
    /// The time of the change.
    pub at: Timestamp,
}

impl Author {
    /// A client that used this token.
    pub fn token(id: CredentialId, at: Timestamp) -> Self {
        Self { actor: Actor::Token(id), at }
    }

    /// The operator, from the command line.
    pub fn operator(at: Timestamp) -> Self {
        Self { actor: Actor::Operator, at }
    }

    /// The service itself.
    pub fn service(at: Timestamp) -> Self {
        Self { actor: Actor::Service, at }
    }
}

/// The SHA-256 of a secret. The secret itself is never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SecretHash(pub [u8; 32]);

impl SecretHash {
    /// Hashes a secret.
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }
}

/// A credential to create.
#[derive(Clone, Debug)]
pub struct NewCredential {
    /// Key or token.
    pub kind: CredentialKind,
    /// The hash of its secret.
    pub hash: SecretHash,
    /// What it permits.
    pub scopes: Scopes,
    /// When it expires, if it does.
    pub expires_at: Option<Timestamp>,
    /// What it is for; empty without a name.
    pub name: String,
}

impl NewCredential {
    /// A credential with the default scopes, no expiry and no name.
    pub fn unrestricted(kind: CredentialKind, secret: &str) -> Self {
        Self {
            kind,
            hash: SecretHash::of(secret),
            scopes: Scopes::DEFAULT,
            expires_at: None,
            name: String::new(),
        }
    }
}

/// The result of [`add_credential`](crate::Store::add_credential).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddCredentialOutcome {
    /// The credential was added and is valid.
    Added(CredentialId),
    /// A credential of the same kind with the same secret exists.
    SecretTaken,
    /// The account does not exist.
    NotFound,
}

/// The result of [`issue_token`](crate::Store::issue_token).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssueTokenOutcome {
    /// The token was added and is valid.
    Issued(CredentialId),
    /// A token with the same secret exists.
    SecretTaken,
    /// The account has the maximum number of active tokens.
    TooMany,
    /// The calling token was revoked.
    CallerRevoked,
    /// The calling token has expired.
    CallerExpired,
    /// The new token would permit more than the calling one, or for longer.
    ExceedsCaller,
    /// The account is disabled.
    AccountDisabled,
    /// The account needs a second person for decisions, so only the operator creates tokens.
    FourEyes,
    /// The account does not exist, or the calling token is none of its tokens.
    NotFound,
}

/// The result of [`revoke_token`](crate::Store::revoke_token).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevokeTokenOutcome {
    /// The token was revoked.
    Revoked,
    /// The token was revoked before.
    AlreadyRevoked,
    /// The account has no such token.
    NotFound,
}

/// The result of [`rename_account`](crate::Store::rename_account).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameAccountOutcome {
    /// The account has the new name.
    Renamed,
    /// Another account has that name.
    NameTaken,
    /// The account does not exist.
    NotFound,
}

/// The result of [`set_account_review`](crate::Store::set_account_review).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetReviewOutcome {
    /// The account has this review now.
    Set,
    /// A script reviews the templates of an emulator account, for ever.
    Emulator,
    /// Only an emulator account can have the review `scripted`.
    NotAnEmulator,
    /// The account does not exist.
    NotFound,
}

/// The result of [`delete_account`](crate::Store::delete_account).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteAccountOutcome {
    /// The account was deleted.
    Deleted,
    /// The account is not disabled.
    NotDisabled,
    /// The account has templates.
    HasTemplates,
    /// The account does not exist.
    NotFound,
}

/// The result of [`rotate_credential`](crate::Store::rotate_credential).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotateCredentialOutcome {
    /// The replacement was added and is valid.
    Rotated {
        /// Its id.
        id: CredentialId,
        /// When it expires, if it does.
        expires_at: Option<Timestamp>,
        /// When the old credential ends.
        old_ends_at: Timestamp,
    },
    /// The credential to rotate expired at this time.
    Expired(Timestamp),
    /// The credential to rotate was revoked at this time.
    Revoked(Timestamp),
    /// A credential of the same kind with the same secret exists.
    SecretTaken,
    /// The credential to rotate does not exist.
    NotFound,
}

/// A key or token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The credential's id.
    pub id: CredentialId,
    /// The account that owns it.
    pub account: AccountId,
    /// Key or token.
    pub kind: CredentialKind,
    /// What it is for; empty without a name.
    pub name: String,
    /// What it permits.
    pub scopes: Scopes,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last used, within a minute; `None` if it never was.
    pub last_used_at: Option<Timestamp>,
    /// When it expires, if it does.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Timestamp>,
}

/// The position of a retention pass over the idempotency records, and what its last step deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionCursor {
    /// The last key checked; `None` before the first step and after the last.
    pub last_key: Option<[u8; 16]>,
    /// How many records the last step deleted.
    pub deleted_records: usize,
    /// How many uploads the last step deleted.
    pub deleted_uploads: usize,
}

/// The result of one [`update_search_index`](crate::Store::update_search_index) step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexProgress {
    /// How many templates the step processed.
    pub processed: usize,
    /// Whether the index is still behind the events.
    pub has_more: bool,
}
