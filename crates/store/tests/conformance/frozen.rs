//! Servers that stand still: they listen, and say nothing. How long everybody waits for them is told
//! by a clock of tokio's that is stopped, and goes on by itself when nothing else can happen.

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
    postgres_only::others,
};

/// A way to a server that can be stopped: what is on it then goes no further, and nobody is told.
struct Way {
    address: String,
    is_stopped: watch::Sender<bool>,
}

impl Way {
    async fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (_, rest) = address.split_once('@').unwrap();
        let server = rest.split('/').next().unwrap().to_owned();
        let here = listener.local_addr().unwrap().to_string();
        let address = address.replacen(&server, &here, 1);
        let (is_stopped, stopped) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                tokio::spawn(forward(caller, server.clone(), stopped.clone()));
            }
        });
        Self { address, is_stopped }
    }
}

async fn forward(mut caller: TcpStream, server: String, mut stopped: watch::Receiver<bool>) {
    let mut server = TcpStream::connect(server).await.unwrap();
    let until_stopped = async { stopped.wait_for(|it| *it).await.map(drop) };
    tokio::select! {
        biased;
        // Both ends stay open.
        _ = until_stopped => std::future::pending().await,
        _ = tokio::io::copy_bidirectional(&mut caller, &mut server) => {}
    }
}

/// A store behind a way that can be stopped, with one template.
async fn store_behind_a_way(address: &str) -> (Shared, Way, AccountId, TemplateId) {
    let way = Way::to(address).await;
    let store = open_postgres(&way.address).await;
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "one")).await;
    (store, way, account, id)
}

/// The same, stopped when all connections that reads share are made. So is the clock.
async fn stopped_while_reads_are_connected(address: &str) -> (Shared, Way, AccountId, TemplateId) {
    let (store, way, account, id) = store_behind_a_way(address).await;
    for _ in 0..4 {
        store.template(account, id).await.unwrap();
    }
    way.is_stopped.send_replace(true);
    time::pause();
    (store, way, account, id)
}

/// Whoever does this is told that the database is away, and when.
fn told<T: Send + 'static>(
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> JoinHandle<Instant> {
    tokio::spawn(async move {
        let refusal = work.await.err();
        assert!(matches!(refusal, Some(StoreError::Unavailable(_))), "{refusal:?}");
        Instant::now()
    })
}

fn edit(store: &Shared, account: AccountId, id: TemplateId) -> JoinHandle<Instant> {
    let store = Arc::clone(store);
    told(async move { store.edit_template(change(account, id), Edit::Restore(1)).await })
}

fn read(store: &Shared, account: AccountId, id: TemplateId) -> JoinHandle<Instant> {
    let store = Arc::clone(store);
    told(async move { store.template(account, id).await })
}

#[tokio::test]
async fn whoever_is_in_a_transaction_waits_for_one_answer_and_not_for_its_end_as_well() {
    let address = fresh_database().await;
    let (store, way, account, id) = store_behind_a_way(&address).await;
    let client = client(&address).await;
    client.batch_execute("BEGIN; LOCK TABLE template IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let edit = edit(&store, account, id);
    let list = told(async move { store.list(all(account)).await });
    while others(&client).await.1 < 2 {
        tokio::task::yield_now().await;
    }
    way.is_stopped.send_replace(true);
    time::pause();
    let begun = Instant::now();
    let waited = edit.await.unwrap() - begun;
    assert!(waited < Duration::from_secs(7), "{waited:?} for an edit");
    let waited = list.await.unwrap() - begun;
    assert!(waited < Duration::from_secs(12), "{waited:?} for a list");
}

#[tokio::test]
async fn a_transaction_that_nobody_lets_begin_is_not_begun_again() {
    let address = fresh_database().await;
    let (store, way, account, id) = store_behind_a_way(&address).await;
    way.is_stopped.send_replace(true);
    time::pause();
    let begun = Instant::now();
    let waited = edit(&store, account, id).await.unwrap() - begun;
    assert!(waited < Duration::from_secs(7), "{waited:?}");
}

#[tokio::test]
async fn reads_let_go_of_a_connection_together_as_soon_as_one_has_waited_too_long() {
    let address = fresh_database().await;
    let (store, _way, account, id) = stopped_while_reads_are_connected(&address).await;
    let begun = Instant::now();
    let early: Vec<_> = (0..8).map(|_| read(&store, account, id)).collect();
    // They are sent, before the others come.
    tokio::task::yield_now().await;
    time::advance(Duration::from_secs(5)).await;
    let late: Vec<_> = (0..8).map(|_| read(&store, account, id)).collect();
    for read in early.into_iter().chain(late) {
        let waited = read.await.unwrap() - begun;
        assert!(waited < Duration::from_secs(7), "{waited:?}");
    }
    // Whoever comes now waits for a connection, and not for all who do so, too.
    let begun = Instant::now();
    let later: Vec<_> = (0..64).map(|_| read(&store, account, id)).collect();
    for read in later {
        let waited = read.await.unwrap() - begun;
        assert!(waited < Duration::from_secs(3), "{waited:?}");
    }
}

#[tokio::test]
async fn while_connections_cannot_be_made_nobody_is_told_that_they_are_in_use() {
    let address = fresh_database().await;
    let (store, way, account, id) = store_behind_a_way(&address).await;
    way.is_stopped.send_replace(true);
    time::pause();
    // What was there is of no use any more.
    edit(&store, account, id).await.unwrap();
    read(&store, account, id).await.unwrap();
    // Those that are being made outlast whoever waits for them, and keep their places meanwhile.
    for round in 0..4 {
        let begun = Instant::now();
        let reads: Vec<_> = (0..40).map(|_| read(&store, account, id)).collect();
        let edits: Vec<_> = (0..40).map(|_| edit(&store, account, id)).collect();
        for call in reads.into_iter().chain(edits) {
            let waited = call.await.unwrap() - begun;
            assert!(waited < Duration::from_millis(1_200), "{waited:?} in round {round}");
        }
        // It may be tried again.
        time::advance(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn of_reads_that_come_one_by_one_only_the_first_waits_for_an_answer() {
    let address = fresh_database().await;
    let (store, _way, account, id) = stopped_while_reads_are_connected(&address).await;
    let begun = Instant::now();
    let waited = read(&store, account, id).await.unwrap() - begun;
    assert!(waited < Duration::from_secs(7), "{waited:?}");
    // The other connections that reads share lead to the same server.
    for _ in 0..4 {
        let begun = Instant::now();
        let waited = read(&store, account, id).await.unwrap() - begun;
        assert!(waited < Duration::from_millis(1_200), "{waited:?}");
    }
}

#[tokio::test]
async fn a_host_that_stands_still_is_passed_over() {
    let address = fresh_database().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = silent.local_addr().unwrap();
    let both = address.replacen('@', &format!("@{host},"), 1);
    let open = tokio::spawn(async move {
        PostgresStore::open(&both.parse().unwrap(), &PostgresOptions::default()).await.map(drop)
    });
    let _asked = silent.accept().await.unwrap();
    // Its time is over.
    time::pause();
    time::advance(Duration::from_secs(1)).await;
    time::resume();
    open.await.unwrap().unwrap();
}
