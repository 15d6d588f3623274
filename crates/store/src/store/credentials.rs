//! Manages API keys and access tokens.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;

use crate::{
    AddCredentialOutcome, Author, Credential, CredentialId, CredentialKind, IssueTokenOutcome,
    NewCredential, RevokeTokenOutcome, RotateCredentialOutcome, SecretHash, StoreError,
};

/// How many tokens an account may have when a client creates another one: those that are neither
/// expired nor revoked, and those that were created within the last hour. The operator may exceed it.
pub const MAX_ACTIVE_TOKENS: usize = 100;

/// Manages API keys and access tokens.
#[async_trait]
pub trait CredentialStore: Send + Sync {
    /// Adds a credential to an account.
    async fn add_credential(
        &self,
        account: AccountId,
        new: NewCredential,
        by: Author,
    ) -> Result<AddCredentialOutcome, StoreError>;

    /// Adds a token to an account that has fewer than [`MAX_ACTIVE_TOKENS`]. If a token is the
    /// author, it must be valid at that time, and permit as much as the new one, for as long.
    async fn issue_token(
        &self,
        account: AccountId,
        new: NewCredential,
        by: Author,
    ) -> Result<IssueTokenOutcome, StoreError>;

    /// Adds a replacement to the account of `old`, unless `old` is expired or revoked. `old` expires
    /// at `old_ends_at`, unless it expires earlier. Without an expiry of its own, the replacement
    /// expires when `old` would have expired; without a name of its own, it has that of `old`.
    async fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        by: Author,
    ) -> Result<RotateCredentialOutcome, StoreError>;

    /// Revokes a credential; `false` if it does not exist or was already revoked.
    async fn revoke_credential(&self, id: CredentialId, by: Author) -> Result<bool, StoreError>;

    /// Revokes a token of an account.
    async fn revoke_token(
        &self,
        account: AccountId,
        id: CredentialId,
        by: Author,
    ) -> Result<RevokeTokenOutcome, StoreError>;

    /// The tokens of an account that are neither expired nor revoked at `at`, oldest first.
    async fn active_tokens(
        &self,
        account: AccountId,
        at: Timestamp,
    ) -> Result<Vec<Credential>, StoreError>;

    /// The credentials of an account, oldest first, including expired and revoked ones.
    async fn credentials(&self, account: AccountId) -> Result<Vec<Credential>, StoreError>;

    /// The credential with this secret, even if it is expired or revoked.
    async fn credential(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
    ) -> Result<Option<Credential>, StoreError>;

    /// Records when credentials were last used. An earlier time than the recorded one changes
    /// nothing, and neither does a credential that does not exist.
    async fn record_credential_use(
        &self,
        uses: Vec<(CredentialId, Timestamp)>,
    ) -> Result<(), StoreError>;

    /// A number that increases with every change that invalidates cached accounts or credentials.
    async fn credential_epoch(&self) -> Result<u64, StoreError>;
}
