//! Manages accounts and their phone numbers.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;

use crate::{
    Account, AccountLimits, AccountQuotas, AddPhoneOutcome, CreateAccountOutcome, NewAccount,
    StoreError,
};

/// Manages accounts and their phone numbers.
#[async_trait]
pub trait AccountStore: Send + Sync {
    /// Creates an account with its phone numbers and first credentials.
    async fn create_account(&self, new: NewAccount) -> Result<CreateAccountOutcome, StoreError>;

    /// All accounts, oldest first.
    async fn accounts(&self) -> Result<Vec<Account>, StoreError>;

    /// One account.
    async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError>;

    /// Disables or enables an account; `false` if it does not exist.
    async fn set_account_disabled(
        &self,
        id: AccountId,
        disabled_at: Option<Timestamp>,
    ) -> Result<bool, StoreError>;

    /// Sets or removes the limits of an account; `false` if it does not exist. Rate limits count
    /// from this call on; the template limit counts all templates.
    async fn set_account_limits(
        &self,
        id: AccountId,
        limits: Option<AccountLimits>,
    ) -> Result<bool, StoreError>;

    /// Sets the quotas of an account; `false` if it does not exist.
    async fn set_account_quotas(
        &self,
        id: AccountId,
        quotas: AccountQuotas,
    ) -> Result<bool, StoreError>;

    /// Adds a phone number to an account.
    async fn add_phone(
        &self,
        account: AccountId,
        phone: &str,
        at: Timestamp,
    ) -> Result<AddPhoneOutcome, StoreError>;

    /// The phone numbers of an account.
    async fn phones(&self, account: AccountId) -> Result<Vec<String>, StoreError>;

    /// The account that owns a phone number.
    async fn phone_owner(&self, phone: &str) -> Result<Option<AccountId>, StoreError>;
}
