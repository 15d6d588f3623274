//! Helpers that create stores, accounts and templates for the cases.

#[cfg(feature = "postgres-suite")]
use std::time::Duration;
use std::{ops::Range, sync::Arc};

use galley_domain::{
    document::Document,
    id::{AccountId, TemplateId},
    rulebook::{Category, V1},
    template::{Review, Status, Template},
};
#[cfg(feature = "postgres-suite")]
use galley_store::postgres::{PostgresOptions, PostgresStore};
use galley_store::{
    Actor, Author, ChangeOutcome, CreateAccountOutcome, CreateOutcome, CreatedTemplate,
    CredentialId, CredentialKind, Event, EventSubject, Feed, Idempotency, Initiator, NewAccount,
    NewCredential, NewTemplate, SqliteStore, Store, StoredTemplate, TemplateChange,
    TranslationGroup, sqlite::SqliteOptions,
};
use jiff::Timestamp;

/// A store that concurrent tasks can share.
pub(crate) type Shared = Arc<Store>;

/// A store in a new file. Only PostgreSQL waits.
pub(crate) fn fresh_sqlite() -> impl Future<Output = (Shared, tempfile::TempDir)> {
    std::future::ready(new_sqlite())
}

pub(crate) fn new_sqlite() -> (Shared, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let store =
        SqliteStore::open(&dir.path().join("galley.db"), &SqliteOptions::default()).unwrap();
    (Arc::new(store.into()), dir)
}

/// A store in a new database. The test server is temporary, so nothing deletes the database.
#[cfg(feature = "postgres-suite")]
pub(crate) async fn fresh_postgres() -> (Shared, ()) {
    static MIGRATED: tokio::sync::OnceCell<String> = tokio::sync::OnceCell::const_new();
    let migrated = MIGRATED.get_or_init(migrated_database).await;
    // The cases are not about time: on a busy machine, connections take long to open.
    let address = format!("{}&connect_timeout=5", new_database(migrated).await);
    let acquire_timeout = Duration::from_secs(30);
    let options = PostgresOptions { acquire_timeout, ..PostgresOptions::default() };
    (open_with(&address, &options).await, ())
}

/// Creates an empty database and returns its address.
#[cfg(feature = "postgres-suite")]
pub(crate) async fn fresh_database() -> String {
    new_database("template1").await
}

/// Creates a database with the schema; returns its name.
#[cfg(feature = "postgres-suite")]
async fn migrated_database() -> String {
    let address = fresh_database().await;
    drop(open_postgres(&address).await);
    let name = super::one_database::database_name(&address).to_owned();
    // A database with connections cannot be copied.
    let close = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = $1";
    client(&server()).await.execute(close, &[&name]).await.unwrap();
    name
}

/// Copies a database and returns the address of the copy.
#[cfg(feature = "postgres-suite")]
async fn new_database(template: &str) -> String {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("galley_{}_{count}", std::process::id());
    let create = format!("CREATE DATABASE {name} TEMPLATE {template}");
    client(&server()).await.batch_execute(&create).await.unwrap();
    let server = server();
    let (before, after) = server.rsplit_once("/postgres").unwrap();
    format!("{before}/{name}{after}")
}

#[cfg(feature = "postgres-suite")]
fn server() -> String {
    #[expect(clippy::disallowed_methods, reason = "the environment names the test server")]
    std::env::var("GALLEY_TEST_POSTGRES")
        .expect("GALLEY_TEST_POSTGRES is the address of a test server")
}

/// Opens a store in an existing database.
#[cfg(feature = "postgres-suite")]
pub(crate) async fn open_postgres(address: &str) -> Shared {
    // More than any case has concurrent tasks, so that no task fails for lack of a connection.
    open_postgres_with(address, 30).await
}

/// Opens a store with a given pool size.
#[cfg(feature = "postgres-suite")]
pub(crate) async fn open_postgres_with(address: &str, connections: usize) -> Shared {
    let options = PostgresOptions { connections, ..PostgresOptions::default() };
    open_with(address, &options).await
}

#[cfg(feature = "postgres-suite")]
async fn open_with(address: &str, options: &PostgresOptions) -> Shared {
    Arc::new(PostgresStore::open(&address.parse().unwrap(), options).await.unwrap().into())
}

/// A direct connection to a database.
#[cfg(feature = "postgres-suite")]
pub(crate) async fn client(address: &str) -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(address, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The actor of all changes in the cases.
pub(crate) const ACTOR: Actor = Actor::Token(CredentialId(7));

/// A fixed time in 2026, plus this many milliseconds.
pub(crate) fn noon(plus: i64) -> Timestamp {
    Timestamp::from_millisecond(1_790_000_000_000 + plus).unwrap()
}

/// A lease between two such times.
pub(crate) fn times(at: i64, until: i64) -> Range<Timestamp> {
    noon(at)..noon(until)
}

pub(crate) fn template(name: &str) -> Template {
    let document = format!(
        r#"{{"name":"{name}","language":"en_US","category":"UTILITY","allow_category_change":true,
        "components":[{{"type":"BODY","text":"Grüße {{{{1}}}}\n\u2028 \ud83d\ude00","example":{{"body_text":[["Ada"]]}}}}]}}"#
    );
    Template::read(&Document::parse(document.as_bytes()).unwrap(), &V1).unwrap()
}

pub(crate) fn new(account: AccountId, name: &str) -> NewTemplate {
    let template = template(name);
    NewTemplate {
        account,
        phone: Some("15550001111".to_owned()),
        unique_key: (V1.unique_key)(account, name, template.language()),
        translation_group: None,
        template,
        review: Review::Auto,
        actor: ACTOR,
        trace: None,
        idempotency: None,
        at: noon(0),
    }
}

pub(crate) fn with_key(account: AccountId, name: &str, key: u8, payload: u8) -> NewTemplate {
    let idempotency = Some(Idempotency { key: [key; 16], payload: [payload; 8] });
    NewTemplate { idempotency, ..new(account, name) }
}

pub(crate) fn new_account(name: &str) -> NewAccount {
    NewAccount {
        id: None,
        name: name.to_owned(),
        rulebook: "v1",
        review: Review::Auto,
        emulator: None,
        limits: None,
        phones: Vec::new(),
        credentials: Vec::new(),
        only_if_first: false,
        by: Author::operator(noon(0)),
    }
}

pub(crate) async fn account(store: &Shared, name: &str) -> AccountId {
    match store.create_account(new_account(name)).await.unwrap() {
        CreateAccountOutcome::Created(id, _) => id,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn secret(kind: CredentialKind, secret: &str) -> NewCredential {
    NewCredential::unrestricted(kind, secret)
}

/// Creates the templates concurrently, each in its own task.
pub(crate) async fn create_concurrently(
    store: &Shared,
    templates: Vec<NewTemplate>,
) -> Vec<CreateOutcome> {
    let start = |new: NewTemplate| {
        let store = Arc::clone(store);
        tokio::spawn(async move { store.create_template(new).await.unwrap() })
    };
    let tasks: Vec<_> = templates.into_iter().map(start).collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

pub(crate) fn created(outcome: CreateOutcome) -> CreatedTemplate {
    match outcome {
        CreateOutcome::Created(created) => created,
        other => panic!("{other:?}"),
    }
}

/// Creates a template and returns its id.
pub(crate) async fn create(store: &Shared, new: NewTemplate) -> TemplateId {
    created(store.create_template(new).await.unwrap()).id
}

/// A change under manual review, one second after `noon(0)`.
pub(crate) fn change(account: AccountId, id: TemplateId) -> TemplateChange {
    TemplateChange {
        account,
        id,
        expected: None,
        version: None,
        review: Review::Manual,
        actor: ACTOR,
        trace: None,
        at: noon(1_000),
    }
}

pub(crate) fn initiator(account: AccountId, review: Review, at: Timestamp) -> Initiator {
    Initiator { account, review, actor: ACTOR, trace: None, at }
}

pub(crate) fn done(outcome: ChangeOutcome) -> StoredTemplate {
    match outcome {
        ChangeOutcome::Done(template) => *template,
        other => panic!("{other:?}"),
    }
}

/// The account's events after `after`; none of them has expired.
pub(crate) async fn events(
    store: &Shared,
    account: AccountId,
    after: u64,
    limit: usize,
) -> Vec<Event> {
    match store.events(account, Some(after), limit).await.unwrap() {
        Feed::Events(events) => events,
        other => panic!("{other:?}"),
    }
}

/// The version, name and status of the template that an event is about.
pub(crate) fn template_subject(event: &Event) -> (u64, &str, Status) {
    match &event.subject {
        EventSubject::Template { version, name, status, .. } => (*version, name, *status),
        EventSubject::Webhook { .. } | EventSubject::Upstream { .. } => panic!("{event:?}"),
    }
}

/// One language of a name, in a translation group.
pub(crate) fn translation(
    account: AccountId,
    name: &str,
    language: &str,
    category: Category,
) -> NewTemplate {
    let category = category.as_str();
    let document = format!(
        r#"{{"name":"{name}","language":"{language}","category":"{category}",
        "allow_category_change":true,"components":[{{"type":"BODY","text":"{name} {language}"}}]}}"#
    );
    let template = Template::read(&Document::parse(document.as_bytes()).unwrap(), &V1).unwrap();
    let unique_key = format!("{account}\0{name}\0{language}");
    NewTemplate {
        template,
        unique_key,
        translation_group: Some(TranslationGroup::of(account, name)),
        ..new(account, name)
    }
}
