//! What only the PostgreSQL store is asked: its connections, and how its database begins.

use std::sync::Arc;

use galley_domain::edit::Edit;
use galley_store::postgres::{PostgresAddress, PostgresOptions, PostgresStore};
use tokio_postgres::Client;

use super::{
    fixture::{account, change, client, create, fresh_database, new, open_postgres_with},
    lists::{all, names},
};

/// What the other connections to the database are at: how many there are, how many do something or
/// wait, and how many stand in a transaction that nobody goes on with.
async fn others(client: &Client) -> (i64, i64, i64) {
    let statement = "SELECT count(*), count(*) FILTER (WHERE state = 'active'), \
                     count(*) FILTER (WHERE state LIKE 'idle in%') FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid() \
                     AND backend_type = 'client backend'";
    // Within a transaction the server would go on telling what it told first.
    client.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
    let row = client.query_one(statement, &[]).await.unwrap();
    (row.get(0), row.get(1), row.get(2))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_goes_away_in_the_middle_leaves_nothing_behind() {
    const CALLERS: usize = 12;
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, CALLERS).await, client(&address).await);
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "before")).await;
    client.batch_execute("BEGIN; LOCK TABLE template IN ACCESS EXCLUSIVE MODE").await.unwrap();
    // Connections are made one after the other, and whoever comes too early asks again.
    let callers: Vec<_> = (0..CALLERS)
        .flat_map(|_| {
            let (lists, edits) = (Arc::clone(&store), Arc::clone(&store));
            [
                tokio::spawn(async move {
                    while lists.list(all(account)).await.is_err() {
                        tokio::task::yield_now().await;
                    }
                }),
                tokio::spawn(async move {
                    while edits.edit_template(change(account, id), Edit::Restore(1)).await.is_err()
                    {
                        tokio::task::yield_now().await;
                    }
                }),
            ]
        })
        .collect();
    while others(&client).await.1 < i64::try_from(CALLERS).unwrap() {
        tokio::task::yield_now().await;
    }
    for caller in callers {
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
    }
    // Nobody waits for the lock any more, though it is still held.
    loop {
        let (_, active, in_transaction) = others(&client).await;
        if active + in_transaction == 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    client.batch_execute("ROLLBACK").await.unwrap();
    // Whichever connection a list gets, it sees what was acknowledged.
    for index in 0..2 * CALLERS {
        let name = format!("t{index}");
        create(&store, new(account, &name)).await;
        let newest = names(&store, all(account)).await.into_iter().next();
        assert_eq!(newest, Some(name));
    }
    let (there, _, in_transaction) = others(&client).await;
    assert_eq!(in_transaction, 0);
    assert!(there <= i64::try_from(2 * CALLERS + 6).unwrap(), "{there} connections");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_the_server_ends_is_replaced_by_another() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 4).await, client(&address).await);
    let account = account(&store, "a").await;
    for round in 0..3 {
        let id = create(&store, new(account, &format!("t{round}"))).await;
        let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid()";
        client.query(ended, &[]).await.unwrap();
        while others(&client).await.0 > 0 {
            tokio::task::yield_now().await;
        }
        assert!(store.template(account, id).await.unwrap().is_some());
        assert_eq!(names(&store, all(account)).await.len(), round + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_that_open_an_empty_database_together_all_succeed() {
    // They stumble over one another in several ways, each of them now and then.
    for _ in 0..8 {
        let address: PostgresAddress = fresh_database().await.parse().unwrap();
        let open = |_| {
            let address = address.clone();
            tokio::spawn(async move {
                PostgresStore::open(&address, &PostgresOptions::default()).await.map(drop)
            })
        };
        let opened: Vec<_> = (0..16).map(open).collect();
        for one in opened {
            one.await.unwrap().unwrap();
        }
    }
}
