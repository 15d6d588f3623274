//! Tests with PostgreSQL servers that accept connections but do not respond.
//!
//! Waiting times are measured with tokio's paused clock, which advances when all tasks are idle.

use std::{sync::Arc, time::Duration};

use galley_domain::{
    id::{AccountId, TemplateId},
    template::edit::Edit,
};
use galley_store::{
    StoreError,
    postgres::{PostgresOptions, PostgresStore},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::{self, Instant},
};

use super::{
    fixture::{Shared, account, change, client, create, fresh_database, new, open_postgres},
    lists::all,
    postgres_only::other_connections,
};

/// A TCP proxy that can be frozen: it then forwards nothing, but keeps its connections open.
struct Proxy {
    address: String,
    is_frozen: watch::Sender<bool>,
}

impl Proxy {
    async fn start(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (_, rest) = address.split_once('@').unwrap();
        let server = rest.split('/').next().unwrap().to_owned();
        let proxy = listener.local_addr().unwrap().to_string();
        let address = address.replacen(&server, &proxy, 1);
        let (is_frozen, frozen) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward(client, server.clone(), frozen.clone()));
            }
        });
        Self { address, is_frozen }
    }
}

async fn forward(mut client: TcpStream, server: String, mut frozen: watch::Receiver<bool>) {
    let mut server = TcpStream::connect(server).await.unwrap();
    let until_frozen = async { frozen.wait_for(|it| *it).await.map(drop) };
    tokio::select! {
        biased;
        // Both connections stay open.
        _ = until_frozen => std::future::pending().await,
        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
    }
}

/// A store behind a proxy, with one template.
async fn store_behind_proxy(address: &str) -> (Shared, Proxy, AccountId, TemplateId) {
    let proxy = Proxy::start(address).await;
    let store = open_postgres(&proxy.address).await;
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "one")).await;
    (store, proxy, account, id)
}

/// The same, frozen after all shared read connections are open, with the clock paused.
async fn frozen_with_read_connections(address: &str) -> (Shared, Proxy, AccountId, TemplateId) {
    let (store, proxy, account, id) = store_behind_proxy(address).await;
    for _ in 0..4 {
        store.template(account, id).await.unwrap();
    }
    proxy.is_frozen.send_replace(true);
    time::pause();
    (store, proxy, account, id)
}

/// Spawns work that must fail because the database is unavailable. Returns when it failed.
fn spawn_failing<T: Send + 'static>(
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> JoinHandle<Instant> {
    tokio::spawn(async move {
        let error = work.await.err();
        assert!(matches!(error, Some(StoreError::Unavailable(_))), "{error:?}");
        Instant::now()
    })
}

fn failing_edit(store: &Shared, account: AccountId, id: TemplateId) -> JoinHandle<Instant> {
    let store = Arc::clone(store);
    spawn_failing(async move { store.edit_template(change(account, id), Edit::Restore(1)).await })
}

fn failing_read(store: &Shared, account: AccountId, id: TemplateId) -> JoinHandle<Instant> {
    let store = Arc::clone(store);
    spawn_failing(async move { store.template(account, id).await })
}

#[tokio::test]
async fn a_transaction_on_a_frozen_server_waits_for_one_timeout_only() {
    let address = fresh_database().await;
    let (store, proxy, account, id) = store_behind_proxy(&address).await;
    let client = client(&address).await;
    client.batch_execute("BEGIN; LOCK TABLE template IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let edit = failing_edit(&store, account, id);
    let list = spawn_failing(async move { store.list(all(account)).await });
    while other_connections(&client).await.1 < 2 {
        tokio::task::yield_now().await;
    }
    proxy.is_frozen.send_replace(true);
    time::pause();
    let started = Instant::now();
    let waited = edit.await.unwrap() - started;
    assert!(waited < Duration::from_secs(7), "{waited:?} for an edit");
    let waited = list.await.unwrap() - started;
    assert!(waited < Duration::from_secs(12), "{waited:?} for a list");
}

#[tokio::test]
async fn a_transaction_that_cannot_begin_is_not_retried() {
    let address = fresh_database().await;
    let (store, proxy, account, id) = store_behind_proxy(&address).await;
    proxy.is_frozen.send_replace(true);
    time::pause();
    let started = Instant::now();
    let waited = failing_edit(&store, account, id).await.unwrap() - started;
    assert!(waited < Duration::from_secs(7), "{waited:?}");
}

#[tokio::test]
async fn when_one_read_times_out_all_reads_on_the_connection_fail() {
    let address = fresh_database().await;
    let (store, _proxy, account, id) = frozen_with_read_connections(&address).await;
    let started = Instant::now();
    let early: Vec<_> = (0..8).map(|_| failing_read(&store, account, id)).collect();
    // Send these before the others are queued.
    tokio::task::yield_now().await;
    time::advance(Duration::from_secs(5)).await;
    let late: Vec<_> = (0..8).map(|_| failing_read(&store, account, id)).collect();
    for read in early.into_iter().chain(late) {
        let waited = read.await.unwrap() - started;
        assert!(waited < Duration::from_secs(7), "{waited:?}");
    }
    // Later reads wait for one connection attempt, not for those of all other reads.
    let started = Instant::now();
    let later: Vec<_> = (0..64).map(|_| failing_read(&store, account, id)).collect();
    for read in later {
        let waited = read.await.unwrap() - started;
        assert!(waited < Duration::from_secs(3), "{waited:?}");
    }
}

#[tokio::test]
async fn failed_connects_are_not_reported_as_an_exhausted_pool() {
    let address = fresh_database().await;
    let (store, proxy, account, id) = store_behind_proxy(&address).await;
    proxy.is_frozen.send_replace(true);
    time::pause();
    // Use up the open connections.
    failing_edit(&store, account, id).await.unwrap();
    failing_read(&store, account, id).await.unwrap();
    // Connection attempts outlast the calls that wait for them and keep their slots meanwhile.
    for round in 0..4 {
        let started = Instant::now();
        let reads: Vec<_> = (0..40).map(|_| failing_read(&store, account, id)).collect();
        let edits: Vec<_> = (0..40).map(|_| failing_edit(&store, account, id)).collect();
        for call in reads.into_iter().chain(edits) {
            let waited = call.await.unwrap() - started;
            assert!(waited < Duration::from_millis(1_200), "{waited:?} in round {round}");
        }
        // The backoff is over.
        time::advance(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn of_consecutive_reads_only_the_first_waits_for_a_response() {
    let address = fresh_database().await;
    let (store, _proxy, account, id) = frozen_with_read_connections(&address).await;
    let started = Instant::now();
    let waited = failing_read(&store, account, id).await.unwrap() - started;
    assert!(waited < Duration::from_secs(7), "{waited:?}");
    // The other shared read connections lead to the same server.
    for _ in 0..4 {
        let started = Instant::now();
        let waited = failing_read(&store, account, id).await.unwrap() - started;
        assert!(waited < Duration::from_millis(1_200), "{waited:?}");
    }
}

#[tokio::test]
async fn a_host_that_does_not_respond_is_skipped() {
    let address = fresh_database().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = silent.local_addr().unwrap();
    let both = address.replacen('@', &format!("@{host},"), 1);
    let open = tokio::spawn(async move {
        PostgresStore::open(&both.parse().unwrap(), &PostgresOptions::default()).await.map(drop)
    });
    let _connection = silent.accept().await.unwrap();
    // Its connect timeout expires.
    time::pause();
    time::advance(Duration::from_secs(1)).await;
    time::resume();
    open.await.unwrap().unwrap();
}
