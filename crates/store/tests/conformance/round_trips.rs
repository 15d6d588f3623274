//! Counts the round trips that a call of the PostgreSQL store takes, in a proxy on the wire.
//!
//! A test that counts has one thread: all statements of a pipeline are queued before the driver
//! writes them, and reach the proxy together.

mod changes;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use galley_domain::{
    emulator::faults::Call,
    id::{AccountId, WebhookId},
    rulebook::Category,
    template::{Review, edit::Edit},
    upstream::{CallDone, RemoteStatus, observation::Created},
    webhook::{
        Format,
        delivery::{DeliveryOutcome, RetryDecision},
    },
};
use galley_store::{
    AddPhoneOutcome, Attempt, Author, CredentialKind, DeleteAccountOutcome, DeliveryLease,
    DueDelivery, NewAccount, NewSession, NewWebhook, RecordAttemptOutcome, SecretHash, StatusLease,
    StoreError, TemplateChange, UPLOAD_CHUNK_BYTES, UpstreamAction, UpstreamActionOutcome,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{
    credentials::issued,
    emulator::{HOUR, MINUTE, advance, emulator, fault, message, scripted, scripted_change},
    emulator_scripts::apply,
    fixture::{
        Shared, account, change, client, create, done, fresh_database, new, new_account, noon,
        open_postgres, secret, times, translation,
    },
    lists::{all, names, search, update_index},
    sessions::token,
    uploads::{append, begin, png, upload},
    upstream::{connected, done as fenced, last_page, remote},
    webhooks::{endpoint, register},
};

/// A TCP proxy that counts round trips: how often the client sends after the server responded.
struct CountingProxy {
    address: String,
    counter: Arc<Counter>,
}

#[derive(Default)]
struct Counter {
    round_trips: AtomicUsize,
    is_waiting: AtomicBool,
}

impl CountingProxy {
    async fn start(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (_, rest) = address.split_once('@').unwrap();
        let server = rest.split('/').next().unwrap().to_owned();
        let proxy = listener.local_addr().unwrap().to_string();
        let address = address.replacen(&server, &proxy, 1);
        let counter = Arc::new(Counter::default());
        let shared = Arc::clone(&counter);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                server.set_nodelay(true).unwrap();
                client.set_nodelay(true).unwrap();
                tokio::spawn(forward(client, server, Arc::clone(&shared)));
            }
        });
        Self { address, counter }
    }

    /// The round trips since the last call.
    fn take(&self) -> usize {
        self.counter.round_trips.swap(0, Ordering::Relaxed)
    }
}

async fn forward(client: TcpStream, server: TcpStream, counter: Arc<Counter>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let requests = async {
        let mut buffer = vec![0; 1 << 20];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            if !counter.is_waiting.swap(true, Ordering::Relaxed) {
                counter.round_trips.fetch_add(1, Ordering::Relaxed);
            }
            to_server.write_all(&buffer[..count]).await.unwrap();
        }
    };
    let responses = async {
        let mut buffer = vec![0; 1 << 20];
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            counter.is_waiting.store(false, Ordering::Relaxed);
            if to_client.write_all(&buffer[..count]).await.is_err() {
                break;
            }
        }
    };
    tokio::join!(requests, responses);
}

/// A store behind the proxy, with one account.
async fn counted_store() -> (Shared, CountingProxy, AccountId) {
    let proxy = CountingProxy::start(&fresh_database().await).await;
    let store = open_postgres(&proxy.address).await;
    let account = account(&store, "a").await;
    (store, proxy, account)
}

async fn lease(store: &Shared, id: WebhookId) -> Option<DueDelivery> {
    match store.lease_delivery(id, noon(5_000)..noon(9_000)).await.unwrap() {
        DeliveryLease::Due(due) => Some(*due),
        DeliveryLease::NothingDue(_) => None,
    }
}

fn attempt(due: &DueDelivery, outcome: DeliveryOutcome, decision: RetryDecision) -> Attempt {
    Attempt {
        webhook: due.webhook.id,
        seq: due.event.seq,
        lease_until: due.lease_until,
        url: due.webhook.url.clone(),
        at: noon(5_000),
        outcome,
        response_status: None,
        failure: None,
        decision,
    }
}

async fn record(
    store: &Shared,
    due: &DueDelivery,
    outcome: DeliveryOutcome,
    decision: RetryDecision,
) -> RecordAttemptOutcome {
    store.record_attempt(attempt(due, outcome, decision)).await.unwrap()
}

async fn deliver(store: &Shared, due: &DueDelivery) {
    let outcome = record(store, due, DeliveryOutcome::Accepted, RetryDecision::Delivered).await;
    assert_eq!(outcome, RecordAttemptOutcome::Recorded);
}

/// Prepares the statements on the connection that all later calls use.
async fn warm_up(store: &Shared, account: AccountId, format: Format) -> WebhookId {
    let new_endpoint = NewWebhook { format, ..endpoint(account) };
    let webhook = register(store, new_endpoint).await.id;
    for index in 0..2 {
        let id = create(store, new(account, &format!("t{index}_{webhook}"))).await;
        done(store.edit_template(change(account, id), Edit::Restore(1)).await.unwrap());
    }
    while let Some(due) = lease(store, webhook).await {
        deliver(store, &due).await;
    }
    webhook
}

#[tokio::test]
async fn leasing_and_recording_a_delivery_take_few_round_trips() {
    let (store, proxy, account) = counted_store().await;
    let webhook = warm_up(&store, account, Format::Galley).await;
    for name in ["one", "two"] {
        create(&store, new(account, name)).await;
    }
    proxy.take();
    let first = lease(&store, webhook).await.unwrap();
    let new_events = proxy.take();
    let second = lease(&store, webhook).await.unwrap();
    let due = proxy.take();
    assert_eq!(lease(&store, webhook).await, None);
    let nothing_due = proxy.take();
    deliver(&store, &first).await;
    let delivered = proxy.take();
    let again = RetryDecision::RetryAfter(Duration::from_secs(5));
    record(&store, &second, DeliveryOutcome::NoResponse, again).await;
    let failed = proxy.take();
    let counts = [new_events, due, nothing_due, delivered, failed];
    // The first failure prepares the statement that counts it.
    assert_eq!(counts, [3, 2, 3, 2, 3]);
}

#[tokio::test]
async fn leasing_an_edit_with_its_version_takes_few_round_trips() {
    let (store, proxy, account) = counted_store().await;
    let webhook = warm_up(&store, account, Format::Whatsapp).await;
    let [one, two] =
        [create(&store, new(account, "one")).await, create(&store, new(account, "two")).await];
    while let Some(due) = lease(&store, webhook).await {
        deliver(&store, &due).await;
    }
    for id in [one, two] {
        done(store.edit_template(change(account, id), Edit::Restore(1)).await.unwrap());
    }
    proxy.take();
    assert!(lease(&store, webhook).await.unwrap().version.is_some());
    let new_events = proxy.take();
    assert!(lease(&store, webhook).await.unwrap().version.is_some());
    let due = proxy.take();
    assert_eq!([new_events, due], [3, 3]);
}

#[tokio::test]
async fn recording_an_attempt_that_disables_the_endpoint_takes_few_round_trips() {
    let (store, proxy, account) = counted_store().await;
    let mut counts = Vec::new();
    // The first endpoint prepares the statements.
    for _ in 0..2 {
        let webhook = warm_up(&store, account, Format::Galley).await;
        create(&store, new(account, &format!("for_{webhook}"))).await;
        let due = lease(&store, webhook).await.unwrap();
        proxy.take();
        let outcome = record(&store, &due, DeliveryOutcome::Gone, RetryDecision::Failed).await;
        counts.push(proxy.take());
        assert!(matches!(outcome, RecordAttemptOutcome::Disabled(_)));
    }
    assert_eq!(counts[1], 3, "{counts:?}");
}

#[tokio::test]
async fn work_with_a_provider_and_a_session_take_few_round_trips() {
    let (store, proxy, account) = counted_store().await;
    let mut counts = Vec::new();
    // The first pass prepares the statements.
    for name in ["one", "two"] {
        let (fence, owner) = (connected(&store, name).await, token(&store, account, name).await);
        let id = create(&store, new(fence.account, name)).await;
        let change = TemplateChange { review: Review::Provider, ..change(fence.account, id) };
        counts.clear();
        proxy.take();
        let queued = store.act_upstream(change, UpstreamAction::Submit).await.unwrap();
        counts.push(("submit", proxy.take()));
        let UpstreamActionOutcome::Queued(queued) = queued else { panic!("{queued:?}") };
        fenced(store.begin_operation(fence, queued.id, noon(2)).await.unwrap()).unwrap();
        counts.push(("begin", proxy.take()));
        let shown = remote("77", name, "PENDING", "text");
        let made = Created { id: shown.id.clone(), status: RemoteStatus::Pending, category: None };
        let outcome = Ok(CallDone::Created(made));
        fenced(store.record_call(fence, queued.id, outcome, noon(3)).await.unwrap()).unwrap();
        counts.push(("record the call", proxy.take()));
        fenced(store.begin_sweep(fence, true, noon(4)).await.unwrap());
        counts.push(("begin a sweep", proxy.take()));
        let page = last_page(&[shown], 5);
        fenced(store.record_page(fence, page, noon(5)).await.unwrap());
        counts.push(("a page", proxy.take()));
        fenced(store.finish_sweep(fence, noon(6)).await.unwrap());
        counts.push(("finish a sweep", proxy.take()));
        let hash = SecretHash::of(name);
        store.start_session(NewSession::new(hash, owner, None, noon(0))).await.unwrap();
        counts.push(("start a session", proxy.take()));
        assert!(store.end_session(hash).await.unwrap());
        counts.push(("end a session", proxy.take()));
    }
    let expected = [
        ("submit", 10),
        ("begin", 6),
        ("record the call", 9),
        ("begin a sweep", 3),
        ("a page", 7),
        ("finish a sweep", 7),
        ("start a session", 3),
        ("end a session", 3),
    ];
    assert_eq!(counts, expected);
}

#[tokio::test]
async fn uploads_and_the_clock_take_few_round_trips() {
    let (store, proxy, account) = counted_store().await;
    let mut counts = Vec::new();
    // The first passes prepare the statements, also on each of the connections that reads share.
    for (id, hour) in ["a", "b", "c", "d", "e", "f", "g", "h"].into_iter().zip(0..) {
        let file = png(2 * UPLOAD_CHUNK_BYTES);
        counts.clear();
        proxy.take();
        begin(&store, upload(account, id, file.len())).await;
        counts.push(("begin", proxy.take()));
        append(&store, account, id, 0, &file[..UPLOAD_CHUNK_BYTES]).await;
        counts.push(("append", proxy.take()));
        append(&store, account, id, UPLOAD_CHUNK_BYTES, &file[UPLOAD_CHUNK_BYTES..]).await;
        counts.push(("complete", proxy.take()));
        assert!(store.cancel_upload(account, id, noon(5)).await.unwrap());
        counts.push(("delete", proxy.take()));
        let now = noon(hour * 3_600_000);
        store.observe_clock(now).await.unwrap();
        counts.push(("a new time", proxy.take()));
        store.observe_clock(now).await.unwrap();
        counts.push(("the same time", proxy.take()));
    }
    let expected = [
        ("begin", 4),
        ("append", 4),
        ("complete", 5),
        ("delete", 4),
        ("a new time", 4),
        ("the same time", 1),
    ];
    assert_eq!(counts, expected);
}

#[tokio::test]
async fn changes_of_accounts_and_credentials_take_few_round_trips() {
    let (store, proxy, _) = counted_store().await;
    let mut counts = Vec::new();
    // The first pass prepares the statements.
    for name in ["one", "two"] {
        let by = Author::operator(noon(1));
        let account = account(&store, name).await;
        counts.clear();
        proxy.take();
        assert!(store.set_account_four_eyes(account, true, by).await.unwrap());
        counts.push(("set", proxy.take()));
        store.rename_account(account, format!("{name} new"), by).await.unwrap();
        counts.push(("rename", proxy.take()));
        assert!(store.set_account_four_eyes(account, false, by).await.unwrap());
        let phone = format!("{}", account.get());
        proxy.take();
        let claimed = store.claim_phone(account, &phone, Some(9), by).await.unwrap();
        assert_eq!(claimed, AddPhoneOutcome::Added);
        counts.push(("claim a phone number", proxy.take()));
        let boss = token(&store, account, name).await;
        counts.push(("add a credential", proxy.take()));
        let new = secret(CredentialKind::Token, &format!("{name} issued"));
        let by_boss = Author::token(boss, noon(2));
        let id = issued(store.issue_token(account, new, by_boss).await.unwrap());
        counts.push(("issue a token", proxy.take()));
        store.record_credential_use(vec![(id, noon(3)), (boss, noon(3))]).await.unwrap();
        counts.push(("record uses", proxy.take()));
        let new = secret(CredentialKind::Token, &format!("{name} rotated"));
        store.rotate_credential(id, new, noon(9), by).await.unwrap();
        counts.push(("rotate", proxy.take()));
        store.revoke_token(account, id, by).await.unwrap();
        counts.push(("revoke", proxy.take()));
        assert!(store.set_account_disabled(account, true, by).await.unwrap());
        register(&store, endpoint(account)).await;
        proxy.take();
        let deleted = store.delete_account(account, by).await.unwrap();
        assert_eq!(deleted, DeleteAccountOutcome::Deleted);
        counts.push(("delete", proxy.take()));
        let phones = vec![format!("1{phone}")];
        let credentials = vec![secret(CredentialKind::Key, &phone)];
        let new = NewAccount { phones, credentials, ..new_account(&format!("{name} more")) };
        store.create_account(new).await.unwrap();
        counts.push(("create", proxy.take()));
    }
    let expected = [
        ("set", 3),
        ("rename", 3),
        ("claim a phone number", 5),
        ("add a credential", 3),
        ("issue a token", 8),
        ("record uses", 3),
        ("rotate", 4),
        ("revoke", 3),
        ("delete", 12),
        ("create", 7),
    ];
    assert_eq!(counts, expected);
}

#[tokio::test]
async fn work_with_an_emulator_account_takes_few_round_trips() {
    let (store, proxy, _) = counted_store().await;
    let mut counts = Vec::new();
    // The first pass prepares the statements.
    for name in ["one", "two"] {
        counts.clear();
        proxy.take();
        let mine = emulator(&store, name, true).await;
        counts.push(("create an account", proxy.take()));
        let new = NewWebhook { format: Format::Whatsapp, subscribed: true, ..endpoint(mine) };
        let id = register(&store, new).await.id;
        proxy.take();
        advance(&store, mine, MINUTE, 1).await;
        counts.push(("change the clock", proxy.take()));
        let template = create(&store, scripted(mine, "order_approve_10m", 2)).await;
        counts.push(("create a template", proxy.take()));
        advance(&store, mine, HOUR, 3).await;
        proxy.take();
        assert_eq!(apply(&store, mine, 4).await, 1);
        counts.push(("apply a step", proxy.take()));
        assert_eq!(apply(&store, mine, 5).await, 0);
        counts.push(("apply nothing", proxy.take()));
        done(store.delete_template(scripted_change(mine, template, 6)).await.unwrap());
        counts.push(("delete a template", proxy.take()));
        let twice = fault(r#"{"call":"send","kind":"truncate","times":2}"#);
        store.create_fault(mine, twice, noon(7)).await.unwrap();
        counts.push(("create a fault", proxy.take()));
        assert!(store.decide_fault(mine, Call::Send, None).await.unwrap().is_some());
        counts.push(("decide on a fault", proxy.take()));
        store.add_message(message(mine, 8)).await.unwrap().unwrap();
        counts.push(("add a message", proxy.take()));
        for what in ["lease statuses", "lease statuses again"] {
            let lease = store.lease_statuses(id, 9, times(9, 10)).await.unwrap();
            counts.push((what, proxy.take()));
            let StatusLease::Due(due) = lease else { panic!("{lease:?}") };
            let through = due.statuses[0].cursor;
            fenced(store.record_statuses(id, noon(10), through).await.unwrap());
            counts.push(("record statuses", proxy.take()));
            advance(&store, mine, HOUR, 9).await;
            proxy.take();
        }
        let leased = store.lease_statuses(id, 9, times(9, 10)).await.unwrap();
        assert!(matches!(leased, StatusLease::Due(_)));
        proxy.take();
        let none = store.lease_statuses(id, 9, times(9, 10)).await.unwrap();
        assert_eq!(none, StatusLease::NothingDue(Some(noon(10))));
        counts.push(("lease nothing", proxy.take()));
    }
    let expected = [
        ("create an account", 4),
        ("change the clock", 2),
        ("create a template", 9),
        ("apply a step", 7),
        ("apply nothing", 4),
        ("delete a template", 9),
        ("create a fault", 3),
        ("decide on a fault", 7),
        ("add a message", 5),
        ("lease statuses", 8),
        ("record statuses", 3),
        ("lease statuses again", 6),
        ("record statuses", 3),
        ("lease nothing", 4),
    ];
    assert_eq!(counts, expected);
}

#[tokio::test]
async fn reads_of_templates_take_one_round_trip() {
    let (store, proxy, account) = counted_store().await;
    let id = create(&store, translation(account, "one", "en_US", Category::Utility)).await;
    done(store.edit_template(change(account, id), Edit::Restore(1)).await.unwrap());
    // The first passes prepare the statements on each of the connections that reads share.
    for pass in 0..8 {
        proxy.take();
        assert!(store.template(account, id).await.unwrap().is_some());
        assert!(store.version(account, id, 1).await.unwrap().is_some());
        assert_eq!(store.versions(account, id, None, 9).await.unwrap().unwrap().len(), 2);
        assert_eq!(store.translations(account, "one").await.unwrap().len(), 1);
        let names = vec!["one".to_owned(), "two".to_owned()];
        assert_eq!(store.languages(all(account), names).await.unwrap().len(), 1);
        assert_eq!(store.name_conflict(account, "two").await.unwrap(), None);
        assert!(proxy.take() == 6 || pass < 7);
    }
}

#[tokio::test]
async fn a_search_takes_no_round_trip_to_learn_what_is_indexed() {
    let (store, proxy, account) = counted_store().await;
    create(&store, new(account, "one")).await;
    update_index(&store).await;
    let mut counts = Vec::new();
    // The first search prepares the statements.
    for _ in 0..2 {
        proxy.take();
        assert_eq!(names(&store, search(account, "one")).await, ["one"]);
        counts.push(proxy.take());
    }
    // The beginning of the snapshot, the search, the rows, and the end.
    assert_eq!(counts[1], 4, "{counts:?}");
}

#[tokio::test]
async fn a_write_that_fails_beside_the_commit_rolls_everything_back() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres(&address).await, client(&address).await);
    let account = account(&store, "a").await;
    let webhook = register(&store, endpoint(account)).await.id;
    create(&store, new(account, "one")).await;
    let due = lease(&store, webhook).await.unwrap();
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
                  'BEGIN RAISE EXCEPTION ''refused''; END'; \
                  CREATE TRIGGER refuse BEFORE UPDATE ON webhook EXECUTE FUNCTION refuse()";
    client.batch_execute(refuse).await.unwrap();
    // The delivery is updated before its endpoint.
    let again = RetryDecision::RetryAfter(Duration::from_secs(5));
    let failed = attempt(&due, DeliveryOutcome::NoResponse, again);
    let error = store.record_attempt(failed.clone()).await.unwrap_err();
    assert!(matches!(error, StoreError::Failed(_)), "nothing was committed: {error:?}");
    client.batch_execute("DROP TRIGGER refuse ON webhook").await.unwrap();
    let recorded = store.record_attempt(failed).await.unwrap();
    assert_eq!(recorded, RecordAttemptOutcome::Recorded, "the lease is still valid");
}
