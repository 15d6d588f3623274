//! Cases about idempotency keys.

use galley_store::{CreateOutcome, NewTemplate, RetentionCursor};
use galley_test_macros::on_both_databases;

use super::fixture::{Shared, account, create_concurrently, events, new, noon, with_key};

const DAY: i64 = 24 * 60 * 60 * 1_000;

#[on_both_databases]
async fn a_repeated_creation_returns_the_first_outcome_and_creates_nothing(store: &Shared) {
    let account = account(store, "a").await;
    let CreateOutcome::Created(first) =
        store.create_template(with_key(account, "hello", 1, 1)).await.unwrap()
    else {
        panic!("the first request creates the template")
    };
    let again = store.create_template(with_key(account, "hello", 1, 1)).await.unwrap();
    assert_eq!(again, CreateOutcome::Replayed(first));
    let record = store.idempotency_record(account, [1; 16], noon(0)).await.unwrap().unwrap();
    assert_eq!(record.outcome_for([1; 8]), CreateOutcome::Replayed(first));
    assert_eq!(events(store, account, 0, 10).await.len(), 1);
}

#[on_both_databases]
async fn a_key_with_a_different_payload_is_refused(store: &Shared) {
    let account = account(store, "a").await;
    store.create_template(with_key(account, "hello", 1, 1)).await.unwrap();
    let other = store.create_template(with_key(account, "other", 1, 2)).await.unwrap();
    assert_eq!(other, CreateOutcome::KeyReused);
    assert_eq!(events(store, account, 0, 10).await.len(), 1);
}

#[on_both_databases]
async fn concurrent_identical_requests_create_one_template(store: &Shared) {
    let account = account(store, "a").await;
    let outcomes = create_concurrently(store, vec![with_key(account, "hello", 1, 1); 32]).await;
    let created = outcomes.iter().find_map(|it| match it {
        CreateOutcome::Created(created) => Some(*created),
        _ => None,
    });
    let replays =
        outcomes.iter().filter(|it| **it == CreateOutcome::Replayed(created.unwrap())).count();
    assert_eq!(replays, 31, "{outcomes:?}");
    assert_eq!(events(store, account, 0, 10).await.len(), 1);
}

#[on_both_databases]
async fn a_refused_creation_stores_no_record(store: &Shared) {
    let account = account(store, "a").await;
    store.create_template(new(account, "hello")).await.unwrap();
    let refused = store.create_template(with_key(account, "hello", 1, 1)).await.unwrap();
    assert!(matches!(refused, CreateOutcome::NameInUse(_)));
    assert_eq!(store.idempotency_record(account, [1; 16], noon(0)).await.unwrap(), None);
    let other = store.create_template(with_key(account, "other", 1, 2)).await.unwrap();
    assert!(matches!(other, CreateOutcome::Created(_)), "the key is still unused: {other:?}");
}

#[on_both_databases]
async fn a_record_expires_after_a_day_and_is_deleted(store: &Shared) {
    let account = account(store, "a").await;
    store.create_template(with_key(account, "old", 1, 1)).await.unwrap();
    let young = NewTemplate { at: noon(DAY / 2), ..with_key(account, "young", 2, 2) };
    store.create_template(young).await.unwrap();
    assert!(store.idempotency_record(account, [1; 16], noon(DAY - 1)).await.unwrap().is_some());
    assert_eq!(store.idempotency_record(account, [1; 16], noon(DAY)).await.unwrap(), None);
    let deleted =
        store.delete_expired_records(RetentionCursor::default(), noon(DAY)).await.unwrap();
    assert_eq!(deleted, RetentionCursor { deleted_records: 1, ..RetentionCursor::default() });
    assert!(store.idempotency_record(account, [2; 16], noon(DAY)).await.unwrap().is_some());
    let renewed = NewTemplate { at: noon(DAY), ..with_key(account, "renewed", 1, 3) };
    assert!(matches!(store.create_template(renewed).await.unwrap(), CreateOutcome::Created(_)));
}

#[on_both_databases]
async fn equal_keys_of_two_accounts_do_not_collide(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    store.create_template(with_key(mine, "mine", 1, 1)).await.unwrap();
    assert_eq!(store.idempotency_record(theirs, [1; 16], noon(0)).await.unwrap(), None);
    let other = store.create_template(with_key(theirs, "theirs", 1, 2)).await.unwrap();
    assert!(matches!(other, CreateOutcome::Created(_)), "{other:?}");
}
