//! A service with one account and one endpoint, whose receiver is a fake.

use std::{
    collections::VecDeque,
    ops::Deref,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use galley_domain::{
    document::Document,
    id::{AccountId, TemplateId, WebhookId},
    rulebook::{Rulebook, V1},
    template::{Review, Template, lifecycle::Trigger},
    webhook::{Format, delivery::RetrySchedule},
};
use galley_server::workers::{DeliveryStepOutcome, deliver_one};
use galley_server::{
    Clock as _,
    delivery::{
        Failure, FailureKind, Keyring, PostOutcome, PostReport, PostRequest, Random, Resolve,
        ResolvedTarget, ResponseStart, Secret, SignatureHeaders, SsrfGuard, SsrfPolicy,
        WebhookClient, WebhookContext, verify,
    },
};
use galley_store::{
    Actor, Author, ChangeOutcome, CreateOutcome, CreateWebhookOutcome, NewTemplate, NewWebhook,
    TemplateChange, Webhook,
};
use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::harness::{TestAccount, TestClock, TestService};

pub(crate) struct Harness {
    pub(crate) account: AccountId,
    pub(crate) webhook: WebhookId,
    pub(crate) secret: Secret,
    pub(crate) receiver: Arc<FakeReceiver>,
    service: TestService,
}

impl Deref for Harness {
    type Target = TestService;

    fn deref(&self) -> &TestService {
        &self.service
    }
}

impl Harness {
    pub(crate) async fn start() -> Self {
        let receiver = Arc::<FakeReceiver>::default();
        let client: Arc<dyn WebhookClient> = Arc::<FakeReceiver>::clone(&receiver);
        let secret = Secret::generate(|bytes| bytes.fill(7));
        let url = "https://shop.example/hooks";
        Self { receiver, ..Self::start_with(&V1, client, Format::Galley, url, secret).await }
    }

    /// Starts with one account with this rulebook and one endpoint; `client` sends the requests.
    pub(crate) async fn start_with(
        rulebook: &'static Rulebook,
        client: Arc<dyn WebhookClient>,
        format: Format,
        url: &str,
        secret: Secret,
    ) -> Self {
        let clock = TestClock::starting_at("2026-11-15T12:00:00Z".parse().unwrap());
        let builder = TestService::builder().clock(clock);
        let service = builder.webhooks(webhook_context(client)).start();
        let account = TestAccount { rulebook, ..TestAccount::named("shop") };
        let account = service.account(account).await;
        let webhook = register(&service, account, url, format, &secret).await;
        Self { account, webhook, secret, receiver: Arc::default(), service }
    }

    /// Registers an endpoint of any account with the secret of the harness.
    pub(crate) async fn add_endpoint(&self, account: AccountId, url: &str) -> WebhookId {
        register(&self.service, account, url, Format::Galley, &self.secret).await
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Advances the clock by a duration.
    pub(crate) fn advance(&self, time: Duration) {
        self.clock.advance(time);
    }

    /// Advances the clock to a later time.
    pub(crate) fn advance_to(&self, time: Timestamp) {
        self.clock.advance_to(time);
    }

    pub(crate) async fn step(&self) -> DeliveryStepOutcome {
        deliver_one(&self.app, self.webhook).await.unwrap()
    }

    /// Runs delivery steps until no event is due and returns their results.
    pub(crate) async fn run_until_idle(&self) -> Vec<DeliveryStepOutcome> {
        let mut steps = Vec::new();
        loop {
            match self.step().await {
                DeliveryStepOutcome::Idle(_) => return steps,
                step => steps.push(step),
            }
        }
    }

    /// Creates a template and returns its id.
    pub(crate) async fn create_template(&self, name: &str) -> TemplateId {
        self.create_template_of(self.account, name).await
    }

    /// Creates a template of any account and returns its id.
    pub(crate) async fn create_template_of(&self, account: AccountId, name: &str) -> TemplateId {
        let document = format!(
            r#"{{"name":"{name}","language":"en_US","category":"UTILITY","allow_category_change":true,
            "components":[{{"type":"BODY","text":"Hello"}}]}}"#
        );
        let template = Template::read(&Document::parse(document.as_bytes()).unwrap(), &V1).unwrap();
        let new = NewTemplate {
            account,
            phone: None,
            unique_key: (V1.unique_key)(account, name, "en_US"),
            translation_group: None,
            template,
            review: Review::Auto,
            actor: Actor::Operator,
            trace: None,
            idempotency: None,
            at: self.now(),
        };
        match self.store.create_template(new).await.unwrap() {
            CreateOutcome::Created(receipt) => receipt.id,
            other => panic!("{other:?}"),
        }
    }

    /// A template change at the current time.
    pub(crate) fn change(&self, id: TemplateId, review: Review) -> TemplateChange {
        TemplateChange {
            account: self.account,
            id,
            expected: None,
            version: None,
            review,
            actor: Actor::Operator,
            trace: None,
            at: self.now(),
        }
    }

    /// Applies a review trigger to a template.
    pub(crate) async fn review(&self, id: TemplateId, trigger: Trigger) {
        let change = self.change(id, Review::Auto);
        let changed = self.store.review_template(change, trigger, None).await.unwrap();
        assert!(matches!(changed, ChangeOutcome::Done(_)), "{changed:?}");
    }

    pub(crate) async fn webhook(&self) -> Webhook {
        self.store.webhook(self.account, self.webhook).await.unwrap().unwrap()
    }

    /// The sequence numbers of the sent events, in order.
    pub(crate) fn sent_seqs(&self) -> Vec<u64> {
        let requests = self.receiver.requests.lock().unwrap();
        requests.iter().map(|request| body(request)["seq"].as_u64().unwrap()).collect()
    }
}

async fn register(
    service: &TestService,
    account: AccountId,
    url: &str,
    format: Format,
    secret: &Secret,
) -> WebhookId {
    let new = NewWebhook {
        account,
        url: url.to_owned(),
        events: Vec::new(),
        format,
        subscribed: false,
        from_start: false,
        secret: keyring().encrypt(account.get(), secret, [3; 24]),
        by: Author::operator(service.clock.now()),
    };
    match service.store.create_webhook(new).await.unwrap() {
        CreateWebhookOutcome::Created(webhook) => webhook.id,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn keyring() -> Keyring {
    Keyring::new(Some("a key that encrypts secrets")).unwrap()
}

/// A webhook context that resolves no names.
pub(crate) fn webhook_context(client: Arc<dyn WebhookClient>) -> WebhookContext {
    WebhookContext {
        guard: private_guard(),
        keyring: keyring(),
        random: Arc::new(FixedRandom),
        client,
        schedule: RetrySchedule::default(),
        per_second: 50,
        timeout: Duration::from_secs(15),
        deliver: true,
    }
}

/// A guard that allows private networks.
pub(crate) fn private_guard() -> SsrfGuard {
    SsrfGuard::new(SsrfPolicy { allow_private: true }, Arc::new(FailingResolver))
}

pub(crate) fn body(request: &PostRequest) -> serde_json::Value {
    serde_json::from_slice(&request.body).unwrap()
}

fn header<'p>(request: &'p PostRequest, name: &str) -> &'p str {
    let header = request.headers.iter().find(|(header, _)| header.as_str() == name);
    header.unwrap_or_else(|| panic!("the header {name} is missing")).1.to_str().unwrap()
}

/// Whether the request is signed with the secret.
pub(crate) fn is_signed(request: &PostRequest, secret: &Secret, now: Timestamp) -> bool {
    let signed = SignatureHeaders {
        id: header(request, "webhook-id"),
        timestamp: header(request, "webhook-timestamp"),
        signature: header(request, "webhook-signature"),
    };
    verify(secret, signed, &request.body, now).is_ok()
}

/// Records every request. Responds as configured, and with 200 by default.
#[derive(Default)]
pub(crate) struct FakeReceiver {
    pub(crate) requests: Mutex<Vec<PostRequest>>,
    responses: Mutex<VecDeque<PostOutcome>>,
    /// Status of every response; takes precedence over `responses`.
    always: Mutex<Option<u16>>,
    /// The event to which it never responds.
    hangs_on: Mutex<Option<u64>>,
    /// The event that makes the client panic.
    panics_on: Mutex<Option<u64>>,
    /// Gets the sequence number of every incoming event.
    arrivals: Mutex<Option<mpsc::UnboundedSender<u64>>>,
}

impl FakeReceiver {
    /// Adds a response to the queue.
    pub(crate) fn respond_with(&self, outcome: PostOutcome) {
        self.responses.lock().unwrap().push_back(outcome);
    }

    /// Responds to everything with this status, or as queued again.
    pub(crate) fn always_respond(&self, status: Option<u16>) {
        *self.always.lock().unwrap() = status;
    }

    /// Never responds to this event.
    pub(crate) fn hang_on(&self, seq: u64) {
        *self.hangs_on.lock().unwrap() = Some(seq);
    }

    /// Makes the client panic when it sends this event, or no event any more.
    pub(crate) fn panic_on(&self, seq: Option<u64>) {
        *self.panics_on.lock().unwrap() = seq;
    }

    /// The sequence numbers of the events that arrive from now on.
    pub(crate) fn arrivals(&self) -> mpsc::UnboundedReceiver<u64> {
        let (sender, arrivals) = mpsc::unbounded_channel();
        *self.arrivals.lock().unwrap() = Some(sender);
        arrivals
    }

    pub(crate) fn last_request(&self) -> PostRequest {
        self.requests.lock().unwrap().last().unwrap().clone()
    }
}

pub(crate) fn status(status: u16) -> PostOutcome {
    PostOutcome::Responded { status, retry_after: None }
}

pub(crate) fn no_response() -> PostOutcome {
    PostOutcome::Failed(Failure {
        kind: FailureKind::Timeout,
        detail: "The receiver did not respond.".to_owned(),
        hidden_cause: None,
    })
}

#[async_trait]
impl WebhookClient for FakeReceiver {
    async fn post(&self, request: PostRequest) -> PostReport {
        let seq = body(&request)["seq"].as_u64().unwrap();
        self.requests.lock().unwrap().push(request);
        if let Some(sender) = &*self.arrivals.lock().unwrap() {
            let _ = sender.send(seq);
        }
        let is_panicking = *self.panics_on.lock().unwrap() == Some(seq);
        assert!(!is_panicking, "a bug in the client");
        let is_hanging = *self.hangs_on.lock().unwrap() == Some(seq);
        if is_hanging {
            std::future::pending::<()>().await;
        }
        let queued = self.responses.lock().unwrap().pop_front();
        let always = self.always.lock().unwrap().map(status);
        always.or(queued).unwrap_or(status(200)).into()
    }

    async fn get(&self, target: ResolvedTarget) -> Result<ResponseStart, Failure> {
        panic!("unexpected GET of {target:?}")
    }
}

/// Constant bytes: delays have almost no jitter.
struct FixedRandom;

impl Random for FixedRandom {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(128);
    }
}

/// Fails every lookup; these tests resolve no names.
struct FailingResolver;

#[async_trait]
impl Resolve for FailingResolver {
    async fn resolve(&self, _: &str, _: u16) -> std::io::Result<Vec<std::net::SocketAddr>> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}
