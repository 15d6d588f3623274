//! Storage for templates, accounts, events and media: the [`Store`] trait and its `SQLite` and
//! `PostgreSQL` backends. The conformance suite (`tests/conformance.rs`) runs on both; behaviour
//! that it does not test is not guaranteed.

mod clock_guard;
mod credential_rotation;
mod encoding;
mod endpoint_health;
mod error;
mod event_notifier;
mod id_range;
mod media_type;
pub mod migrate;
mod partial_file;
pub mod postgres;
mod records;
pub mod restore;
pub mod sqlite;

use std::sync::Arc;

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::{Review, edit::Edit, lifecycle::Trigger, message_text::MessageText},
};
use jiff::Timestamp;

pub use clock_guard::ClockStatus;
pub use error::{Cause, StoreError};
pub use event_notifier::EventNotifier;
pub use records::{
    Account, AccountLimits, Actor, AddCredentialOutcome, AddPhoneOutcome, CreateAccountOutcome,
    Credential, CredentialId, CredentialKind, Finding, IndexProgress, Limit, NewAccount,
    NewCredential, RetentionCursor, RotateCredentialOutcome, SecretHash,
};
pub use records::{AppendOutcome, BeginUploadOutcome, Media, NewUpload, Upload};
pub use records::{
    Attempt, CreateWebhookOutcome, Delivery, DeliveryLease, DeliveryQuery, DueDelivery,
    DueWebhooks, NewWebhook, RecordAttemptOutcome, Replay, ReplayOutcome, RotateOutcome,
    StoredSecret, Webhook, WebhookChange,
};
pub use records::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, Decision, DeleteOutcome, Event, EventSubject,
    Feed, Idempotency, IdempotencyRecord, ListQuery, NameConflict, NameFilter, NewTemplate, Page,
    StoredTemplate, TemplateChange, TranslationGroup, UpsertOutcome, Version,
};
pub use sqlite::SqliteStore;

/// How long an idempotency record is valid.
pub const IDEMPOTENCY_HOURS: i64 = 24;

/// How many templates an account with limits may create per hour.
pub const MAX_CREATES_PER_HOUR: usize = 100;

/// How often an account with limits may edit an APPROVED template within 24 hours.
pub const MAX_EDITS_PER_DAY: usize = 1;

/// How often an account with limits may edit an APPROVED template within 30 days.
pub const MAX_EDITS_PER_MONTH: usize = 10;

/// Upper bound for list counts.
pub const MAX_LIST_COUNT: u64 = 1_000_000;

/// Upper bound for list counts with search terms.
pub const MAX_SEARCH_COUNT: u64 = 10_000;

/// The maximum length of an upload; the minimum is 1.
pub const MAX_UPLOAD_BYTES: u64 = 16 * 1_024 * 1_024;

/// How many unfinished uploads an account may have.
pub const MAX_OPEN_UPLOADS: u32 = 64;

/// An unfinished upload expires after this long.
pub const UPLOAD_LIFETIME_HOURS: i64 = 24;

/// How many bytes of an upload one transaction writes: small, so that other writes do not wait
/// long.
pub const UPLOAD_CHUNK_BYTES: usize = 256 * 1_024;

/// The size of a file is rounded up to a multiple of this when it counts towards the quota.
pub const MEDIA_QUOTA_UNIT_BYTES: u64 = 4_096;

/// A complete file that no template references expires after this long.
pub const UNUSED_MEDIA_DAYS: i64 = 7;

/// How many webhook endpoints an account may have.
pub const MAX_WEBHOOKS: usize = 20;

/// A database that holds everything the service stores.
///
/// Every method is one transaction, unless it says otherwise: it is applied completely, with its
/// events and records, or not at all. Once a method has returned `Ok`, its changes are durable. A
/// missing object is part of the outcome, not an error.
#[async_trait]
pub trait Store: Send + Sync {
    /// Creates a template, its `template.created` event and, if a key is given, its idempotency
    /// record.
    async fn create_template(&self, new: NewTemplate) -> Result<CreateOutcome, StoreError>;

    /// Creates a new version of a template, with a `template.edited` event and, if the category
    /// changes, a `template.category_changed` event.
    async fn edit_template(
        &self,
        change: TemplateChange,
        edit: Edit,
    ) -> Result<ChangeOutcome, StoreError>;

    /// Applies a lifecycle transition to a template, with the transition's event.
    async fn review_template(
        &self,
        change: TemplateChange,
        trigger: Trigger,
        reason: Option<String>,
    ) -> Result<ChangeOutcome, StoreError>;

    /// Creates each of these templates, or edits the existing one with the same unique key to have
    /// this content and category: all of them, or none if one is refused. A template that needs no
    /// change stays as it is.
    async fn upsert_templates(
        &self,
        templates: Vec<NewTemplate>,
    ) -> Result<UpsertOutcome, StoreError>;

    /// Deletes a template and returns it. Its name is free again immediately; its events stay.
    async fn delete_template(&self, change: TemplateChange) -> Result<ChangeOutcome, StoreError>;

    /// Deletes all languages of a name, each with its event; none if one cannot be deleted.
    async fn delete_translations(
        &self,
        account: AccountId,
        name: &str,
        review: Review,
        actor: Actor,
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError>;

    /// Deletes these templates, each with its event; none if one is unknown or cannot be deleted.
    async fn delete_templates(
        &self,
        account: AccountId,
        ids: Vec<TemplateId>,
        review: Review,
        actor: Actor,
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError>;

    /// All languages of a name, oldest first. Finds only templates that were created with a
    /// [`TranslationGroup`].
    async fn translations(
        &self,
        account: AccountId,
        name: &str,
    ) -> Result<Vec<StoredTemplate>, StoreError>;

    /// One template of an account.
    async fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<Arc<StoredTemplate>>, StoreError>;

    /// One version of a template.
    async fn version(
        &self,
        account: AccountId,
        id: TemplateId,
        number: u64,
    ) -> Result<Option<Version>, StoreError>;

    /// The versions of a template with numbers below `before`, newest first; `None` if the
    /// template does not exist.
    async fn versions(
        &self,
        account: AccountId,
        id: TemplateId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<Version>>, StoreError>;

    /// A page of an account's templates. It reflects every committed change, except that search
    /// terms match the state of the last [`Store::update_search_index`].
    async fn list(&self, query: ListQuery) -> Result<Page, StoreError>;

    /// The number of templates on all pages of a list, up to [`MAX_LIST_COUNT`], or up to
    /// [`MAX_SEARCH_COUNT`] with search terms.
    async fn count_templates(&self, query: ListQuery) -> Result<u64, StoreError>;

    /// The conflict that creating a template with this unique key would cause; `None` if the key is
    /// free.
    async fn name_conflict(
        &self,
        account: AccountId,
        unique_key: &str,
    ) -> Result<Option<NameConflict>, StoreError>;

    /// The account's oldest template with this text, other than `except`. Compares only templates
    /// that were created with a [`TranslationGroup`].
    async fn template_with_text(
        &self,
        account: AccountId,
        text: &MessageText,
        except: Option<TemplateId>,
    ) -> Result<Option<TemplateId>, StoreError>;

    /// Advances the search index by one step towards the newest events.
    async fn update_search_index(&self) -> Result<IndexProgress, StoreError>;

    /// The record of an account's Idempotency-Key, if it has not expired.
    async fn idempotency_record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError>;

    /// The account's events after `after`, or from the oldest stored one, in order. Never skips an
    /// event: if the next one has been deleted, returns [`Feed::Expired`].
    async fn events(
        &self,
        account: AccountId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Feed, StoreError>;

    /// The number of the account's newest event; 0 before the first.
    async fn newest_event(&self, account: AccountId) -> Result<u64, StoreError>;

    /// Notifies subscribers of events that this process commits or that [`Store::poll_events`]
    /// finds.
    fn event_notifier(&self) -> &EventNotifier;

    /// Checks for events that other processes have committed and notifies their subscribers.
    async fn poll_events(&self) -> Result<(), StoreError>;

    /// Deletes a batch of events older than `since` that no endpoint still needs, oldest first,
    /// with their deliveries. Returns how many rows it deleted; 0 when nothing is left to delete.
    async fn delete_expired_events(&self, since: Timestamp) -> Result<usize, StoreError>;

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
        at: Timestamp,
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
        at: Timestamp,
    ) -> Result<RotateOutcome, StoreError>;

    /// Deletes an endpoint with its deliveries; `false` if the account has no such endpoint.
    async fn delete_webhook(&self, account: AccountId, id: WebhookId) -> Result<bool, StoreError>;

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
    async fn due_webhooks(&self, at: Timestamp) -> Result<DueWebhooks, StoreError>;

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

    /// Begins a resumable upload.
    async fn begin_upload(&self, new: NewUpload) -> Result<BeginUploadOutcome, StoreError>;

    /// An upload of an account; `None` if it does not exist or has expired.
    async fn upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<Option<Upload>, StoreError>;

    /// Appends bytes to an upload. They must start at its current end and fit into the account's
    /// `quota` for all its files. Not a single transaction: each chunk of [`UPLOAD_CHUNK_BYTES`] is
    /// one. After an error, some chunks may have been stored; [`Store::upload`] returns how many
    /// bytes.
    async fn append_upload(
        &self,
        account: AccountId,
        id: &str,
        offset: u64,
        bytes: &[u8],
        quota: u64,
        at: Timestamp,
    ) -> Result<AppendOutcome, StoreError>;

    /// Deletes an upload that is unfinished or that no template references; `false` if there is no
    /// such upload.
    async fn cancel_upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// A complete file that a template of the account may reference by its handle. Creating or
    /// editing a template that references the file exempts it from expiry.
    async fn sample(
        &self,
        account: AccountId,
        handle: &str,
        at: Timestamp,
    ) -> Result<Option<Media>, StoreError>;

    /// A complete file by its handle, which is the only authorisation needed; `None` while its
    /// account is disabled.
    async fn media(&self, handle: &str) -> Result<Option<Media>, StoreError>;

    /// A chunk of a complete file from `offset` on: 1 to [`UPLOAD_CHUNK_BYTES`] bytes, or none at
    /// the end of the file.
    async fn media_chunk(&self, handle: &str, offset: u64) -> Result<Vec<u8>, StoreError>;

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

    /// Deletes a batch of expired idempotency records and returns where to continue. The first step
    /// of a pass also deletes expired uploads and expired unreferenced files.
    async fn delete_expired_records(
        &self,
        cursor: RetentionCursor,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError>;

    /// Records the present time. Returns whether rows may be deleted by age, which is to be asked
    /// before each deletion.
    async fn observe_clock(&self, now: Timestamp) -> Result<ClockStatus, StoreError>;

    /// Like [`Store::observe_clock`], but records nothing; `None` if the schema has no clock guard.
    async fn check_clock(&self, now: Timestamp) -> Result<Option<ClockStatus>, StoreError>;

    /// Trusts the present time, which an operator has confirmed.
    async fn accept_clock(&self, now: Timestamp) -> Result<(), StoreError>;

    /// Checks that the store can be read and written. May write something that changes no data.
    async fn ping(&self) -> Result<(), StoreError>;

    /// Runs the start-up checks and a full integrity check, for `galley doctor`.
    async fn check_integrity(&self) -> Result<Vec<Finding>, StoreError>;

    /// Writes a consistent copy to a new file while the service keeps running. A copy with damaged
    /// rows is kept only if that is allowed.
    async fn backup(&self, path: &std::path::Path, allow_damaged: bool) -> Result<(), StoreError>;
}
