//! Tests of the PostgreSQL store alone: its connections, and concurrent start-up.

use std::sync::Arc;

use galley_domain::template::{edit::Edit, lifecycle::Trigger};
use galley_store::{
    StoreError, WebhookKey,
    postgres::{PostgresAddress, PostgresOptions, PostgresStore},
};
use tokio::time;
use tokio_postgres::Client;

use super::{
    damage::assert_damaged_delivery_is_marked,
    deliveries::{deliver_all, lease},
    fixture::{
        account, change, client, create, done, events, fresh_database, new, noon,
        open_postgres_with, with_key,
    },
    lists::{all, names, search},
    one_database::{database_name, wait_for_blocked_statement},
    webhooks::{endpoint, register},
};

/// Counts the other connections to the database: all of them, those that run a statement or wait
/// for a lock, and those that are idle in a transaction.
pub(super) async fn other_connections(client: &Client) -> (i64, i64, i64) {
    let statement = "SELECT count(*), count(*) FILTER (WHERE state = 'active'), \
                     count(*) FILTER (WHERE state LIKE 'idle in%') FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid() \
                     AND backend_type = 'client backend'";
    // Within a transaction the server would keep returning its first snapshot.
    client.batch_execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
    let row = client.query_one(statement, &[]).await.unwrap();
    (row.get(0), row.get(1), row.get(2))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_calls_leave_no_statement_and_no_transaction_behind() {
    const CALLERS: usize = 12;
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, CALLERS).await, client(&address).await);
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "before")).await;
    client.batch_execute("BEGIN; LOCK TABLE template IN ACCESS EXCLUSIVE MODE").await.unwrap();
    // Connections open one after the other, so early callers retry.
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
    while other_connections(&client).await.1 < i64::try_from(CALLERS).unwrap() {
        tokio::task::yield_now().await;
    }
    for caller in callers {
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
    }
    // The cancelled calls no longer wait for the lock, though it is still held.
    loop {
        let (_, active, in_transaction) = other_connections(&client).await;
        if active + in_transaction == 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    client.batch_execute("ROLLBACK").await.unwrap();
    // A list sees all acknowledged writes, whichever connection it uses.
    for index in 0..2 * CALLERS {
        let name = format!("t{index}");
        create(&store, new(account, &name)).await;
        let newest = names(&store, all(account)).await.into_iter().next();
        assert_eq!(newest, Some(name));
    }
    let (total, _, in_transaction) = other_connections(&client).await;
    assert_eq!(in_transaction, 0);
    assert!(total <= i64::try_from(2 * CALLERS + 6).unwrap(), "{total} connections");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_of_an_account_do_not_delay_lists_and_events_of_another() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 8).await, client(&address).await);
    let (mine, theirs) = (account(&store, "a").await, account(&store, "b").await);
    create(&store, new(mine, "mine")).await;
    create(&store, new(theirs, "theirs")).await;
    // Searches do not end while the index is locked.
    client.batch_execute("BEGIN; LOCK TABLE search_index IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let mut searches = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let store = Arc::clone(&store);
        searches.spawn(async move { store.list(search(mine, "word")).await.is_ok() });
    }
    while other_connections(&client).await.1 < 2 {
        tokio::task::yield_now().await;
    }
    for account in [theirs, mine] {
        assert_eq!(names(&store, all(account)).await.len(), 1);
        assert_eq!(events(&store, account, 0, 10).await.len(), 1);
    }
    assert_eq!(other_connections(&client).await.1, 2, "two searches of an account run at a time");
    searches.shutdown().await;
    client.batch_execute("ROLLBACK").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_the_server_closes_is_replaced() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 4).await, client(&address).await);
    let account = account(&store, "a").await;
    for round in 0..3 {
        let id = create(&store, new(account, &format!("t{round}"))).await;
        let terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid()";
        client.query(terminate, &[]).await.unwrap();
        while other_connections(&client).await.0 > 0 {
            tokio::task::yield_now().await;
        }
        assert!(store.template(account, id).await.unwrap().is_some());
        assert_eq!(names(&store, all(account)).await.len(), round + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_stores_can_open_an_empty_database_concurrently() {
    // They conflict in several ways, each of which happens only sometimes.
    for _ in 0..8 {
        let address: PostgresAddress = fresh_database().await.parse().unwrap();
        let open = |_| {
            let address = address.clone();
            tokio::spawn(async move {
                PostgresStore::open(&address, &PostgresOptions::default()).await.map(drop)
            })
        };
        let opened: Vec<_> = (0..16).map(open).collect();
        for store in opened {
            store.await.unwrap().unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_succeed_when_all_shared_connections_are_lost_at_once() {
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
    // Reads on all shared connections wait for the lock.
    while other_connections(&client).await.1 < 4 {
        tokio::task::yield_now().await;
    }
    let terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE \
                 datname = current_database() AND pid <> pg_backend_pid() AND state = 'active'";
    client.query(terminate, &[]).await.unwrap();
    client.batch_execute("ROLLBACK").await.unwrap();
    for reader in readers {
        assert_eq!(reader.await.unwrap(), id);
    }
}

#[tokio::test]
async fn a_commit_completes_after_its_caller_was_cancelled() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 1).await, client(&address).await);
    let (slow, other) = (account(&store, "a").await, account(&store, "b").await);
    let id = create(&store, new(slow, "slow")).await;
    let next = create(&store, new(other, "other")).await;
    // The deferred trigger runs at commit, where it waits for the advisory lock.
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
    wait_for_blocked_statement(&client).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    // There is only one connection: when the next edit gets one, the store has dropped the first.
    while store.edit_template(change(other, next), Edit::Restore(1)).await.is_err() {
        tokio::task::yield_now().await;
    }
    client.batch_execute("SELECT pg_advisory_unlock(1)").await.unwrap();
    while other_connections(&client).await.1 > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.template(slow, id).await.unwrap().unwrap().state.version, 2);
}

#[tokio::test]
async fn a_failed_connect_does_not_affect_open_connections() {
    let address = fresh_database().await;
    let client = client(&address).await;
    let role = format!("{}_role", database_name(&address));
    let grant = format!(
        "CREATE ROLE {role} LOGIN; ALTER DATABASE {} OWNER TO {role}",
        database_name(&address)
    );
    client.batch_execute(&grant).await.unwrap();
    let role_address = address.replace("//galley@", &format!("//{role}@"));
    let store = open_postgres_with(&role_address, 2).await;
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "one")).await;
    let edit = || {
        let store = Arc::clone(&store);
        async move { store.edit_template(change(account, id), Edit::Restore(1)).await }
    };
    for _ in 0..4 {
        store.template(account, id).await.unwrap();
    }
    let (total, _, _) = other_connections(&client).await;
    // The only connection for edits is in use, and the server accepts no new ones.
    client.batch_execute(&format!("ALTER ROLE {role} CONNECTION LIMIT 0")).await.unwrap();
    client.batch_execute("BEGIN; LOCK TABLE template").await.unwrap();
    let first = tokio::spawn(edit());
    wait_for_blocked_statement(&client).await;
    assert!(matches!(edit().await, Err(StoreError::Unavailable(_))));
    client.batch_execute("ROLLBACK").await.unwrap();
    assert!(first.await.unwrap().is_ok());
    assert!(edit().await.is_ok(), "the connection is back in the pool");
    // Close one of the shared connections; it cannot be replaced.
    let terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE \
                 datname = current_database() AND query LIKE '%WHERE id = ANY($1)%' \
                 AND pid <> pg_backend_pid() LIMIT 1";
    assert_eq!(client.query(terminate, &[]).await.unwrap().len(), 1);
    while other_connections(&client).await.0 == total {
        tokio::task::yield_now().await;
    }
    for _ in 0..8 {
        assert!(store.template(account, id).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_call_fails_as_busy_while_all_connections_are_in_use() {
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
    wait_for_blocked_statement(&client).await;
    time::pause();
    assert!(matches!(edit().await.unwrap(), Err(StoreError::Busy)));
    time::resume();
    client.batch_execute("ROLLBACK").await.unwrap();
    assert!(first.await.unwrap().is_ok());
}

#[test]
fn a_call_dropped_outside_a_runtime_leaves_no_open_transaction() {
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
            () = wait_for_blocked_statement(&client) => {}
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
async fn an_idempotency_record_is_returned_only_after_it_is_confirmed() {
    let address = fresh_database().await;
    let (store, watcher) = (open_postgres_with(&address, 2).await, client(&address).await);
    let account = account(&store, "a").await;
    let id = create(&store, with_key(account, "one", 1, 1)).await;
    let mut other = client(&address).await;
    let open = other.transaction().await.unwrap();
    open.execute("SELECT 1 FROM account FOR UPDATE", &[]).await.unwrap();
    // The confirmation waits for the account's lock, like every commit.
    let record = store.idempotency_record(account, [1; 16], noon(0));
    let mut record = std::pin::pin!(record);
    tokio::select! {
        found = &mut record => panic!("{found:?}"),
        () = wait_for_blocked_statement(&watcher) => {}
    }
    assert_eq!(store.idempotency_record(account, [2; 16], noon(0)).await.unwrap(), None);
    open.rollback().await.unwrap();
    assert_eq!(record.await.unwrap().unwrap().created.id, id);
}

#[tokio::test]
async fn commits_stay_synchronous_after_the_database_setting_changes() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 1).await, client(&address).await);
    let weaken = format!(
        "ALTER DATABASE {} SET synchronous_commit = off; CREATE TABLE recorded (setting TEXT); \
         CREATE FUNCTION record_setting() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN \
         INSERT INTO recorded VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END'; \
         CREATE TRIGGER record_setting AFTER INSERT OR UPDATE ON template EXECUTE FUNCTION record_setting()",
        database_name(&address)
    );
    client.batch_execute(&weaken).await.unwrap();
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "one")).await;
    done(store.edit_template(change(account, id), Edit::Restore(1)).await.unwrap());
    let rows = client.query("SELECT setting FROM recorded", &[]).await.unwrap();
    let settings: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(settings, ["on", "on"]);
    let opened = PostgresStore::open(&address.parse().unwrap(), &PostgresOptions::default()).await;
    assert!(opened.is_err(), "a new store refuses the database");
}

#[tokio::test]
async fn an_endpoint_does_not_stay_behind_events_that_are_gone() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 2).await, client(&address).await);
    let account = account(&store, "a").await;
    let webhook = register(&store, endpoint(account)).await.id;
    create(&store, new(account, "one")).await;
    client.execute("DELETE FROM event", &[]).await.unwrap();
    let due = WebhookKey { account, id: webhook };
    assert_eq!(store.webhooks_with_work(noon(10)).await.unwrap().now, [due]);
    assert!(lease(&store, webhook, 10).await.is_none());
    assert!(store.webhooks_with_work(noon(10)).await.unwrap().now.is_empty());
}

#[tokio::test]
async fn a_damaged_event_fails_its_delivery_and_the_later_ones_are_delivered() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 2).await, client(&address).await);
    let account = account(&store, "a").await;
    let webhook = register(&store, endpoint(account)).await.id;
    let id = create(&store, new(account, "one")).await;
    let pause = store.review_template(change(account, id), Trigger::Pause, None);
    done(pause.await.unwrap());
    client.batch_execute("UPDATE event SET type = 'unknown' WHERE seq = 1").await.unwrap();
    assert!(lease(&store, webhook, 10).await.is_none(), "the first one ends without a lease");
    assert_eq!(deliver_all(&store, webhook, 10).await, [2]);
    assert_damaged_delivery_is_marked(&store, account, webhook).await;
    // The same for an event that is damaged after it was queued.
    done(store.review_template(change(account, id), Trigger::Resume, None).await.unwrap());
    done(store.review_template(change(account, id), Trigger::Pause, None).await.unwrap());
    assert_eq!(lease(&store, webhook, 10).await.unwrap().event.seq, 3);
    client.batch_execute("UPDATE event SET type = 'unknown' WHERE seq = 3").await.unwrap();
    let expired = 60_000;
    assert!(lease(&store, webhook, expired).await.is_none(), "the third one ends without a lease");
    assert_eq!(deliver_all(&store, webhook, expired).await, [4]);
}

#[tokio::test]
async fn a_lock_timeout_in_a_pipeline_keeps_the_connection() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 1).await, client(&address).await);
    let account = account(&store, "a").await;
    let webhook = register(&store, endpoint(account)).await.id;
    let pids = async || {
        let rows = client
            .query(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() \
                 AND pid <> pg_backend_pid() AND backend_type = 'client backend' ORDER BY pid",
                &[],
            )
            .await
            .unwrap();
        rows.iter().map(|row| row.get::<_, i32>(0)).collect::<Vec<_>>()
    };
    assert!(lease(&store, webhook, 10).await.is_none());
    let before = pids().await;
    client.batch_execute("BEGIN; LOCK TABLE webhook IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let refused = store.lease_delivery(webhook, noon(10)..noon(20)).await;
    assert!(refused.is_err(), "{refused:?}");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(pids().await, before, "no connection was closed");
    assert!(lease(&store, webhook, 10).await.is_none());
    assert_eq!(pids().await, before, "no connection was opened");
}

#[tokio::test]
async fn an_interrupted_count_of_stored_bytes_is_repeated() {
    let address = fresh_database().await;
    let (store, client) = (open_postgres_with(&address, 4).await, client(&address).await);
    let (mine, theirs) = (account(&store, "a").await, account(&store, "b").await);
    create(&store, new(theirs, "theirs")).await;
    let id = create(&store, new(mine, "one")).await;
    done(store.edit_template(change(mine, id), Edit::Restore(1)).await.unwrap());
    assert_eq!(store.count_stored_bytes(false).await.unwrap(), 0, "everything is counted");
    let interrupted = "UPDATE account SET counting = 1, template_bytes = 7 WHERE name = 'a'";
    client.batch_execute(interrupted).await.unwrap();
    create(&store, new(mine, "two")).await;
    assert_eq!(store.count_stored_bytes(false).await.unwrap(), 1);
    assert_eq!(store.count_stored_bytes(false).await.unwrap(), 0);
    let failed = async || -> Vec<&'static str> {
        let findings = store.check_integrity().await.unwrap();
        findings.into_iter().filter(|it| !it.ok).map(|it| it.subject).collect()
    };
    assert_eq!(failed().await, [""; 0]);
    client.batch_execute("UPDATE account SET template_bytes = template_bytes + 1").await.unwrap();
    assert_eq!(failed().await, ["stored bytes"]);
    assert_eq!(store.count_stored_bytes(true).await.unwrap(), 2);
    assert_eq!(failed().await, [""; 0]);
}

#[tokio::test]
async fn an_endpoint_of_a_missing_account_is_an_error() {
    let store = open_postgres_with(&fresh_database().await, 4).await;
    let unknown = galley_domain::id::AccountId::new(12_345).unwrap();
    let error = store.create_webhook(endpoint(unknown)).await.unwrap_err();
    assert!(matches!(error, StoreError::Failed(_)), "{error:?}");
}
