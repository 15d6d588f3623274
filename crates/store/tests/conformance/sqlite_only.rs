//! What only the SQLite store is asked: its queue, its file, its copies.

use std::sync::Arc;

use galley_store::{SqliteStore, Store, StoreError, sqlite::SqliteOptions};

use super::fixture::{account, all_at_once, fresh_sqlite, new};

#[tokio::test]
async fn a_full_queue_answers_busy_and_loses_nothing_it_took() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let options = SqliteOptions { queue: 1, ..SqliteOptions::default() };
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path, &options).unwrap());
    let account = account(&store, "a").await;
    // While another process holds the write lock, the writer stands still and its queue fills.
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (mut waiting, mut busy) = (Vec::new(), 0);
    while busy == 0 {
        let name = format!("t{}", waiting.len());
        let mut creation = Box::pin({
            let store = Arc::clone(&store);
            async move { store.create_template(new(account, &name)).await }
        });
        // One poll puts it into the queue, or finds the queue full.
        match std::future::poll_fn(|context| {
            std::task::Poll::Ready(creation.as_mut().poll(context))
        })
        .await
        {
            std::task::Poll::Ready(Err(StoreError::Busy)) => busy += 1,
            std::task::Poll::Ready(other) => panic!("{other:?}"),
            std::task::Poll::Pending => waiting.push(creation),
        }
        assert!(waiting.len() < 10, "a queue of one takes one, and the writer holds some");
    }
    other.execute_batch("ROLLBACK").unwrap();
    let taken = waiting.len();
    for creation in waiting {
        creation.await.unwrap();
    }
    assert_eq!(store.events(account, 0, 100).await.unwrap().len(), taken);
}

#[tokio::test]
async fn a_store_opens_again_with_all_that_was_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(&path, &SqliteOptions::default()).unwrap());
    let account = account(&store, "a").await;
    let news = (0..50).map(|index| new(account, &format!("t{index}"))).collect();
    assert_eq!(all_at_once(&store, news).await.len(), 50);
    assert_eq!(store.accounts().await.unwrap().len(), 1, "readers are open, too");
    drop(store);
    assert!(
        !dir.path().join("galley.db-wal").exists(),
        "an orderly end folds the log into the file"
    );
    let store = SqliteStore::open(&path, &SqliteOptions::default()).unwrap();
    assert_eq!(store.events(account, 0, 100).await.unwrap().len(), 50);
    assert!(store.examine().await.unwrap().iter().all(|finding| finding.good));
}

#[tokio::test]
async fn a_copy_taken_while_writing_opens_and_is_whole() {
    let (store, dir) = fresh_sqlite();
    let account = account(&store, "a").await;
    store.create_template(new(account, "before")).await.unwrap();
    let copy = dir.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    store.create_template(new(account, "after")).await.unwrap();
    assert!(store.backup(&copy).await.is_err(), "a file that exists is not overwritten");
    let copy = SqliteStore::open(&copy, &SqliteOptions::default()).unwrap();
    let names: Vec<_> =
        copy.events(account, 0, 10).await.unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["before"]);
    assert!(copy.examine().await.unwrap().iter().all(|finding| finding.good));
}

#[tokio::test]
async fn two_processes_may_write_to_one_file() {
    let (store, dir) = fresh_sqlite();
    let account = account(&store, "a").await;
    let second: Arc<dyn Store> = Arc::new(
        SqliteStore::open(&dir.path().join("galley.db"), &SqliteOptions::default()).unwrap(),
    );
    for index in 0..10 {
        store.create_template(new(account, &format!("one{index}"))).await.unwrap();
        second.create_template(new(account, &format!("two{index}"))).await.unwrap();
    }
    let seqs: Vec<_> =
        store.events(account, 0, 100).await.unwrap().into_iter().map(|it| it.seq).collect();
    assert_eq!(seqs, (1..=20).collect::<Vec<u64>>());
}
