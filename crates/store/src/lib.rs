//! Storage for templates, accounts, events and media: the [`Store`] trait and its `SQLite` and
//! `PostgreSQL` backends. The conformance suite (`tests/conformance.rs`) runs on both; behaviour
//! that it does not test is not guaranteed.

mod clock_guard;
mod decisions;
mod encoding;
mod error;
mod event_notifier;
mod id_range;
mod media_type;
pub mod migrate;
mod partial_file;
pub mod postgres;
mod records;
pub mod restore;
mod schema_policy;
pub mod sqlite;
mod store;
mod stored_row;
#[cfg(feature = "testing")]
pub mod testing;

pub use clock_guard::ClockStatus;
pub use encoding::origin;
pub use error::{Cause, StoreError};
pub use event_notifier::EventNotifier;
pub use records::{
    Account, AccountLimits, AccountQuotas, Actor, AddCredentialOutcome, AddPhoneOutcome,
    CreateAccountOutcome, Credential, CredentialId, CredentialKind, Finding, IndexProgress, Limit,
    NewAccount, NewCredential, Quota, RetentionCursor, RotateCredentialOutcome, SecretHash,
};
pub use records::{AppendOutcome, BeginUploadOutcome, Media, NewUpload, Upload};
pub use records::{
    Attempt, CreateWebhookOutcome, Delivery, DeliveryLease, DeliveryQuery, DueDelivery, DueWebhook,
    DueWebhooks, NewWebhook, RecordAttemptOutcome, Replay, ReplayOutcome, RotateOutcome,
    StoredSecret, Webhook, WebhookChange,
};
pub use records::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, Decision, DeleteOutcome, Event, EventSubject,
    Feed, Idempotency, IdempotencyRecord, IndexStep, ListQuery, NameConflict, NameFilter,
    NewTemplate, Page, StoredTemplate, TemplateChange, TranslationGroup, Unindexed, UpsertOutcome,
    Version,
};
pub use schema_policy::SchemaPolicy;
pub use sqlite::SqliteStore;
pub use store::{
    AccountStore, ChangeStore, ClockStore, CredentialStore, DeliveryStore, EventStore,
    IDEMPOTENCY_HOURS, ListStore, MAX_CREATES_PER_HOUR, MAX_EDITS_PER_DAY, MAX_EDITS_PER_MONTH,
    MAX_LIST_COUNT, MAX_OPEN_UPLOADS, MAX_SEARCH_COUNT, MAX_UPLOAD_BYTES, MAX_WEBHOOKS,
    MEDIA_QUOTA_UNIT_BYTES, MaintenanceStore, MediaStore, Store, TemplateStore, UNUSED_MEDIA_DAYS,
    UPLOAD_CHUNK_BYTES, UPLOAD_LIFETIME_HOURS, UploadStore, WebhookStore,
};
