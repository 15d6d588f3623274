//! Tests of the SQLite store's indexes of names and idempotency keys, whose newest entries are in
//! memory. All of them merge after a few entries.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
};
use galley_store::{
    CreateOutcome, ListQuery, NameFilter, NewTemplate, RetentionCursor, SqliteStore, UpsertOutcome,
    sqlite::SqliteOptions,
};

use super::{
    fixture::{
        Shared, account, change, create, create_concurrently, done, new, noon, translation,
        with_key,
    },
    lists::{all, names as list_names},
    uploads::assert_integrity,
};

const DAY: i64 = 24 * 60 * 60 * 1_000;

const MAX_ENTRIES: usize = 8;

fn open(path: &Path) -> Shared {
    let options = SqliteOptions { max_buffered_entries: MAX_ENTRIES, ..SqliteOptions::default() };
    Arc::new(SqliteStore::open(path, &options).unwrap().into())
}

fn query_number(path: &Path, query: &str) -> usize {
    let file = rusqlite::Connection::open(path).unwrap();
    let number: i64 = file.query_row(query, [], |row| row.get(0)).unwrap();
    usize::try_from(number).unwrap()
}

/// A small generator of repeatable random numbers (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ (mixed >> 27)) % limit
    }
}

#[tokio::test]
async fn names_are_unique_through_merges_deletions_and_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let mut store = open(&path);
    let account = account(&store, "a").await;
    let (mut random, mut expected) = (Random(1), HashMap::<String, TemplateId>::new());
    for step in 0..1_500 {
        let name = format!("name{}", random.below(120));
        match (random.below(100), expected.get(&name).copied()) {
            (0, _) => store = open(&path),
            (1..30, Some(id)) => {
                done(store.delete_template(change(account, id)).await.unwrap());
                expected.remove(&name);
            }
            (_, holder) => match store.create_template(new(account, &name)).await.unwrap() {
                CreateOutcome::Created(created) => {
                    assert_eq!(holder, None, "step {step}: {name} was created twice");
                    expected.insert(name.clone(), created.id);
                }
                CreateOutcome::NameInUse(conflict) => {
                    assert_eq!(conflict.existing_id, holder, "step {step}: {name}");
                }
                other => panic!("{other:?}"),
            },
        }
        let found = store.name_conflict(account, &name).await.unwrap();
        let found = found.and_then(|conflict| conflict.existing_id);
        assert_eq!(found, expected.get(&name).copied(), "step {step}: {name}");
    }
    assert!(query_number(&path, "SELECT count(*) FROM template_name") > MAX_ENTRIES);
    assert_integrity(&store).await;
}

#[tokio::test]
async fn idempotency_keys_are_found_through_merges_expiry_and_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let mut store = open(&path);
    let account = account(&store, "a").await;
    let (mut random, mut expected) = (Random(2), HashMap::<u8, (TemplateId, i64)>::new());
    for step in 0..600 {
        let (key, at) = (u8::try_from(random.below(60)).unwrap(), step * DAY / 200);
        let request =
            NewTemplate { at: noon(at), ..with_key(account, &format!("name{step}"), key, 1) };
        let valid = expected.get(&key).filter(|(_, created_at)| at - created_at < DAY);
        match store.create_template(request).await.unwrap() {
            CreateOutcome::Created(created) => {
                assert_eq!(valid, None, "step {step}: key {key} was used twice");
                expected.insert(key, (created.id, at));
            }
            CreateOutcome::Replayed(created) => {
                assert_eq!(Some(created.id), valid.map(|(id, _)| *id), "step {step}: key {key}");
            }
            other => panic!("{other:?}"),
        }
        match random.below(40) {
            0 => store = open(&path),
            1 => drop(store.delete_expired_records(RetentionCursor::default(), noon(at)).await),
            _ => {}
        }
        let record = store.idempotency_record(account, [key; 16], noon(at)).await.unwrap();
        assert_eq!(record.map(|record| record.created.id), expected.get(&key).map(|(id, _)| *id));
    }
    assert!(query_number(&path, "SELECT count(*) FROM idempotency_key") > MAX_ENTRIES);
    assert_integrity(&store).await;
}

#[tokio::test]
async fn entries_are_written_many_at_once_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store = open(&path);
    let account = account(&store, "a").await;
    let merged = "SELECT count(*) FROM template_name";
    for index in 0..MAX_ENTRIES {
        create(&store, new(account, &format!("t{index}"))).await;
    }
    assert_eq!(query_number(&path, merged), 0, "the entries are in memory only");
    // Each create merges two of them.
    for index in 0..MAX_ENTRIES / 2 {
        create(&store, new(account, &format!("u{index}"))).await;
        let skipped = "SELECT count(*) FROM template WHERE name LIKE 't%' AND unique_key < \
                       (SELECT max(unique_key) FROM template_name) AND \
                       unique_key NOT IN (SELECT unique_key FROM template_name)";
        assert_eq!(query_number(&path, merged), 2 * (index + 1));
        assert_eq!(query_number(&path, skipped), 0);
    }
    let newest_merged = "SELECT merged_id = (SELECT max(id) FROM template WHERE name LIKE 't%') \
                         FROM buffered_index WHERE name = 'template_name'";
    assert_eq!(query_number(&path, newest_merged), 1);
}

#[tokio::test]
async fn frequent_restarts_do_not_keep_entries_from_being_merged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let account = account(&open(&path), "a").await;
    for restart in 0..20 {
        let store = open(&path);
        for index in 0..MAX_ENTRIES / 4 {
            let id = create(&store, new(account, &format!("t{restart}_{index}"))).await;
            // In every second run, all of them are deleted again.
            if restart % 2 == 1 {
                done(store.delete_template(change(account, id)).await.unwrap());
            }
        }
        let unmerged = "SELECT count(*) FROM template WHERE id > \
                        (SELECT merged_id FROM buffered_index WHERE name = 'template_name')";
        let unmerged = query_number(&path, unmerged);
        assert!(unmerged < 3 * MAX_ENTRIES, "{unmerged} after {restart} restarts");
        assert_integrity(&store).await;
    }
}

#[tokio::test]
async fn a_name_is_kept_when_the_clock_goes_back_and_the_newest_templates_are_purged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store = open(&path);
    let account = account(&store, "a").await;
    for index in 0..2 * MAX_ENTRIES {
        let id = create(&store, new(account, &format!("t{index}"))).await;
        if index > 1 {
            done(store.delete_template(change(account, id)).await.unwrap());
        }
    }
    drop(store);
    let file = rusqlite::Connection::open(&path).unwrap();
    assert!(
        file.execute("DELETE FROM template WHERE unique_key IS NULL", []).unwrap() > MAX_ENTRIES
    );
    let earlier = || NewTemplate { at: noon(-DAY), ..new(account, "earlier") };
    create(&open(&path), earlier()).await;
    let again = open(&path).create_template(earlier()).await.unwrap();
    assert!(matches!(again, CreateOutcome::NameInUse(_)), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_creates_of_few_names_create_each_name_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("galley.db"));
    let account = account(&store, "a").await;
    let requests = (0..400).map(|index| new(account, &format!("name{}", index % 50))).collect();
    let outcomes = create_concurrently(&store, requests).await;
    let is_created = |outcome: &&CreateOutcome| matches!(outcome, CreateOutcome::Created(_));
    assert_eq!(outcomes.iter().filter(is_created).count(), 50);
    assert_integrity(&store).await;
}

/// Waits until a read sees the commit of another process, within a millisecond.
async fn assert_found(
    store: &Shared,
    account: AccountId,
    name: &str,
    expected: Option<TemplateId>,
) {
    let started = Instant::now();
    loop {
        let found = store.name_conflict(account, name).await.unwrap();
        let found = found.and_then(|conflict| conflict.existing_id);
        if found == expected {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(5), "{name}: {found:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn names_and_keys_of_another_process_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let (mine, other) = (open(&path), open(&path));
    let account = account(&mine, "a").await;
    let mut names = HashSet::new();
    for index in 0..4 * MAX_ENTRIES {
        let name = format!("t{index}");
        let (first, second) = if index % 3 == 0 { (&mine, &other) } else { (&other, &mine) };
        let id = create(first, new(account, &name)).await;
        assert_found(second, account, &name, Some(id)).await;
        let by_name = NameFilter::UniqueKey(name.clone());
        let listing = ListQuery { name: Some(by_name), ..all(account) };
        assert_eq!(list_names(second, listing).await, [&*name]);
        let refused = second.create_template(new(account, &name)).await.unwrap();
        let CreateOutcome::NameInUse(conflict) = refused else { panic!("{name}: {refused:?}") };
        assert_eq!(conflict.existing_id, Some(id));
        names.insert(name);
    }
    // Deleted and created again by the other one, so that the entry in memory is wrong.
    let id = create(&mine, new(account, "again")).await;
    done(other.delete_template(change(account, id)).await.unwrap());
    assert_found(&mine, account, "again", None).await;
    let id = create(&other, new(account, "again")).await;
    assert_found(&mine, account, "again", Some(id)).await;
    names.insert("again".to_owned());
    // And a record.
    let CreateOutcome::Created(created) =
        other.create_template(with_key(account, "keyed", 1, 1)).await.unwrap()
    else {
        panic!("the key is new")
    };
    // Reads see the commit within a millisecond.
    let seen = async || mine.idempotency_record(account, [1; 16], noon(0)).await.unwrap();
    let record = loop {
        if let Some(record) = seen().await {
            break record;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(record.created, created);
    let again = mine.create_template(with_key(account, "keyed", 1, 1)).await.unwrap();
    assert_eq!(again, CreateOutcome::Replayed(created));
    drop(other);
    drop(mine);
    let reopened = open(&path);
    for name in &names {
        assert!(reopened.name_conflict(account, name).await.unwrap().is_some(), "{name}");
    }
    assert_integrity(&reopened).await;
}

#[tokio::test]
async fn a_refused_upsert_leaves_its_names_free() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("galley.db"));
    let account = account(&store, "a").await;
    create(&store, translation(account, "taken", "en_US", Category::Marketing)).await;
    let refused = store
        .upsert_templates(vec![
            translation(account, "free", "en_US", Category::Marketing),
            translation(account, "taken", "de_DE", Category::Utility),
        ])
        .await
        .unwrap();
    assert!(!matches!(refused, UpsertOutcome::Done(_)), "{refused:?}");
    create(&store, translation(account, "free", "en_US", Category::Marketing)).await;
    assert_integrity(&store).await;
}

#[tokio::test]
async fn a_backup_taken_during_a_merge_contains_all_names() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir.path().join("galley.db"));
    let account = account(&store, "a").await;
    // One create after the start of a merge: two of its entries are in the file.
    let names: Vec<_> = (0..=MAX_ENTRIES).map(|index| format!("t{index}")).collect();
    for name in &names {
        create(&store, new(account, name)).await;
    }
    let copy = dir.path().join("copy.db");
    store.backup(&copy, false, &|_| {}).await.unwrap();
    assert_eq!(query_number(&copy, "SELECT count(*) FROM template_name"), 2);
    let restored = open(&copy);
    for name in &names {
        let again = restored.create_template(new(account, name)).await.unwrap();
        assert!(matches!(again, CreateOutcome::NameInUse(_)), "{name}: {again:?}");
    }
    assert_integrity(&restored).await;
}

#[tokio::test]
async fn a_store_with_a_damaged_index_can_be_opened_checked_and_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let store = open(&path);
    let account = account(&store, "a").await;
    for index in 0..3 * MAX_ENTRIES {
        create(&store, new(account, &format!("t{index}"))).await;
    }
    drop(store);
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch("DELETE FROM buffered_index").unwrap();
    let store = open(&path);
    let findings = store.check_integrity().await.unwrap();
    assert!(findings.iter().any(|it| it.subject == "indexes" && !it.ok), "{findings:?}");
    assert!(store.name_conflict(account, "t0").await.unwrap().is_some(), "found by its row");
    assert!(store.create_template(new(account, "t0")).await.is_err());
    drop(store);
    file.execute_batch(
        "DELETE FROM template_name; DELETE FROM idempotency_key; INSERT INTO buffered_index \
         (name, merged_id) VALUES ('template_name', 0), ('idempotency_key', 0)",
    )
    .unwrap();
    let store = open(&path);
    let again = store.create_template(new(account, "t0")).await.unwrap();
    assert!(matches!(again, CreateOutcome::NameInUse(_)), "{again:?}");
    assert_integrity(&store).await;
}

#[tokio::test]
async fn doctor_finds_wrong_entries_and_names_that_are_not_unique() {
    for damage in [
        "DELETE FROM template_name WHERE unique_key = (SELECT max(unique_key) FROM template_name)",
        "UPDATE template_name SET template_id = template_id + 1",
        "INSERT INTO template_name VALUES (x'00', 1)",
        "UPDATE template SET unique_key = (SELECT unique_key FROM template WHERE name = 't14') \
         WHERE name = 't15'",
        "DELETE FROM idempotency_key WHERE key = (SELECT max(key) FROM idempotency_key)",
        "DELETE FROM buffered_index WHERE name = 'idempotency_key'",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        let store = open(&path);
        let account = account(&store, "a").await;
        for index in 0..2 * MAX_ENTRIES {
            let key = u8::try_from(index).unwrap();
            create(&store, with_key(account, &format!("t{index}"), key, 1)).await;
        }
        assert_integrity(&store).await;
        let file = rusqlite::Connection::open(&path).unwrap();
        assert!(file.execute(damage, []).unwrap() > 0, "{damage}");
        let findings = store.check_integrity().await.unwrap();
        let failed: Vec<_> = findings.iter().filter(|it| !it.ok).map(|it| it.subject).collect();
        let expected: &[&str] =
            if damage.starts_with("UPDATE template SET") { &["names"] } else { &["indexes"] };
        assert!(expected.iter().all(|it| failed.contains(it)), "{damage}: {failed:?}");
    }
}
