//! Manages accounts and their phone numbers.

use async_trait::async_trait;
use galley_domain::{id::AccountId, template::Review};

use crate::{
    Account, AccountLimits, AccountQuotas, AddPhoneOutcome, Author, CreateAccountOutcome,
    DeleteAccountOutcome, NewAccount, RenameAccountOutcome, SetReviewOutcome, StoreError,
};

/// How many bytes the templates of an account may take by default: 32 GiB, more than
/// ten million templates of usual length.
pub const DEFAULT_STORED_BYTES: u64 = 32 << 30;

/// What a stored version counts towards the quota besides its content, for its row, its index
/// entries and its events.
pub const VERSION_OVERHEAD_BYTES: u64 = 512;

/// How many phone numbers an account may claim by default.
pub const DEFAULT_PHONE_NUMBERS: u64 = 1_000;

/// Manages accounts and their phone numbers.
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// Creates an account with its phone numbers and first credentials.
    async fn create_account(&self, new: NewAccount) -> Result<CreateAccountOutcome, StoreError>;

    /// All accounts, oldest first.
    async fn accounts(&self) -> Result<Vec<Account>, StoreError>;

    /// Whether the store has or had an account, even if all of them are deleted.
    async fn has_had_accounts(&self) -> Result<bool, StoreError>;

    /// One account.
    async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError>;

    /// Gives an account another name.
    async fn rename_account(
        &self,
        id: AccountId,
        name: String,
        by: Author,
    ) -> Result<RenameAccountOutcome, StoreError>;

    /// Sets how new versions of an account's templates are approved. Pending versions stay pending.
    async fn set_account_review(
        &self,
        id: AccountId,
        review: Review,
        by: Author,
    ) -> Result<SetReviewOutcome, StoreError>;

    /// Sets whether another token than the one that created a version has to decide on it; `false`
    /// if the account does not exist. While it is set, tokens do not create tokens.
    async fn set_account_four_eyes(
        &self,
        id: AccountId,
        is_on: bool,
        by: Author,
    ) -> Result<bool, StoreError>;

    /// Disables or enables an account; `false` if it does not exist.
    async fn set_account_disabled(
        &self,
        id: AccountId,
        is_disabled: bool,
        by: Author,
    ) -> Result<bool, StoreError>;

    /// Deletes a disabled account that has no templates: revokes its credentials, deletes its
    /// endpoints, and frees its phone numbers and its name. Its media samples count as unused. Its
    /// events, and the versions of its deleted templates, expire like those of other accounts.
    async fn delete_account(
        &self,
        id: AccountId,
        by: Author,
    ) -> Result<DeleteAccountOutcome, StoreError>;

    /// Sets or removes the limits of an account; `false` if it does not exist. Rate limits count
    /// from this call on; the template limit counts all templates.
    async fn set_account_limits(
        &self,
        id: AccountId,
        limits: Option<AccountLimits>,
        by: Author,
    ) -> Result<bool, StoreError>;

    /// Sets the quotas of an account; `false` if it does not exist.
    async fn set_account_quotas(
        &self,
        id: AccountId,
        quotas: AccountQuotas,
        by: Author,
    ) -> Result<bool, StoreError>;

    /// Adds a phone number to an account.
    async fn add_phone(
        &self,
        account: AccountId,
        phone: &str,
        by: Author,
    ) -> Result<AddPhoneOutcome, StoreError>;

    /// Adds a phone number to an account that has fewer than `max`; without a maximum, like
    /// [`AccountStore::add_phone`].
    async fn claim_phone(
        &self,
        account: AccountId,
        phone: &str,
        max: Option<u64>,
        by: Author,
    ) -> Result<AddPhoneOutcome, StoreError>;

    /// Takes a phone number from an account, so that another one can claim it; `false` if the
    /// account does not own it. Templates that were created for it stay.
    async fn remove_phone(
        &self,
        account: AccountId,
        phone: &str,
        by: Author,
    ) -> Result<bool, StoreError>;

    /// The phone numbers of an account.
    async fn phones(&self, account: AccountId) -> Result<Vec<String>, StoreError>;

    /// The account that owns a phone number.
    async fn phone_owner(&self, phone: &str) -> Result<Option<AccountId>, StoreError>;
}
