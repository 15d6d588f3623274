//! Storage for templates, accounts, events and media: the [`Store`] and its engines `SQLite` and
//! `PostgreSQL`. The conformance suite (`tests/conformance.rs`) runs on both; behaviour
//! that it does not test is not guaranteed.

mod account_deletion;
mod accounts;
mod activity;
mod audit;
mod changes;
mod clock_guard;
mod copy_phase;
mod creates;
mod decisions;
mod deliveries;
mod emulator;
mod encoding;
mod engine;
mod error;
mod event_notifier;
mod events;
mod fair_slots;
mod limits;
mod lists;
mod maintenance;
mod media_type;
pub mod migrate;
mod partial_file;
pub mod postgres;
mod read_slots;
mod records;
pub mod restore;
mod row_checksum;
mod schema_policy;
mod sessions;
pub mod sqlite;
mod statistics;
mod stored_row;
mod template_rows;
mod templates;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;
mod uploads;
mod upstream;
mod webhooks;

pub use accounts::MAX_ACTIVE_TOKENS;
pub use clock_guard::ClockStatus;
pub use copy_phase::{CopyPhase, PhaseObserver};
pub use decisions::limits::{MAX_EDITS_PER_DAY, MAX_EDITS_PER_MONTH};
pub use emulator::MAX_STEPS_PER_TRANSACTION;
pub use encoding::origin;
pub use engine::Store;
pub use error::{Cause, ReadKind, StoreError};
pub use event_notifier::EventNotifier;
pub use fair_slots::{FairSlot, FairSlots};
pub use lists::{MAX_LIST_COUNT, MAX_SEARCH_COUNT};
pub use postgres::PostgresStore;
pub use records::{
    Absence, CallPermit, ConnectOutcome, ConnectionChange, ConnectionState, Degraded,
    DegradedReason, EndReason, EndedApproval, Fence, Fenced, HintReport, Lease, LeaseState,
    MirrorCounts, MirrorFilter, MirroredTemplate, NewConnection, PageRecord, PageResult,
    ReadRecord, Sweep, SweepPosition, SweepReport, ToRead, UpstreamConnection, UpstreamWork,
};
pub use records::{
    Account, AccountLimits, AccountQuotas, AccountUsage, Actor, AddCredentialOutcome,
    AddPhoneOutcome, Author, CreateAccountOutcome, Credential, CredentialId, CredentialKind,
    DEFAULT_PHONE_NUMBERS, DEFAULT_STORED_BYTES, DeleteAccountOutcome, Finding, IndexProgress,
    IssueTokenOutcome, Limit, MAX_CREATES_PER_HOUR, NewAccount, NewCredential, Quota,
    RenameAccountOutcome, RetentionCursor, RevokeTokenOutcome, RotateCredentialOutcome, SecretHash,
    SetReviewOutcome, VERSION_OVERHEAD_BYTES,
};
pub use records::{
    AppendOutcome, BeginUploadOutcome, MAX_OPEN_UPLOADS, MAX_UPLOAD_BYTES, MEDIA_QUOTA_UNIT_BYTES,
    MEDIA_READ_BYTES, Media, NewUpload, UNUSED_MEDIA_DAYS, UPLOAD_CHUNK_BYTES,
    UPLOAD_LIFETIME_HOURS, Upload,
};
pub use records::{
    Attempt, CreateWebhookOutcome, Delivery, DeliveryLease, DeliveryQuery, DueDelivery, NewWebhook,
    RecordAttemptOutcome, Replay, ReplayOutcome, RotateOutcome, StoredSecret, Webhook,
    WebhookChange, WebhookKey, WebhooksWithWork,
};
pub use records::{AuditEntry, AuditKind, MAX_DAILY_CHANGES};
pub use records::{
    CONSOLE_LINK_SECONDS, CONSOLE_LINK_TOKEN_NAME, MAX_SESSIONS_PER_TOKEN, NewConsoleLink,
    NewSession, RedeemLinkOutcome, SESSION_HOURS, SESSION_IDLE_HOURS, Session,
};
pub use records::{
    ChangeClockOutcome, CreateFaultOutcome, DueStatus, DueStatuses, DueSteps, EmulatedApp,
    EmulatorWork, MessageQuery, NewMessage, RecordStatusesOutcome, SentTemplate, StatusCursor,
    StatusLease, StoredFault, StoredMessage,
};
pub use records::{
    ChangeOutcome, CreateOutcome, CreatedTemplate, Decision, DeleteOutcome, Event, EventSubject,
    Feed, IDEMPOTENCY_HOURS, Idempotency, IdempotencyRecord, IndexStep, Initiator, LanguageSummary,
    ListOrder, ListQuery, NameConflict, NameFilter, NewTemplate, Page, StoredTemplate,
    TemplateChange, TraceContext, TranslationGroup, Unindexed, UpsertOutcome, UpstreamFilter,
    Version, VersionSummary,
};
pub use records::{
    HistogramSnapshot, MAX_COUNTED_DELIVERIES, MAX_COUNTED_REVIEWS, MAX_DATED_REVIEWS,
    PoolActivity, ReviewStatistics, SearchStatistics, StoreActivity, StoreStatistics,
    UpstreamStatistics, WebhookStatistics,
};
pub use records::{
    NewOperation, OPERATION_DAYS, SampleLink, StoredOperation, UpstreamAction,
    UpstreamActionOutcome,
};
pub use schema_policy::SchemaPolicy;
pub use sqlite::SqliteStore;
pub use template_rows::MAX_VERSIONS;
pub use upstream::{ImportPreview, MAX_WITHDRAWN};
pub use webhooks::MAX_WEBHOOKS;
