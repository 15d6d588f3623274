//! Tests of the PostgreSQL store only: which creates share a transaction.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use galley_domain::{
    document::Document,
    id::AccountId,
    rulebook::{Category, V1},
    template::Template,
};
use galley_store::{CreateOutcome, NewTemplate, StoreError};

use super::{
    fixture::{
        Shared, account, client, created, events, fresh_database, new, open_postgres,
        template_subject, translation, with_key,
    },
    one_database::{query_number, wait_for_blocked_statement},
};

type PendingCreate = Pin<Box<dyn Future<Output = Result<CreateOutcome, StoreError>> + Send>>;

/// Queues a create that does not complete yet.
async fn queued(store: &Shared, new: NewTemplate) -> PendingCreate {
    let store = Arc::clone(store);
    let mut create: PendingCreate = Box::pin(async move { store.create_template(new).await });
    std::future::poll_fn(|context| {
        assert!(create.as_mut().poll(context).is_pending(), "another create is ahead of it");
        Poll::Ready(())
    })
    .await;
    create
}

/// A store whose creates wait for locks without a lock timeout.
async fn open_without_lock_timeout(address: &str) -> Shared {
    let separator = if address.contains('?') { '&' } else { '?' };
    open_postgres(&format!("{address}{separator}options=-c%20lock_timeout%3D0")).await
}

/// The template names of an account's events, sorted: within a batch, their order is arbitrary.
/// Checks that the sequence numbers have no gaps.
async fn created_names(store: &Shared, account: AccountId) -> Vec<String> {
    let events = events(store, account, 0, 10).await;
    for (event, seq) in events.iter().zip(1..) {
        assert_eq!(event.seq, seq);
    }
    let mut names: Vec<String> =
        events.iter().map(|event| template_subject(event).1.to_owned()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_create_joins_a_batch_that_waits_for_its_account() {
    let address = fresh_database().await;
    let (store, owner) = (open_without_lock_timeout(&address).await, client(&address).await);
    let observer = client(&address).await;
    let (shop, other) = (account(&store, "shop").await, account(&store, "other").await);
    owner
        .batch_execute("BEGIN; SELECT 1 FROM account WHERE name = 'shop' FOR UPDATE")
        .await
        .unwrap();
    let first = queued(&store, new(shop, "first")).await;
    wait_for_blocked_statement(&observer).await;
    let second = queued(&store, new(shop, "second")).await;
    let duplicate = queued(&store, new(shop, "first")).await;
    // The batch has not read what these need: they and those behind them wait for the next batch.
    let keyed = queued(&store, with_key(shop, "keyed", 1, 1)).await;
    let elsewhere = queued(&store, new(other, "elsewhere")).await;
    let last = queued(&store, new(shop, "last")).await;
    owner.batch_execute("ROLLBACK").await.unwrap();

    let first = created(first.await.unwrap());
    created(second.await.unwrap());
    match duplicate.await.unwrap() {
        CreateOutcome::NameInUse(conflict) => assert_eq!(conflict.existing_id, Some(first.id)),
        other => panic!("{other:?}"),
    }
    for create in [keyed, elsewhere, last] {
        created(create.await.unwrap());
    }
    assert_eq!(created_names(&store, shop).await, ["first", "keyed", "last", "second"]);
    assert_eq!(created_names(&store, other).await, ["elsewhere"]);
    let transactions = "SELECT count(DISTINCT xmin::text) FROM template";
    assert_eq!(query_number(&observer, transactions).await, 2);
}

#[tokio::test]
async fn a_create_completes_although_the_one_behind_it_was_cancelled() {
    let address = fresh_database().await;
    let (store, owner) = (open_without_lock_timeout(&address).await, client(&address).await);
    let observer = client(&address).await;
    let shop = account(&store, "shop").await;
    owner
        .batch_execute("BEGIN; SELECT 1 FROM account WHERE name = 'shop' FOR UPDATE")
        .await
        .unwrap();
    // No create joins a batch with a translation group: the next one stays in the queue.
    let first = queued(&store, translation(shop, "first", "en_US", Category::Utility)).await;
    wait_for_blocked_statement(&observer).await;
    drop(queued(&store, new(shop, "cancelled")).await);
    owner.batch_execute("ROLLBACK").await.unwrap();
    created(first.await.unwrap());
    assert_eq!(created_names(&store, shop).await, ["first"]);
}

/// Time limit of queueing a batch. A create that is queued for two seconds gets `Busy`.
const MAX_QUEUEING: Duration = Duration::from_secs(1);

/// Blocks the store with one create until the others are queued, so that they form one batch. Starts
/// again, with nothing written, if the machine was too slow to queue them in time.
async fn queue_as_batch(
    store: &Shared,
    address: &str,
    others: Vec<NewTemplate>,
) -> Vec<PendingCreate> {
    let (owner, observer) = (client(address).await, client(address).await);
    let blocked = account(store, "blocked").await;
    loop {
        owner
            .batch_execute("BEGIN; SELECT 1 FROM account WHERE name = 'blocked' FOR UPDATE")
            .await
            .unwrap();
        let ahead = queued(store, new(blocked, "ahead")).await;
        wait_for_blocked_statement(&observer).await;
        let (started, mut batch) = (Instant::now(), Vec::new());
        for new in others.clone() {
            batch.push(queued(store, new).await);
        }
        let is_in_time = started.elapsed() < MAX_QUEUEING;
        if !is_in_time {
            batch.clear();
        }
        owner.batch_execute("ROLLBACK").await.unwrap();
        // On a slow machine it may have timed out, which does not matter here.
        let _ = ahead.await;
        if is_in_time {
            return batch;
        }
    }
}

fn is_refused(outcome: &Result<CreateOutcome, StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Unavailable(_) | StoreError::Busy))
}

#[tokio::test]
async fn a_locked_account_does_not_fail_creates_of_other_accounts() {
    let address = fresh_database().await;
    let (store, owner) = (open_postgres(&address).await, client(&address).await);
    let (other, shop) = (account(&store, "other").await, account(&store, "shop").await);
    owner
        .batch_execute("BEGIN; SELECT 1 FROM account WHERE name = 'shop' FOR UPDATE")
        .await
        .unwrap();
    let batch = vec![new(shop, "locked"), new(other, "free"), new(other, "free too")];
    let mut batch = queue_as_batch(&store, &address, batch).await.into_iter();

    assert!(is_refused(&batch.next().unwrap().await));
    for create in batch {
        created(create.await.unwrap());
    }
    owner.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(created_names(&store, shop).await, [""; 0]);
    assert_eq!(created_names(&store, other).await, ["free", "free too"]);
}

#[tokio::test]
async fn several_locked_accounts_do_not_fail_creates_of_other_accounts() {
    let address = fresh_database().await;
    let (store, owner) = (open_postgres(&address).await, client(&address).await);
    let mut batch = Vec::new();
    for name in ["locked 1", "locked 2", "locked 3", "locked 4"] {
        batch.push(new(account(&store, name).await, name));
    }
    let other = account(&store, "other").await;
    batch.push(new(other, "free"));
    owner
        .batch_execute("BEGIN; SELECT 1 FROM account WHERE name LIKE 'locked%' FOR UPDATE")
        .await
        .unwrap();
    let mut batch = queue_as_batch(&store, &address, batch).await;
    let free = batch.pop().unwrap();

    for locked in batch {
        assert!(is_refused(&locked.await));
    }
    created(free.await.unwrap());
}

#[tokio::test]
async fn a_locked_name_does_not_fail_other_creates() {
    let address = fresh_database().await;
    let (store, owner) = (open_postgres(&address).await, client(&address).await);
    let shop = account(&store, "shop").await;
    let locked = created(store.create_template(new(shop, "locked")).await.unwrap());
    let unique_key =
        format!("SELECT encode(unique_key, 'hex') FROM template WHERE id = {}", locked.id.get());
    let unique_key: String = owner.query_one(&unique_key, &[]).await.unwrap().get(0);
    let set =
        |value: &str| format!("UPDATE template SET unique_key = {value} WHERE name = 'locked'");
    owner.batch_execute(&set("NULL")).await.unwrap();
    owner
        .batch_execute(&format!("BEGIN; {}", set(&format!("decode('{unique_key}', 'hex')"))))
        .await
        .unwrap();
    let mut batch: Vec<NewTemplate> = (1..64).map(|it| new(shop, &format!("free {it}"))).collect();
    batch.push(new(shop, "locked"));
    let mut batch = queue_as_batch(&store, &address, batch).await;

    assert!(is_refused(&batch.pop().unwrap().await));
    for free in batch {
        created(free.await.unwrap());
    }
    // Fifteen parts of four, and the creates in the same part as the locked name one by one; a few
    // more if a slow machine made two batches of them.
    let transactions = "SELECT count(DISTINCT xmin::text) FROM template WHERE name LIKE 'free%'";
    assert!(query_number(&owner, transactions).await <= 24);
}

#[tokio::test]
async fn batches_with_templates_of_any_size_are_stored_unchanged() {
    let address = fresh_database().await;
    let store = open_postgres(&address).await;
    let shop = account(&store, "shop").await;
    let large = |name: &str, length: usize| {
        let document = format!(
            r#"{{"name":"{name}","language":"en_US","category":"UTILITY","allow_category_change":true,
            "components":[{{"type":"BODY","text":"{{{{1}}}}","example":{{"body_text":[["{}"]]}}}}]}}"#,
            name.repeat(length)
        );
        let document = Document::parse(document.as_bytes()).unwrap();
        NewTemplate { template: Template::read(&document, &V1).unwrap(), ..new(shop, name) }
    };
    let batch: Vec<NewTemplate> =
        [("é", 10), ("b", 40_000), ("c", 30_000), ("d", 30_000), ("e", 200_000), ("f", 10)]
            .map(|(name, length)| large(name, length))
            .into();
    let expected: Vec<Template> = batch.iter().map(|it| it.template.clone()).collect();
    let batch = queue_as_batch(&store, &address, batch).await;

    for (create, expected) in batch.into_iter().zip(expected) {
        let id = created(create.await.unwrap()).id;
        assert!(store.template(shop, id).await.unwrap().unwrap().template == expected);
    }
}

#[tokio::test]
async fn an_idempotent_replay_waits_for_a_locked_account() {
    let address = fresh_database().await;
    let (store, owner) = (open_postgres(&address).await, client(&address).await);
    let shop = account(&store, "shop").await;
    created(store.create_template(with_key(shop, "created", 1, 1)).await.unwrap());
    owner
        .batch_execute("BEGIN; SELECT 1 FROM account WHERE name = 'shop' FOR UPDATE")
        .await
        .unwrap();
    // The lock may belong to a commit that waits for a standby.
    for _ in 0..3 {
        assert!(is_refused(&store.create_template(with_key(shop, "created", 1, 1)).await));
    }
    owner.batch_execute("ROLLBACK").await.unwrap();
    let again = store.create_template(with_key(shop, "created", 1, 1)).await.unwrap();
    assert!(matches!(again, CreateOutcome::Replayed(_)), "{again:?}");
}
