//! What only the PostgreSQL store is asked: its connections, and how its database begins.

use std::sync::Arc;

use galley_domain::template::edit::Edit;
use galley_store::{
    StoreError,
    postgres::{PostgresAddress, PostgresOptions, PostgresStore},
};
use tokio::time;
use tokio_postgres::Client;

use super::{
    fixture::{
        account, change, client, create, done, fresh_database, new, noon, open_postgres_with,
        with_key,
    },
    lists::{all, names},
    one_database::{name_in, somebody_waits},
};

/// What the other connections to the database are at: how many there are, how many do something or
/// wait, and how many stand in a transaction that nobody goes on with.
pub(super) async fn others(client: &Client) -> (i64, i64, i64) {
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_that_lose_their_connections_all_at_once_are_all_answered() {
    const READERS: usize = 100;
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 4).await, client(&address).await);
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "one")).await;
    client.batch_execute("BEGIN; LOCK TABLE template IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.template(account, id).await.unwrap().unwrap().id })
        })
        .collect();
    // All connections that reads share stand behind the lock.
    while others(&client).await.1 < 4 {
        tokio::task::yield_now().await;
    }
    let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE \
                 datname = current_database() AND pid <> pg_backend_pid() AND state = 'active'";
    client.query(ended, &[]).await.unwrap();
    client.batch_execute("ROLLBACK").await.unwrap();
    for reader in readers {
        assert_eq!(reader.await.unwrap(), id);
    }
}

#[tokio::test]
async fn a_commit_goes_on_when_whoever_waited_for_it_has_gone() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 1).await, client(&address).await);
    let (slow, other) = (account(&store, "a").await, account(&store, "b").await);
    let id = create(&store, new(slow, "slow")).await;
    let next = create(&store, new(other, "other")).await;
    // The last of a transaction is done when it is committed: here it waits for somebody.
    let gate = format!(
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END'; \
         CREATE CONSTRAINT TRIGGER gate AFTER UPDATE ON account DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW WHEN (NEW.id = {slow}) EXECUTE FUNCTION wait(); SELECT pg_advisory_lock(1)"
    );
    client.batch_execute(&gate).await.unwrap();
    let caller = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.edit_template(change(slow, id), Edit::Restore(1)).await }
    });
    somebody_waits(&client).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    // There is one connection: when the next one has it, the former is dealt with.
    while store.edit_template(change(other, next), Edit::Restore(1)).await.is_err() {
        tokio::task::yield_now().await;
    }
    client.batch_execute("SELECT pg_advisory_unlock(1)").await.unwrap();
    while others(&client).await.1 > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.template(slow, id).await.unwrap().unwrap().state.version, 2);
}

#[tokio::test]
async fn a_connection_that_cannot_be_made_is_nothing_to_those_that_are_there() {
    let address = fresh_database().await;
    let client = client(&address).await;
    let role = format!("{}_role", name_in(&address));
    let grant =
        format!("CREATE ROLE {role} LOGIN; ALTER DATABASE {} OWNER TO {role}", name_in(&address));
    client.batch_execute(&grant).await.unwrap();
    let theirs = address.replace("//galley@", &format!("//{role}@"));
    let store = open_postgres_with(&theirs, 2).await;
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "one")).await;
    let edit = || {
        let store = Arc::clone(&store);
        async move { store.edit_template(change(account, id), Edit::Restore(1)).await }
    };
    for _ in 0..4 {
        store.template(account, id).await.unwrap();
    }
    let (there, _, _) = others(&client).await;
    // The only connection for edits is in use, and the server gives no more.
    client.batch_execute(&format!("ALTER ROLE {role} CONNECTION LIMIT 0")).await.unwrap();
    client.batch_execute("BEGIN; LOCK TABLE template").await.unwrap();
    let first = tokio::spawn(edit());
    somebody_waits(&client).await;
    assert!(matches!(edit().await, Err(StoreError::Unavailable(_))));
    client.batch_execute("ROLLBACK").await.unwrap();
    assert!(first.await.unwrap().is_ok());
    assert!(edit().await.is_ok(), "the connection is there again");
    // One of those that reads share is gone, and stays so.
    let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE \
                 datname = current_database() AND query LIKE '%WHERE id = ANY($1)%' \
                 AND pid <> pg_backend_pid() LIMIT 1";
    assert_eq!(client.query(ended, &[]).await.unwrap().len(), 1);
    while others(&client).await.0 == there {
        tokio::task::yield_now().await;
    }
    for _ in 0..8 {
        assert!(store.template(account, id).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn whoever_waits_while_all_connections_are_in_use_is_told_so() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 1).await, client(&address).await);
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "one")).await;
    client.batch_execute("BEGIN; LOCK TABLE template").await.unwrap();
    let edit = || {
        let store = Arc::clone(&store);
        tokio::spawn(
            async move { store.edit_template(change(account, id), Edit::Restore(1)).await },
        )
    };
    let first = edit();
    somebody_waits(&client).await;
    time::pause();
    assert!(matches!(edit().await.unwrap(), Err(StoreError::Busy)));
    time::resume();
    client.batch_execute("ROLLBACK").await.unwrap();
    assert!(first.await.unwrap().is_ok());
}

#[test]
fn what_is_dropped_where_nothing_runs_leaves_no_transaction_to_others() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let address = runtime.block_on(fresh_database());
    let (store, client) =
        runtime.block_on(async { (open_postgres_with(&address, 1).await, client(&address).await) });
    let account = runtime.block_on(account(&store, "a"));
    let listing = Arc::clone(&store);
    let mut list = Box::pin(async move { listing.list(all(account)).await.map(drop) });
    runtime.block_on(async {
        client.batch_execute("BEGIN; LOCK TABLE template").await.unwrap();
        tokio::select! {
            _ = &mut list => panic!("the table is locked"),
            () = somebody_waits(&client) => {}
        }
    });
    drop(list);
    runtime.block_on(async {
        client.batch_execute("ROLLBACK").await.unwrap();
        create(&store, new(account, "later")).await;
        assert_eq!(names(&store, all(account)).await, ["later"]);
    });
}

#[tokio::test]
async fn what_a_key_made_is_told_only_when_it_can_be_confirmed() {
    let address = fresh_database().await;
    let (store, watcher) = (open_postgres_with(&address, 2).await, client(&address).await);
    let account = account(&store, "a").await;
    let id = create(&store, with_key(account, "one", 1, 1)).await;
    let mut other = client(&address).await;
    let open = other.transaction().await.unwrap();
    open.execute("SELECT 1 FROM account FOR UPDATE", &[]).await.unwrap();
    // It waits for its account, as whatever is committed does.
    let record = store.record(account, [1; 16], noon(0));
    let mut record = std::pin::pin!(record);
    tokio::select! {
        found = &mut record => panic!("{found:?}"),
        () = somebody_waits(&watcher) => {}
    }
    assert_eq!(store.record(account, [2; 16], noon(0)).await.unwrap(), None);
    open.rollback().await.unwrap();
    assert_eq!(record.await.unwrap().unwrap().receipt.id, id);
}

#[tokio::test]
async fn a_database_that_becomes_hasty_is_waited_for_as_it_was() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 1).await, client(&address).await);
    let change_it = format!(
        "ALTER DATABASE {} SET synchronous_commit = off; CREATE TABLE seen (setting TEXT); \
         CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN \
         INSERT INTO seen VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END'; \
         CREATE TRIGGER look AFTER INSERT OR UPDATE ON template EXECUTE FUNCTION look()",
        name_in(&address)
    );
    client.batch_execute(&change_it).await.unwrap();
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "one")).await;
    done(store.edit_template(change(account, id), Edit::Restore(1)).await.unwrap());
    let seen = client.query("SELECT setting FROM seen", &[]).await.unwrap();
    let seen: Vec<String> = seen.iter().map(|row| row.get(0)).collect();
    assert_eq!(seen, ["on", "on"]);
    let told = PostgresStore::open(&address.parse().unwrap(), &PostgresOptions::default()).await;
    assert!(told.is_err(), "whoever starts now refuses it");
}
