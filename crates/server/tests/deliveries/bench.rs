//! A service with one account and an endpoint that answers as the test likes.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use galley_domain::{
    document::Document,
    id::{AccountId, TemplateId, WebhookId},
    rulebook::{Rulebook, V1},
    template::{Review, Template, lifecycle::Trigger},
    webhook::{Format, delivery::Schedule},
};
use galley_server::workers::{Step, deliver_one};
use galley_server::{
    AccessLog, App, Clock, Limits,
    delivery::{
        Admitted, Failure, FailureKind, Guard, Keyring, Outcome, Outgoing, Page, Post, Random,
        Resolve, Rules, Secret, Setup, Signed, verify,
    },
};
use galley_store::{
    Actor, ChangeOutcome, CreateAccountOutcome, CreateOutcome, CreateWebhookOutcome, NewAccount,
    NewTemplate, NewWebhook, SqliteStore, Store, TemplateChange, Webhook, sqlite::SqliteOptions,
};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

pub(crate) struct Bench {
    pub(crate) app: App,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) account: AccountId,
    pub(crate) webhook: WebhookId,
    pub(crate) secret: Secret,
    pub(crate) receiver: Arc<Receiver>,
    clock: Arc<Stopped>,
    _dir: tempfile::TempDir,
}

impl Bench {
    pub(crate) async fn start() -> Self {
        let receiver = Arc::<Receiver>::default();
        let outgoing: Arc<dyn Outgoing> = Arc::<Receiver>::clone(&receiver);
        let secret = Secret::generate(|bytes| bytes.fill(7));
        let url = "https://shop.example/hooks";
        Self { receiver, ..Self::begin(&V1, outgoing, Format::Galley, url, secret).await }
    }

    /// One account with that rulebook and one endpoint, which gets what that sends.
    pub(crate) async fn begin(
        rulebook: &Rulebook,
        outgoing: Arc<dyn Outgoing>,
        format: Format,
        url: &str,
        secret: Secret,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        let store: Arc<dyn Store> =
            Arc::new(SqliteStore::open(&path, &SqliteOptions::default()).unwrap());
        let clock = Arc::<Stopped>::default();
        let handed: Arc<dyn Clock> = Arc::<Stopped>::clone(&clock);
        let (limits, access) = (Limits::default(), AccessLog::off());
        let app = App::new(
            Arc::clone(&store),
            handed,
            limits,
            access,
            setup(outgoing),
            "test".to_owned(),
            "https://galley.test",
        );
        let account = NewAccount {
            name: "shop".to_owned(),
            rulebook: rulebook.name,
            review: Review::Auto,
            phones: Vec::new(),
            credentials: Vec::new(),
            only_as_first: false,
            at: clock.now(),
        };
        let CreateAccountOutcome::Created(account, _) =
            store.create_account(account).await.unwrap()
        else {
            panic!("the store is new")
        };
        let new = NewWebhook {
            account,
            url: url.to_owned(),
            events: Vec::new(),
            format,
            subscribed: false,
            secret: keyring().seal(account.get(), &secret, [3; 24]),
            at: clock.now(),
        };
        let webhook = match store.create_webhook(new).await.unwrap() {
            CreateWebhookOutcome::Created(webhook) => webhook.id,
            other => panic!("{other:?}"),
        };
        let receiver = Arc::default();
        Self { app, store, account, webhook, secret, receiver, clock, _dir: dir }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn pass(&self, time: Duration) {
        *self.clock.0.lock().unwrap() += SignedDuration::try_from(time).unwrap();
    }

    /// Moves the clock to a later moment.
    pub(crate) fn wait_until(&self, moment: Timestamp) {
        *self.clock.0.lock().unwrap() = moment;
    }

    pub(crate) async fn step(&self) -> Step {
        deliver_one(&self.app, self.webhook).await.unwrap()
    }

    /// Steps until there is nothing to do; answers what came of the steps.
    pub(crate) async fn settle(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        loop {
            match self.step().await {
                Step::Idle(_) => return steps,
                step => steps.push(step),
            }
        }
    }

    /// Makes a template; answers its id.
    pub(crate) async fn create(&self, name: &str) -> TemplateId {
        let document = format!(
            r#"{{"name":"{name}","language":"en_US","category":"UTILITY","allow_category_change":true,
            "components":[{{"type":"BODY","text":"Hello"}}]}}"#
        );
        let template = Template::read(&Document::parse(document.as_bytes()).unwrap(), &V1).unwrap();
        let new = NewTemplate {
            account: self.account,
            phone: None,
            claim: (V1.claim)(self.account, name, "en_US"),
            family: None,
            template,
            review: Review::Auto,
            actor: Actor::Operator,
            idempotency: None,
            at: self.now(),
        };
        match self.store.create_template(new).await.unwrap() {
            CreateOutcome::Created(receipt) => receipt.id,
            other => panic!("{other:?}"),
        }
    }

    /// A change of a template, now.
    pub(crate) fn change(&self, id: TemplateId, review: Review) -> TemplateChange {
        TemplateChange {
            account: self.account,
            id,
            expected: None,
            review,
            actor: Actor::Operator,
            at: self.now(),
        }
    }

    /// Pauses a template, or lets it go on.
    pub(crate) async fn decide(&self, id: TemplateId, trigger: Trigger) {
        let change = self.change(id, Review::Auto);
        let changed = self.store.review_template(change, trigger, None).await.unwrap();
        assert!(matches!(changed, ChangeOutcome::Done(_)), "{changed:?}");
    }

    pub(crate) async fn endpoint(&self) -> Webhook {
        self.store.webhook(self.account, self.webhook).await.unwrap().unwrap()
    }

    /// The numbers of the events that were sent, in their order.
    pub(crate) fn sent(&self) -> Vec<u64> {
        let posts = self.receiver.posts.lock().unwrap();
        posts.iter().map(|post| body(post)["seq"].as_u64().unwrap()).collect()
    }
}

pub(crate) fn keyring() -> Keyring {
    Keyring::new(Some("a key that seals secrets")).unwrap()
}

/// What endpoints need when no name is looked up.
pub(crate) fn setup(outgoing: Arc<dyn Outgoing>) -> Setup {
    Setup {
        guard: nearby(),
        keyring: keyring(),
        random: Arc::new(Middle),
        outgoing,
        schedule: Schedule::default(),
        per_second: 50,
        timeout: Duration::from_secs(15),
        deliver: true,
    }
}

/// The guard of an operator with receivers nearby.
pub(crate) fn nearby() -> Guard {
    Guard::new(Rules { allow_private: true }, Arc::new(Nowhere))
}

pub(crate) fn body(post: &Post) -> serde_json::Value {
    serde_json::from_slice(&post.body).unwrap()
}

fn header<'p>(post: &'p Post, name: &str) -> &'p str {
    let header = post.headers.iter().find(|(header, _)| header.as_str() == name);
    header.unwrap_or_else(|| panic!("there is no {name}")).1.to_str().unwrap()
}

/// Whether the post is signed with the secret.
pub(crate) fn is_signed(post: &Post, secret: &Secret, now: Timestamp) -> bool {
    let signed = Signed {
        id: header(post, "webhook-id"),
        timestamp: header(post, "webhook-timestamp"),
        signature: header(post, "webhook-signature"),
    };
    verify(secret, signed, &post.body, now).is_ok()
}

/// Takes every post; answers as it was told, and 200 when it was told nothing.
#[derive(Default)]
pub(crate) struct Receiver {
    pub(crate) posts: Mutex<Vec<Post>>,
    answers: Mutex<VecDeque<Outcome>>,
    /// What it answers to everything, whatever else it was told.
    always: Mutex<Option<u16>>,
    /// The event that it never answers to.
    hangs_on: Mutex<Option<u64>>,
    /// Who wants to know which events come in.
    watcher: Mutex<Option<mpsc::UnboundedSender<u64>>>,
}

impl Receiver {
    pub(crate) fn answer(&self, outcome: Outcome) {
        self.answers.lock().unwrap().push_back(outcome);
    }

    pub(crate) fn always(&self, status: Option<u16>) {
        *self.always.lock().unwrap() = status;
    }

    pub(crate) fn hang_on(&self, seq: u64) {
        *self.hangs_on.lock().unwrap() = Some(seq);
    }

    /// The numbers of the events that come in from now on.
    pub(crate) fn watch(&self) -> mpsc::UnboundedReceiver<u64> {
        let (watcher, arrivals) = mpsc::unbounded_channel();
        *self.watcher.lock().unwrap() = Some(watcher);
        arrivals
    }

    pub(crate) fn last(&self) -> Post {
        self.posts.lock().unwrap().last().unwrap().clone()
    }
}

pub(crate) fn status(status: u16) -> Outcome {
    Outcome::Answered { status, retry_after: None }
}

pub(crate) fn silence() -> Outcome {
    Outcome::Failed(Failure { kind: FailureKind::Timeout, detail: "Nothing came.".to_owned() })
}

#[async_trait]
impl Outgoing for Receiver {
    async fn post(&self, post: Post) -> Outcome {
        let seq = body(&post)["seq"].as_u64().unwrap();
        self.posts.lock().unwrap().push(post);
        if let Some(watcher) = &*self.watcher.lock().unwrap() {
            let _ = watcher.send(seq);
        }
        let hangs = *self.hangs_on.lock().unwrap() == Some(seq);
        if hangs {
            std::future::pending::<()>().await;
        }
        let told = self.answers.lock().unwrap().pop_front();
        let always = self.always.lock().unwrap().map(status);
        always.or(told).unwrap_or(status(200))
    }

    async fn get(&self, address: Admitted) -> Result<Page, Failure> {
        panic!("{address:?} was asked")
    }
}

/// A clock that stands still until the test moves it.
struct Stopped(Mutex<Timestamp>);

impl Default for Stopped {
    fn default() -> Self {
        Self(Mutex::new("2026-11-15T12:00:00Z".parse().unwrap()))
    }
}

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// No chance at all: delays are neither shorter nor longer than the schedule says, or nearly.
struct Middle;

impl Random for Middle {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(128);
    }
}

/// Nothing is looked up in these tests.
struct Nowhere;

#[async_trait]
impl Resolve for Nowhere {
    async fn resolve(&self, _: &str, _: u16) -> std::io::Result<Vec<std::net::SocketAddr>> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}
