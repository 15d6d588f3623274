//! An account that is connected to an emulator.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::WHATSAPP,
    upstream::RemoteId,
};
use galley_server::{
    Clock,
    delivery::Keyring,
    upstream::{Begun, Session, SyncError, UpstreamContext, UpstreamSettings, sync_connection},
};
use galley_store::{
    Author, ConnectOutcome, Event, Feed, MirroredTemplate, NewConnection, SecretHash,
    StoredTemplate, SweepReport,
};
use galley_upstream::{Request, Response, Transport, TransportError};
use jiff::SignedDuration;
use serde_json::Value;

use crate::{
    harness::{TestAccount, TestService},
    sandbox::emulator::{Emulator, TOKEN},
};

/// Changes the body of a response.
type Rewrite = Box<dyn Fn(&str, &mut Value) + Send + Sync>;

/// The provider, and what lies between it and the account.
pub(crate) struct Provider {
    emulator: Emulator,
    calls: AtomicU32,
    rewrite: Mutex<Option<Rewrite>>,
}

#[async_trait]
impl Transport for Provider {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let path = request.url.path().to_owned();
        let uri = match request.url.query() {
            Some(query) => format!("{path}?{query}"),
            None => path.clone(),
        };
        let mut call = axum::http::Request::builder().method(request.method.as_str()).uri(uri);
        for (name, value) in &request.headers {
            call = call.header(name, value.expose());
        }
        let response = self.emulator.handle(call.body(Body::from(request.body)).unwrap()).await;
        let status = response.status().as_u16();
        let text = |value: &axum::http::HeaderValue| value.to_str().unwrap().to_owned();
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), text(value))).collect();
        let body = to_bytes(response.into_body(), usize::MAX).await;
        let body = body.map_err(|error| TransportError::Unknown(error.to_string()))?;
        let body = match &*self.rewrite.lock().unwrap() {
            Some(rewrite) => {
                let mut document: Value = serde_json::from_slice(&body).unwrap();
                rewrite(&path, &mut document);
                document.to_string().into_bytes()
            }
            None => body.to_vec(),
        };
        Ok(Response { status, headers, body })
    }
}

/// An account that is connected to an account of a provider.
pub(crate) struct Connected {
    pub(crate) provider: Arc<Provider>,
    pub(crate) service: TestService,
    pub(crate) account: AccountId,
    context: UpstreamContext,
}

impl Connected {
    pub(crate) async fn start() -> Self {
        let emulator = Emulator::start_faithful().await;
        let by = Author::operator(emulator.clock.now());
        emulator.store.set_account_limits(emulator.account, None, by).await.unwrap();
        let service = TestService::builder().start();
        let account = TestAccount { rulebook: &WHATSAPP, ..TestAccount::named("shop") };
        let account = service.account(account).await;
        let keyring = Keyring::new(Some("a key that is only for tests")).unwrap();
        let new = NewConnection {
            account,
            base_url: "https://provider.test/v23.0".to_owned(),
            waba: emulator.account.to_string(),
            app_id: None,
            token: keyring.seal(account.get(), TOKEN, [1; 24]).unwrap(),
            token_expires_at: None,
            app_secret: None,
            hook_hash: SecretHash::of("hook"),
            by: Author::operator(service.clock.now()),
        };
        let outcome = service.store.connect_upstream(new).await.unwrap();
        assert_eq!(outcome, ConnectOutcome::Connected);
        let calls = AtomicU32::new(0);
        let provider = Arc::new(Provider { emulator, calls, rewrite: Mutex::default() });
        let transport = Arc::clone(&provider);
        let clock: Arc<dyn Clock> = Arc::<_>::clone(&service.clock) as _;
        let context = UpstreamContext {
            store: Arc::clone(&service.store),
            clock,
            transports: Arc::new(move |_| Arc::<Provider>::clone(&transport)),
            keyring,
            settings: UpstreamSettings { calls_per_hour: 5_000, ..UpstreamSettings::default() },
        };
        Self { provider, service, account, context }
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
        let report = session.sweep(full, false, |_| {}).await;
        session.end().await.unwrap();
        report
    }

    /// What the worker does on the connection.
    pub(crate) async fn step(&self) {
        sync_connection(&self.context, self.account).await.unwrap();
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
            let page = self.service.store.mirrored(self.account, after, 500).await.unwrap();
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

    /// The types of all events.
    pub(crate) async fn events(&self) -> Vec<&'static str> {
        match self.service.store.events(self.account, None, 10_000).await.unwrap() {
            Feed::Events(events) => events.iter().map(|it: &Event| it.kind.as_str()).collect(),
            other => panic!("{other:?}"),
        }
    }
}
