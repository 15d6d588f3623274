//! A service with an emulator account, a normal account, and a receiver that records webhooks.

use std::{
    collections::VecDeque,
    ops::Deref,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use galley_domain::{
    document::Document,
    emulator::{EmulatorKind, clock::ClockChange, faults::Fault},
    id::{AccountId, WebhookId},
    rulebook::WHATSAPP,
    webhook::Format,
};
use galley_server::{
    App, Clock as _,
    delivery::{
        Failure, PostOutcome, PostReport, PostRequest, ResolvedTarget, ResponseStart, Secret,
        WebhookClient, WebhookContext,
    },
};
use galley_store::{
    Author, ChangeClockOutcome, CreateFaultOutcome, CreateWebhookOutcome, NewWebhook, Store,
    testing::Faults,
};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use crate::{
    deliveries::fake_receiver::{keyring, webhook_context},
    harness::{TestAccount, TestClock, TestResponse, TestService, setup::Counting},
};

pub(crate) const TOKEN: &str = "token-of-the-emulator";
pub(crate) const NORMAL: &str = "token-of-a-normal-account";
pub(crate) const PHONE: &str = "15550783881";
pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// How many requests an endpoint gets per second.
const PER_SECOND: u32 = 50;

pub(crate) struct Emulator {
    pub(crate) account: AccountId,
    pub(crate) normal: AccountId,
    /// The faults of the store, not those of the account.
    pub(crate) store_faults: Arc<Faults>,
    pub(crate) receiver: Arc<Receiver>,
    inner: TestService,
}

impl Deref for Emulator {
    type Target = TestService;

    fn deref(&self) -> &TestService {
        &self.inner
    }
}

impl Emulator {
    pub(crate) async fn start() -> Self {
        Self::begin(false, PER_SECOND).await
    }

    pub(crate) async fn start_faithful() -> Self {
        Self::begin(true, PER_SECOND).await
    }

    /// Starts with another value of the setting `webhooks_per_second`.
    pub(crate) async fn start_paced(per_second: u32) -> Self {
        Self::begin(false, per_second).await
    }

    async fn begin(faithful: bool, per_second: u32) -> Self {
        let receiver = Arc::new(Receiver::default());
        let webhooks = WebhookContext { per_second, ..webhooks(&receiver) };
        let clock = TestClock::starting_at("2026-11-15T12:00:00Z".parse().unwrap());
        let store_faults = Arc::new(Faults::default());
        let faults = Arc::clone(&store_faults);
        let service = TestService::builder()
            .clock(clock)
            .webhooks(webhooks)
            .store(|store| -> Arc<Store> { Arc::new(store.with_faults(faults)) })
            .start();
        let emulator = TestAccount {
            emulator: Some(EmulatorKind { faithful }),
            phones: &[PHONE],
            key: TOKEN,
            token: TOKEN,
            ..TestAccount::emulator("emulator")
        };
        let account = service.account(emulator).await;
        let (key, token) = (NORMAL, NORMAL);
        let normal =
            TestAccount { rulebook: &WHATSAPP, key, token, ..TestAccount::named("normal") };
        let normal = service.account(normal).await;
        Self { account, normal, store_faults, receiver, inner: service }
    }

    /// Another process on the same store, which sends to the same receiver.
    pub(crate) fn other_process(&self) -> App {
        self.inner.other_process(webhooks(&self.receiver))
    }

    /// Registers the callback of the app: an endpoint in Meta's format.
    pub(crate) async fn register(&self) -> WebhookId {
        self.register_for(self.account).await
    }

    pub(crate) async fn register_for(&self, account: AccountId) -> WebhookId {
        let secret = Secret::from_app_secret(SECRET).unwrap();
        let new = NewWebhook {
            account,
            url: "https://shop.example/meta".to_owned(),
            events: Vec::new(),
            format: Format::Whatsapp,
            subscribed: true,
            from_start: false,
            secret: keyring().encrypt(account.get(), &secret, [4; 24]),
            by: Author::operator(self.clock.now()),
        };
        match self.store.create_webhook(new).await.unwrap() {
            CreateWebhookOutcome::Created(webhook) => webhook.id,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: &Value) -> TestResponse {
        self.call_with(method, path, body, None).await
    }

    /// Sends a request with a fault in its header.
    pub(crate) async fn call_with(
        &self,
        method: Method,
        path: &str,
        body: &Value,
        fault: Option<&str>,
    ) -> TestResponse {
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(header::AUTHORIZATION, format!("Bearer {TOKEN}"));
        if let Some(fault) = fault {
            request = request.header("Galley-Fault", fault);
        }
        self.inner.send(request.body(body).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.call(Method::GET, path, &Value::Null).await
    }

    /// The path of the account's list.
    pub(crate) fn templates(&self) -> String {
        format!("/v23.0/{}/message_templates", self.account)
    }

    pub(crate) async fn create(&self, document: &Value) -> TestResponse {
        self.call(Method::POST, &self.templates(), document).await
    }

    /// Creates a template with one parameter and returns its id.
    pub(crate) async fn create_named(&self, name: &str) -> String {
        let created = self.create(&order(name)).await.expect_success();
        created["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn try_send(&self, message: &Value) -> TestResponse {
        self.call(Method::POST, &format!("/v23.0/{PHONE}/messages"), message).await
    }

    /// Sends a message of a template with one parameter to a number, and returns its id.
    pub(crate) async fn send_to(&self, name: &str, to: &str) -> String {
        let mut message = message(name, &["Ada"]);
        message["to"] = json!(to);
        let sent = self.try_send(&message).await.expect_success();
        sent["messages"][0]["id"].as_str().unwrap().to_owned()
    }

    /// Moves the clock of the account forward and applies what is due.
    pub(crate) async fn advance(&self, duration: &str) {
        let seconds = duration.strip_suffix('s').unwrap().parse().unwrap();
        let change = ClockChange::Advance(SignedDuration::from_secs(seconds));
        let now = self.clock.now();
        let changed = self.store.change_clock(self.account, change, now).await.unwrap();
        assert!(matches!(changed, ChangeClockOutcome::Changed(_)), "{changed:?}");
        while self.store.apply_due_steps(self.account, now).await.unwrap().has_more {}
    }

    /// Stops the service and returns its access log.
    pub(crate) fn into_log(self) -> String {
        self.inner.into_log()
    }

    pub(crate) async fn add_fault(&self, fault: &Value) {
        let text = fault.to_string();
        let fault = Fault::read(&Document::parse(text.as_bytes()).unwrap()).unwrap();
        let created = self.store.create_fault(self.account, fault, self.clock.now()).await.unwrap();
        assert!(matches!(created, CreateFaultOutcome::Created(_)), "{created:?}");
    }
}

/// A webhook context whose requests the receiver gets.
fn webhooks(receiver: &Arc<Receiver>) -> WebhookContext {
    let context = webhook_context(Arc::<Receiver>::clone(receiver));
    WebhookContext { random: Arc::new(Counting::default()), ..context }
}

/// A template with one parameter.
pub(crate) fn order(name: &str) -> Value {
    json!({
        "name": name, "language": "en_US", "category": "UTILITY",
        "components": [{
            "type": "BODY", "text": "Hi {{1}}, your order is on its way to you.",
            "example": {"body_text": [["Ada"]]},
        }],
    })
}

/// A message of such a template.
pub(crate) fn message(name: &str, values: &[&str]) -> Value {
    let parameters: Vec<Value> =
        values.iter().map(|value| json!({"type": "text", "text": value})).collect();
    json!({
        "messaging_product": "whatsapp", "to": "+1 555 000 1111", "type": "template",
        "template": {
            "name": name, "language": {"code": "en_US"},
            "components": [{"type": "body", "parameters": parameters}],
        },
    })
}

/// Records webhooks. It accepts all of them, unless a test wants another response.
#[derive(Default)]
pub(crate) struct Receiver {
    requests: Mutex<Vec<PostRequest>>,
    responses: Mutex<VecDeque<u16>>,
    arrivals: Mutex<Option<mpsc::UnboundedSender<Value>>>,
    /// How many further requests get a response, if that is limited.
    limit: Mutex<Option<Arc<Semaphore>>>,
    /// What happens when a request arrives.
    on_arrival: Mutex<Option<Box<dyn Fn() + Send>>>,
}

impl Receiver {
    /// The next responses; afterwards 200 again.
    pub(crate) fn respond(&self, statuses: &[u16]) {
        self.responses.lock().unwrap().extend(statuses);
    }

    /// Responds only to so many further requests; the others wait.
    pub(crate) fn respond_only(&self, requests: usize) {
        *self.limit.lock().unwrap() = Some(Arc::new(Semaphore::new(requests)));
    }

    /// Responds to the requests that wait, and to all others.
    pub(crate) fn unblock(&self) {
        if let Some(limit) = self.limit.lock().unwrap().take() {
            limit.add_permits(Semaphore::MAX_PERMITS);
        }
    }

    /// Lets something happen whenever a request arrives.
    pub(crate) fn on_arrival(&self, action: impl Fn() + Send + 'static) {
        *self.on_arrival.lock().unwrap() = Some(Box::new(action));
    }

    /// The requests since the last call.
    pub(crate) fn take(&self) -> Vec<PostRequest> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// The bodies of requests that arrive from now on.
    pub(crate) fn arrivals(&self) -> mpsc::UnboundedReceiver<Value> {
        let (sender, arrivals) = mpsc::unbounded_channel();
        *self.arrivals.lock().unwrap() = Some(sender);
        arrivals
    }
}

#[async_trait]
impl WebhookClient for Receiver {
    async fn post(&self, request: PostRequest) -> PostReport {
        let status = self.responses.lock().unwrap().pop_front().unwrap_or(200);
        if let Some(sender) = &*self.arrivals.lock().unwrap() {
            let _ = sender.send(serde_json::from_slice(&request.body).unwrap());
        }
        self.requests.lock().unwrap().push(request);
        if let Some(action) = &*self.on_arrival.lock().unwrap() {
            action();
        }
        let limit = self.limit.lock().unwrap().clone();
        if let Some(limit) = limit {
            limit.acquire().await.unwrap().forget();
        }
        // Other tasks go on while the receiver responds.
        tokio::task::yield_now().await;
        PostOutcome::Responded { status, retry_after: None }.into()
    }

    async fn get(&self, target: ResolvedTarget) -> Result<ResponseStart, Failure> {
        // Every verification succeeds.
        let challenge = target.url.query_pairs().find(|(name, _)| name == "hub.challenge");
        let body = challenge.map(|(_, value)| value.into_owned().into_bytes()).unwrap_or_default();
        Ok(ResponseStart { status: 200, body })
    }
}
