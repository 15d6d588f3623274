//! Cases about reading events: in order, without gaps, and told when there are new ones.

use std::sync::Arc;

use galley_store::{Feed, NewTemplate};

use super::fixture::{Shared, account, create, events, new, noon};

pub(crate) async fn a_reader_gets_every_event_once_in_order_while_many_write(store: &Shared) {
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
                let mut news = store.event_notifier().of(account);
                let mut seen: Vec<u64> = Vec::new();
                while seen.len() < WRITERS * EACH {
                    let after = seen.last().copied().unwrap_or(0);
                    let page = events(&store, account, after, limit * 7).await;
                    if page.is_empty() {
                        news.changed().await.unwrap();
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

pub(crate) async fn who_waits_for_an_account_is_told_of_its_events_only(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let (mut my_news, mut any) =
        (store.event_notifier().of(mine), store.event_notifier().of_anybody());
    create(store, new(theirs, "theirs")).await;
    any.changed().await.unwrap();
    assert!(!my_news.has_changed().unwrap());
    create(store, new(mine, "mine")).await;
    my_news.changed().await.unwrap();
    assert_eq!(*my_news.borrow_and_update(), 1);
    assert_eq!(
        (store.newest_event(mine).await.unwrap(), events(store, mine, 0, 9).await.len()),
        (1, 1)
    );
    store.poll_events().await.unwrap();
    assert!(!my_news.has_changed().unwrap(), "there is nothing new");
}

pub(crate) async fn events_of_before_their_time_are_forgotten_and_late_readers_told(
    store: &Shared,
) {
    let account = account(store, "a").await;
    for index in 0..6 {
        let at = noon(index * 1_000);
        create(store, NewTemplate { at, ..new(account, &format!("t{index}")) }).await;
    }
    assert_eq!(store.delete_expired_events(noon(3_000)).await.unwrap(), 3);
    assert_eq!(store.delete_expired_events(noon(3_000)).await.unwrap(), 0);
    assert_eq!(store.events(account, Some(0), 9).await.unwrap(), Feed::Expired(4));
    assert_eq!(store.events(account, Some(2), 9).await.unwrap(), Feed::Expired(4));
    let Feed::Events(kept) = store.events(account, Some(3), 9).await.unwrap() else {
        panic!("the next one is kept")
    };
    assert_eq!(kept.iter().map(|event| event.seq).collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!(store.events(account, None, 9).await.unwrap(), Feed::Events(kept));
    assert_eq!(store.delete_expired_events(noon(9_000)).await.unwrap(), 3);
    assert_eq!(store.events(account, Some(5), 9).await.unwrap(), Feed::Expired(7));
    assert_eq!(store.events(account, Some(6), 9).await.unwrap(), Feed::Events(Vec::new()));
    create(store, new(account, "next")).await;
    assert_eq!(events(store, account, 6, 9).await[0].seq, 7, "numbers are never given again");
}

pub(crate) async fn a_reader_that_knows_more_than_the_store_is_told(store: &Shared) {
    let account = account(store, "a").await;
    assert_eq!(store.events(account, Some(0), 9).await.unwrap(), Feed::Events(Vec::new()));
    assert_eq!(store.events(account, Some(1), 9).await.unwrap(), Feed::CursorAhead(0));
    create(store, new(account, "one")).await;
    assert_eq!(store.events(account, Some(1), 9).await.unwrap(), Feed::Events(Vec::new()));
    assert_eq!(store.events(account, Some(7), 9).await.unwrap(), Feed::CursorAhead(1));
}
