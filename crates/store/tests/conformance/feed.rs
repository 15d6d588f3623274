//! Cases about reading events in order and without gaps, and about notifications.

use std::sync::Arc;

use galley_store::{Feed, NewTemplate};

use super::fixture::{Shared, account, create, events, new, noon};

pub(crate) async fn a_reader_gets_every_event_once_in_order_during_concurrent_writes(
    store: &Shared,
) {
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

pub(crate) async fn a_subscriber_is_notified_only_of_its_accounts_events(store: &Shared) {
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

pub(crate) async fn expired_events_are_deleted_and_reported_to_late_readers(store: &Shared) {
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

pub(crate) async fn a_cursor_ahead_of_the_newest_event_is_reported(store: &Shared) {
    let account = account(store, "a").await;
    assert_eq!(store.events(account, Some(0), 9).await.unwrap(), Feed::Events(Vec::new()));
    assert_eq!(store.events(account, Some(1), 9).await.unwrap(), Feed::CursorAhead(0));
    create(store, new(account, "one")).await;
    assert_eq!(store.events(account, Some(1), 9).await.unwrap(), Feed::Events(Vec::new()));
    assert_eq!(store.events(account, Some(7), 9).await.unwrap(), Feed::CursorAhead(1));
}
