//! What only the SQLite store is asked: its queue, its file, its copies.

use std::sync::Arc;

use galley_domain::template::edit::Edit;
use galley_store::{
    AccountLimits, AppendOutcome, MAX_CREATES_PER_HOUR, NewTemplate, NewUpload, SqliteStore, Store,
    StoreError, UPLOAD_CHUNK_BYTES, sqlite::SqliteOptions,
};

use super::{
    fixture::{
        Shared, about, account, all_at_once, change, create, done, events, fresh_sqlite, new, noon,
    },
    lists::{follow, names, searching},
    uploads::{ROOM, append, begin, is_sound, picture, upload},
};

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
    assert_eq!(events(&store, account, 0, 100).await.len(), taken);
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
    let store = open(&path);
    assert_eq!(events(&store, account, 0, 100).await.len(), 50);
    assert!(store.check_integrity().await.unwrap().iter().all(|finding| finding.good));
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
    let copy = open(&copy);
    let names: Vec<_> =
        events(&copy, account, 0, 10).await.iter().map(|it| about(it).1.to_owned()).collect();
    assert_eq!(names, ["before"]);
    assert!(copy.check_integrity().await.unwrap().iter().all(|finding| finding.good));
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
    let seqs: Vec<_> = events(&store, account, 0, 100).await.into_iter().map(|it| it.seq).collect();
    assert_eq!(seqs, (1..=20).collect::<Vec<u64>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_begins_anew_although_somebody_always_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let options = SqliteOptions { fold_pages: 100, ..SqliteOptions::default() };
    let store: Shared = Arc::new(SqliteStore::open(&path, &options).unwrap());
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "first")).await;
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (store, done) = (Arc::clone(&store), Arc::clone(&done));
            tokio::task::spawn_blocking(move || {
                let runtime = tokio::runtime::Handle::current();
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    runtime.block_on(store.template(account, id)).unwrap().unwrap();
                    // What a service does with it before it reads the next one.
                    let read = std::time::Instant::now();
                    while read.elapsed() < std::time::Duration::from_micros(30) {
                        std::hint::spin_loop();
                    }
                }
            })
        })
        .collect();
    let mut pages = 0;
    for index in 0..1_000 {
        create(&store, new(account, &format!("t{index}"))).await;
        let log = std::fs::metadata(dir.path().join("galley.db-wal")).unwrap().len();
        pages = pages.max(log / 4_096);
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    // It would have several thousand; how many it has depends on when readers get their turn.
    assert!(pages < 2_500, "the log had {pages} pages");
}

#[tokio::test]
async fn what_another_process_commits_is_seen_a_moment_later_at_most() {
    let (store, dir) = fresh_sqlite();
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "hello")).await;
    let second = open(&dir.path().join("galley.db"));
    // This read leaves a transaction open that shows the template.
    assert!(store.template(account, id).await.unwrap().is_some());
    done(second.delete_template(change(account, id)).await.unwrap());
    let begun = std::time::Instant::now();
    while store.template(account, id).await.unwrap().is_some() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "it is still seen");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whoever_reads_after_an_edit_was_acknowledged_sees_it_however_many_others_read() {
    let (store, _dir) = fresh_sqlite();
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "hello")).await;
    let done_editing = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (store, ended) = (Arc::clone(&store), Arc::clone(&done_editing));
            tokio::spawn(async move {
                let mut newest = 0;
                while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                    let revision = store.template(account, id).await.unwrap().unwrap().revision;
                    assert!(revision >= newest, "{revision} was read after {newest}");
                    newest = revision;
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for index in 0..300 {
        let edited =
            done(store.edit_template(change(account, id), replacing(index)).await.unwrap());
        let read = store.template(account, id).await.unwrap().unwrap();
        assert_eq!(*read, edited);
    }
    done_editing.store(true, std::sync::atomic::Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
}

fn replacing(index: u32) -> Edit {
    let content = format!(r#"{{"components":[{{"type":"BODY","text":"text {index}"}}]}}"#);
    Edit::Replace { content: Some(content), category: None }
}

fn open(path: &std::path::Path) -> Shared {
    Arc::new(SqliteStore::open(path, &SqliteOptions::default()).unwrap())
}

#[tokio::test]
async fn the_search_goes_on_where_it_was_and_is_made_anew_when_its_file_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store = open(&path);
    let account = account(&store, "a").await;
    create(&store, new(account, "first")).await;
    follow(&store).await;
    create(&store, new(account, "second")).await;
    drop(store);
    let store = open(&path);
    assert_eq!(names(&store, searching(account, "first")).await, ["first"]);
    assert_eq!(names(&store, searching(account, "second")).await, [""; 0]);
    follow(&store).await;
    assert_eq!(names(&store, searching(account, "second")).await, ["second"]);
    drop(store);
    std::fs::remove_file(dir.path().join("galley.db-search")).unwrap();
    let store = open(&path);
    assert_eq!(names(&store, searching(account, "first")).await, [""; 0]);
    follow(&store).await;
    create(&store, new(account, "third")).await;
    follow(&store).await;
    for name in ["first", "second", "third"] {
        assert_eq!(names(&store, searching(account, name)).await, [name]);
    }
}

#[tokio::test]
async fn a_damaged_search_is_made_anew_by_the_next_steps() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store = open(&path);
    let account = account(&store, "a").await;
    create(&store, new(account, "first")).await;
    drop(store);
    std::fs::write(dir.path().join("galley.db-search"), "this is no database at all").unwrap();
    let store = open(&path);
    assert!(store.list(searching(account, "first")).await.is_err());
    follow(&store).await;
    assert_eq!(names(&store, searching(account, "first")).await, ["first"]);
}

#[tokio::test]
async fn a_search_that_followed_another_history_is_made_anew() {
    let (store, dir) = fresh_sqlite();
    let account = account(&store, "a").await;
    create(&store, new(account, "kept")).await;
    let copy = dir.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    create(&store, new(account, "lost")).await;
    follow(&store).await;
    drop(store);
    // The copy is put back under the search of what came after it.
    let path = dir.path().join("galley.db");
    std::fs::rename(&copy, &path).unwrap();
    let store = open(&path);
    create(&store, NewTemplate { at: noon(60_000), ..new(account, "instead") }).await;
    follow(&store).await;
    assert_eq!(names(&store, searching(account, "lost")).await, [""; 0]);
    assert_eq!(names(&store, searching(account, "instead")).await, ["instead"]);
    assert_eq!(names(&store, searching(account, "kept")).await, ["kept"]);
}

/// Asks the file itself for a number.
fn ask(dir: &tempfile::TempDir, query: &str) -> usize {
    let file = rusqlite::Connection::open(dir.path().join("galley.db")).unwrap();
    let number: i64 = file.query_row(query, [], |row| row.get(0)).unwrap();
    usize::try_from(number).unwrap()
}

#[tokio::test]
async fn an_upload_is_kept_in_chunks_that_are_neither_many_nor_large() {
    let (store, dir) = fresh_sqlite();
    let account = account(&store, "a").await;
    let length = 40_000 + 3 * UPLOAD_CHUNK_BYTES;
    let new = NewUpload {
        account,
        id: "u".to_owned(),
        handle: "h".to_owned(),
        file_name: "f".to_owned(),
        file_type: "t".to_owned(),
        length: length as u64,
        room: ROOM,
        at: noon(0),
    };
    store.begin_upload(new).await.unwrap();
    for piece in 0..400 {
        let added = store.append_upload(account, "u", piece * 100, &[7; 100], ROOM, noon(0)).await;
        assert_eq!(added.unwrap(), AppendOutcome::Received((piece + 1) * 100));
    }
    assert_eq!(ask(&dir, "SELECT count(*) FROM upload_chunk"), 3);
    let rest = vec![7; 3 * UPLOAD_CHUNK_BYTES];
    store.append_upload(account, "u", 40_000, &rest, ROOM, noon(0)).await.unwrap();
    assert_eq!(ask(&dir, "SELECT max(length(bytes)) FROM upload_chunk"), UPLOAD_CHUNK_BYTES);
    assert_eq!(ask(&dir, "SELECT sum(length(bytes)) FROM upload_chunk"), length);
}

#[tokio::test]
async fn what_media_take_is_counted_when_the_column_comes_and_looked_after_by_the_doctor() {
    let (store, dir) = fresh_sqlite();
    let account = account(&store, "a").await;
    for (id, length) in [("whole", 5_000), ("begun", 9_000)] {
        begin(&store, upload(account, id, length)).await;
        append(&store, account, id, 0, &picture(5_000)).await;
    }
    is_sound(&store).await;
    drop(store);
    let path = dir.path().join("galley.db");
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch(
        "DROP INDEX upload_unused; ALTER TABLE upload DROP COLUMN finished_at; \
         ALTER TABLE upload DROP COLUMN used_at; ALTER TABLE account DROP COLUMN media_bytes; \
         PRAGMA user_version = 6",
    )
    .unwrap();
    let store: Shared = Arc::new(SqliteStore::open(&path, &SqliteOptions::default()).unwrap());
    is_sound(&store).await;
    assert_eq!(ask(&dir, "SELECT media_bytes FROM account"), 2 * 8_192 + 9 + 9);
    file.execute_batch("UPDATE account SET media_bytes = media_bytes + 1").unwrap();
    let findings = store.check_integrity().await.unwrap();
    let bad: Vec<&str> = findings.iter().filter(|it| !it.good).map(|it| it.subject).collect();
    assert_eq!(bad, ["media room"]);
}

#[tokio::test]
async fn what_limits_count_is_kept_for_those_who_have_them_and_no_longer_than_it_counts() {
    let (store, dir) = fresh_sqlite();
    let (free, held) = (account(&store, "a").await, account(&store, "b").await);
    store.set_account_limits(held, Some(AccountLimits::VERIFIED)).await.unwrap();
    for index in 0..MAX_CREATES_PER_HOUR + 20 {
        let at = noon(60_000 * i64::try_from(index).unwrap());
        create(&store, new(free, &format!("free{index}"))).await;
        create(&store, NewTemplate { at, ..new(held, &format!("held{index}")) }).await;
    }
    assert_eq!(ask(&dir, "SELECT count(*) FROM counted"), MAX_CREATES_PER_HOUR);
    let id = store.taken(held, "held0").await.unwrap().unwrap().own.unwrap();
    done(store.edit_template(change(held, id), replacing(1)).await.unwrap());
    assert_eq!(ask(&dir, "SELECT count(*) FROM counted"), MAX_CREATES_PER_HOUR + 1);
    done(store.delete_template(change(held, id)).await.unwrap());
    assert_eq!(ask(&dir, "SELECT count(*) FROM counted"), MAX_CREATES_PER_HOUR);
}
