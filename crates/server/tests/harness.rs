//! One service for all tests of this crate: a real store in a temporary directory, a clock that the
//! test advances, and the real router without a socket.

mod clock;
pub(crate) mod description;
pub(crate) mod provider;
mod response;
pub(crate) mod setup;

use std::{
    future::pending,
    io::Write,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
};

use axum::{body::Body, http::Request, response::Response};
use galley_domain::{
    account::Scopes,
    emulator::EmulatorKind,
    id::AccountId,
    rulebook::{Rulebook, V1, WHATSAPP},
    template::Review,
};
use galley_server::{
    AccessLog, App, Clock, CorsOrigins, Galley, Instance, Limits, LogFormat, LogWriter,
    LoggedRequests, delivery::WebhookContext,
};
use galley_store::{
    Author, ConnectOutcome, CreateAccountOutcome, CredentialKind, NewAccount, NewConnection,
    NewCredential, SecretHash, SqliteStore, Store, sqlite::SqliteOptions,
};

use tokio::net::TcpListener;

pub(crate) use clock::TestClock;
pub(crate) use response::{TestResponse, json_of};

/// Puts a store between the service and the real store.
type WrapStore = Box<dyn FnOnce(Arc<Store>) -> Arc<Store> + Send>;

/// What a test service consists of, apart from its accounts.
pub(crate) struct ServiceBuilder {
    limits: Limits,
    clock: TestClock,
    webhooks: WebhookContext,
    public_url: &'static str,
    logged: LoggedRequests,
    emulator: bool,
    cors: CorsOrigins,
    wrap: WrapStore,
}

impl ServiceBuilder {
    pub(crate) fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    pub(crate) fn clock(self, clock: TestClock) -> Self {
        Self { clock, ..self }
    }

    pub(crate) fn webhooks(self, webhooks: WebhookContext) -> Self {
        Self { webhooks, ..self }
    }

    /// The origin of absolute URLs.
    pub(crate) fn public_url(self, public_url: &'static str) -> Self {
        Self { public_url, ..self }
    }

    /// The requests that get a line in the access log.
    pub(crate) fn logged(self, logged: LoggedRequests) -> Self {
        Self { logged, ..self }
    }

    /// Does not serve emulator accounts, which is the default of the setting.
    pub(crate) fn without_emulator(self) -> Self {
        Self { emulator: false, ..self }
    }

    /// The origins whose pages may call the service.
    pub(crate) fn cors(self, origins: &str) -> Self {
        Self { cors: origins.parse().unwrap(), ..self }
    }

    /// Puts a store between the service and the real store, for example one that fails.
    pub(crate) fn store(
        self,
        wrap: impl FnOnce(Arc<Store>) -> Arc<Store> + Send + 'static,
    ) -> Self {
        Self { wrap: Box::new(wrap), ..self }
    }

    /// Starts the service, without accounts.
    pub(crate) fn start(self) -> TestService {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("galley.db"), &SqliteOptions::default());
        let store = (self.wrap)(Arc::new(store.unwrap().into()));
        let clock = Arc::new(self.clock);
        let app_clock: Arc<dyn Clock> = Arc::<TestClock>::clone(&clock);
        let log = Log::default();
        let writer =
            LogWriter::start(LogFormat::Json, Arc::clone(&app_clock), Box::new(log.clone()));
        let app = App::new(
            Arc::clone(&store),
            app_clock,
            self.limits,
            AccessLog::new(writer.unwrap(), self.logged),
            self.webhooks,
            Instance {
                id: "test".to_owned(),
                public_url: self.public_url.to_owned(),
                emulator: self.emulator,
            },
        );
        let galley = Galley::new(app.clone()).with_cors(self.cors);
        TestService { store, clock, app, galley, log, dir }
    }
}

/// A service with its store and its clock.
pub(crate) struct TestService {
    pub(crate) store: Arc<Store>,
    pub(crate) clock: Arc<TestClock>,
    pub(crate) app: App,
    pub(crate) galley: Galley,
    log: Log,
    dir: tempfile::TempDir,
}

impl TestService {
    /// A service with default limits, a clock that stands still, and no network.
    pub(crate) fn builder() -> ServiceBuilder {
        ServiceBuilder {
            limits: Limits::default(),
            clock: TestClock::default(),
            webhooks: setup::webhooks(false),
            public_url: "https://galley.test",
            logged: LoggedRequests::Calls,
            emulator: true,
            cors: CorsOrigins::None,
            wrap: Box::new(|store| store),
        }
    }

    /// Another process that serves the same database and has the same time.
    pub(crate) fn other_process(&self, webhooks: WebhookContext) -> App {
        let path = self.dir.path().join("galley.db");
        let store = SqliteStore::open(&path, &SqliteOptions::default()).unwrap();
        let clock: Arc<dyn Clock> = Arc::<TestClock>::clone(&self.clock);
        let log = Box::new(Log::default());
        let writer = LogWriter::start(LogFormat::Json, Arc::clone(&clock), log).unwrap();
        let access = AccessLog::new(writer, LoggedRequests::Calls);
        let instance =
            Instance { id: "other".to_owned(), public_url: String::new(), emulator: true };
        App::new(Arc::new(store.into()), clock, Limits::default(), access, webhooks, instance)
    }

    /// Creates an account and returns its id.
    pub(crate) async fn account(&self, account: TestAccount<'_>) -> AccountId {
        let TestAccount { name, rulebook, review, emulator, phones, key, token, scopes } = account;
        let secrets = [(CredentialKind::Key, key), (CredentialKind::Token, token)];
        let secrets = secrets.into_iter().filter(|(_, secret)| !secret.is_empty());
        let new = NewAccount {
            id: None,
            name: name.to_owned(),
            rulebook: rulebook.name,
            review,
            emulator,
            limits: None,
            phones: phones.iter().map(|phone| (*phone).to_owned()).collect(),
            credentials: secrets
                .map(|(kind, secret)| NewCredential {
                    scopes,
                    ..NewCredential::unrestricted(kind, secret)
                })
                .collect(),
            only_if_first: false,
            by: Author::operator(self.clock.now()),
        };
        match self.store.create_account(new).await.unwrap() {
            CreateAccountOutcome::Created(id, _) => id,
            refused => panic!("{refused:?}"),
        }
    }

    /// Connects an account to a provider that does not exist.
    pub(crate) async fn connect_with_hook(
        &self,
        account: AccountId,
        hook_token: &str,
        app_secret: Option<&str>,
    ) {
        let keyring = setup::webhooks(false).keyring;
        let seal = |text: &str| keyring.seal(account.get(), text, [1; 24]).unwrap();
        let new = NewConnection {
            account,
            base_url: "https://provider.test/v23.0".to_owned(),
            waba: "102290129340398".to_owned(),
            app_id: None,
            token: seal(provider::PROVIDER_TOKEN),
            token_expires_at: None,
            app_secret: app_secret.map(seal),
            hook_hash: SecretHash::of(hook_token),
            by: Author::operator(self.clock.now()),
        };
        let outcome = self.store.connect_upstream(new).await.unwrap();
        assert_eq!(outcome, ConnectOutcome::Connected);
    }

    /// Sends a request and returns the response before its body is read.
    pub(crate) async fn handle(&self, request: Request<Body>) -> Response {
        self.galley.handle(request).await
    }

    /// Sends a request from another address.
    pub(crate) async fn send_from(&self, peer: IpAddr, request: Request<Body>) -> TestResponse {
        TestResponse::read(self.galley.handle_from(peer, request).await).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> TestResponse {
        TestResponse::read(self.handle(request).await).await
    }

    /// Serves connections on a free port, until the test ends.
    pub(crate) async fn listen(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(galley_server::serve(
            self.galley.clone(),
            listener,
            None,
            Box::pin(pending()),
        ));
        address
    }

    /// Stops the service and returns its access log, which is buffered until then.
    pub(crate) fn into_log(self) -> String {
        let Self { galley, app, log, .. } = self;
        drop((galley, app));
        let text = log.0.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }
}

/// An account of a test. An empty key or token is not created.
pub(crate) struct TestAccount<'a> {
    pub(crate) name: &'a str,
    pub(crate) rulebook: &'static Rulebook,
    pub(crate) review: Review,
    pub(crate) emulator: Option<EmulatorKind>,
    pub(crate) phones: &'a [&'a str],
    pub(crate) key: &'a str,
    pub(crate) token: &'a str,
    pub(crate) scopes: Scopes,
}

impl<'a> TestAccount<'a> {
    /// An account with the rulebook `v1`, automatic review, any phone number and no credentials.
    pub(crate) fn named(name: &'a str) -> Self {
        Self {
            name,
            rulebook: &V1,
            review: Review::Auto,
            emulator: None,
            phones: &[],
            key: "",
            token: "",
            scopes: Scopes::DEFAULT,
        }
    }

    /// An emulator account whose credentials permit everything.
    pub(crate) fn emulator(name: &'a str) -> Self {
        Self { scopes: Scopes::ALL, ..Self::named(name).into_emulator() }
    }

    /// The same account as an emulator.
    pub(crate) fn into_emulator(self) -> Self {
        let emulator = Some(EmulatorKind { faithful: false });
        Self { rulebook: &WHATSAPP, review: Review::Scripted, emulator, ..self }
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
