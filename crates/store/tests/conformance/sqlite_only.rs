//! Tests of the SQLite store only: its queue, its file, its search index, its backups.

use std::sync::{Arc, Mutex};

use galley_domain::template::edit::Edit;
use galley_store::{
    AccountLimits, AddPhoneOutcome, AppendOutcome, Author, CopyPhase, MAX_CREATES_PER_HOUR,
    NewTemplate, NewUpload, SqliteStore, Store, StoreError, UPLOAD_CHUNK_BYTES,
    sqlite::SqliteOptions,
};

use super::{
    emulator_statuses::assert_two_handles_send_each_status_once_in_order,
    fixture::{
        Shared, account, change, create, create_concurrently, done, events, new, new_sqlite, noon,
        template_subject,
    },
    lists::{names, search, update_index},
    uploads::{QUOTA, append, assert_integrity, begin, png, upload},
};

#[tokio::test]
async fn a_full_queue_returns_busy_and_keeps_the_queued_writes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let options = SqliteOptions { queue_capacity: 1, ..SqliteOptions::default() };
    let store: Arc<Store> = Arc::new(SqliteStore::open(&path, &options).unwrap().into());
    let account = account(&store, "a").await;
    // The queue fills while another process holds the write lock and blocks the writer.
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (mut queued, mut busy) = (Vec::new(), 0);
    while busy == 0 {
        let name = format!("t{}", queued.len());
        let mut create = Box::pin({
            let store = Arc::clone(&store);
            async move { store.create_template(new(account, &name)).await }
        });
        // The first poll queues the create or fails because the queue is full.
        match std::future::poll_fn(|context| std::task::Poll::Ready(create.as_mut().poll(context)))
            .await
        {
            std::task::Poll::Ready(Err(StoreError::Busy)) => busy += 1,
            std::task::Poll::Ready(other) => panic!("{other:?}"),
            std::task::Poll::Pending => queued.push(create),
        }
        assert!(queued.len() < 10, "one in the queue, and some that the writer has taken");
    }
    other.execute_batch("ROLLBACK").unwrap();
    let count = queued.len();
    for create in queued {
        create.await.unwrap();
    }
    assert_eq!(events(&store, account, 0, 100).await.len(), count);
}

#[tokio::test]
async fn a_reopened_store_contains_all_acknowledged_writes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store: Arc<Store> =
        Arc::new(SqliteStore::open(&path, &SqliteOptions::default()).unwrap().into());
    let account = account(&store, "a").await;
    let news = (0..50).map(|index| new(account, &format!("t{index}"))).collect();
    assert_eq!(create_concurrently(&store, news).await.len(), 50);
    assert_eq!(store.accounts().await.unwrap().len(), 1, "opens a reader as well");
    drop(store);
    assert!(
        !dir.path().join("galley.db-wal").exists(),
        "an orderly shutdown checkpoints and removes the WAL"
    );
    let store = open(&path);
    assert_eq!(events(&store, account, 0, 100).await.len(), 50);
    assert!(store.check_integrity().await.unwrap().iter().all(|finding| finding.ok));
}

#[tokio::test]
async fn a_backup_taken_between_writes_is_complete() {
    let (store, dir) = new_sqlite();
    let account = account(&store, "a").await;
    store.create_template(new(account, "before")).await.unwrap();
    let copy = dir.path().join("copy.db");
    let phases = Mutex::new(Vec::new());
    store.backup(&copy, false, &|phase| phases.lock().unwrap().push(phase)).await.unwrap();
    let [CopyPhase::Writing { file, bytes }, CopyPhase::Checking] =
        &phases.into_inner().unwrap()[..]
    else {
        panic!("a backup is written, then checked")
    };
    let size = copy.metadata().unwrap().len();
    assert_eq!(file.with_extension(""), copy, "the copy is written aside");
    assert!((size / 2..=size * 2).contains(bytes), "{bytes} expected, {size} written");
    store.create_template(new(account, "after")).await.unwrap();
    assert!(
        store.backup(&copy, false, &|_| {}).await.is_err(),
        "a file that exists is not overwritten"
    );
    let copy = open(&copy);
    let names: Vec<_> = events(&copy, account, 0, 10)
        .await
        .iter()
        .map(|it| template_subject(it).1.to_owned())
        .collect();
    assert_eq!(names, ["before"]);
    assert!(copy.check_integrity().await.unwrap().iter().all(|finding| finding.ok));
}

#[tokio::test]
async fn two_processes_can_write_to_one_file() {
    let (store, dir) = new_sqlite();
    let account = account(&store, "a").await;
    let second: Arc<Store> = Arc::new(
        SqliteStore::open(&dir.path().join("galley.db"), &SqliteOptions::default()).unwrap().into(),
    );
    for index in 0..10 {
        store.create_template(new(account, &format!("one{index}"))).await.unwrap();
        second.create_template(new(account, &format!("two{index}"))).await.unwrap();
    }
    let seqs: Vec<_> = events(&store, account, 0, 100).await.into_iter().map(|it| it.seq).collect();
    assert_eq!(seqs, (1..=20).collect::<Vec<u64>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_wal_restarts_although_there_are_always_readers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let options = SqliteOptions { checkpoint_pages: 100, ..SqliteOptions::default() };
    let store: Shared = Arc::new(SqliteStore::open(&path, &options).unwrap().into());
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
                    // Simulates the work of a service between two reads.
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
        let wal_bytes = std::fs::metadata(dir.path().join("galley.db-wal")).unwrap().len();
        pages = pages.max(wal_bytes / 4_096);
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
    // Without restarts it would have several thousand pages. The exact number depends on how the
    // readers are scheduled.
    assert!(pages < 2_500, "the WAL had {pages} pages");
}

#[tokio::test]
async fn commits_of_another_process_become_visible() {
    let (store, dir) = new_sqlite();
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "hello")).await;
    let second = open(&dir.path().join("galley.db"));
    // This read leaves a transaction open that contains the template.
    assert!(store.template(account, id).await.unwrap().is_some());
    done(second.delete_template(change(account, id)).await.unwrap());
    let started = std::time::Instant::now();
    while store.template(account, id).await.unwrap().is_some() {
        assert!(started.elapsed() < std::time::Duration::from_secs(5), "it is still visible");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_read_after_an_acknowledged_edit_sees_it_under_concurrent_reads() {
    let (store, _dir) = new_sqlite();
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "hello")).await;
    let is_finished = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (store, is_finished) = (Arc::clone(&store), Arc::clone(&is_finished));
            tokio::spawn(async move {
                let mut newest = 0;
                while !is_finished.load(std::sync::atomic::Ordering::Relaxed) {
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
            done(store.edit_template(change(account, id), body_edit(index)).await.unwrap());
        let read = store.template(account, id).await.unwrap().unwrap();
        assert_eq!(*read, edited);
    }
    is_finished.store(true, std::sync::atomic::Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
}

pub(crate) fn body_edit(index: u32) -> Edit {
    let content = format!(r#"{{"components":[{{"type":"BODY","text":"text {index}"}}]}}"#);
    Edit::Replace { content: Some(content), category: None }
}

fn open(path: &std::path::Path) -> Shared {
    Arc::new(SqliteStore::open(path, &SqliteOptions::default()).unwrap().into())
}

#[tokio::test]
async fn the_search_index_resumes_after_a_restart_and_is_rebuilt_when_its_file_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store = open(&path);
    let account = account(&store, "a").await;
    create(&store, new(account, "first")).await;
    update_index(&store).await;
    create(&store, new(account, "second")).await;
    drop(store);
    let store = open(&path);
    assert_eq!(names(&store, search(account, "first")).await, ["first"]);
    assert_eq!(names(&store, search(account, "second")).await, [""; 0]);
    update_index(&store).await;
    assert_eq!(names(&store, search(account, "second")).await, ["second"]);
    drop(store);
    std::fs::remove_file(dir.path().join("galley.db-search")).unwrap();
    let store = open(&path);
    assert_eq!(names(&store, search(account, "first")).await, [""; 0]);
    update_index(&store).await;
    create(&store, new(account, "third")).await;
    update_index(&store).await;
    for name in ["first", "second", "third"] {
        assert_eq!(names(&store, search(account, name)).await, [name]);
    }
}

#[tokio::test]
async fn a_corrupt_search_index_is_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store = open(&path);
    let account = account(&store, "a").await;
    create(&store, new(account, "first")).await;
    drop(store);
    std::fs::write(dir.path().join("galley.db-search"), "this is not a database").unwrap();
    let store = open(&path);
    assert!(store.list(search(account, "first")).await.is_err());
    update_index(&store).await;
    assert_eq!(names(&store, search(account, "first")).await, ["first"]);
}

#[tokio::test]
async fn a_search_index_with_former_terms_is_rebuilt_and_reports_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store = open(&path);
    let account = account(&store, "a").await;
    for index in 0..300 {
        let at = noon(1_000 + i64::from(index));
        create(&store, NewTemplate { at, ..new(account, &format!("t{index}")) }).await;
    }
    update_index(&store).await;
    drop(store);
    let index = rusqlite::Connection::open(dir.path().join("galley.db-search")).unwrap();
    index.pragma_update(None, "user_version", 3).unwrap();
    drop(index);
    let store = open(&path);
    let since = async |store: &Shared| {
        let page = store.list(search(account, "t")).await.unwrap();
        page.unindexed.map(|it| it.since)
    };
    assert_eq!(since(&store).await, Some(noon(1_000)));
    // One step scans 256 templates.
    assert!(store.update_search_index().await.unwrap().has_more);
    assert_eq!(since(&store).await, Some(noon(1_256)));
    update_index(&store).await;
    assert_eq!(since(&store).await, None);
    assert_eq!(names(&store, search(account, "t299")).await, ["t299"]);
}

#[tokio::test]
async fn a_search_index_that_is_ahead_of_a_restored_store_is_rebuilt() {
    let (store, dir) = new_sqlite();
    let account = account(&store, "a").await;
    create(&store, new(account, "stored")).await;
    let copy = dir.path().join("copy.db");
    store.backup(&copy, false, &|_| {}).await.unwrap();
    create(&store, new(account, "lost")).await;
    update_index(&store).await;
    drop(store);
    // Restores the backup beside the search index of the newer store.
    let path = dir.path().join("galley.db");
    std::fs::rename(&copy, &path).unwrap();
    let store = open(&path);
    create(&store, NewTemplate { at: noon(60_000), ..new(account, "instead") }).await;
    update_index(&store).await;
    assert_eq!(names(&store, search(account, "lost")).await, [""; 0]);
    assert_eq!(names(&store, search(account, "instead")).await, ["instead"]);
    assert_eq!(names(&store, search(account, "stored")).await, ["stored"]);
}

/// Reads a number directly from the database file.
fn query_number(dir: &tempfile::TempDir, query: &str) -> usize {
    let file = rusqlite::Connection::open(dir.path().join("galley.db")).unwrap();
    let number: i64 = file.query_row(query, [], |row| row.get(0)).unwrap();
    usize::try_from(number).unwrap()
}

#[tokio::test]
async fn an_upload_is_stored_in_few_chunks_of_limited_size() {
    let (store, dir) = new_sqlite();
    let account = account(&store, "a").await;
    let length = 40_000 + 3 * UPLOAD_CHUNK_BYTES;
    let new = NewUpload {
        account,
        id: "u".to_owned(),
        handle: "h".to_owned(),
        file_name: "f".to_owned(),
        file_type: "t".to_owned(),
        length: length as u64,
        quota: QUOTA,
        at: noon(0),
        emulated_at: None,
    };
    store.begin_upload(new).await.unwrap();
    for index in 0..400 {
        let outcome =
            store.append_upload(account, "u", index * 100, &[7; 100], QUOTA, noon(0)).await;
        assert_eq!(outcome.unwrap(), AppendOutcome::Received((index + 1) * 100));
    }
    assert_eq!(query_number(&dir, "SELECT count(*) FROM upload_chunk"), 3);
    let rest = vec![7; 3 * UPLOAD_CHUNK_BYTES];
    store.append_upload(account, "u", 40_000, &rest, QUOTA, noon(0)).await.unwrap();
    assert_eq!(
        query_number(&dir, "SELECT max(length(bytes)) FROM upload_chunk"),
        UPLOAD_CHUNK_BYTES
    );
    assert_eq!(query_number(&dir, "SELECT sum(length(bytes)) FROM upload_chunk"), length);
}

#[tokio::test]
async fn the_doctor_checks_media_bytes() {
    let (store, dir) = new_sqlite();
    let account = account(&store, "a").await;
    for (id, length) in [("complete", 5_000), ("unfinished", 9_000)] {
        begin(&store, upload(account, id, length)).await;
        append(&store, account, id, 0, &png(5_000)).await;
    }
    assert_integrity(&store).await;
    assert_eq!(query_number(&dir, "SELECT media_bytes FROM account"), 2 * 8_192 + 12 + 14);
    let file = rusqlite::Connection::open(dir.path().join("galley.db")).unwrap();
    file.execute_batch("UPDATE account SET media_bytes = media_bytes + 1").unwrap();
    let findings = store.check_integrity().await.unwrap();
    let failed: Vec<&str> = findings.iter().filter(|it| !it.ok).map(|it| it.subject).collect();
    assert_eq!(failed, ["media quota"]);
}

#[tokio::test]
async fn an_interrupted_count_of_stored_bytes_is_repeated() {
    let (store, dir) = new_sqlite();
    let account = account(&store, "a").await;
    let id = create(&store, new(account, "one")).await;
    done(store.edit_template(change(account, id), body_edit(1)).await.unwrap());
    assert_eq!(store.count_stored_bytes(false).await.unwrap(), 0, "everything is counted");
    let file = rusqlite::Connection::open(dir.path().join("galley.db")).unwrap();
    file.execute_batch("UPDATE account SET counting = 0, template_bytes = 7").unwrap();
    create(&store, new(account, "two")).await;
    assert_integrity(&store).await;
    assert_eq!(store.count_stored_bytes(false).await.unwrap(), 1);
    assert_integrity(&store).await;
    assert_eq!(store.count_stored_bytes(false).await.unwrap(), 0);
    file.execute_batch("UPDATE account SET template_bytes = template_bytes + 1").unwrap();
    let findings = store.check_integrity().await.unwrap();
    let failed: Vec<&str> = findings.iter().filter(|it| !it.ok).map(|it| it.subject).collect();
    assert_eq!(failed, ["stored bytes"]);
    assert_eq!(store.count_stored_bytes(true).await.unwrap(), 1);
    assert_integrity(&store).await;
}

#[tokio::test]
async fn rate_counters_exist_only_for_accounts_with_limits_and_are_pruned() {
    let (store, dir) = new_sqlite();
    let (unlimited, limited) = (account(&store, "a").await, account(&store, "b").await);
    store
        .set_account_limits(limited, Some(AccountLimits::VERIFIED), Author::operator(noon(0)))
        .await
        .unwrap();
    for index in 0..MAX_CREATES_PER_HOUR + 20 {
        let at = noon(60_000 * i64::try_from(index).unwrap());
        create(&store, new(unlimited, &format!("unlimited{index}"))).await;
        create(&store, NewTemplate { at, ..new(limited, &format!("limited{index}")) }).await;
    }
    assert_eq!(query_number(&dir, "SELECT count(*) FROM rate_counter"), MAX_CREATES_PER_HOUR);
    let id = store.name_conflict(limited, "limited0").await.unwrap().unwrap().existing_id.unwrap();
    done(store.edit_template(change(limited, id), body_edit(1)).await.unwrap());
    assert_eq!(query_number(&dir, "SELECT count(*) FROM rate_counter"), MAX_CREATES_PER_HOUR + 1);
    done(store.delete_template(change(limited, id)).await.unwrap());
    assert_eq!(query_number(&dir, "SELECT count(*) FROM rate_counter"), MAX_CREATES_PER_HOUR);
}

#[tokio::test]
async fn a_claim_beyond_the_maximum_queues_no_write() {
    let (store, dir) = new_sqlite();
    let account = account(&store, "a").await;
    let claim = async |phone: &str| {
        store.claim_phone(account, phone, Some(1), Author::operator(noon(0))).await
    };
    assert_eq!(claim("1").await.unwrap(), AddPhoneOutcome::Added);
    // A write would wait for the lock and fail.
    let file = rusqlite::Connection::open(dir.path().join("galley.db")).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(claim("2").await.unwrap(), AddPhoneOutcome::TooMany);
    assert_eq!(claim("1").await.unwrap(), AddPhoneOutcome::AlreadyOwned);
    file.execute_batch("ROLLBACK").unwrap();
    assert_eq!(store.phones(account).await.unwrap(), ["1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_send_each_status_once_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    assert_two_handles_send_each_status_once_in_order([open(&path), open(&path)]).await;
}
