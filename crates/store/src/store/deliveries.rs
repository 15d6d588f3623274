//! Queues events for delivery to webhook endpoints and records the attempts.

use async_trait::async_trait;
use galley_domain::id::{AccountId, WebhookId};
use jiff::Timestamp;

use crate::{
    Attempt, Delivery, DeliveryLease, DeliveryQuery, RecordAttemptOutcome, Replay, ReplayOutcome,
    StoreError, WebhooksWithWork,
};

/// Queues events for delivery to webhook endpoints and records the attempts.
#[async_trait]
pub trait DeliveryStore: Send + Sync {
    /// A page of an endpoint's deliveries; `None` if the account has no such endpoint.
    async fn deliveries(
        &self,
        account: AccountId,
        id: WebhookId,
        query: DeliveryQuery,
    ) -> Result<Option<Vec<Delivery>>, StoreError>;

    /// Queues events for another delivery to an endpoint.
    async fn replay(
        &self,
        account: AccountId,
        id: WebhookId,
        replay: Replay,
        at: Timestamp,
    ) -> Result<ReplayOutcome, StoreError>;

    /// The endpoints of all accounts that have work to do.
    async fn webhooks_with_work(&self, at: Timestamp) -> Result<WebhooksWithWork, StoreError>;

    /// Leases one delivery of an endpoint until `lease_until`; no other worker gets it before then.
    /// Of the events of one template, only the first unfinished one can be leased.
    async fn lease_delivery(
        &self,
        id: WebhookId,
        at: Timestamp,
        lease_until: Timestamp,
    ) -> Result<DeliveryLease, StoreError>;

    /// Records an attempt and its effect on the endpoint. If the endpoint is disabled, creates its
    /// `webhook.disabled` event.
    async fn record_attempt(&self, attempt: Attempt) -> Result<RecordAttemptOutcome, StoreError>;
}
