//! Responses when the store fails, hangs or panics, with faults injected into a real store.

use std::{
    future::{Future, pending},
    path::Path,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::http::Method;
use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::{Review, edit::Edit, lifecycle::Trigger, message_text::MessageText},
};
use galley_server::Limits;
use galley_store::{
    Account, AccountLimits, Actor, AddCredentialOutcome, AddPhoneOutcome, AppendOutcome, Attempt,
    BeginUploadOutcome, ChangeOutcome, ClockStatus, CreateAccountOutcome, CreateOutcome,
    CreateWebhookOutcome, Credential, CredentialId, CredentialKind, DeleteOutcome, Delivery,
    DeliveryLease, DeliveryQuery, DueWebhooks, EventNotifier, Feed, Finding, IdempotencyRecord,
    IndexProgress, ListQuery, Media, NameConflict, NewAccount, NewCredential, NewTemplate,
    NewUpload, NewWebhook, Page, RecordAttemptOutcome, Replay, ReplayOutcome, RetentionCursor,
    RotateCredentialOutcome, RotateOutcome, SecretHash, Store, StoreError, StoredSecret,
    StoredTemplate, TemplateChange, Upload, UpsertOutcome, Version, Webhook, WebhookChange,
};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::app::{TOKEN, TestApp, hello, request};

/// Part of every cause. No response may contain it.
const CAUSE: &str = "the-cause-only-the-log-may-contain";

/// A fault in a method of the store.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Fails(fn() -> StoreError),
    Hangs,
    Panics,
    /// The result is held back until [`Faults::release`], which also removes the fault.
    Held,
}

/// A store that forwards to `inner`, except for methods with a fault.
struct FaultyStore {
    inner: Arc<dyn Store>,
    faults: Arc<Faults>,
}

/// The active faults by method.
#[derive(Default)]
pub(super) struct Faults {
    active: Mutex<Vec<(&'static str, Fault)>>,
    held: Notify,
    released: Notify,
}

impl Faults {
    pub(super) fn set(&self, method: &'static str, fault: Fault) {
        let mut faults = self.active.lock().unwrap();
        faults.retain(|(name, _)| *name != method);
        faults.push((method, fault));
    }

    fn clear(&self) {
        self.active.lock().unwrap().clear();
    }

    /// Waits until a result is held back.
    pub(super) async fn held(&self) {
        self.held.notified().await;
    }

    pub(super) fn release(&self) {
        self.released.notify_one();
    }

    fn of(&self, method: &str) -> Option<Fault> {
        let faults = self.active.lock().unwrap();
        faults.iter().find(|(name, _)| *name == method).map(|(_, fault)| *fault)
    }

    async fn inject(&self, method: &str) -> Result<(), StoreError> {
        match self.of(method) {
            None | Some(Fault::Held) => Ok(()),
            Some(Fault::Fails(error)) => Err(error()),
            Some(Fault::Hangs) => pending().await,
            Some(Fault::Panics) => panic!("{CAUSE}"),
        }
    }

    async fn hold_back(&self, method: &str) {
        if matches!(self.of(method), Some(Fault::Held)) {
            self.active.lock().unwrap().retain(|(name, _)| *name != method);
            self.held.notify_one();
            self.released.notified().await;
        }
    }
}

/// Implements the methods of the trait, each with its fault.
macro_rules! with_faults {
    ($($method:ident $(<$($life:lifetime),+>)? ($($argument:ident: $kind:ty),*) -> $output:ty;)+) => {
        impl Store for FaultyStore {
            fn event_notifier(&self) -> &EventNotifier {
                self.inner.event_notifier()
            }

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
                        let result = self.inner.$method($($argument),*).await;
                        self.faults.hold_back(stringify!($method)).await;
                        result
                    })
                }
            )+
        }
    };
}

with_faults! {
    create_template(new: NewTemplate) -> CreateOutcome;
    edit_template(change: TemplateChange, edit: Edit) -> ChangeOutcome;
    review_template(change: TemplateChange, trigger: Trigger, reason: Option<String>) -> ChangeOutcome;
    upsert_templates(news: Vec<NewTemplate>) -> UpsertOutcome;
    delete_template(change: TemplateChange) -> ChangeOutcome;
    delete_translations<'name>(
        account: AccountId, name: &'name str, review: Review, actor: Actor, at: Timestamp
    ) -> DeleteOutcome;
    delete_templates(
        account: AccountId, ids: Vec<TemplateId>, review: Review, actor: Actor, at: Timestamp
    ) -> DeleteOutcome;
    translations<'name>(account: AccountId, name: &'name str) -> Vec<StoredTemplate>;
    template(account: AccountId, id: TemplateId) -> Option<Arc<StoredTemplate>>;
    version(account: AccountId, id: TemplateId, number: u64) -> Option<Version>;
    versions(
        account: AccountId, id: TemplateId, before: Option<u64>, limit: usize
    ) -> Option<Vec<Version>>;
    list(listing: ListQuery) -> Page;
    count_templates(listing: ListQuery) -> u64;
    name_conflict<'key>(account: AccountId, unique_key: &'key str) -> Option<NameConflict>;
    template_with_text<'words>(
        account: AccountId, wording: &'words MessageText, except: Option<TemplateId>
    ) -> Option<TemplateId>;
    update_search_index() -> IndexProgress;
    idempotency_record(account: AccountId, key: [u8; 16], at: Timestamp) -> Option<IdempotencyRecord>;
    events(account: AccountId, after: Option<u64>, limit: usize) -> Feed;
    newest_event(account: AccountId) -> u64;
    poll_events() -> ();
    delete_expired_events(since: Timestamp) -> usize;
    create_webhook(new: NewWebhook) -> CreateWebhookOutcome;
    webhooks(account: AccountId) -> Vec<Webhook>;
    webhook(account: AccountId, id: WebhookId) -> Option<Webhook>;
    change_webhook(
        account: AccountId, id: WebhookId, change: WebhookChange, at: Timestamp
    ) -> Option<Webhook>;
    rotate_webhook(
        account: AccountId, id: WebhookId, secret: StoredSecret, until: Timestamp, anyway: bool,
        at: Timestamp
    ) -> RotateOutcome;
    delete_webhook(account: AccountId, id: WebhookId) -> bool;
    deliveries(account: AccountId, id: WebhookId, wanted: DeliveryQuery) -> Option<Vec<Delivery>>;
    replay(account: AccountId, id: WebhookId, what: Replay, at: Timestamp) -> ReplayOutcome;
    due_webhooks(at: Timestamp) -> DueWebhooks;
    lease_delivery(id: WebhookId, at: Timestamp, lease: Timestamp) -> DeliveryLease;
    record_attempt(attempt: Attempt) -> RecordAttemptOutcome;
    begin_upload(new: NewUpload) -> BeginUploadOutcome;
    upload<'id>(account: AccountId, id: &'id str, at: Timestamp) -> Option<Upload>;
    append_upload<'id, 'bytes>(
        account: AccountId, id: &'id str, offset: u64, bytes: &'bytes [u8], room: u64,
        at: Timestamp
    ) -> AppendOutcome;
    cancel_upload<'id>(account: AccountId, id: &'id str, at: Timestamp) -> bool;
    sample<'handle>(account: AccountId, handle: &'handle str, at: Timestamp) -> Option<Media>;
    media<'handle>(handle: &'handle str) -> Option<Media>;
    media_chunk<'handle>(handle: &'handle str, place: u64) -> Vec<u8>;
    create_account(new: NewAccount) -> CreateAccountOutcome;
    accounts() -> Vec<Account>;
    account(id: AccountId) -> Option<Account>;
    set_account_disabled(id: AccountId, disabled_at: Option<Timestamp>) -> bool;
    set_account_limits(id: AccountId, limits: Option<AccountLimits>) -> bool;
    add_phone<'phone>(account: AccountId, phone: &'phone str, at: Timestamp) -> AddPhoneOutcome;
    phones(account: AccountId) -> Vec<String>;
    phone_owner<'phone>(phone: &'phone str) -> Option<AccountId>;
    add_credential(account: AccountId, new: NewCredential, at: Timestamp) -> AddCredentialOutcome;
    rotate_credential(
        old: CredentialId, new: NewCredential, old_ends_at: Timestamp, at: Timestamp
    ) -> RotateCredentialOutcome;
    revoke_credential(id: CredentialId, at: Timestamp) -> bool;
    credentials(account: AccountId) -> Vec<Credential>;
    credential(kind: CredentialKind, hash: SecretHash) -> Option<Credential>;
    credential_epoch() -> u64;
    delete_expired_records(from: RetentionCursor, at: Timestamp) -> RetentionCursor;
    observe_clock(now: Timestamp) -> ClockStatus;
    check_clock(now: Timestamp) -> Option<ClockStatus>;
    accept_clock(now: Timestamp) -> ();
    ping() -> ();
    check_integrity() -> Vec<Finding>;
    backup<'path>(path: &'path Path, allow_damaged: bool) -> ();
}

pub(super) async fn start(limits: Limits) -> (TestApp, Arc<Faults>) {
    let faults = Arc::<Faults>::default();
    let injected = Arc::clone(&faults);
    let wrap = |inner| -> Arc<dyn Store> { Arc::new(FaultyStore { inner, faults: injected }) };
    let app = TestApp::start_on(wrap, limits).await;
    (app, faults)
}

fn cause() -> galley_store::Cause {
    Arc::new(std::io::Error::other(CAUSE))
}

/// Every error of a store, with the expected status and problem.
const FAILURES: [(Fault, u16, &str); 5] = [
    (Fault::Fails(|| StoreError::Busy), 503, "busy"),
    (Fault::Fails(|| StoreError::Full(cause())), 503, "storage-full"),
    (Fault::Fails(|| StoreError::Unavailable(cause())), 503, "unavailable"),
    (Fault::Fails(|| StoreError::OutcomeUnknown(cause())), 503, "outcome-unknown"),
    (Fault::Fails(|| StoreError::Failed(cause())), 500, "internal"),
];

#[tokio::test]
async fn each_failure_of_the_store_has_its_own_problem() {
    let (app, faults) = start(Limits::default()).await;
    let stored = app.create(&hello("stored")).await;
    let id = stored.json()["id"].as_str().unwrap().to_owned();
    let invalid = serde_json::json!({"name": ""});
    for (fault, status, slug) in FAILURES {
        for method in ["create_template", "template", "idempotency_record"] {
            faults.set(method, fault);
        }
        let responses = [
            app.create(&hello("rejected")).await,
            app.create_with_key(&hello("rejected"), "a-key").await,
            app.create_with_key(&invalid, "another-key").await,
            app.show(&id).await,
        ];
        for response in responses {
            response.problem(status, slug);
            assert_eq!(response.header("retry-after").is_some(), status == 503, "{response:?}");
            assert!(!response.text.contains(CAUSE), "{response:?}");
        }
        faults.clear();
    }
    assert_eq!(app.show(&id).await.status, 200);
    assert_eq!(app.create(&hello("rejected")).await.status, 201);
}

#[tokio::test]
async fn a_failed_credential_lookup_is_not_an_authentication_error() {
    for method in ["credential_epoch", "credential", "account", "phone_owner", "add_phone"] {
        let (app, faults) = start(Limits::default()).await;
        faults.set(method, Fault::Fails(|| StoreError::Unavailable(cause())));
        let response = app.create(&hello("early")).await;
        response.problem(503, "unavailable");
        assert!(response.header("retry-after").is_some(), "{method}: {response:?}");
        faults.clear();
        assert_eq!(app.create(&hello("early")).await.status, 201, "{method}");
    }
}

#[tokio::test]
async fn the_graph_surface_reports_failures_as_transient_errors() {
    for (fault, status, slug) in FAILURES {
        let (app, faults) = start(Limits::default()).await;
        faults.set("credential", fault);
        let path = format!("/v23.0/1/message_templates?access_token={TOKEN}");
        let response = app.send(request(Method::GET, &path, "", "")).await;
        assert_eq!(response.status, status, "{response:?}");
        let error = &response.json()["error"];
        assert_eq!(error["code"], if status == 503 { 2 } else { 1 }, "{response:?}");
        assert_eq!(error["is_transient"], status == 503, "{response:?}");
        assert_eq!(error["galley_problem"], slug);
        assert_eq!(response.header("retry-after").is_some(), status == 503, "{response:?}");
        assert!(!response.text.contains(CAUSE) && !response.text.contains(TOKEN), "{response:?}");
    }
}

#[tokio::test]
async fn a_store_that_never_responds_ends_at_the_deadline() {
    let request = Duration::from_millis(20);
    let (app, faults) = start(Limits { request, ..Limits::default() }).await;
    faults.set("create_template", Fault::Hangs);
    let response = app.create(&hello("slow")).await;
    response.problem(503, "deadline");
    assert!(response.header("retry-after").is_some(), "{response:?}");
}

#[tokio::test]
async fn cached_credentials_are_trusted_for_five_seconds_without_the_store() {
    let (app, faults) = start(Limits::default()).await;
    let created = app.create(&hello("stored")).await;
    let id = created.json()["id"].as_str().unwrap().to_owned();
    // The first request claims the phone number; the second one caches it.
    assert_eq!(app.show(&id).await.status, 200);
    for method in ["credential_epoch", "credential", "account", "phone_owner", "add_phone"] {
        faults.set(method, Fault::Fails(|| StoreError::Unavailable(cause())));
    }
    for step in [1_000, 1_000, 2_999] {
        app.clock.advance(Duration::from_millis(step));
        assert_eq!(app.show(&id).await.status, 200, "after {step} ms more");
    }
    app.clock.advance(Duration::from_millis(1));
    app.show(&id).await.problem(503, "unavailable");
    app.create(&hello("late")).await.problem(503, "unavailable");
    faults.clear();
    assert_eq!(app.show(&id).await.status, 200);
}

#[tokio::test]
async fn a_panic_becomes_a_500_and_the_service_continues() {
    let (app, faults) = start(Limits::default()).await;
    faults.set("create_template", Fault::Panics);
    let response = app.create(&hello("panicking")).await;
    response.problem(500, "internal");
    assert!(!response.text.contains(CAUSE), "{response:?}");
    faults.clear();
    assert_eq!(app.create(&hello("panicking")).await.status, 201);
    let log = app.into_log();
    assert!(log.lines().any(|line| line.contains("\"internal\"")), "{log}");
}
