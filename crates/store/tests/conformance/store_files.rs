//! The files of a SQLite store: deleted or replaced while it is open, left over from an earlier
//! store, or on a disk without space.

use std::{path::PathBuf, sync::Arc};

use galley_store::{
    AccountLimits, Author, CreateAccountOutcome, CredentialKind, NewAccount, SqliteStore,
    StoreError, sqlite::SqliteOptions,
};

use super::fixture::{Shared, account, create, events, new, new_account, new_sqlite, noon, secret};

/// Checks that reads, writes and the readiness check fail because the files are gone.
async fn assert_refuses_everything(store: &Shared) {
    let account = galley_domain::id::AccountId::new(1).unwrap();
    let refused = |outcome: Result<(), StoreError>| {
        let Err(StoreError::Unavailable(cause)) = &outcome else { panic!("{outcome:?}") };
        assert!(cause.to_string().contains("while the service is running"), "{cause}");
    };
    refused(store.create_template(new(account, "lost")).await.map(drop));
    refused(store.ping().await);
    let id = galley_domain::id::TemplateId::new(1).unwrap();
    refused(store.template(account, id).await.map(drop));
    refused(store.accounts().await.map(drop));
}

#[tokio::test]
async fn a_deleted_store_acknowledges_nothing_until_it_is_put_back() {
    let (store, dir) = new_sqlite();
    let (path, aside) = (dir.path().join("galley.db"), dir.path().join("aside"));
    let account = account(&store, "a").await;
    let before = create(&store, new(account, "before")).await;
    for suffix in ["", "-wal", "-shm"] {
        let file = PathBuf::from(format!("{}{suffix}", path.display()));
        std::fs::rename(&file, &aside).unwrap();
        assert_refuses_everything(&store).await;
        std::fs::rename(&aside, &file).unwrap();
        store.ping().await.unwrap();
    }
    let after = create(&store, new(account, "after")).await;
    drop(store);
    let store: Shared =
        Arc::new(SqliteStore::open(&path, &SqliteOptions::default()).unwrap().into());
    for id in [before, after] {
        assert!(store.template(account, id).await.unwrap().is_some());
    }
    assert_eq!(events(&store, account, 0, 10).await.len(), 2, "refused writes left nothing");
    assert!(store.check_integrity().await.unwrap().iter().all(|finding| finding.ok));
}

#[tokio::test]
async fn a_replaced_store_is_neither_written_to_nor_damaged() {
    let (store, dir) = new_sqlite();
    let path = dir.path().join("galley.db");
    let first = account(&store, "a").await;
    create(&store, new(first, "first")).await;
    let (other, other_dir) = new_sqlite();
    let second = account(&other, "b").await;
    create(&other, new(second, "second")).await;
    drop(other);
    std::fs::copy(other_dir.path().join("galley.db"), dir.path().join("copy")).unwrap();
    std::fs::rename(dir.path().join("copy"), &path).unwrap();
    assert_refuses_everything(&store).await;
    drop(store);
    let replaced: Shared =
        Arc::new(SqliteStore::open(&path, &SqliteOptions::default()).unwrap().into());
    assert!(replaced.check_integrity().await.unwrap().iter().all(|finding| finding.ok));
    assert_eq!(replaced.accounts().await.unwrap()[0].name, "b");
}

#[tokio::test]
async fn a_store_that_was_replaced_continues_when_it_is_back() {
    let (store, dir) = new_sqlite();
    let (path, aside) = (dir.path().join("galley.db"), dir.path().join("aside"));
    let account = account(&store, "a").await;
    let before = create(&store, new(account, "before")).await;
    std::fs::rename(&path, &aside).unwrap();
    std::fs::write(&path, "another file").unwrap();
    assert_refuses_everything(&store).await;
    std::fs::rename(&aside, &path).unwrap();
    let after = create(&store, new(account, "after")).await;
    drop(store);
    let store: Shared =
        Arc::new(SqliteStore::open(&path, &SqliteOptions::default()).unwrap().into());
    for id in [before, after] {
        assert!(store.template(account, id).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_store_that_cannot_be_written_is_not_ready() {
    let (store, dir) = new_sqlite();
    store.ping().await.unwrap();
    let account = account(&store, "a").await;
    // Writes fail while another process holds the lock for longer than the store waits.
    let other = rusqlite::Connection::open(dir.path().join("galley.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.create_template(new(account, "refused")).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let readiness = store.ping().await;
    assert!(matches!(readiness, Err(StoreError::Unavailable(_))), "{readiness:?}");
    other.execute_batch("ROLLBACK").unwrap();
    store.ping().await.unwrap();
}

#[tokio::test]
async fn a_store_that_has_left_files_behind_is_not_replaced_by_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("galley.db");
    let open = |new_store| {
        let options = SqliteOptions { new_store, ..SqliteOptions::default() };
        SqliteStore::open(&path, &options).map(drop).map_err(|error| match error {
            StoreError::Failed(cause) => cause.to_string(),
            other => panic!("{other:?}"),
        })
    };
    std::fs::write(dir.path().join("galley.db-search"), "").unwrap();
    let refused = open(false).unwrap_err();
    assert!(refused.contains("galley.db-search") && refused.contains("--new-store"), "{refused}");
    assert!(!path.exists());
    std::fs::write(dir.path().join("galley.db-wal"), "").unwrap();
    let refused = open(true).unwrap_err();
    assert!(refused.contains("galley.db-wal"), "{refused}");
    assert!(!path.exists());
    // An empty file is not a store either: SQLite would delete the WAL beside it.
    std::fs::write(&path, "").unwrap();
    assert!(open(true).unwrap_err().contains("galley.db-wal"));
    assert!(dir.path().join("galley.db-wal").exists());
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(dir.path().join("galley.db-wal")).unwrap();
    open(true).unwrap();
    assert!(path.exists());
}

#[tokio::test]
async fn below_the_free_space_mark_only_the_operator_can_write() {
    let (store, dir) = new_sqlite();
    let new_account = NewAccount {
        credentials: vec![secret(CredentialKind::Token, "token")],
        ..new_account("a")
    };
    let created = store.create_account(new_account).await.unwrap();
    let CreateAccountOutcome::Created(account, credentials) = created else { panic!() };
    let template = create(&store, new(account, "before")).await;
    drop(store);
    // No disk has as much free space.
    let options = SqliteOptions { min_free_bytes: u64::MAX, ..SqliteOptions::default() };
    let path = dir.path().join("galley.db");
    let store: Shared = Arc::new(SqliteStore::open(&path, &options).unwrap().into());
    for _ in 0..2 {
        let refused = store.create_template(new(account, "refused")).await;
        let Err(StoreError::Full(cause)) = refused else { panic!("{refused:?}") };
        assert!(cause.to_string().contains("min_free_disk_mib"), "{cause}");
    }
    assert!(matches!(store.ping().await, Err(StoreError::Full(_))));
    assert!(store.template(account, template).await.unwrap().is_some(), "reads continue");
    assert!(store.revoke_credential(credentials[0], Author::operator(noon(1))).await.unwrap());
    assert!(store.set_account_disabled(account, true, Author::operator(noon(1))).await.unwrap());
    let limits = AccountLimits { templates: 5 };
    assert!(
        store.set_account_limits(account, Some(limits), Author::operator(noon(0))).await.unwrap()
    );
}
