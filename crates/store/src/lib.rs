//! Where templates are kept. One trait of intent methods, one implementation per database; what
//! the conformance suite (`tests/conformance.rs`) does not say is not promised.

mod encoding;
mod endpoint_health;
mod event_notifier;
mod id_range;
mod media_type;
pub mod migrate;
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

pub use event_notifier::EventNotifier;
pub use records::{
    Account, AccountLimits, Actor, AddCredentialOutcome, AddPhoneOutcome, CreateAccountOutcome,
    Credential, CredentialId, CredentialKind, Finding, IndexProgress, Limit, NewAccount,
    NewCredential, RetentionCursor, SecretHash,
};
pub use records::{AppendOutcome, BeginUploadOutcome, Media, NewUpload, Upload};
pub use records::{
    Attempt, AttemptRecorded, CreateWebhookOutcome, Deliveries, Delivery, DeliveryLease,
    DueDelivery, DueWebhooks, NewWebhook, Replay, ReplayOutcome, Rotation, StoredSecret, Webhook,
    WebhookChange,
};
pub use records::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, Decision, DeleteOutcome, Event, EventSubject,
    Feed, Idempotency, IdempotencyRecord, ListQuery, NameConflict, NameFilter, NewTemplate, Page,
    StoredTemplate, TemplateChange, TranslationGroup, UpsertOutcome, Version,
};
pub use sqlite::SqliteStore;

/// How long the answer to an Idempotency-Key is kept.
pub const IDEMPOTENCY_HOURS: i64 = 24;

/// How many templates an account that is held to limits may make in an hour.
pub const MAX_CREATES_PER_HOUR: usize = 100;

/// How often such an account may edit an APPROVED template in 24 hours.
pub const MAX_EDITS_PER_DAY: usize = 1;

/// And how often in 30 days.
pub const MAX_EDITS_PER_MONTH: usize = 10;

/// How far the templates of a list are counted.
pub const MAX_LIST_COUNT: u64 = 1_000_000;

/// How far the templates that words find are counted.
pub const MAX_SEARCH_COUNT: u64 = 10_000;

/// How many bytes an upload may announce; it has to announce one at least.
pub const MAX_UPLOAD_BYTES: u64 = 16 * 1_024 * 1_024;

/// How many unfinished uploads an account may have.
pub const MAX_OPEN_UPLOADS: u32 = 64;

/// How long an upload may take; after that it is forgotten if it is not finished.
pub const UPLOAD_LIFETIME_HOURS: i64 = 24;

/// How many bytes of an upload are written at once: few enough that nobody waits long behind them.
pub const UPLOAD_CHUNK_BYTES: usize = 256 * 1_024;

/// What a file takes of its account's room is counted in these, beside its name.
pub const MEDIA_QUOTA_UNIT_BYTES: u64 = 4_096;

/// How long a whole file can wait for a template that names it; after that it is forgotten.
pub const UNUSED_MEDIA_DAYS: i64 = 7;

/// How many endpoints an account may have.
pub const MAX_WEBHOOKS: usize = 20;

/// Every method is one fact and one transaction: it happens whole, events and records included,
/// or not at all; when it has answered, it is durable. "Not there" is an answer, not an error.
#[async_trait]
pub trait Store: Send + Sync {
    /// Keeps a new template with its `template.created` event and, if a key was given, the
    /// record that lets the same request be answered again.
    async fn create_template(&self, new: NewTemplate) -> Result<CreateOutcome, StoreError>;

    /// Gives a template a new version: `template.edited` and, with another category,
    /// `template.category_changed`.
    async fn edit_template(
        &self,
        change: TemplateChange,
        edit: Edit,
    ) -> Result<ChangeOutcome, StoreError>;

    /// Moves a template along the table of moves, with the event of that move.
    async fn review_template(
        &self,
        change: TemplateChange,
        trigger: Trigger,
        reason: Option<String>,
    ) -> Result<ChangeOutcome, StoreError>;

    /// Makes each of these templates, or gives the one that has its claim the same content and
    /// category: all of them, or none if one is refused. One that is so already stays as it is.
    async fn upsert_templates(&self, news: Vec<NewTemplate>) -> Result<UpsertOutcome, StoreError>;

    /// Takes a template away; its name is free at once, its history stays. Answers what it was.
    async fn delete_template(&self, change: TemplateChange) -> Result<ChangeOutcome, StoreError>;

    /// Takes all languages of a name away, each with its event; or none, if one of them has to
    /// stay.
    async fn delete_translations(
        &self,
        account: AccountId,
        name: &str,
        review: Review,
        actor: Actor,
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError>;

    /// Takes all of these templates away, each with its event; or none, if one of them is unknown
    /// or has to stay.
    async fn delete_templates(
        &self,
        account: AccountId,
        ids: Vec<TemplateId>,
        review: Review,
        actor: Actor,
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError>;

    /// All languages of a name, oldest first. Only templates that were made with their
    /// [`TranslationGroup`] are found.
    async fn family(
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

    /// The versions of a template below `before`, newest first; none if there is no template.
    async fn versions(
        &self,
        account: AccountId,
        id: TemplateId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<Version>>, StoreError>;

    /// A page of an account's templates. What was acknowledged before is there, except that
    /// searched words follow by [`Store::update_search_index`].
    async fn list(&self, listing: ListQuery) -> Result<Page, StoreError>;

    /// How many templates a list has on all its pages. Counted up to [`MAX_LIST_COUNT`], or up to
    /// [`MAX_SEARCH_COUNT`] if words are searched.
    async fn count_templates(&self, listing: ListQuery) -> Result<u64, StoreError>;

    /// Whether a name is taken.
    async fn taken(
        &self,
        account: AccountId,
        claim: &str,
    ) -> Result<Option<NameConflict>, StoreError>;

    /// The oldest template of the account, other than `except`, that has these words. Only those
    /// are compared that were created with a family.
    async fn template_with_text(
        &self,
        account: AccountId,
        wording: &MessageText,
        except: Option<TemplateId>,
    ) -> Result<Option<TemplateId>, StoreError>;

    /// Brings the words that are searched a step nearer to the newest events.
    async fn update_search_index(&self) -> Result<IndexProgress, StoreError>;

    /// What an Idempotency-Key of this account made in the last 24 hours.
    async fn record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError>;

    /// The account's events behind `after`, oldest first; without it, from the oldest that is
    /// kept. Never skips one: who comes too late is told.
    async fn events(
        &self,
        account: AccountId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Feed, StoreError>;

    /// The number of the account's newest event; 0 before the first.
    async fn newest_event(&self, account: AccountId) -> Result<u64, StoreError>;

    /// Tells when there are new events, committed by this process or found by
    /// [`Store::poll_events`].
    fn event_notifier(&self) -> &EventNotifier;

    /// Looks for what other processes have committed, for those who wait.
    async fn poll_events(&self) -> Result<(), StoreError>;

    /// Forgets some events that are older than `since` and that no endpoint waits for, oldest
    /// first, with their deliveries. Answers how many.
    async fn delete_expired_events(&self, since: Timestamp) -> Result<usize, StoreError>;

    /// Registers an endpoint. It gets the events that come after this.
    async fn create_webhook(&self, new: NewWebhook) -> Result<CreateWebhookOutcome, StoreError>;

    /// The endpoints of an account, oldest first.
    async fn webhooks(&self, account: AccountId) -> Result<Vec<Webhook>, StoreError>;

    /// One endpoint of an account.
    async fn webhook(
        &self,
        account: AccountId,
        id: WebhookId,
    ) -> Result<Option<Webhook>, StoreError>;

    /// Changes an endpoint; answers what it is then.
    async fn change_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        change: WebhookChange,
        at: Timestamp,
    ) -> Result<Option<Webhook>, StoreError>;

    /// Gives an endpoint another secret; the former one counts until `until`. While an earlier
    /// rotation is open, only if `anyway`.
    async fn rotate_webhook(
        &self,
        account: AccountId,
        id: WebhookId,
        secret: StoredSecret,
        until: Timestamp,
        anyway: bool,
        at: Timestamp,
    ) -> Result<Rotation, StoreError>;

    /// Takes an endpoint away, and its deliveries with it. `false`: there is none.
    async fn delete_webhook(&self, account: AccountId, id: WebhookId) -> Result<bool, StoreError>;

    /// Some deliveries of an endpoint; none if the account has no such endpoint.
    async fn deliveries(
        &self,
        account: AccountId,
        id: WebhookId,
        wanted: Deliveries,
    ) -> Result<Option<Vec<Delivery>>, StoreError>;

    /// Has events delivered once more.
    async fn replay(
        &self,
        account: AccountId,
        id: WebhookId,
        what: Replay,
        at: Timestamp,
    ) -> Result<ReplayOutcome, StoreError>;

    /// The endpoints, of whatever account, that have something to do.
    async fn due_webhooks(&self, at: Timestamp) -> Result<DueWebhooks, StoreError>;

    /// Takes one delivery of an endpoint, for nobody else until `lease`. Of the events of one
    /// template only the first that is not yet done can be taken.
    async fn lease_delivery(
        &self,
        id: WebhookId,
        at: Timestamp,
        lease: Timestamp,
    ) -> Result<DeliveryLease, StoreError>;

    /// Writes down what came of an attempt, and what follows from it for the endpoint: one that
    /// is given up gets its `webhook.disabled` event.
    async fn record_attempt(&self, attempt: Attempt) -> Result<AttemptRecorded, StoreError>;

    /// Announces a file that will be sent piece by piece.
    async fn begin_upload(&self, new: NewUpload) -> Result<BeginUploadOutcome, StoreError>;

    /// How far an upload has come.
    async fn upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<Option<Upload>, StoreError>;

    /// Adds bytes to an upload, which have to begin where it ends and to fit into the `room` that
    /// the account has for all its files. The one method that is not one transaction: every
    /// [`UPLOAD_CHUNK_BYTES`] bytes are, so that after a failure some of them may be there;
    /// [`Store::upload`] tells how many.
    async fn append_upload(
        &self,
        account: AccountId,
        id: &str,
        offset: u64,
        bytes: &[u8],
        room: u64,
        at: Timestamp,
    ) -> Result<AppendOutcome, StoreError>;

    /// Forgets an upload that is not finished, or that no template has named. `false`: there is none.
    async fn cancel_upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// A whole file that a template of the account may name by its handle. A template that names
    /// it keeps it: its creation or edit does that.
    async fn sample(
        &self,
        account: AccountId,
        handle: &str,
        at: Timestamp,
    ) -> Result<Option<Media>, StoreError>;

    /// A file that has been sent whole, for whoever knows its handle; none while its account is
    /// disabled.
    async fn media(&self, handle: &str) -> Result<Option<Media>, StoreError>;

    /// Some bytes of such a file from a place on: one at least and [`UPLOAD_CHUNK_BYTES`] at most, or
    /// none if there are none.
    async fn media_chunk(&self, handle: &str, place: u64) -> Result<Vec<u8>, StoreError>;

    /// Makes an account with its phone numbers and first credentials.
    async fn create_account(&self, new: NewAccount) -> Result<CreateAccountOutcome, StoreError>;

    /// Every account, oldest first.
    async fn accounts(&self) -> Result<Vec<Account>, StoreError>;

    /// One account.
    async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError>;

    /// Shuts an account out, or lets it in again. `false`: there is none.
    async fn set_account_disabled(
        &self,
        id: AccountId,
        disabled_at: Option<Timestamp>,
    ) -> Result<bool, StoreError>;

    /// Holds an account to limits, or to none. What it does from then on is counted; its templates
    /// all are. `false`: there is none.
    async fn set_account_limits(
        &self,
        id: AccountId,
        limits: Option<AccountLimits>,
    ) -> Result<bool, StoreError>;

    /// Gives a phone number to an account.
    async fn add_phone(
        &self,
        account: AccountId,
        phone: &str,
        at: Timestamp,
    ) -> Result<AddPhoneOutcome, StoreError>;

    /// The phone numbers of an account.
    async fn phones(&self, account: AccountId) -> Result<Vec<String>, StoreError>;

    /// Whose phone number it is.
    async fn phone_owner(&self, phone: &str) -> Result<Option<AccountId>, StoreError>;

    /// Adds a key or a token to an account.
    async fn add_credential(
        &self,
        account: AccountId,
        new: NewCredential,
        at: Timestamp,
    ) -> Result<AddCredentialOutcome, StoreError>;

    /// Adds a credential like `old`, and lets `old` end at `old_ends_at` if it would live longer.
    async fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        at: Timestamp,
    ) -> Result<AddCredentialOutcome, StoreError>;

    /// Ends a credential. `false`: there is none, or it was revoked before.
    async fn revoke_credential(&self, id: CredentialId, at: Timestamp) -> Result<bool, StoreError>;

    /// The keys and tokens of an account, oldest first, ended ones included.
    async fn credentials(&self, account: AccountId) -> Result<Vec<Credential>, StoreError>;

    /// The credential with that secret, ended or not.
    async fn credential(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
    ) -> Result<Option<Credential>, StoreError>;

    /// A number that grows with every change that takes something away from an account or a
    /// credential, so that whoever remembers them knows when to forget.
    async fn credential_epoch(&self) -> Result<u64, StoreError>;

    /// Forgets some of the idempotency records that are older than 24 hours, going on from
    /// where the last sweep stopped. A sweep that begins also forgets uploads that were not
    /// finished in time, and whole files that no template named in time.
    async fn delete_expired_records(
        &self,
        from: RetentionCursor,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError>;

    /// Answers when the store can be read.
    async fn ping(&self) -> Result<(), StoreError>;

    /// The start-up checks and a full check of what is kept, for `galley doctor`.
    async fn check_integrity(&self) -> Result<Vec<Finding>, StoreError>;

    /// Writes a consistent copy to a new file while the service goes on.
    async fn backup(&self, path: &std::path::Path) -> Result<(), StoreError>;
}

/// Why a store could not do its work, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Too many writes are waiting; nothing was done.
    #[error("too many writes are waiting")]
    Busy,
    /// There is no room left; nothing was done.
    #[error("the storage is full")]
    Full(#[source] Cause),
    /// The database does not answer; nothing was done.
    #[error("the database is not available")]
    Unavailable(#[source] Cause),
    /// The database failed while it committed: it may or may not have happened.
    #[error("the outcome of the write is unknown")]
    OutcomeUnknown(#[source] Cause),
    /// A bug, or a damaged row.
    #[error("the database work failed")]
    Failed(#[source] Cause),
}

impl StoreError {
    /// The same error for another of the writes it failed.
    pub(crate) fn shared(&self) -> Self {
        match self {
            Self::Busy => Self::Busy,
            Self::Full(cause) => Self::Full(Arc::clone(cause)),
            Self::Unavailable(cause) => Self::Unavailable(Arc::clone(cause)),
            Self::OutcomeUnknown(cause) => Self::OutcomeUnknown(Arc::clone(cause)),
            Self::Failed(cause) => Self::Failed(Arc::clone(cause)),
        }
    }
}

/// What stands behind a [`StoreError`]. Shared, because one cause can fail a whole batch.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;
