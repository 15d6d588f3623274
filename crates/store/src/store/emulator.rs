//! Manages the virtual clock, the review script, the faults and the sandbox messages of emulator
//! accounts. For any other account these methods find nothing and change nothing.

use async_trait::async_trait;
use galley_domain::{
    emulator::{
        clock::{Clock, ClockChange},
        faults::{Call, Fault, FaultEffect},
        rules::ReviewRules,
    },
    id::{AccountId, WebhookId},
};
use jiff::Timestamp;

use crate::{
    ChangeClockOutcome, CreateFaultOutcome, DueSteps, EmulatedApp, EmulatorWork, MessageQuery,
    NewMessage, RecordStatusesOutcome, StatusLease, StoreError, StoredFault, StoredMessage,
    StoredSecret, WebhookKey,
};

/// How many steps of review scripts one transaction applies.
pub const MAX_STEPS_PER_TRANSACTION: usize = 100;

/// Manages emulator accounts. `at` is always real time.
#[async_trait]
pub trait EmulatorStore: Send + Sync {
    /// The clock of an account; `None` if it is not an emulator.
    async fn emulator_clock(&self, account: AccountId) -> Result<Option<Clock>, StoreError>;

    /// Changes the clock of an account. What became due by that is applied by
    /// [`EmulatorStore::apply_due_steps`].
    async fn change_clock(
        &self,
        account: AccountId,
        change: ClockChange,
        at: Timestamp,
    ) -> Result<ChangeClockOutcome, StoreError>;

    /// Applies the steps of review scripts that are due on the account's clock, in the order of
    /// their times, at most [`MAX_STEPS_PER_TRANSACTION`].
    async fn apply_due_steps(
        &self,
        account: AccountId,
        at: Timestamp,
    ) -> Result<DueSteps, StoreError>;

    /// The accounts with due steps, and when the next step is due, on clocks that run.
    async fn accounts_with_due_steps(
        &self,
        at: Timestamp,
    ) -> Result<EmulatorWork<AccountId>, StoreError>;

    /// The review rules of an account.
    async fn review_rules(&self, account: AccountId) -> Result<ReviewRules, StoreError>;

    /// Replaces the review rules of an account; `false` if it is not an emulator. Steps that are
    /// queued stay.
    async fn set_review_rules(
        &self,
        account: AccountId,
        rules: ReviewRules,
    ) -> Result<bool, StoreError>;

    /// The app of an emulator account.
    async fn emulated_app(&self, account: AccountId) -> Result<EmulatedApp, StoreError>;

    /// Sets the secret that signs the webhooks of the app; `false` if the account is not an emulator.
    async fn set_app_secret(
        &self,
        account: AccountId,
        secret: StoredSecret,
    ) -> Result<bool, StoreError>;

    /// Sets the address with which a client wants to override the callback of the app; `false` if
    /// the account is not an emulator.
    async fn set_callback_override(
        &self,
        account: AccountId,
        url: Option<String>,
    ) -> Result<bool, StoreError>;

    /// Adds a fault. If there is no room for it, it replaces the oldest one that is spent.
    async fn create_fault(
        &self,
        account: AccountId,
        fault: Fault,
        at: Timestamp,
    ) -> Result<CreateFaultOutcome, StoreError>;

    /// The faults of an account, oldest first, also those that never strike again.
    async fn faults(&self, account: AccountId) -> Result<Vec<StoredFault>, StoreError>;

    /// Deletes one fault, or all of an account; returns how many.
    async fn delete_faults(
        &self,
        account: AccountId,
        number: Option<u64>,
    ) -> Result<usize, StoreError>;

    /// Decides which fault strikes a call about a template of this name, and counts the call. Only
    /// reads if the account has no fault for this call that can still strike.
    async fn decide_fault(
        &self,
        account: AccountId,
        call: Call,
        name: Option<&str>,
    ) -> Result<Option<FaultEffect>, StoreError>;

    /// Stores a message that the sandbox accepts, sent at the time of the account's clock, and
    /// deletes the messages beyond
    /// [`MAX_KEPT`](galley_domain::emulator::messages::MAX_KEPT). `None` if the account is not an
    /// emulator.
    async fn add_message(&self, new: NewMessage) -> Result<Option<StoredMessage>, StoreError>;

    /// A page of the messages that are kept, newest first.
    async fn messages(
        &self,
        account: AccountId,
        query: MessageQuery,
        at: Timestamp,
    ) -> Result<Vec<StoredMessage>, StoreError>;

    /// The endpoints to which statuses may have to be sent, of all accounts.
    async fn endpoints_with_statuses(&self, at: Timestamp) -> Result<Vec<WebhookKey>, StoreError>;

    /// Leases the next statuses of an endpoint until `lease_until`, at most `limit`; no other worker
    /// gets statuses of the endpoint before then.
    async fn lease_statuses(
        &self,
        endpoint: WebhookId,
        limit: usize,
        at: Timestamp,
        lease_until: Timestamp,
    ) -> Result<StatusLease, StoreError>;

    /// Records that all leased statuses up to these were sent, and ends the lease.
    async fn record_statuses(
        &self,
        endpoint: WebhookId,
        lease_until: Timestamp,
        through: crate::StatusCursor,
    ) -> Result<RecordStatusesOutcome, StoreError>;
}
