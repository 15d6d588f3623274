//! Cases about statuses of messages, which endpoints get.

use std::sync::{Arc, Mutex};

use galley_domain::{
    emulator::messages::MessageStatus,
    id::{AccountId, WebhookId},
    webhook::Format,
};
use galley_store::{
    Author, DeliveryLease, DueStatus, Fenced, NewMessage, NewWebhook, RetentionCursor,
    StatusCursor, StatusLease, Webhook, WebhookChange, WebhookKey,
};
use galley_test_macros::on_both_databases;
use jiff::Timestamp;

use super::{
    emulator::{DAY, HOUR, MINUTE, SECOND, advance, emulator, message, scripted},
    fixture::{Shared, account, create, noon, times},
    webhooks::{endpoint, register},
};

/// An endpoint in Meta's format, registered so long after noon.
async fn registered(store: &Shared, account: AccountId, at: i64) -> Webhook {
    let by = Author::operator(noon(at));
    register(store, NewWebhook { format: Format::Whatsapp, by, ..endpoint(account) }).await
}

async fn send(store: &Shared, account: AccountId, at: i64, failure: Option<u32>) {
    let new = NewMessage { failure, ..message(account, at) };
    assert!(store.add_message(new).await.unwrap().is_some());
}

async fn lease(store: &Shared, id: WebhookId, limit: usize, at: i64) -> StatusLease {
    store.lease_statuses(id, limit, times(at, at + MINUTE)).await.unwrap()
}

fn line(status: &DueStatus) -> String {
    let seconds = (status.at - noon(0)).get_seconds();
    format!("{seconds}s {} {}", status.message.number, status.status.as_str())
}

/// Leases and records the due statuses of an endpoint, a few at a time.
async fn receive(store: &Shared, id: WebhookId, at: i64) -> (Vec<String>, Option<Timestamp>) {
    let mut lines = Vec::new();
    loop {
        match lease(store, id, 2, at).await {
            StatusLease::Due(due) => {
                assert!((1..=2).contains(&due.statuses.len()), "{due:?}");
                lines.extend(due.statuses.iter().map(line));
                let through = due.statuses.last().unwrap().cursor;
                let recorded = store.record_statuses(id, noon(at + MINUTE), through).await.unwrap();
                assert_eq!(recorded, Fenced::Done(()));
            }
            StatusLease::NothingDue(next) => return (lines, next),
        }
    }
}

async fn with_work(store: &Shared, at: i64) -> Vec<WebhookId> {
    let found: Vec<WebhookKey> = store.endpoints_with_statuses(noon(at)).await.unwrap();
    found.iter().map(|it| it.id).collect()
}

#[on_both_databases]
async fn statuses_are_sent_in_the_order_of_their_times(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let id = registered(store, mine, 0).await.id;
    send(store, mine, 0, None).await;
    send(store, mine, SECOND, Some(131_026)).await;
    assert_eq!(with_work(store, SECOND).await, [id]);
    let StatusLease::Due(due) = lease(store, id, 100, SECOND).await else {
        panic!("three are due")
    };
    assert_eq!(due.webhook.id, id);
    let DueStatus { message, phone, to, callback_data, code, .. } = &due.statuses[1];
    assert_eq!((message.account, message.number, *code), (mine, 1, None));
    assert_eq!((&**phone, &**to), ("15550001111", "4915112345678"));
    assert_eq!(callback_data.as_deref(), Some("order-4711"));
    let lines: Vec<String> = due.statuses.iter().map(line).collect();
    assert_eq!(lines, ["0s 1 sent", "1s 1 delivered", "1s 2 sent"]);
    // Only the first of them is sent; the rest is due again.
    let through = due.statuses[0].cursor;
    assert_eq!(through, StatusCursor { sent: 1, delivered: 0, read: 0 });
    let record = store.record_statuses(id, noon(SECOND + MINUTE), through).await.unwrap();
    assert_eq!(record, Fenced::Done(()));
    let (lines, next) = receive(store, id, SECOND).await;
    assert_eq!(lines, ["1s 1 delivered", "1s 2 sent"]);
    assert_eq!(next, Some(noon(2 * SECOND)));
    assert_eq!(with_work(store, SECOND).await, []);
    assert_eq!(with_work(store, 2 * SECOND).await, [id]);
    let (lines, next) = receive(store, id, 10 * SECOND).await;
    assert_eq!((lines, next), (vec!["2s 2 failed".to_owned(), "3s 1 read".to_owned()], None));
    assert_eq!(with_work(store, DAY).await, [], "a failed message is never read");
}

#[on_both_databases]
async fn an_endpoint_from_the_start_gets_what_happened_before_it(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    create(store, scripted(mine, "hello", 0)).await;
    send(store, mine, 0, None).await;
    for (from_start, seen) in [(true, vec!["0s 1 sent".to_owned()]), (false, Vec::new())] {
        let by = Author::operator(noon(1));
        let new = NewWebhook { format: Format::Whatsapp, by, from_start, ..endpoint(mine) };
        let webhook = register(store, new).await;
        assert_eq!(webhook.behind > 0, from_start, "{webhook:?}");
        let read = store.webhook(mine, webhook.id).await.unwrap().unwrap();
        assert_eq!((read.cursor, read.behind), (webhook.cursor, webhook.behind));
        let due = store.lease_delivery(webhook.id, noon(2)..noon(MINUTE)).await.unwrap();
        assert_eq!(matches!(due, DeliveryLease::Due(_)), from_start, "{due:?}");
        assert_eq!(receive(store, webhook.id, 2).await.0, seen);
    }
}

#[on_both_databases]
async fn a_clock_that_stands_holds_statuses_back(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let id = registered(store, mine, 0).await.id;
    advance(store, mine, HOUR, 0).await;
    send(store, mine, 1, None).await;
    let (lines, next) = receive(store, id, 2).await;
    assert_eq!((lines, next), (vec!["3600s 1 sent".to_owned()], None));
    assert_eq!(with_work(store, DAY).await, []);
    advance(store, mine, 3 * SECOND, 3).await;
    assert_eq!(with_work(store, 3).await, [id]);
    assert_eq!(receive(store, id, 3).await.0, ["3601s 1 delivered", "3603s 1 read"]);
}

#[on_both_databases]
async fn a_lease_on_statuses_is_exclusive_until_it_ends(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let id = registered(store, mine, 0).await.id;
    send(store, mine, 0, None).await;
    let StatusLease::Due(first) = lease(store, id, 9, 0).await else { panic!("one is due") };
    assert_eq!(lease(store, id, 9, 1).await, StatusLease::NothingDue(Some(noon(MINUTE))));
    assert_eq!(with_work(store, 1).await, []);
    assert_eq!(with_work(store, MINUTE).await, [id]);
    let StatusLease::Due(second) = lease(store, id, 1, MINUTE).await else { panic!("it ended") };
    assert_eq!(second.statuses, first.statuses);
    let through = first.statuses[0].cursor;
    let record = |until| store.record_statuses(id, noon(until), through);
    assert_eq!(record(MINUTE).await.unwrap(), Fenced::LeaseLost);
    assert_eq!(record(2 * MINUTE).await.unwrap(), Fenced::Done(()));
    assert_eq!(record(2 * MINUTE).await.unwrap(), Fenced::LeaseLost);
}

#[on_both_databases]
async fn one_of_many_concurrent_workers_gets_the_statuses(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let id = registered(store, mine, 0).await.id;
    send(store, mine, 0, None).await;
    let tasks: Vec<_> = (0..12)
        .map(|_| {
            let store = Arc::clone(store);
            tokio::spawn(async move { lease(&store, id, 9, 0).await })
        })
        .collect();
    let mut leases = 0;
    for task in tasks {
        leases += usize::from(matches!(task.await.unwrap(), StatusLease::Due(_)));
    }
    assert_eq!(leases, 1);
}

#[on_both_databases]
async fn an_endpoint_starts_with_messages_that_are_not_older(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    for at in [0, 1, 2] {
        send(store, mine, at, None).await;
    }
    let late = registered(store, mine, 1).await.id;
    let (lines, _) = receive(store, late, 2).await;
    assert_eq!(lines, ["0s 2 sent", "0s 3 sent"]);
    let last = registered(store, mine, MINUTE).await.id;
    assert_eq!(receive(store, last, MINUTE).await, (Vec::new(), None));
    send(store, mine, MINUTE, None).await;
    assert_eq!(receive(store, last, MINUTE).await.0, ["60s 4 sent"]);
}

#[on_both_databases]
async fn only_endpoints_in_metas_format_of_emulators_get_statuses(store: &Shared) {
    let (mine, normal) = (emulator(store, "a", false).await, account(store, "b").await);
    let faithful = emulator(store, "c", true).await;
    let whatsapp = registered(store, mine, 0).await.id;
    let galley = register(store, endpoint(mine)).await.id;
    let other = registered(store, normal, 0).await.id;
    let unsubscribed = registered(store, faithful, 0).await.id;
    let new = NewWebhook { format: Format::Whatsapp, subscribed: true, ..endpoint(faithful) };
    let subscribed = register(store, new).await.id;
    for account in [mine, faithful] {
        send(store, account, 0, None).await;
    }
    assert_eq!(with_work(store, 0).await, [whatsapp, subscribed]);
    for id in [galley, other, unsubscribed] {
        assert_eq!(lease(store, id, 9, 0).await, StatusLease::NothingDue(None));
    }
    assert_eq!(receive(store, subscribed, 0).await.0, ["0s 1 sent"]);
    let disabled = WebhookChange { disabled: Some(true), ..WebhookChange::default() };
    let by = Author::operator(noon(1));
    store.change_webhook(mine, whatsapp, disabled, by).await.unwrap();
    store.set_account_disabled(faithful, true, by).await.unwrap();
    assert_eq!(with_work(store, MINUTE).await, []);
    for id in [whatsapp, subscribed] {
        assert_eq!(lease(store, id, 9, MINUTE).await, StatusLease::NothingDue(None));
    }
}

#[on_both_databases]
async fn the_statuses_of_a_deleted_endpoint_are_not_recorded(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let id = registered(store, mine, 0).await.id;
    send(store, mine, 0, None).await;
    let StatusLease::Due(due) = lease(store, id, 9, 0).await else { panic!("one is due") };
    assert!(store.delete_webhook(mine, id, Author::operator(noon(1))).await.unwrap());
    let through = due.statuses[0].cursor;
    let recorded = store.record_statuses(id, noon(MINUTE), through).await.unwrap();
    assert_eq!(recorded, Fenced::LeaseLost);
    assert_eq!(lease(store, id, 9, 1).await, StatusLease::NothingDue(None));
    assert_eq!(with_work(store, DAY).await, []);
}

#[on_both_databases]
async fn statuses_of_deleted_messages_are_passed_over(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let id = registered(store, mine, 0).await.id;
    send(store, mine, 0, None).await;
    assert_eq!(receive(store, id, 0).await.0, ["0s 1 sent"]);
    send(store, mine, 1, None).await;
    store.delete_expired_records(RetentionCursor::default(), noon(DAY + 1)).await.unwrap();
    assert_eq!(with_work(store, 2).await, [id], "its cursor has to move");
    assert_eq!(receive(store, id, 2).await, (Vec::new(), None));
    assert_eq!(with_work(store, 2).await, []);
    send(store, mine, DAY, None).await;
    let StatusLease::Due(due) = lease(store, id, 9, DAY).await else { panic!("one is due") };
    assert_eq!(due.statuses[0].status, MessageStatus::Sent);
    assert_eq!(due.statuses[0].cursor, StatusCursor { sent: 3, delivered: 2, read: 2 });
}

async fn set_disabled(store: &Shared, account: AccountId, id: WebhookId, disabled: bool, at: i64) {
    let change = WebhookChange { disabled: Some(disabled), ..WebhookChange::default() };
    let by = Author::operator(noon(at));
    store.change_webhook(account, id, change, by).await.unwrap().unwrap();
}

#[on_both_databases]
async fn an_endpoint_that_is_enabled_gets_no_statuses_of_earlier_messages(store: &Shared) {
    let mine = emulator(store, "a", false).await;
    let again = registered(store, mine, 0).await.id;
    let late = registered(store, mine, 0).await.id;
    let always = registered(store, mine, 0).await.id;
    set_disabled(store, mine, late, true, 0).await;
    send(store, mine, 0, None).await;
    let StatusLease::Due(due) = lease(store, again, 9, 0).await else { panic!("one is due") };
    set_disabled(store, mine, again, true, SECOND).await;
    send(store, mine, 2 * SECOND, None).await;
    for id in [again, late, always] {
        set_disabled(store, mine, id, false, 3 * SECOND).await;
    }
    let through = due.statuses[0].cursor;
    let recorded = store.record_statuses(again, noon(MINUTE), through).await.unwrap();
    assert_eq!(recorded, Fenced::LeaseLost, "a request before does not count");
    for id in [again, late] {
        assert_eq!(receive(store, id, 10 * SECOND).await, (Vec::new(), None));
    }
    assert_eq!(receive(store, always, 10 * SECOND).await.0.len(), 6, "it was enabled before");
    assert_eq!(with_work(store, DAY).await, []);
    send(store, mine, 20 * SECOND, None).await;
    for id in [again, late, always] {
        assert_eq!(receive(store, id, 20 * SECOND).await.0, ["20s 3 sent"]);
    }
}

/// Asserts that a lease reads the due messages and one more. `damage` executes a statement.
pub(crate) async fn assert_later_messages_are_not_read(
    store: &Shared,
    damage: impl AsyncFnOnce(&str),
) {
    let mine = emulator(store, "a", false).await;
    let id = registered(store, mine, 0).await.id;
    for at in [18_000, 19_500, 20_000, 20_000] {
        send(store, mine, at, None).await;
    }
    let (lines, _) = receive(store, id, 20_000).await;
    assert_eq!(lines, ["18s 1 sent", "19s 1 delivered", "19s 2 sent", "20s 3 sent", "20s 4 sent"]);
    damage("UPDATE message SET category = 'unknown' WHERE number = 4").await;
    let StatusLease::Due(due) = lease(store, id, 9, 20_500).await else { panic!("one is due") };
    assert_eq!(due.statuses.iter().map(line).collect::<Vec<_>>(), ["20s 2 delivered"]);
    let through = due.statuses[0].cursor;
    let recorded = store.record_statuses(id, noon(20_500 + MINUTE), through).await.unwrap();
    assert_eq!(recorded, Fenced::Done(()));
    let next = lease(store, id, 9, 20_600).await;
    assert_eq!(next, StatusLease::NothingDue(Some(noon(21_000))), "3 and 4 are delivered then");
}

/// Lets two handles of one store send statuses at the same time, and asserts that each is sent once
/// and in order.
pub(crate) async fn assert_two_handles_send_each_status_once_in_order(stores: [Shared; 2]) {
    let mine = emulator(&stores[0], "a", false).await;
    let id = registered(&stores[0], mine, 0).await.id;
    for _ in 1..=40 {
        send(&stores[0], mine, 0, None).await;
    }
    let sent = Arc::new(Mutex::new(Vec::new()));
    let tasks = stores.map(|store| {
        let sent = Arc::clone(&sent);
        tokio::spawn(async move {
            loop {
                match lease(&store, id, 3, MINUTE).await {
                    StatusLease::Due(due) => {
                        sent.lock().unwrap().extend(due.statuses.iter().map(line));
                        let through = due.statuses.last().unwrap().cursor;
                        let until = noon(2 * MINUTE);
                        let recorded = store.record_statuses(id, until, through).await.unwrap();
                        assert_eq!(recorded, Fenced::Done(()));
                    }
                    StatusLease::NothingDue(None) => break,
                    StatusLease::NothingDue(Some(_)) => tokio::task::yield_now().await,
                }
            }
        })
    });
    for task in tasks {
        task.await.unwrap();
    }
    let mut expected = Vec::new();
    for (at, status) in [("0s", "sent"), ("1s", "delivered"), ("3s", "read")] {
        expected.extend((1..=40).map(|number| format!("{at} {number} {status}")));
    }
    assert_eq!(*sent.lock().unwrap(), expected);
}
