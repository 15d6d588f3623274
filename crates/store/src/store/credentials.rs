//! Manages API keys and access tokens.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;

use crate::{
    AddCredentialOutcome, Credential, CredentialId, CredentialKind, NewCredential,
    RotateCredentialOutcome, SecretHash, StoreError,
};

/// Manages API keys and access tokens.
#[async_trait]
pub trait CredentialStore: Send + Sync {
    /// Adds a credential to an account.
    async fn add_credential(
        &self,
        account: AccountId,
        new: NewCredential,
        at: Timestamp,
    ) -> Result<AddCredentialOutcome, StoreError>;

    /// Adds a replacement to the account of `old`, unless `old` is expired or revoked. `old` expires
    /// at `old_ends_at`, unless it expires earlier. Without an expiry of its own, the replacement
    /// expires when `old` would have expired.
    async fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        at: Timestamp,
    ) -> Result<RotateCredentialOutcome, StoreError>;

    /// Revokes a credential; `false` if it does not exist or was already revoked.
    async fn revoke_credential(&self, id: CredentialId, at: Timestamp) -> Result<bool, StoreError>;

    /// The credentials of an account, oldest first, including expired and revoked ones.
    async fn credentials(&self, account: AccountId) -> Result<Vec<Credential>, StoreError>;

    /// The credential with this secret, even if it is expired or revoked.
    async fn credential(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
    ) -> Result<Option<Credential>, StoreError>;

    /// A number that increases with every change that invalidates cached accounts or credentials.
    async fn credential_epoch(&self) -> Result<u64, StoreError>;
}
