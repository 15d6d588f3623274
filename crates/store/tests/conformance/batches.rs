//! What only the store on PostgreSQL is asked: which creations share a transaction.

use std::{future::Future, pin::Pin, sync::Arc, task::Poll};

use galley_domain::{
    document::Document,
    id::AccountId,
    rulebook::{Category, V1},
    template::Template,
};
use galley_store::{CreateOutcome, NewTemplate, StoreError};

use super::{
    fixture::{
        Shared, about, account, client, created, events, fresh_database, member, new,
        open_postgres, with_key,
    },
    one_database::{number, somebody_waits},
};

type UnderWay = Pin<Box<dyn Future<Output = Result<CreateOutcome, StoreError>> + Send>>;

/// A creation that has queued and has no answer yet.
async fn queued(store: &Shared, new: NewTemplate) -> UnderWay {
    let store = Arc::clone(store);
    let mut creation: UnderWay = Box::pin(async move { store.create_template(new).await });
    std::future::poll_fn(|context| {
        assert!(creation.as_mut().poll(context).is_pending(), "something is ahead of it");
        Poll::Ready(())
    })
    .await;
    creation
}

/// A store whose creations wait for what somebody has locked for as long as a statement may take.
async fn patient(address: &str) -> Shared {
    let mark = if address.contains('?') { '&' } else { '?' };
    open_postgres(&format!("{address}{mark}options=-c%20lock_timeout%3D0")).await
}

/// The names of an account's events, which are numbered without a gap, in alphabetical order: those of
/// one batch come in any.
async fn told(store: &Shared, account: AccountId) -> Vec<String> {
    let events = events(store, account, 0, 10).await;
    for (event, seq) in events.iter().zip(1..) {
        assert_eq!(event.seq, seq);
    }
    let mut names: Vec<String> = events.iter().map(|event| about(event).1.to_owned()).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn who_comes_while_a_batch_waits_for_its_account_is_made_with_it() {
    let address = fresh_database().await;
    let (store, owner) = (patient(&address).await, client(&address).await);
    let onlooker = client(&address).await;
    let (ours, other) = (account(&store, "ours").await, account(&store, "other").await);
    owner
        .batch_execute("BEGIN; SELECT 1 FROM account WHERE name = 'ours' FOR UPDATE")
        .await
        .unwrap();
    let first = queued(&store, new(ours, "first")).await;
    somebody_waits(&onlooker).await;
    let second = queued(&store, new(ours, "second")).await;
    let taken = queued(&store, new(ours, "first")).await;
    // What these need was not asked: they wait for the next batch, and those behind them as well.
    let keyed = queued(&store, with_key(ours, "keyed", 1, 1)).await;
    let elsewhere = queued(&store, new(other, "elsewhere")).await;
    let last = queued(&store, new(ours, "last")).await;
    owner.batch_execute("ROLLBACK").await.unwrap();

    let first = created(first.await.unwrap());
    created(second.await.unwrap());
    match taken.await.unwrap() {
        CreateOutcome::NameInUse(taken) => assert_eq!(taken.own, Some(first.id)),
        other => panic!("{other:?}"),
    }
    for creation in [keyed, elsewhere, last] {
        created(creation.await.unwrap());
    }
    assert_eq!(told(&store, ours).await, ["first", "keyed", "last", "second"]);
    assert_eq!(told(&store, other).await, ["elsewhere"]);
    let transactions = "SELECT count(DISTINCT xmin::text) FROM template";
    assert_eq!(number(&onlooker, transactions).await, 2);
}

#[tokio::test]
async fn who_is_done_is_told_though_nobody_behind_waits_any_more() {
    let address = fresh_database().await;
    let (store, owner) = (patient(&address).await, client(&address).await);
    let onlooker = client(&address).await;
    let ours = account(&store, "ours").await;
    owner
        .batch_execute("BEGIN; SELECT 1 FROM account WHERE name = 'ours' FOR UPDATE")
        .await
        .unwrap();
    // Nobody joins a batch with a family in it: whoever comes is still there when it is done.
    let first = queued(&store, member(ours, "first", "en_US", Category::Utility)).await;
    somebody_waits(&onlooker).await;
    drop(queued(&store, new(ours, "gone")).await);
    owner.batch_execute("ROLLBACK").await.unwrap();
    created(first.await.unwrap());
    assert_eq!(told(&store, ours).await, ["first"]);
}

/// Keeps the store at one creation until the others have queued, so that they are one batch.
async fn together(store: &Shared, address: &str, others: Vec<NewTemplate>) -> Vec<UnderWay> {
    let (owner, onlooker) = (client(address).await, client(address).await);
    let first = account(store, "first").await;
    owner
        .batch_execute("BEGIN; SELECT 1 FROM account WHERE name = 'first' FOR UPDATE")
        .await
        .unwrap();
    let ahead = queued(store, new(first, "ahead")).await;
    somebody_waits(&onlooker).await;
    let mut batch = Vec::new();
    for new in others {
        batch.push(queued(store, new).await);
    }
    owner.batch_execute("ROLLBACK").await.unwrap();
    // On a machine that is slow at this moment it may have waited for too long: no matter.
    let _ = ahead.await;
    batch
}

fn is_refused(creation: &Result<CreateOutcome, StoreError>) -> bool {
    matches!(creation, Err(StoreError::Unavailable(_) | StoreError::Busy))
}

#[tokio::test]
async fn an_account_that_somebody_holds_fails_no_other() {
    let address = fresh_database().await;
    let (store, owner) = (open_postgres(&address).await, client(&address).await);
    let (other, ours) = (account(&store, "other").await, account(&store, "ours").await);
    owner
        .batch_execute("BEGIN; SELECT 1 FROM account WHERE name = 'ours' FOR UPDATE")
        .await
        .unwrap();
    let batch = vec![new(ours, "held"), new(other, "free"), new(other, "free too")];
    let mut batch = together(&store, &address, batch).await.into_iter();

    assert!(is_refused(&batch.next().unwrap().await));
    for creation in batch {
        created(creation.await.unwrap());
    }
    owner.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(told(&store, ours).await, [""; 0]);
    assert_eq!(told(&store, other).await, ["free", "free too"]);
}

#[tokio::test]
async fn several_accounts_that_somebody_holds_fail_no_other() {
    let address = fresh_database().await;
    let (store, owner) = (open_postgres(&address).await, client(&address).await);
    let mut batch = Vec::new();
    for name in ["held 1", "held 2", "held 3", "held 4"] {
        batch.push(new(account(&store, name).await, name));
    }
    let other = account(&store, "other").await;
    batch.push(new(other, "free"));
    owner
        .batch_execute("BEGIN; SELECT 1 FROM account WHERE name LIKE 'held%' FOR UPDATE")
        .await
        .unwrap();
    let mut batch = together(&store, &address, batch).await;
    let free = batch.pop().unwrap();

    for held in batch {
        assert!(is_refused(&held.await));
    }
    created(free.await.unwrap());
}

#[tokio::test]
async fn a_name_that_somebody_is_taking_fails_no_other() {
    let address = fresh_database().await;
    let (store, owner) = (open_postgres(&address).await, client(&address).await);
    let ours = account(&store, "ours").await;
    let held = created(store.create_template(new(ours, "held")).await.unwrap());
    let claim = format!("SELECT encode(claim, 'hex') FROM template WHERE id = {}", held.id.get());
    let claim: String = owner.query_one(&claim, &[]).await.unwrap().get(0);
    let set = |claim: &str| format!("UPDATE template SET claim = {claim} WHERE name = 'held'");
    owner.batch_execute(&set("NULL")).await.unwrap();
    owner
        .batch_execute(&format!("BEGIN; {}", set(&format!("decode('{claim}', 'hex')"))))
        .await
        .unwrap();
    let mut batch: Vec<NewTemplate> = (1..64).map(|it| new(ours, &format!("free {it}"))).collect();
    batch.push(new(ours, "held"));
    let mut batch = together(&store, &address, batch).await;

    assert!(is_refused(&batch.pop().unwrap().await));
    for free in batch {
        created(free.await.unwrap());
    }
    // Fifteen pieces of four, and those who were together with the one to blame; some more if the
    // machine was so slow that they were two batches.
    let transactions = "SELECT count(DISTINCT xmin::text) FROM template WHERE name LIKE 'free%'";
    assert!(number(&owner, transactions).await <= 24);
}

#[tokio::test]
async fn a_batch_of_any_size_is_written_as_it_is() {
    let address = fresh_database().await;
    let store = open_postgres(&address).await;
    let ours = account(&store, "ours").await;
    let large = |name: &str, length: usize| {
        let document = format!(
            r#"{{"name":"{name}","language":"en_US","category":"UTILITY","allow_category_change":true,
            "components":[{{"type":"BODY","text":"{{{{1}}}}","example":{{"body_text":[["{}"]]}}}}]}}"#,
            name.repeat(length)
        );
        let document = Document::parse(document.as_bytes()).unwrap();
        NewTemplate { template: Template::read(&document, &V1).unwrap(), ..new(ours, name) }
    };
    let batch: Vec<NewTemplate> =
        [("é", 10), ("b", 40_000), ("c", 30_000), ("d", 30_000), ("e", 200_000), ("f", 10)]
            .map(|(name, length)| large(name, length))
            .into();
    let wanted: Vec<Template> = batch.iter().map(|it| it.template.clone()).collect();
    let batch = together(&store, &address, batch).await;

    for (creation, wanted) in batch.into_iter().zip(wanted) {
        let id = created(creation.await.unwrap()).id;
        assert!(store.template(ours, id).await.unwrap().unwrap().template == wanted);
    }
}

#[tokio::test]
async fn what_a_key_made_is_not_told_while_somebody_holds_its_account() {
    let address = fresh_database().await;
    let (store, owner) = (open_postgres(&address).await, client(&address).await);
    let ours = account(&store, "ours").await;
    created(store.create_template(with_key(ours, "made", 1, 1)).await.unwrap());
    owner
        .batch_execute("BEGIN; SELECT 1 FROM account WHERE name = 'ours' FOR UPDATE")
        .await
        .unwrap();
    // Whoever holds it may be a commit that waits for a standby.
    for _ in 0..3 {
        assert!(is_refused(&store.create_template(with_key(ours, "made", 1, 1)).await));
    }
    owner.batch_execute("ROLLBACK").await.unwrap();
    let again = store.create_template(with_key(ours, "made", 1, 1)).await.unwrap();
    assert!(matches!(again, CreateOutcome::Replayed(_)), "{again:?}");
}
