//! A store for tests: faults are injected into a real one.

mod planted;

use std::{future::Future, path::Path, pin::Pin, sync::Arc};

use galley_domain::{
    emulator::{
        clock::{Clock, ClockChange},
        faults::{self, Call, FaultEffect},
        rules::ReviewRules,
    },
    id::{AccountId, TemplateId, WebhookId},
    template::{Review, edit::Edit, lifecycle::Trigger, message_text::MessageText},
    upstream::{
        CallDone, CallFailure, CallKind, HeldReason, Hint, ProbeResult, ProviderError, RemoteId,
    },
};
use jiff::{SignedDuration, Timestamp};

use crate::{
    Absence, Account, AccountLimits, AccountQuotas, AccountStore, Actor, AddCredentialOutcome,
    AddPhoneOutcome, AppendOutcome, Attempt, Author, BeginUploadOutcome, CallPermit,
    ChangeClockOutcome, ChangeOutcome, ChangeStore, ClockStatus, ClockStore, ConnectOutcome,
    ConnectionChange, CreateAccountOutcome, CreateFaultOutcome, CreateOutcome,
    CreateWebhookOutcome, Credential, CredentialId, CredentialKind, CredentialStore,
    DegradedReason, DeleteAccountOutcome, DeleteOutcome, Delivery, DeliveryLease, DeliveryQuery,
    DeliveryStore, DueSteps, EmulatedApp, EmulatorStore, EmulatorWork, EndedApproval,
    EngineSubjects, EventNotifier, EventStore, Feed, Fence, Fenced, Finding, HintReport,
    IdempotencyRecord, IndexProgress, IndexStep, IssueTokenOutcome, LanguageSummary, Lease,
    LeaseState, ListQuery, ListStore, MaintenanceStore, Media, MediaStore, MessageQuery,
    MirrorCounts, MirrorFilter, MirroredTemplate, NameConflict, NewAccount, NewConnection,
    NewCredential, NewMessage, NewTemplate, NewUpload, NewWebhook, OperationStore, Page,
    PageRecord, PageResult, PhaseObserver, ReadRecord, RecordAttemptOutcome, RecordStatusesOutcome,
    RenameAccountOutcome, Replay, ReplayOutcome, RetentionCursor, RevokeTokenOutcome,
    RotateCredentialOutcome, RotateOutcome, SecretHash, SetReviewOutcome, StatisticsStore,
    StatusCursor, StatusLease, Store, StoreActivity, StoreError, StoreStatistics, StoredFault,
    StoredMessage, StoredOperation, StoredSecret, StoredTemplate, SweepReport, TemplateChange,
    TemplateStore, ToRead, TraceContext, Upload, UploadStore, UpsertOutcome, UpstreamAction,
    UpstreamActionOutcome, UpstreamConnection, UpstreamStore, UpstreamWork, Version,
    VersionSummary, Webhook, WebhookChange, WebhookKey, WebhookStore, WebhooksWithWork,
    engine::FaultPoints,
};

pub use crate::engine::{Fault, Faults, PlantedError};

/// Subjects that forward to those of an engine, except for methods with a fault.
struct FaultySubjects {
    inner: Arc<dyn EngineSubjects>,
    faults: Arc<Faults>,
}

impl Store {
    /// The same store with faults, which can be changed while the store is in use.
    #[must_use]
    pub fn with_faults(&self, faults: Arc<Faults>) -> Self {
        let subjects =
            FaultySubjects { inner: Arc::clone(&self.subjects), faults: Arc::clone(&faults) };
        Self {
            engine: Arc::clone(&self.engine),
            subjects: Arc::new(subjects),
            faults: FaultPoints::of(faults),
        }
    }
}

/// Implements the methods of the traits, each with its fault. The function after `=>` is called instead
/// of the method.
macro_rules! with_faults {
    (@forward $store:ident $method:ident($($argument:ident),*)) => {
        $store.inner.$method($($argument),*)
    };
    (@forward $store:ident $method:ident($($argument:ident),*) $instead:path) => {
        $instead(&*$store.inner, $store.faults.planted(), $($argument),*)
    };
    ($($subject:ident {
        $(
            $method:ident $(<$($life:lifetime),+>)? ($($argument:ident: $kind:ty),*)
            -> $output:ty $(=> $instead:path)?;
        )+
        $(@ $($plain:tt)+)?
    })+) => {
        $(impl $subject for FaultySubjects {
            $($($plain)+)?

            $(
                fn $method<'me, $($($life,)+)? 'future>(
                    &'me self,
                    $($argument: $kind,)*
                ) -> Pin<Box<dyn Future<Output = Result<$output, StoreError>> + Send + 'future>>
                where
                    'me: 'future,
                    $($($life: 'future,)+)?
                    Self: 'future,
                {
                    Box::pin(async move {
                        self.faults.inject(stringify!($method)).await?;
                        let store = self;
                        let result =
                            with_faults!(@forward store $method($($argument),*) $($instead)?).await;
                        self.faults.hold_back(stringify!($method)).await;
                        result
                    })
                }
            )+
        })+
    };
}

with_faults! {
    TemplateStore {
        create_template(new: NewTemplate) -> CreateOutcome;
        template(account: AccountId, id: TemplateId) -> Option<Arc<StoredTemplate>>;
        version(account: AccountId, id: TemplateId, number: u64) -> Option<Version>;
        versions(
            account: AccountId, id: TemplateId, before: Option<u64>, limit: usize
        ) -> Option<Vec<VersionSummary>>;
        translations<'name>(account: AccountId, name: &'name str) -> Vec<StoredTemplate>;
        languages(query: ListQuery, names: Vec<String>) -> Vec<LanguageSummary>;
        name_conflict<'key>(account: AccountId, unique_key: &'key str) -> Option<NameConflict>;
        template_with_text<'words>(
            account: AccountId, text: &'words MessageText, except: Option<TemplateId>
        ) -> Option<TemplateId>;
        idempotency_record(account: AccountId, key: [u8; 16], at: Timestamp) -> Option<IdempotencyRecord>;
    }
    ChangeStore {
        edit_template(change: TemplateChange, edit: Edit) -> ChangeOutcome;
        review_template(change: TemplateChange, trigger: Trigger, reason: Option<String>) -> ChangeOutcome;
        upsert_templates(templates: Vec<NewTemplate>) -> UpsertOutcome;
        delete_template(change: TemplateChange) -> ChangeOutcome;
        delete_translations<'name>(
            account: AccountId, name: &'name str, review: Review, actor: Actor,
            trace: Option<TraceContext>, at: Timestamp
        ) -> DeleteOutcome;
        delete_templates(
            account: AccountId, ids: Vec<TemplateId>, review: Review, actor: Actor,
            trace: Option<TraceContext>, at: Timestamp
        ) -> DeleteOutcome;
    }
    ListStore {
        list(listing: ListQuery) -> Page;
        count_templates(listing: ListQuery) -> u64;
        update_search_index() -> IndexProgress;
        index_account(account: AccountId, newest: u64) -> IndexStep;
    }
    EventStore {
        events(account: AccountId, after: Option<u64>, limit: usize) -> Feed;
        newest_event(account: AccountId) -> u64;
        poll_events() -> ();
        delete_expired_events(since: Timestamp) -> usize;
        @ fn event_notifier(&self) -> &EventNotifier {
            self.inner.event_notifier()
        }
    }
    WebhookStore {
        create_webhook(new: NewWebhook) -> CreateWebhookOutcome;
        webhooks(account: AccountId) -> Vec<Webhook>;
        webhook(account: AccountId, id: WebhookId) -> Option<Webhook>;
        change_webhook(
            account: AccountId, id: WebhookId, change: WebhookChange, by: Author
        ) -> Option<Webhook>;
        rotate_webhook(
            account: AccountId, id: WebhookId, secret: StoredSecret, until: Timestamp, anyway: bool,
            by: Author
        ) -> RotateOutcome;
        delete_webhook(account: AccountId, id: WebhookId, by: Author) -> bool;
    }
    DeliveryStore {
        deliveries(account: AccountId, id: WebhookId, wanted: DeliveryQuery) -> Option<Vec<Delivery>>;
        replay(account: AccountId, id: WebhookId, what: Replay, at: Timestamp) -> ReplayOutcome;
        webhooks_with_work(at: Timestamp) -> WebhooksWithWork;
        lease_delivery(id: WebhookId, at: Timestamp, lease: Timestamp) -> DeliveryLease;
        record_attempt(attempt: Attempt) -> RecordAttemptOutcome;
    }
    EmulatorStore {
        emulator_clock(account: AccountId) -> Option<Clock>;
        change_clock(account: AccountId, change: ClockChange, at: Timestamp) -> ChangeClockOutcome;
        apply_due_steps(account: AccountId, at: Timestamp) -> DueSteps;
        accounts_with_due_steps(at: Timestamp) -> EmulatorWork<AccountId>;
        review_rules(account: AccountId) -> ReviewRules;
        set_review_rules(account: AccountId, rules: ReviewRules) -> bool;
        emulated_app(account: AccountId) -> EmulatedApp;
        set_app_secret(account: AccountId, secret: StoredSecret) -> bool;
        set_callback_override(account: AccountId, url: Option<String>) -> bool;
        create_fault(
            account: AccountId, fault: faults::Fault, at: Timestamp
        ) -> CreateFaultOutcome;
        faults(account: AccountId) -> Vec<StoredFault>;
        delete_faults(account: AccountId, number: Option<u64>) -> usize;
        decide_fault<'name>(
            account: AccountId, call: Call, name: Option<&'name str>
        ) -> Option<FaultEffect>;
        add_message(new: NewMessage) -> Option<StoredMessage>;
        messages(account: AccountId, query: MessageQuery, at: Timestamp) -> Vec<StoredMessage>;
        endpoints_with_statuses(at: Timestamp) -> Vec<WebhookKey>;
        lease_statuses(
            endpoint: WebhookId, limit: usize, at: Timestamp, lease_until: Timestamp
        ) -> StatusLease;
        record_statuses(
            endpoint: WebhookId, lease_until: Timestamp, through: StatusCursor
        ) -> RecordStatusesOutcome;
    }
    UpstreamStore {
        connect_upstream(new: NewConnection) -> ConnectOutcome;
        disconnect_upstream(account: AccountId, by: Author) -> bool;
        change_connection(account: AccountId, change: ConnectionChange, by: Author) -> bool;
        connection(account: AccountId) -> Option<UpstreamConnection>;
        connections() -> Vec<UpstreamConnection>;
        connection_by_hook(hash: SecretHash) -> Option<UpstreamConnection>;
        connections_to(wabas: Vec<String>, limit: usize) -> Vec<UpstreamConnection>;
        connections_with_work(
            at: Timestamp, sweep_interval: SignedDuration, calls_per_hour: u32
        ) -> UpstreamWork;
        lease_connection(account: AccountId, at: Timestamp, until: Timestamp)
        -> Option<Lease> => planted::lease_connection;
        extend_lease(fence: Fence, until: Timestamp) -> Fenced<LeaseState>;
        release_connection(fence: Fence) -> Fenced<()>;
        take_call(
            fence: Fence, kind: CallKind, is_sweep: bool, calls_per_hour: u32, at: Timestamp
        ) -> Fenced<CallPermit>;
        rest_calls(fence: Fence, rest: SignedDuration, at: Timestamp) -> Fenced<()>;
        set_degraded(
            fence: Fence,
            degraded: Option<(DegradedReason, Option<Timestamp>, Option<ProviderError>)>,
            at: Timestamp
        ) -> Fenced<()>;
        record_token_expiry(fence: Fence, expires_at: Option<Timestamp>) -> Fenced<()>;
        begin_sweep(fence: Fence, full: bool, at: Timestamp) -> Fenced<u64>;
        record_page(fence: Fence, page: PageRecord, at: Timestamp) -> Fenced<PageResult>;
        finish_sweep(fence: Fence, at: Timestamp) -> Fenced<SweepReport>;
        withdraw_approvals(fence: Fence, at: Timestamp) -> Fenced<Vec<EndedApproval>>;
        has_own_approvals(account: AccountId) -> bool;
        templates_to_read(account: AccountId, limit: usize) -> Vec<ToRead>;
        record_read(fence: Fence, read: ReadRecord, at: Timestamp)
        -> Fenced<Option<EndedApproval>>;
        postpone_read(
            fence: Fence, id: RemoteId, asked: Option<Timestamp>, until: Timestamp
        ) -> Fenced<()>;
        record_absent(
            fence: Fence, id: RemoteId, asked: Option<Timestamp>, at: Timestamp
        ) -> Fenced<Absence>;
        record_hints(account: AccountId, hints: Vec<Hint>, at: Timestamp) -> HintReport;
        mirror_of(account: AccountId, templates: Vec<TemplateId>) -> Vec<MirroredTemplate>;
        mirrored(
            account: AccountId, filter: MirrorFilter, after: Option<RemoteId>, limit: usize
        ) -> Vec<MirroredTemplate>;
        mirror_counts(account: AccountId) -> MirrorCounts;
        mirrored_template(account: AccountId, id: RemoteId) -> Option<MirroredTemplate>;
        mirrored_document(account: AccountId, id: RemoteId) -> Option<String>;
    }
    OperationStore {
        operations(
            account: AccountId, before: Option<u64>, limit: usize
        ) -> Vec<StoredOperation>;
        open_operations(account: AccountId, limit: usize) -> Vec<StoredOperation>;
        operation_template(
            account: AccountId, template: TemplateId, version: u64
        ) -> Option<StoredTemplate>;
        begin_operation(fence: Fence, id: u64, at: Timestamp)
        -> Fenced<Option<StoredOperation>> => planted::begin_operation;
        record_call(
            fence: Fence, id: u64, outcome: Result<CallDone, CallFailure>, at: Timestamp
        ) -> Fenced<Option<StoredOperation>> => planted::record_call;
        record_probe(
            fence: Fence, id: u64, found: ProbeResult, at: Timestamp
        ) -> Fenced<Option<StoredOperation>>;
        release_operations(fence: Fence, reason: HeldReason, at: Timestamp) -> Fenced<u64>;
        skip_operation(fence: Fence, id: u64, at: Timestamp) -> Fenced<Option<StoredOperation>>;
        record_conflict(
            fence: Fence, id: u64, error: ProviderError, at: Timestamp
        ) -> Fenced<Option<StoredOperation>>;
        operation(account: AccountId, id: u64) -> Option<StoredOperation>;
        newest_operation(account: AccountId, template: TemplateId) -> Option<StoredOperation>;
        operations_of(account: AccountId, templates: Vec<TemplateId>) -> Vec<StoredOperation>;
        act_upstream(change: TemplateChange, action: UpstreamAction) -> UpstreamActionOutcome;
        abandon_operations(account: AccountId, template: TemplateId, by: Author) -> u64;
    }
    UploadStore {
        begin_upload(new: NewUpload) -> BeginUploadOutcome;
        upload<'id>(account: AccountId, id: &'id str, at: Timestamp) -> Option<Upload>;
        append_upload<'id, 'bytes>(
            account: AccountId, id: &'id str, offset: u64, bytes: &'bytes [u8], room: u64,
            at: Timestamp
        ) -> AppendOutcome;
        cancel_upload<'id>(account: AccountId, id: &'id str, at: Timestamp) -> bool;
    }
    MediaStore {
        sample<'handle>(account: AccountId, handle: &'handle str, at: Timestamp) -> Option<Media>;
        media<'handle>(handle: &'handle str) -> Option<Media>;
        media_chunk<'handle>(handle: &'handle str, place: u64) -> Vec<u8>;
    }
    AccountStore {
        create_account(new: NewAccount) -> CreateAccountOutcome;
        accounts() -> Vec<Account>;
        has_had_accounts() -> bool;
        account(id: AccountId) -> Option<Account>;
        rename_account(id: AccountId, name: String, by: Author) -> RenameAccountOutcome;
        set_account_four_eyes(id: AccountId, is_on: bool, by: Author) -> bool;
        set_account_review(id: AccountId, review: Review, by: Author) -> SetReviewOutcome;
        set_account_disabled(id: AccountId, is_disabled: bool, by: Author) -> bool;
        delete_account(id: AccountId, by: Author) -> DeleteAccountOutcome;
        set_account_limits(id: AccountId, limits: Option<AccountLimits>, by: Author) -> bool;
        set_account_quotas(id: AccountId, quotas: AccountQuotas, by: Author) -> bool;
        add_phone<'phone>(account: AccountId, phone: &'phone str, by: Author) -> AddPhoneOutcome;
        claim_phone<'phone>(
            account: AccountId, phone: &'phone str, max: Option<u64>, by: Author
        ) -> AddPhoneOutcome;
        remove_phone<'phone>(account: AccountId, phone: &'phone str, by: Author) -> bool;
        phones(account: AccountId) -> Vec<String>;
        phone_owner<'phone>(phone: &'phone str) -> Option<AccountId>;
    }
    CredentialStore {
        add_credential(account: AccountId, new: NewCredential, by: Author) -> AddCredentialOutcome;
        issue_token(account: AccountId, new: NewCredential, by: Author) -> IssueTokenOutcome;
        rotate_credential(
            old: CredentialId, new: NewCredential, old_ends_at: Timestamp, by: Author
        ) -> RotateCredentialOutcome;
        revoke_credential(id: CredentialId, by: Author) -> bool;
        revoke_token(account: AccountId, id: CredentialId, by: Author) -> RevokeTokenOutcome;
        active_tokens(account: AccountId, at: Timestamp) -> Vec<Credential>;
        credentials(account: AccountId) -> Vec<Credential>;
        credential(kind: CredentialKind, hash: SecretHash) -> Option<Credential>;
        record_credential_use(uses: Vec<(CredentialId, Timestamp)>) -> ();
        credential_epoch() -> u64;
    }
    ClockStore {
        observe_clock(now: Timestamp) -> ClockStatus;
        check_clock(now: Timestamp) -> Option<ClockStatus>;
        accept_clock(now: Timestamp) -> ();
    }
    MaintenanceStore {
        delete_expired_records(from: RetentionCursor, at: Timestamp) -> RetentionCursor;
        count_stored_bytes(all: bool) -> usize;
        ping() -> ();
        check_integrity() -> Vec<Finding>;
        backup<'path, 'observer>(
            path: &'path Path, allow_damaged: bool, observer: PhaseObserver<'observer>
        ) -> ();
    }
    StatisticsStore {
        statistics() -> StoreStatistics;
        @ fn activity(&self) -> StoreActivity {
            self.inner.activity()
        }
    }
}
