//! Manages webhook endpoints.

use async_trait::async_trait;
use galley_domain::id::{AccountId, WebhookId};
use jiff::Timestamp;

use crate::{
    Author, CreateWebhookOutcome, NewWebhook, RotateOutcome, StoreError, StoredSecret, Webhook,
    WebhookChange,
};

/// How many webhook endpoints an account may have.
pub const MAX_WEBHOOKS: usize = 20;

/// Manages webhook endpoints.
#[async_trait]
pub trait WebhookStore: Send + Sync {
    /// Registers an endpoint, which receives the events committed after this call.
    async fn create_webhook(&self, new: NewWebhook) -> Result<CreateWebhookOutcome, StoreError>;

    /// The endpoints of an account, oldest first.
    async fn webhooks(&self, account: AccountId) -> Result<Vec<Webhook>, StoreError>;

    /// One endpoint of an account.
    async fn webhook(
        &self,
        account: AccountId,
        id: WebhookId,
    ) -> Result<Option<Webhook>, StoreError>;

    /// Changes an endpoint and returns it; `None` if the account has no such endpoint.
    async fn change_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        change: WebhookChange,
        by: Author,
    ) -> Result<Option<Webhook>, StoreError>;

    /// Replaces an endpoint's secret; the former one stays valid until `until`. While an earlier
    /// rotation is in progress, `force` is required.
    async fn rotate_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        secret: StoredSecret,
        until: Timestamp,
        force: bool,
        by: Author,
    ) -> Result<RotateOutcome, StoreError>;

    /// Deletes an endpoint with its deliveries; `false` if the account has no such endpoint.
    async fn delete_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        by: Author,
    ) -> Result<bool, StoreError>;
}
