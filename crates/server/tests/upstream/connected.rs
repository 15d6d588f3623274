//! An account that is connected to an emulator.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum::{
    body::Body,
    http::{Method, header},
};
use galley_domain::{
    document::Document,
    id::{AccountId, TemplateId},
    rulebook::WHATSAPP,
    template::{Review, Template, edit::Edit},
    upstream::{OperationState, RemoteId},
};
use galley_server::{
    Clock,
    delivery::Keyring,
    upstream::{
        Begun, RefusedFields, SampleSettings, Session, SyncError, UpstreamContext,
        UpstreamSettings, sync_connection,
    },
    workers,
};
use galley_store::{
    Actor, Author, ChangeOutcome, ConnectOutcome, ConnectionChange, CreateOutcome, Event, Feed,
    Fenced, MirrorFilter, MirroredTemplate, NewConnection, NewTemplate, SecretHash, Store,
    StoredOperation, StoredSecret, StoredTemplate, SweepReport, TemplateChange, TranslationGroup,
    testing::Faults,
};
use galley_upstream::Method as UpstreamMethod;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::provider::{Loss, Provider};
use crate::{
    harness::{TestAccount, TestResponse, TestService, setup::Counting},
    sandbox::emulator::{Emulator, TOKEN, order},
};

/// The worker of connections.
pub(crate) struct Worker(JoinHandle<()>);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An account that is connected to an account of a provider.
pub(crate) struct Connected {
    pub(crate) provider: Arc<Provider>,
    pub(crate) service: TestService,
    pub(crate) account: AccountId,
    /// The faults of the store of the service.
    pub(crate) store_faults: Arc<Faults>,
    pub(crate) context: UpstreamContext,
}

/// The quota of an account for its files.
pub(crate) const MEDIA_BYTES: u64 = 1 << 20;

/// Operations that are not settled after so many steps never will be.
const MAX_SETTLE_STEPS: usize = 200;

/// The token of the connected account.
pub(crate) const SHOP: &str = "token-of-the-shop";

impl Connected {
    pub(crate) async fn start() -> Self {
        Self::start_with(Review::Auto, None).await
    }

    /// With another review, and the app that uploads samples. A person has begun the import, which the
    /// service continues.
    pub(crate) async fn start_with(review: Review, app_id: Option<&str>) -> Self {
        let connected = Self::start_without_import(review, app_id).await;
        connected.begin_import().await;
        connected
    }

    /// Begins an import that is interrupted before its first page.
    pub(crate) async fn begin_import(&self) {
        let (store, now) = (&self.service.store, self.service.clock.now());
        let until = now + SignedDuration::from_mins(1);
        let lease = store.lease_connection(self.account, now..until).await.unwrap().unwrap();
        let begun = store.begin_sweep(lease.fence, true, now).await.unwrap();
        assert!(matches!(begun, Fenced::Done(_)), "{begun:?}");
        let ended = store.release_connection(lease.fence).await.unwrap();
        assert_eq!(ended, Fenced::Done(()));
    }

    /// Connected, and nothing else.
    pub(crate) async fn start_without_import(review: Review, app_id: Option<&str>) -> Self {
        let emulator = Emulator::start_faithful().await;
        // No template gets the id of the account, which was created at the same time.
        emulator.clock.advance(Duration::from_secs(1));
        let by = Author::operator(emulator.clock.now());
        emulator.store.set_account_limits(emulator.account, None, by).await.unwrap();
        let store_faults = Arc::new(Faults::default());
        let faults = Arc::clone(&store_faults);
        let service = TestService::builder()
            .store(|store| -> Arc<Store> { Arc::new(store.with_faults(faults)) })
            .start();
        let account = TestAccount {
            rulebook: &WHATSAPP,
            review,
            key: SHOP,
            token: SHOP,
            ..TestAccount::named("shop")
        };
        let account = service.account(account).await;
        let keyring = Keyring::new(Some("a key that is only for tests")).unwrap();
        let new = NewConnection {
            account,
            base_url: "https://provider.test/v23.0".to_owned(),
            waba: emulator.account.to_string(),
            app_id: app_id.map(str::to_owned),
            token: keyring.seal(account.get(), TOKEN, [1; 24]).unwrap(),
            token_expires_at: None,
            app_secret: None,
            hook_hash: SecretHash::of("hook"),
            by: Author::operator(service.clock.now()),
        };
        let outcome = service.store.connect_upstream(new).await.unwrap();
        assert_eq!(outcome, ConnectOutcome::Connected);
        let provider = Arc::new(Provider::new(emulator));
        let transport = Arc::clone(&provider);
        let clock: Arc<dyn Clock> = Arc::<_>::clone(&service.clock) as _;
        let context = UpstreamContext {
            store: Arc::clone(&service.store),
            clock,
            transports: Arc::new(move |_| Arc::<Provider>::clone(&transport)),
            keyring,
            settings: UpstreamSettings { calls_per_hour: 5_000, ..UpstreamSettings::default() },
            samples: SampleSettings::new(Arc::new(Counting::starting_at(128)), MEDIA_BYTES),
            waker: service.app.upstream().clone(),
            refused_fields: RefusedFields::default(),
        };
        Self { provider, service, account, store_faults, context }
    }

    /// With leases that last this long.
    pub(crate) fn with_lease(mut self, lease: Duration) -> Self {
        self.context.settings.lease = lease;
        self
    }

    /// The emulator at the provider.
    pub(crate) fn emulator(&self) -> &Emulator {
        &self.provider.emulator
    }

    /// The calls since the last question.
    pub(crate) fn take_calls(&self) -> u32 {
        self.provider.calls.swap(0, Ordering::Relaxed)
    }

    /// Changes the bodies of responses from now on.
    pub(crate) fn rewrite(&self, rewrite: impl Fn(&str, &mut Value) + Send + Sync + 'static) {
        *self.provider.rewrite.lock().unwrap() = Some(Box::new(rewrite));
    }

    /// Lets responses show that so many percent of the budget are used.
    pub(crate) fn set_usage(&self, percent: u32) {
        self.provider.usage.store(percent, Ordering::Relaxed);
    }

    /// Loses the next exchange with this method.
    pub(crate) fn lose(&self, method: UpstreamMethod, loss: Loss) {
        self.provider.losses.lock().unwrap().push_back((method, loss));
    }

    /// The creates of templates that the provider had.
    pub(crate) fn repeated_creates(&self) -> u32 {
        self.provider.repeated_creates.load(Ordering::Relaxed)
    }

    /// The number of exchanges with this method since the last question.
    pub(crate) fn take_count(&self, method: UpstreamMethod) -> usize {
        let log = std::mem::take(&mut *self.provider.log.lock().unwrap());
        log.iter().filter(|logged| **logged == method).count()
    }

    /// Sends a request of a client of the connected account.
    pub(crate) async fn call(&self, method: Method, path: &str, body: &Value) -> TestResponse {
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let request = axum::http::Request::builder().method(method).uri(path);
        let request = request.header(header::AUTHORIZATION, format!("Bearer {SHOP}"));
        self.service.send(request.body(body).unwrap()).await
    }

    /// Creates a template with one parameter by a call.
    pub(crate) async fn post_order(&self, name: &str) -> TestResponse {
        self.call(Method::POST, &self.templates(), &order(name)).await
    }

    /// The path of the account's list.
    pub(crate) fn templates(&self) -> String {
        format!("/v23.0/{}/message_templates", self.account)
    }

    /// Runs the worker until the test ends.
    pub(crate) fn run_worker(&self) -> Worker {
        let worker = workers::run_upstream_sync(self.service.app.clone(), self.context.clone());
        Worker(tokio::spawn(worker))
    }

    /// Makes a step that is killed when the provider has done what was asked.
    pub(crate) async fn kill_step(&self) {
        let context = self.context.clone();
        let account = self.account;
        let step = tokio::spawn(async move { sync_connection(&context, account).await });
        self.provider.hangs.notified().await;
        step.abort();
        assert!(step.await.unwrap_err().is_cancelled());
    }

    /// The operations of the account, oldest first.
    pub(crate) async fn operations(&self) -> Vec<StoredOperation> {
        let operations = self.service.store.operations(self.account, None, 1_000).await.unwrap();
        operations.into_iter().rev().collect()
    }

    /// The operations that are not settled and wait for no other one.
    pub(crate) async fn open_operations(&self) -> Vec<StoredOperation> {
        self.service.store.open_operations(self.account, 100).await.unwrap()
    }

    /// Advances the clocks of the service and of the provider.
    pub(crate) fn advance(&self, time: Duration) {
        self.service.clock.advance(time);
        self.emulator().clock.advance(time);
    }

    /// Ends the faults of the provider.
    pub(crate) async fn clear_faults(&self) {
        let Emulator { account, .. } = self.emulator();
        self.emulator().store.delete_faults(*account, None).await.unwrap();
    }

    /// The types of all events at the provider.
    pub(crate) async fn provider_events(&self) -> Vec<&'static str> {
        let (mut kinds, mut last) = (Vec::new(), 0);
        loop {
            let feed = self.emulator().store.events(self.emulator().account, Some(last), 1_000);
            let Feed::Events(events) = feed.await.unwrap() else { panic!("the feed has ended") };
            let Some(event) = events.last() else { return kinds };
            last = event.seq;
            kinds.extend(events.iter().map(|it: &Event| it.kind.as_str()));
        }
    }

    /// The states of the operations, oldest first.
    pub(crate) async fn states(&self) -> Vec<OperationState> {
        self.operations().await.iter().map(|it| it.operation.state).collect()
    }

    /// Creates a template in the store, as a client does.
    pub(crate) async fn create(&self, document: &Value) -> TemplateId {
        self.create_with(document, self.review().await).await
    }

    /// Creates a template with another review, as before the account was connected.
    pub(crate) async fn create_with(&self, document: &Value, review: Review) -> TemplateId {
        let text = document.to_string();
        let document = Document::parse(text.as_bytes()).unwrap();
        let template = Template::read(&document, &WHATSAPP).unwrap();
        let account = self.account;
        let new = NewTemplate {
            account,
            review,
            phone: None,
            unique_key: (WHATSAPP.unique_key)(account, template.name(), template.language()),
            translation_group: Some(TranslationGroup::of(account, template.name())),
            template,
            actor: Actor::Operator,
            trace: None,
            idempotency: None,
            at: self.service.clock.now(),
        };
        match self.service.store.create_template(new).await.unwrap() {
            CreateOutcome::Created(created) => created.id,
            other => panic!("{other:?}"),
        }
    }

    async fn review(&self) -> Review {
        let account = self.service.store.account(self.account).await.unwrap().unwrap();
        account.effective_review()
    }

    pub(crate) async fn change(&self, id: TemplateId) -> TemplateChange {
        TemplateChange {
            account: self.account,
            id,
            expected: None,
            version: None,
            review: self.review().await,
            actor: Actor::Operator,
            trace: None,
            at: self.service.clock.now(),
        }
    }

    /// Edits a template in the store, as a client does.
    pub(crate) async fn edit(&self, id: TemplateId, document: &Value) {
        let text = json!({"components": document["components"]}).to_string();
        let document = Document::parse(text.as_bytes()).unwrap();
        let stored = self.service.store.template(self.account, id).await.unwrap().unwrap();
        let edit = Edit::check(&document, &WHATSAPP, &stored.template).0.unwrap();
        let change = self.change(id).await;
        let edited = self.service.store.edit_template(change, edit).await.unwrap();
        assert!(matches!(edited, ChangeOutcome::Done(_)), "{edited:?}");
    }

    pub(crate) async fn delete(&self, id: TemplateId) {
        let change = self.change(id).await;
        let deleted = self.service.store.delete_template(change).await.unwrap();
        assert!(matches!(deleted, ChangeOutcome::Done(_)), "{deleted:?}");
    }

    /// The names of the templates at the provider.
    pub(crate) async fn provided(&self) -> Vec<String> {
        let (mut names, mut after) = (Vec::new(), String::new());
        loop {
            let list = format!("{}?limit=100&fields=name{after}", self.emulator().templates());
            let list = self.emulator().get(&list).await.expect_success();
            let page = list["data"].as_array().unwrap().iter();
            names.extend(page.map(|it| it["name"].as_str().unwrap().to_owned()));
            if list["paging"]["next"].is_null() {
                return names;
            }
            after = format!("&after={}", list["paging"]["cursors"]["after"].as_str().unwrap());
        }
    }

    /// The text of the body of a template at the provider.
    pub(crate) async fn provided_text(&self, id: &RemoteId) -> String {
        let shown = self.emulator().get(&format!("/v23.0/{id}")).await.expect_success();
        shown["components"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The status of a template at the provider.
    pub(crate) async fn provided_status(&self, id: &RemoteId) -> String {
        let shown = self.emulator().get(&format!("/v23.0/{id}?fields=status")).await;
        shown.expect_success()["status"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn session(&self) -> Session {
        match Session::begin(&self.context, self.account).await.unwrap() {
            Begun::Session(session) => *session,
            Begun::Leased | Begun::NotConnected => panic!("the connection is not free"),
        }
    }

    /// Walks over all templates after a quarter of an hour, with their components if `full`.
    pub(crate) async fn sweep(&self, full: bool) -> Result<SweepReport, SyncError> {
        self.service.clock.advance(Duration::from_mins(15));
        let session = self.session().await;
        let report = session.sweep(full, false, &mut |_| {}).await;
        session.end().await.unwrap();
        report
    }

    /// What the worker does on the connection.
    pub(crate) async fn step(&self) {
        sync_connection(&self.context, self.account).await.unwrap();
    }

    /// A step that may fail.
    pub(crate) async fn try_step(&self) {
        let _ = sync_connection(&self.context, self.account).await;
    }

    /// Waits until the worker has settled all operations.
    pub(crate) async fn step_until_settled(&self) {
        for _ in 0..MAX_SETTLE_STEPS {
            if self.states().await.iter().all(|it| it.is_settled()) {
                return;
            }
            self.try_step().await;
            tokio::task::yield_now().await;
        }
        panic!("not settled after {MAX_SETTLE_STEPS} steps: {:?}", self.states().await);
    }

    pub(crate) async fn pause(&self) {
        let by = Author::operator(self.service.clock.now());
        let change = ConnectionChange::Paused;
        assert!(self.service.store.change_connection(self.account, change, by).await.unwrap());
    }

    /// A token of the provider, as it is stored.
    pub(crate) fn sealed(&self, token: &str) -> StoredSecret {
        self.context.keyring.seal(self.account.get(), token, [2; 24]).unwrap()
    }

    /// Sends the bytes of an upload.
    pub(crate) async fn upload(&self, id: &str, bytes: &[u8]) -> TestResponse {
        let request = axum::http::Request::builder().method(Method::POST);
        let request = request.uri(format!("/v23.0/{id}")).header("file_offset", "0");
        let request = request.header(header::AUTHORIZATION, format!("OAuth {SHOP}"));
        self.service.send(request.body(Body::from(bytes.to_vec())).unwrap()).await
    }

    /// Whether the worker has something to do now.
    pub(crate) async fn has_work(&self) -> bool {
        let (now, interval) = (self.service.clock.now(), SignedDuration::from_mins(15));
        let work = self.service.store.connections_with_work(now, interval, 5_000).await.unwrap();
        work.now == [self.account]
    }

    pub(crate) async fn mirrored(&self) -> Vec<MirroredTemplate> {
        let mut all: Vec<MirroredTemplate> = Vec::new();
        loop {
            let after: Option<RemoteId> = all.last().map(|it| it.id.clone());
            let page = self
                .service
                .store
                .mirrored(self.account, MirrorFilter::All, after, 500)
                .await
                .unwrap();
            if page.is_empty() {
                return all;
            }
            all.extend(page);
        }
    }

    /// The template of the account for the only one of the mirror.
    pub(crate) async fn only_template(&self) -> (MirroredTemplate, StoredTemplate) {
        let [mirrored] = &self.mirrored().await[..] else { panic!("there is not one template") };
        let id: TemplateId = mirrored.template.unwrap();
        let stored = self.service.store.template(self.account, id).await.unwrap().unwrap();
        (mirrored.clone(), (*stored).clone())
    }

    /// Stops the service and returns its access log.
    pub(crate) fn into_log(self) -> String {
        self.service.into_log()
    }

    /// The types of all events.
    pub(crate) async fn events(&self) -> Vec<&'static str> {
        match self.service.store.events(self.account, None, 10_000).await.unwrap() {
            Feed::Events(events) => events.iter().map(|it: &Event| it.kind.as_str()).collect(),
            other => panic!("{other:?}"),
        }
    }
}
