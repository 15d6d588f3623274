//! Cases about messages of the sandbox.

use std::sync::Arc;

use galley_domain::{
    emulator::messages::{MAX_KEPT, MessageId, MessageStatus},
    id::TemplateId,
};
use galley_store::{NewMessage, RetentionCursor, SentTemplate, StoredMessage};

use super::{
    emulator::{DAY, HOUR, SECOND, advance, emulator, message, scripted, scripted_change},
    fixture::{Shared, create, done, noon},
};
use galley_test_macros::on_both_databases;

#[on_both_databases]
async fn a_message_reads_back_with_its_status_on_the_clock(store: &Shared) {
    let (mine, other) = (emulator(store, "a", false).await, emulator(store, "b", false).await);
    advance(store, mine, HOUR, 0).await;
    let failing = NewMessage { failure: Some(131_026), callback_data: None, ..message(mine, 1) };
    let new = message(mine, 1);
    let first = store.add_message(new.clone()).await.unwrap().unwrap();
    let expected = StoredMessage {
        id: MessageId { account: mine, number: 1 },
        phone: new.phone,
        to: new.to,
        template: new.template,
        sent_template: None,
        version: new.version,
        category: new.category,
        texts: new.texts,
        failure: None,
        sent_at: noon(HOUR),
        status: MessageStatus::Sent,
    };
    assert_eq!(first, expected);
    let second = store.add_message(failing).await.unwrap().unwrap();
    assert_eq!((second.id.number, second.failure), (2, Some(131_026)));
    let messages = || async { store.messages(mine, None, 1_000, noon(2)).await.unwrap() };
    assert_eq!(messages().await, [second.clone(), first.clone()], "newest first");
    for (by, expected) in [
        (SECOND, [MessageStatus::Failed, MessageStatus::Delivered]),
        (2 * SECOND, [MessageStatus::Failed, MessageStatus::Read]),
    ] {
        advance(store, mine, by, 2).await;
        assert_eq!(messages().await.iter().map(|it| it.status).collect::<Vec<_>>(), expected);
    }
    assert_eq!(store.messages(other, None, 1_000, noon(2)).await.unwrap(), []);
}

#[on_both_databases]
async fn a_message_shows_its_template_also_after_the_deletion(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let id = create(store, scripted(mine, "order", 0)).await;
    let new = NewMessage { template: id, ..message(mine, 1) };
    store.add_message(new).await.unwrap().unwrap();
    let shown = || async {
        let messages = store.messages(mine, None, 1_000, noon(2)).await.unwrap();
        messages[0].sent_template.clone()
    };
    let (name, language) = ("order".to_owned(), "en_US".to_owned());
    let expected = SentTemplate { name, language, is_deleted: false };
    assert_eq!(shown().await, Some(expected.clone()));
    done(store.delete_template(scripted_change(mine, id, 2)).await.unwrap());
    assert_eq!(shown().await, Some(SentTemplate { is_deleted: true, ..expected }));
    // Neither a template of another account nor one that does not exist is shown.
    let other = emulator(store, "b", false).await;
    for template in [id, TemplateId::new(7).unwrap()] {
        let new = NewMessage { template, ..message(other, 2) };
        store.add_message(new).await.unwrap().unwrap();
        let messages = store.messages(other, None, 1_000, noon(3)).await.unwrap();
        assert_eq!(messages[0].sent_template, None);
    }
}

#[on_both_databases]
async fn messages_are_paged_newest_first(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    for at in 0..5 {
        store.add_message(message(mine, at)).await.unwrap().unwrap();
    }
    let page = |before, limit| async move {
        let page = store.messages(mine, before, limit, noon(9)).await.unwrap();
        page.iter().map(|it| it.id.number).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 2).await, [5, 4]);
    assert_eq!(page(Some(4), 2).await, [3, 2]);
    assert_eq!(page(Some(2), 2).await, [1]);
    assert_eq!(page(Some(u64::MAX), 9).await, [5, 4, 3, 2, 1]);
    assert_eq!(page(Some(0), 9).await, [0; 0]);
}

#[on_both_databases]
async fn concurrent_messages_are_numbered_in_the_order_of_their_times(store: &Shared) {
    let accounts = [emulator(store, "a", false).await, emulator(store, "b", false).await];
    let tasks: Vec<_> = (0..60_i64)
        .map(|index| {
            let store = Arc::clone(store);
            // The callers have read the time in another order.
            let new = message(accounts[usize::from(index % 3 == 0)], (index * 37) % 60);
            tokio::spawn(async move { store.add_message(new).await.unwrap().unwrap() })
        })
        .collect();
    let mut returned = Vec::new();
    for task in tasks {
        returned.push(task.await.unwrap());
    }
    for (account, count) in accounts.into_iter().zip([40, 20]) {
        let mut messages = store.messages(account, None, 1_000, noon(60)).await.unwrap();
        messages.reverse();
        let numbers: Vec<u64> = messages.iter().map(|it| it.id.number).collect();
        assert_eq!(numbers, (1..=count).collect::<Vec<u64>>());
        assert!(messages.is_sorted_by_key(|it| it.sent_at), "{messages:?}");
        let mut returned: Vec<_> =
            returned.iter().filter(|it| it.id.account == account).cloned().collect();
        returned.sort_by_key(|it| it.id.number);
        assert_eq!(returned, messages);
    }
}

#[on_both_databases]
async fn an_account_keeps_its_newest_messages(store: &Shared) {
    let (mine, other) = (emulator(store, "a", false).await, emulator(store, "b", false).await);
    store.add_message(message(other, 0)).await.unwrap().unwrap();
    for _ in 0..=MAX_KEPT / 200 {
        let tasks: Vec<_> = (0..200)
            .map(|_| {
                let store = Arc::clone(store);
                tokio::spawn(async move { store.add_message(message(mine, 0)).await.unwrap() })
            })
            .collect();
        for task in tasks {
            assert!(task.await.unwrap().is_some());
        }
    }
    let messages = store.messages(mine, None, usize::MAX, noon(0)).await.unwrap();
    assert_eq!(messages.len() as u64, MAX_KEPT);
    assert_eq!(messages.first().map(|it| it.id.number), Some(MAX_KEPT + 200));
    assert_eq!(store.messages(other, None, usize::MAX, noon(0)).await.unwrap().len(), 1);
}

#[on_both_databases]
async fn messages_expire_after_a_day_of_real_time(store: &Shared) {
    let accounts = [emulator(store, "a", false).await, emulator(store, "b", false).await];
    for account in accounts {
        for at in [0, 1, HOUR] {
            store.add_message(message(account, at)).await.unwrap().unwrap();
        }
    }
    let [mine, other] = accounts;
    let numbers = |account, at| async move {
        let messages = store.messages(account, None, 1_000, noon(at)).await.unwrap();
        messages.iter().map(|it| it.id.number).collect::<Vec<_>>()
    };
    advance(store, mine, 30 * DAY, HOUR).await;
    assert_eq!(numbers(mine, DAY - 1).await, [3, 2, 1], "the clock of the account does not matter");
    assert_eq!(numbers(mine, DAY).await, [3, 2]);
    store.delete_expired_records(RetentionCursor::default(), noon(DAY + 1)).await.unwrap();
    for account in [mine, other] {
        assert_eq!(numbers(account, 0).await, [3], "they were deleted");
    }
    store.add_message(message(mine, DAY + 1)).await.unwrap().unwrap();
    assert_eq!(numbers(mine, DAY + 1).await, [4, 3]);
}

#[on_both_databases]
async fn callback_data_may_contain_any_character(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let callback_data = Some("a\0b\u{7f}\u{fffe} 😀".to_owned());
    let new = NewMessage { callback_data, ..message(mine, 0) };
    assert!(store.add_message(new).await.unwrap().is_some());
}
