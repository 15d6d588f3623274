//! What callers are told when the store fails, hangs or panics: a real store that stumbles where a
//! test tells it to.

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
    AttemptRecorded, BeginUploadOutcome, ChangeOutcome, CreateAccountOutcome, CreateOutcome,
    CreateWebhookOutcome, Credential, CredentialId, CredentialKind, DeleteOutcome, Deliveries,
    Delivery, DeliveryLease, DueWebhooks, EventNotifier, Feed, Finding, IdempotencyRecord,
    IndexProgress, ListQuery, Media, NameConflict, NewAccount, NewCredential, NewTemplate,
    NewUpload, NewWebhook, Page, Replay, ReplayOutcome, RetentionCursor, Rotation, SecretHash,
    Store, StoreError, StoredSecret, StoredTemplate, TemplateChange, Upload, UpsertOutcome,
    Version, Webhook, WebhookChange,
};
use jiff::Timestamp;
use tokio::sync::Notify;

use super::app::{TOKEN, TestApp, hello, request};

/// Stands in every cause, and must stand in no answer.
const CAUSE: &str = "the-cause-only-the-log-may-tell";

/// What becomes of a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Fails(fn() -> StoreError),
    Hangs,
    Panics,
    /// What it answers is held back until [`Faults::let_go`]; then the fault is gone.
    Held,
}

/// A store whose methods do what `inner` does, but for those with a fault.
struct Faulty {
    inner: Arc<dyn Store>,
    faults: Arc<Faults>,
}

/// The faults in force, by the method they are in.
#[derive(Default)]
pub(super) struct Faults {
    set: Mutex<Vec<(&'static str, Fault)>>,
    held: Notify,
    let_go: Notify,
}

impl Faults {
    pub(super) fn set(&self, method: &'static str, fault: Fault) {
        let mut faults = self.set.lock().unwrap();
        faults.retain(|(name, _)| *name != method);
        faults.push((method, fault));
    }

    fn clear(&self) {
        self.set.lock().unwrap().clear();
    }

    /// Waits until an answer is held back.
    pub(super) async fn held(&self) {
        self.held.notified().await;
    }

    pub(super) fn let_go(&self) {
        self.let_go.notify_one();
    }

    fn of(&self, method: &str) -> Option<Fault> {
        let faults = self.set.lock().unwrap();
        faults.iter().find(|(name, _)| *name == method).map(|(_, fault)| *fault)
    }

    async fn stumble(&self, method: &str) -> Result<(), StoreError> {
        match self.of(method) {
            None | Some(Fault::Held) => Ok(()),
            Some(Fault::Fails(error)) => Err(error()),
            Some(Fault::Hangs) => pending().await,
            Some(Fault::Panics) => panic!("{CAUSE}"),
        }
    }

    async fn hold_back(&self, method: &str) {
        if matches!(self.of(method), Some(Fault::Held)) {
            self.set.lock().unwrap().retain(|(name, _)| *name != method);
            self.held.notify_one();
            self.let_go.notified().await;
        }
    }
}

/// Writes the methods as the trait declares them, each of which may stumble before it begins.
macro_rules! stumbling {
    ($($method:ident $(<$($life:lifetime),+>)? ($($argument:ident: $kind:ty),*) -> $answer:ty;)+) => {
        impl Store for Faulty {
            fn event_notifier(&self) -> &EventNotifier {
                self.inner.event_notifier()
            }

            $(
                fn $method<'me, $($($life,)+)? 'answer>(
                    &'me self,
                    $($argument: $kind,)*
                ) -> Pin<Box<dyn Future<Output = Result<$answer, StoreError>> + Send + 'answer>>
                where
                    'me: 'answer,
                    $($($life: 'answer,)+)?
                    Self: 'answer,
                {
                    Box::pin(async move {
                        self.faults.stumble(stringify!($method)).await?;
                        let answer = self.inner.$method($($argument),*).await;
                        self.faults.hold_back(stringify!($method)).await;
                        answer
                    })
                }
            )+
        }
    };
}

stumbling! {
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
    family<'name>(account: AccountId, name: &'name str) -> Vec<StoredTemplate>;
    template(account: AccountId, id: TemplateId) -> Option<Arc<StoredTemplate>>;
    version(account: AccountId, id: TemplateId, number: u64) -> Option<Version>;
    versions(
        account: AccountId, id: TemplateId, before: Option<u64>, limit: usize
    ) -> Option<Vec<Version>>;
    list(listing: ListQuery) -> Page;
    count_templates(listing: ListQuery) -> u64;
    taken<'claim>(account: AccountId, claim: &'claim str) -> Option<NameConflict>;
    template_with_text<'words>(
        account: AccountId, wording: &'words MessageText, except: Option<TemplateId>
    ) -> Option<TemplateId>;
    update_search_index() -> IndexProgress;
    record(account: AccountId, key: [u8; 16], at: Timestamp) -> Option<IdempotencyRecord>;
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
    ) -> Rotation;
    delete_webhook(account: AccountId, id: WebhookId) -> bool;
    deliveries(account: AccountId, id: WebhookId, wanted: Deliveries) -> Option<Vec<Delivery>>;
    replay(account: AccountId, id: WebhookId, what: Replay, at: Timestamp) -> ReplayOutcome;
    due_webhooks(at: Timestamp) -> DueWebhooks;
    lease_delivery(id: WebhookId, at: Timestamp, lease: Timestamp) -> DeliveryLease;
    record_attempt(attempt: Attempt) -> AttemptRecorded;
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
    ) -> AddCredentialOutcome;
    revoke_credential(id: CredentialId, at: Timestamp) -> bool;
    credentials(account: AccountId) -> Vec<Credential>;
    credential(kind: CredentialKind, hash: SecretHash) -> Option<Credential>;
    credential_epoch() -> u64;
    delete_expired_records(from: RetentionCursor, at: Timestamp) -> RetentionCursor;
    ping() -> ();
    check_integrity() -> Vec<Finding>;
    backup<'path>(path: &'path Path) -> ();
}

pub(super) async fn start(limits: Limits) -> (TestApp, Arc<Faults>) {
    let faults = Arc::<Faults>::default();
    let theirs = Arc::clone(&faults);
    let app = TestApp::start_on(|inner| Arc::new(Faulty { inner, faults: theirs }), limits).await;
    (app, faults)
}

fn cause() -> galley_store::Cause {
    Arc::new(std::io::Error::other(CAUSE))
}

/// Every way in which a store says that it failed, and what the caller is told.
const FAILURES: [(Fault, u16, &str); 5] = [
    (Fault::Fails(|| StoreError::Busy), 503, "busy"),
    (Fault::Fails(|| StoreError::Full(cause())), 503, "storage-full"),
    (Fault::Fails(|| StoreError::Unavailable(cause())), 503, "unavailable"),
    (Fault::Fails(|| StoreError::OutcomeUnknown(cause())), 503, "outcome-unknown"),
    (Fault::Fails(|| StoreError::Failed(cause())), 500, "internal"),
];

#[tokio::test]
async fn each_failure_of_the_store_is_told_by_what_the_caller_can_do() {
    let (app, faults) = start(Limits::default()).await;
    let kept = app.create(&hello("kept")).await;
    let id = kept.json()["id"].as_str().unwrap().to_owned();
    let refused = serde_json::json!({"name": ""});
    for (fault, status, slug) in FAILURES {
        for method in ["create_template", "template", "record"] {
            faults.set(method, fault);
        }
        let answers = [
            app.create(&hello("refused")).await,
            app.create_with_key(&hello("refused"), "a-key").await,
            app.create_with_key(&refused, "another-key").await,
            app.show(&id).await,
        ];
        for answer in answers {
            answer.problem(status, slug);
            assert_eq!(answer.header("retry-after").is_some(), status == 503, "{answer:?}");
            assert!(!answer.text.contains(CAUSE), "{answer:?}");
        }
        faults.clear();
    }
    assert_eq!(app.show(&id).await.status, 200);
    assert_eq!(app.create(&hello("refused")).await.status, 201);
}

#[tokio::test]
async fn a_failure_while_credentials_are_looked_up_is_no_refusal_of_them() {
    for method in ["credential_epoch", "credential", "account", "phone_owner", "add_phone"] {
        let (app, faults) = start(Limits::default()).await;
        faults.set(method, Fault::Fails(|| StoreError::Unavailable(cause())));
        let answer = app.create(&hello("early")).await;
        answer.problem(503, "unavailable");
        assert!(answer.header("retry-after").is_some(), "{method}: {answer:?}");
        faults.clear();
        assert_eq!(app.create(&hello("early")).await.status, 201, "{method}");
    }
}

#[tokio::test]
async fn to_clients_of_the_graph_api_a_failure_is_a_passing_one_in_their_form() {
    for (fault, status, slug) in FAILURES {
        let (app, faults) = start(Limits::default()).await;
        faults.set("credential", fault);
        let path = format!("/v23.0/1/message_templates?access_token={TOKEN}");
        let answer = app.send(request(Method::GET, &path, "", "")).await;
        assert_eq!(answer.status, status, "{answer:?}");
        let error = &answer.json()["error"];
        assert_eq!(error["code"], if status == 503 { 2 } else { 1 }, "{answer:?}");
        assert_eq!(error["is_transient"], status == 503, "{answer:?}");
        assert_eq!(error["galley_problem"], slug);
        assert_eq!(answer.header("retry-after").is_some(), status == 503, "{answer:?}");
        assert!(!answer.text.contains(CAUSE) && !answer.text.contains(TOKEN), "{answer:?}");
    }
}

#[tokio::test]
async fn a_store_that_never_answers_is_given_up_at_the_deadline() {
    let request = Duration::from_millis(20);
    let (app, faults) = start(Limits { request, ..Limits::default() }).await;
    faults.set("create_template", Fault::Hangs);
    let answer = app.create(&hello("slow")).await;
    answer.problem(503, "deadline");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
}

#[tokio::test]
async fn kept_credentials_are_trusted_for_five_seconds_without_the_store() {
    let (app, faults) = start(Limits::default()).await;
    let made = app.create(&hello("kept")).await;
    let id = made.json()["id"].as_str().unwrap().to_owned();
    // The phone number is kept from the second request on: the first one made it the account's.
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
async fn a_panic_is_answered_500_and_takes_nothing_down() {
    let (app, faults) = start(Limits::default()).await;
    faults.set("create_template", Fault::Panics);
    let answer = app.create(&hello("panicking")).await;
    answer.problem(500, "internal");
    assert!(!answer.text.contains(CAUSE), "{answer:?}");
    faults.clear();
    assert_eq!(app.create(&hello("panicking")).await.status, 201);
    let log = app.into_log();
    assert!(log.lines().any(|line| line.contains("\"internal\"")), "{log}");
}
