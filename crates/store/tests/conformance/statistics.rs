//! Cases about what the store reports for the metrics.

use galley_domain::{
    template::{Review, edit::Edit, lifecycle::Trigger},
    upstream::{CallFailure, CallKind, HeldReason, ProviderError},
};
use galley_store::{
    Author, ConnectionChange, DegradedReason, NewTemplate, ReviewStatistics, SearchStatistics,
    StoreStatistics, TemplateChange, UpstreamStatistics, WebhookChange, WebhookStatistics,
};
use galley_test_macros::on_both_databases;

use super::{
    deliveries::{deliver, fail, lease},
    fixture::{Shared, account, change, create, create_concurrently, done, new, noon},
    lists::{template_with, update_index},
    sqlite_only::body_edit,
    upstream::{connect, connected, done as fenced, mirror, remote, sweep, whatsapp},
    upstream_calls::degraded,
    upstream_submission::changing,
    webhooks::{endpoint, register},
};

async fn statistics(store: &Shared) -> StoreStatistics {
    store.statistics().await.unwrap()
}

#[on_both_databases]
async fn pending_reviews_are_counted_with_the_time_of_the_oldest(store: &Shared) {
    let reviews = async || statistics(store).await.reviews;
    assert_eq!(reviews().await, ReviewStatistics::default(), "there is no account");
    let (one, other) = (account(store, "a").await, account(store, "b").await);
    create(store, new(one, "approved")).await;
    assert_eq!(reviews().await, ReviewStatistics::default());
    let pending = |account, name: &str, at| NewTemplate {
        review: Review::Manual,
        at: noon(at),
        ..new(account, name)
    };
    create(store, pending(one, "third", 30)).await;
    let first = create(store, pending(other, "first", 10)).await;
    let second = create(store, pending(other, "second", 20)).await;
    assert_eq!(reviews().await, ReviewStatistics { pending: 3, oldest: Some(noon(10)) });
    // An edit submits the template again, at `noon(1_000)`.
    let content = Some(r#"{"components":[{"type":"BODY","text":"new"}]}"#.to_owned());
    let edit = Edit::Replace { content, category: None };
    done(store.edit_template(change(other, first), edit).await.unwrap());
    assert_eq!(reviews().await, ReviewStatistics { pending: 3, oldest: Some(noon(20)) });
    for trigger in [Trigger::Approve, Trigger::Disable] {
        done(store.review_template(change(other, second), trigger, None).await.unwrap());
    }
    done(store.delete_template(change(other, first)).await.unwrap());
    assert_eq!(reviews().await, ReviewStatistics { pending: 1, oldest: Some(noon(30)) });
    store.set_account_disabled(one, true, Author::operator(noon(3_000))).await.unwrap();
    assert_eq!(reviews().await, ReviewStatistics::default(), "its templates cannot be reviewed");
}

#[on_both_databases]
async fn the_oldest_review_is_found_behind_many_of_another_language(store: &Shared) {
    let account = account(store, "a").await;
    let pending = |name: &str, language, at| {
        let template = template_with(account, name, language, "UTILITY", "Hello!");
        NewTemplate { review: Review::Manual, at: noon(at), ..template }
    };
    create(store, pending("oldest", "fr_FR", 10)).await;
    let newer = (0..150).map(|index| pending(&format!("t{index}"), "de_DE", 20)).collect();
    create_concurrently(store, newer).await;
    let reviews = statistics(store).await.reviews;
    assert_eq!(reviews, ReviewStatistics { pending: 151, oldest: Some(noon(10)) });
}

#[on_both_databases]
async fn endpoints_are_counted_by_state_with_what_they_have_not_received(store: &Shared) {
    let webhooks = async || statistics(store).await.webhooks;
    let account = account(store, "a").await;
    let (healthy, failing) =
        (register(store, endpoint(account)).await, register(store, endpoint(account)).await);
    let idle = WebhookStatistics { healthy: 2, ..WebhookStatistics::default() };
    assert_eq!(webhooks().await, idle);
    for (index, name) in ["one", "two", "three"].into_iter().enumerate() {
        let at = noon(10 * (i64::try_from(index).unwrap() + 1));
        create(store, NewTemplate { at, ..new(account, name) }).await;
    }
    // Events without deliveries.
    let (since, due_since) = (Some(noon(10)), Some(noon(10)));
    let behind = WebhookStatistics { backlog: 6, oldest: since, due_since, ..idle };
    assert_eq!(webhooks().await, behind);
    // Deliveries that wait. The other endpoint still has to be called.
    let due = lease(store, healthy.id, 1_000).await.unwrap();
    assert_eq!(webhooks().await, behind);
    deliver(store, &due, 1_000).await;
    assert_eq!(webhooks().await, WebhookStatistics { backlog: 5, ..behind });
    let due = lease(store, failing.id, 1_000).await.unwrap();
    let behind = WebhookStatistics { due_since: Some(noon(1_000)), ..behind };
    assert_eq!(webhooks().await, WebhookStatistics { backlog: 5, ..behind });
    fail(store, &due, 1_000, 60).await;
    assert_eq!(
        webhooks().await,
        WebhookStatistics { healthy: 1, failing: 1, backlog: 5, ..behind }
    );
    let disable = WebhookChange { disabled: Some(true), ..WebhookChange::default() };
    store
        .change_webhook(account, failing.id, disable, Author::operator(noon(2_000)))
        .await
        .unwrap();
    let disabled = WebhookStatistics {
        healthy: 1,
        failing: 0,
        disabled: 1,
        backlog: 2,
        oldest: Some(noon(20)),
        due_since: Some(noon(1_000)),
    };
    assert_eq!(webhooks().await, disabled);
    store.set_account_disabled(account, true, Author::operator(noon(3_000))).await.unwrap();
    let off = WebhookStatistics { disabled: 2, ..WebhookStatistics::default() };
    assert_eq!(webhooks().await, off, "nothing is delivered for a disabled account");
}

#[on_both_databases]
async fn events_that_are_not_indexed_are_counted_until_they_are(store: &Shared) {
    let search = async || statistics(store).await.search;
    assert_eq!(search().await, SearchStatistics::default());
    let (one, other) = (account(store, "a").await, account(store, "b").await);
    // The index is empty and has to scan all templates once.
    update_index(store).await;
    assert_eq!(search().await, SearchStatistics::default());
    for (account, name, at) in [(one, "one", 20), (other, "two", 10), (other, "three", 30)] {
        create(store, NewTemplate { at: noon(at), ..new(account, name) }).await;
    }
    let behind = search().await;
    assert_eq!((behind.unindexed_events, behind.oldest), (3, Some(noon(10))));
    assert!(!behind.is_rebuilding);
    update_index(store).await;
    assert_eq!(search().await, SearchStatistics::default());
}

#[on_both_databases]
async fn a_store_reports_its_size(store: &Shared) {
    let StoreStatistics { part_sizes, free_disk_bytes, .. } = statistics(store).await;
    assert_eq!(part_sizes[0].0, "database");
    // With SQLite, the first rows may still be in the WAL.
    assert!(part_sizes.iter().map(|(_, size)| size).sum::<u64>() > 4_096, "{part_sizes:?}");
    assert!(free_disk_bytes.is_none_or(|free| free > 0));
}

#[on_both_databases]
async fn batches_commits_and_pools_are_counted(store: &Shared) {
    let before = store.activity();
    assert!(before.max_queued_writes > 0);
    let account = account(store, "a").await;
    let templates = (0..20).map(|index| new(account, &format!("t{index}"))).collect();
    create_concurrently(store, templates).await;
    store.events(account, None, 10).await.unwrap();
    let after = store.activity();
    assert_eq!(after.queued_writes, 0);
    let batches = after.batch_sizes.count - before.batch_sizes.count;
    let writes = after.batch_sizes.sum - before.batch_sizes.sum;
    assert!((1..=21).contains(&batches), "{after:?}");
    assert!((20..=21).contains(&writes), "each create is in one batch: {after:?}");
    assert!(after.commit_micros.count > before.commit_micros.count, "{after:?}");
    assert!(after.commit_micros.sum > before.commit_micros.sum, "{after:?}");
    let last = after.batch_sizes.buckets.last().unwrap();
    assert!(last.1 <= after.batch_sizes.count, "{after:?}");
    for name in ["lists", "searches", "feeds", "media"] {
        let pool = after.pools.iter().find(|it| it.name == name).unwrap();
        assert!(pool.size > 0 && pool.in_use == 0 && pool.waits == 0, "{pool:?}");
    }
}

#[on_both_databases]
async fn connections_are_counted_by_state_with_their_oldest_work(store: &Shared) {
    let upstream = async || statistics(store).await.upstream;
    assert_eq!(upstream().await, UpstreamStatistics::default());
    let first = connected(store, "a").await;
    let second = whatsapp(store, "b").await;
    connect(store, second).await;
    let found = upstream().await;
    assert_eq!((found.connected, found.degraded, found.paused), (2, 0, 0));
    assert_eq!((found.oldest_sweep, found.oldest_operation), (Some(noon(0)), None));
    assert!(found.token_expires_at.is_some(), "the fixture's tokens expire");

    sweep(store, first, &[remote("1", "a", "APPROVED", "Hi")], 1).await;
    fenced(store.finish_sweep(first, noon(50)).await.unwrap());
    fenced(store.take_call(first, CallKind::Read, false, 200, noon(60)).await.unwrap());
    let template = mirror(store, first.account, "1").await.template.unwrap();
    let edit =
        TemplateChange { at: noon(70), ..changing(first.account, template, Review::Provider) };
    done(store.edit_template(edit, body_edit(1)).await.unwrap());
    let degraded = Some(degraded(DegradedReason::Credentials, 80));
    fenced(store.set_degraded(first, degraded, noon(80)).await.unwrap());
    let by = Author::operator(noon(90));
    assert!(store.change_connection(second, ConnectionChange::Paused, by).await.unwrap());
    let found = upstream().await;
    assert_eq!((found.connected, found.degraded, found.paused), (0, 1, 1));
    assert_eq!(found.oldest_sweep, Some(noon(50)), "the other connection is paused");
    assert_eq!(found.oldest_operation, Some(noon(70)));
    assert_eq!(found.calls.iter().map(|it| it.used(noon(90))).max(), Some(1));

    let operation = store.newest_operation(first.account, template).await.unwrap().unwrap().id;
    let error = ProviderError { code: 100, subcode: None, title: None, message: "No".to_owned() };
    for (failure, at) in [
        (CallFailure::Credentials(error.clone()), Some(noon(70))),
        (CallFailure::EditNotAllowed(error), None),
    ] {
        fenced(store.begin_operation(first, operation, noon(90)).await.unwrap()).unwrap();
        fenced(store.record_call(first, operation, Err(failure), noon(90)).await.unwrap());
        assert_eq!(upstream().await.oldest_operation, at, "the provider allows no edit for a day");
        let reason = HeldReason::Credentials;
        fenced(store.release_operations(first, reason, noon(90)).await.unwrap());
    }

    store.set_account_disabled(first.account, true, by).await.unwrap();
    let found = upstream().await;
    assert_eq!((found.degraded, found.paused, found.disabled), (0, 1, 1));
    assert_eq!((found.oldest_sweep, found.oldest_operation), (None, None));
}
