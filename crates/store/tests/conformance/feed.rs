//! Cases about reading events in order and without gaps, and about notifications.

use std::sync::Arc;

use galley_domain::template::{Review, edit::Edit};
use galley_store::{Feed, Initiator, NewTemplate, TemplateChange, TraceContext};

use super::{
    deliveries::lease,
    fixture::{Shared, account, change, create, events, initiator, new, noon},
    webhooks::{endpoint, register},
};
use galley_test_macros::on_both_databases;

#[on_both_databases]
async fn a_reader_gets_every_event_once_in_order_during_concurrent_writes(store: &Shared) {
    const WRITERS: usize = 8;
    const EACH: usize = 40;
    let account = account(store, "a").await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                for index in 0..EACH {
                    create(&store, new(account, &format!("t{writer}_{index}"))).await;
                }
            })
        })
        .collect();
    let readers: Vec<_> = (1..=4)
        .map(|limit| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let mut notifications = store.event_notifier().subscribe(account);
                let mut seen: Vec<u64> = Vec::new();
                while seen.len() < WRITERS * EACH {
                    let after = seen.last().copied().unwrap_or(0);
                    let page = events(&store, account, after, limit * 7).await;
                    if page.is_empty() {
                        notifications.changed().await.unwrap();
                    }
                    seen.extend(page.iter().map(|event| event.seq));
                }
                seen
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let all: Vec<u64> = (1..=(WRITERS * EACH) as u64).collect();
    for reader in readers {
        assert_eq!(reader.await.unwrap(), all);
    }
}

#[on_both_databases]
async fn a_subscriber_is_notified_only_of_its_accounts_events(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let (mut my_notifications, mut any) =
        (store.event_notifier().subscribe(mine), store.event_notifier().subscribe_all());
    create(store, new(theirs, "theirs")).await;
    any.changed().await.unwrap();
    assert!(!my_notifications.has_changed().unwrap());
    create(store, new(mine, "mine")).await;
    my_notifications.changed().await.unwrap();
    assert_eq!(*my_notifications.borrow_and_update(), 1);
    assert_eq!(
        (store.newest_event(mine).await.unwrap(), events(store, mine, 0, 9).await.len()),
        (1, 1)
    );
    store.poll_events().await.unwrap();
    assert!(!my_notifications.has_changed().unwrap(), "there are no new events");
}

#[on_both_databases]
async fn expired_events_are_deleted_and_reported_to_late_readers(store: &Shared) {
    let account = account(store, "a").await;
    for index in 0..6 {
        let at = noon(index * 1_000);
        create(store, NewTemplate { at, ..new(account, &format!("t{index}")) }).await;
    }
    assert_eq!(store.delete_expired_events(noon(3_000)).await.unwrap(), 3);
    assert_eq!(store.delete_expired_events(noon(3_000)).await.unwrap(), 0);
    assert_eq!(store.events(account, Some(0), 9).await.unwrap(), Feed::Expired(4));
    assert_eq!(store.events(account, Some(2), 9).await.unwrap(), Feed::Expired(4));
    let Feed::Events(stored) = store.events(account, Some(3), 9).await.unwrap() else {
        panic!("the next event has not expired")
    };
    assert_eq!(stored.iter().map(|event| event.seq).collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!(store.events(account, None, 9).await.unwrap(), Feed::Events(stored));
    assert_eq!(store.delete_expired_events(noon(9_000)).await.unwrap(), 3);
    assert_eq!(store.events(account, Some(5), 9).await.unwrap(), Feed::Expired(7));
    assert_eq!(store.events(account, Some(6), 9).await.unwrap(), Feed::Events(Vec::new()));
    create(store, new(account, "next")).await;
    assert_eq!(events(store, account, 6, 9).await[0].seq, 7, "numbers are never reused");
}

#[on_both_databases]
async fn a_cursor_ahead_of_the_newest_event_is_reported(store: &Shared) {
    let account = account(store, "a").await;
    assert_eq!(store.events(account, Some(0), 9).await.unwrap(), Feed::Events(Vec::new()));
    assert_eq!(store.events(account, Some(1), 9).await.unwrap(), Feed::CursorAhead(0));
    create(store, new(account, "one")).await;
    assert_eq!(store.events(account, Some(1), 9).await.unwrap(), Feed::Events(Vec::new()));
    assert_eq!(store.events(account, Some(7), 9).await.unwrap(), Feed::CursorAhead(1));
}

#[on_both_databases]
async fn events_keep_the_trace_of_their_request(store: &Shared) {
    let account = account(store, "a").await;
    let webhook = register(store, endpoint(account)).await.id;
    let trace = |digit: &str| {
        let header = format!("00-{}-{}-01", digit.repeat(32), digit.repeat(16));
        Some(TraceContext::parse(header.as_bytes()).unwrap())
    };
    let id = create(store, NewTemplate { trace: trace("1"), ..new(account, "one") }).await;
    let plain = create(store, new(account, "plain")).await;
    let edit = TemplateChange { trace: trace("2"), ..change(account, id) };
    store.edit_template(edit, Edit::Restore(1)).await.unwrap();
    let upsert = NewTemplate { trace: trace("3"), ..new(account, "upserted") };
    store.upsert_templates(vec![upsert]).await.unwrap();
    let deletion = TemplateChange { trace: trace("4"), ..change(account, id) };
    store.delete_template(deletion).await.unwrap();
    let by = Initiator { trace: trace("5"), ..initiator(account, Review::Manual, noon(5)) };
    store.delete_templates(by, vec![plain]).await.unwrap();
    let expected = [trace("1"), None, trace("2"), trace("3"), trace("4"), trace("5")];
    let traces: Vec<_> =
        events(store, account, 0, 100).await.into_iter().map(|event| event.trace).collect();
    assert_eq!(traces, expected);
    let due = lease(store, webhook, 10_000).await.unwrap();
    assert_eq!(due.event.trace, trace("1"), "a delivery has it, too");
}
