//! Tests that the load of one account leaves the connections of the PostgreSQL store to the others.

use std::{sync::Arc, time::Duration};

use galley_domain::id::{AccountId, TemplateId};
use galley_store::{AddPhoneOutcome, Author, DeliveryQuery};
use tokio::{task::JoinSet, time::timeout};
use tokio_postgres::Client;

use super::{
    fixture::{
        Shared, account, client, create, events, fresh_database, new, noon, open_postgres_with,
    },
    lists::{all, names},
    postgres_only::other_connections,
    webhooks::{endpoint, register},
};

/// A store with as many connections as the service has, an account with a template, and another
/// connection to the database.
async fn store_with_template() -> (Shared, Client, AccountId, TemplateId) {
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 8).await, client(&address).await);
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "one")).await;
    (store, client, account, id)
}

/// Waits until this many calls run, and checks that short reads, lists and feeds do not wait for
/// them.
async fn assert_other_reads_work(
    (store, client): (&Shared, &Client),
    (account, id): (AccountId, TemplateId),
    running: i64,
) {
    while other_connections(client).await.1 < running {
        tokio::task::yield_now().await;
    }
    let reads = async {
        // On each of the shared connections.
        for _ in 0..8 {
            assert!(store.template(account, id).await.unwrap().is_some());
        }
        assert_eq!(names(store, all(account)).await.len(), 1);
        assert_eq!(events(store, account, 0, 10).await.len(), 1);
    };
    timeout(Duration::from_secs(3), reads).await.expect("other reads do not wait");
    assert_eq!(other_connections(client).await.1, running, "calls that run at a time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_deliveries_delay_no_other_reads() {
    let (store, client, account, id) = store_with_template().await;
    let webhook = register(&store, endpoint(account)).await.id;
    // The lists do not end while the table is locked.
    client.batch_execute("BEGIN; LOCK TABLE delivery IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let mut lists = JoinSet::new();
    for _ in 0..32 {
        let store = Arc::clone(&store);
        let query = DeliveryQuery { status: None, before: None, limit: 100 };
        lists.spawn(async move { store.deliveries(account, webhook, query).await.is_ok() });
    }
    assert_other_reads_work((&store, &client), (account, id), 2).await;
    lists.shutdown().await;
    client.batch_execute("ROLLBACK").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn downloads_delay_no_other_reads_and_no_background_work() {
    let (store, client, account, id) = store_with_template().await;
    client.batch_execute("BEGIN; LOCK TABLE upload_chunk IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let mut downloads = JoinSet::new();
    for _ in 0..32 {
        let store = Arc::clone(&store);
        downloads.spawn(async move { store.media_chunk("any", 0).await.is_ok() });
    }
    assert_other_reads_work((&store, &client), (account, id), 1).await;
    store.webhooks_with_work(noon(0)).await.unwrap();
    downloads.shutdown().await;
    client.batch_execute("ROLLBACK").await.unwrap();
    assert!(store.media_chunk("any", 0).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_claim_beyond_the_maximum_opens_no_transaction() {
    let (store, client, account, _) = store_with_template().await;
    let claim = async |phone: &str| {
        store.claim_phone(account, phone, Some(1), Author::operator(noon(0))).await
    };
    assert_eq!(claim("1").await.unwrap(), AddPhoneOutcome::Added);
    // A transaction would wait for the row of the account.
    client.batch_execute("BEGIN; SELECT 1 FROM account FOR UPDATE").await.unwrap();
    assert_eq!(claim("2").await.unwrap(), AddPhoneOutcome::TooMany);
    assert_eq!(claim("1").await.unwrap(), AddPhoneOutcome::AlreadyOwned);
    client.batch_execute("ROLLBACK").await.unwrap();
}
