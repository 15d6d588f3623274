//! Tests of the limits of reads, with reads that are held back, and of cancelled reads, with a
//! statement that never ends by itself.

use std::time::Duration;

use galley_domain::id::AccountId;
use tokio::{sync::oneshot, time::timeout};

use super::*;

/// Longer than anything takes that ends.
const TIMEOUT: Duration = Duration::from_secs(20);

const ENDLESS: &str = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) \
                       SELECT count(*) FROM n";

fn readers(dir: &tempfile::TempDir) -> Arc<ReaderPool> {
    let path = dir.path().join("galley.db");
    connection::create_if_missing(&path, false).unwrap();
    drop(connection::open_for_writing(&path, crate::SchemaPolicy::Migrate).unwrap());
    let files = Arc::new(OpenFiles::of(&path).unwrap());
    Arc::new(ReaderPool::of(&path, files, Arc::new(BufferedIndexes::new(8))))
}

fn account(id: u64) -> AccountId {
    AccountId::new(id).unwrap()
}

/// Runs a read with a slot of the account.
async fn run_blocking<T: Send + 'static>(
    readers: &Arc<ReaderPool>,
    kind: ReadKind,
    account: AccountId,
    work: impl FnOnce(&ReaderPool, &Cancellation) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let slot = readers.slots.acquire(kind, account).await?;
    run_with_slot(readers, slot, work).await
}

fn number(connection: &Connection, statement: &str) -> Result<i64, StoreError> {
    Ok(connection.query_row(statement, [], |row| row.get(0))?)
}

/// Starts a read that does not end, waits until it runs, and drops its future.
async fn leave_endless_read(readers: &Arc<ReaderPool>, kind: ReadKind) {
    let (started, is_running) = oneshot::channel();
    let work = move |readers: &ReaderPool, cancellation: &Cancellation| {
        readers.cancellable_read(cancellation, |connection| {
            let _ = started.send(());
            number(connection, ENDLESS)
        })
    };
    let read = run_blocking(readers, kind, account(1), work);
    tokio::select! {
        ended = read => panic!("{ended:?}"),
        running = is_running => running.unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_of_an_account_do_not_delay_reads_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let readers = readers(&dir);
    // Thirty-two searches of one account that do not end.
    let (release, held_back) = std::sync::mpsc::channel::<()>();
    let held_back = Arc::new(Mutex::new(held_back));
    let (started, mut running) = tokio::sync::mpsc::unbounded_channel();
    let mut searches = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let (readers, held_back, started) =
            (Arc::clone(&readers), Arc::clone(&held_back), started.clone());
        searches.spawn(async move {
            let work = move |_: &ReaderPool, _: &Cancellation| {
                let _ = started.send(());
                let _ = lock(&held_back).recv();
                Ok(())
            };
            run_blocking(&readers, ReadKind::Search, account(1), work).await
        });
    }
    for _ in 0..2 {
        timeout(TIMEOUT, running.recv()).await.unwrap().unwrap();
    }
    let one = |readers: &ReaderPool, _: &Cancellation| {
        readers.read(|connection| number(connection, "SELECT 1"))
    };
    for (kind, id) in [
        (ReadKind::List, 2),
        (ReadKind::Search, 2),
        (ReadKind::Feed, 2),
        (ReadKind::List, 1),
        (ReadKind::Feed, 1),
    ] {
        let read = run_blocking(&readers, kind, account(id), one);
        assert_eq!(timeout(TIMEOUT, read).await.expect("no read waits").unwrap(), 1, "{kind:?}");
    }
    assert!(running.try_recv().is_err(), "two searches of an account run at a time");
    drop(release);
    while let Some(search) = searches.join_next().await {
        search.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_whose_caller_is_gone_ends_and_frees_its_slot() {
    let dir = tempfile::tempdir().unwrap();
    let readers = readers(&dir);
    // More than there are slots.
    for _ in 0..20 {
        timeout(TIMEOUT, leave_endless_read(&readers, ReadKind::Search)).await.unwrap();
    }
    let read = |readers: &ReaderPool, _: &Cancellation| {
        readers.read(|connection| number(connection, "SELECT 1"))
    };
    let read = run_blocking(&readers, ReadKind::Search, account(1), read);
    assert_eq!(timeout(TIMEOUT, read).await.unwrap().unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_has_not_begun_does_not_begin_after_its_caller_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let readers = readers(&dir);
    let cancellation = Cancellation::of(&Arc::new(()));
    assert!(cancellation.is_cancelled());
    let endless = readers.cancellable_read(&cancellation, |it| number(it, ENDLESS));
    assert!(endless.is_err(), "an open connection is cancelled at its first statements");
}

#[test]
fn the_next_user_of_a_connection_is_not_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    let readers = readers(&dir);
    let (first_caller, second_caller) = (Arc::new(()), Arc::new(()));
    let (first, second) = (Cancellation::of(&first_caller), Cancellation::of(&second_caller));
    let one = |connection: &Connection| number(connection, "SELECT 1");
    assert_eq!(readers.cancellable_read(&first, one).unwrap(), 1);
    // The caller of the first read leaves while the second one uses the same connection.
    let steps = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 100000) \
                 SELECT count(*) FROM n";
    let read = readers.cancellable_read(&second, |connection| {
        drop(first_caller);
        number(connection, steps)
    });
    assert_eq!(read.unwrap(), 100_000);
    // A read that is cancelled leaves a usable connection behind.
    let cancelled = readers.cancellable_read(&second, |connection| {
        drop(second_caller);
        number(connection, ENDLESS)
    });
    assert!(cancelled.is_err());
    assert_eq!(readers.read(|connection| number(connection, steps)).unwrap(), 100_000);
    assert_eq!(lock(&readers.store.idle).connections.len(), 1, "one connection served all reads");
}
