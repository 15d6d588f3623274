//! Cases about endpoints: registered, changed, taken away.

use galley_domain::{
    id::{AccountId, WebhookId},
    template::lifecycle::{EventType, Trigger},
    webhook::{Format, delivery::DisableReason},
};
use galley_store::{
    CreateWebhookOutcome, Deliveries, DeliveryLease, NewWebhook, Rotation, StoredSecret, Webhook,
    WebhookChange,
};

use super::fixture::{Shared, account, change, create, done, events, new, noon};

pub(crate) fn endpoint(account: AccountId) -> NewWebhook {
    NewWebhook {
        account,
        url: "https://example.com/hook".to_owned(),
        events: Vec::new(),
        format: Format::Galley,
        subscribed: false,
        secret: StoredSecret(vec![1, 2, 3]),
        at: noon(0),
    }
}

pub(crate) async fn register(store: &Shared, new: NewWebhook) -> Webhook {
    match store.create_webhook(new).await.unwrap() {
        CreateWebhookOutcome::Created(webhook) => *webhook,
        other => panic!("{other:?}"),
    }
}

fn kept(byte: u8) -> StoredSecret {
    StoredSecret(vec![byte])
}

async fn now(store: &Shared, webhook: &Webhook) -> Webhook {
    store.webhook(webhook.account, webhook.id).await.unwrap().unwrap()
}

pub(crate) async fn an_endpoint_is_kept_as_it_was_registered_and_seen_by_its_account_only(
    store: &Shared,
) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    create(store, new(mine, "before")).await;
    let events = vec![EventType::Approved, EventType::WebhookDisabled];
    let made = register(store, NewWebhook { events: events.clone(), ..endpoint(mine) }).await;
    assert_eq!(
        (made.account, &*made.url, &made.events),
        (mine, "https://example.com/hook", &events)
    );
    assert_eq!((&made.secret, &made.former_secret), (&StoredSecret(vec![1, 2, 3]), &None));
    assert_eq!((made.cursor, made.behind, made.created_at), (1, 0, noon(0)));
    assert_eq!((made.failing_since, made.resting_until, made.disabled), (None, None, None));
    assert_eq!(now(store, &made).await, made);
    create(store, new(mine, "after")).await;
    assert_eq!(now(store, &made).await.behind, 1);
    let second = register(store, endpoint(mine)).await;
    let ids: Vec<_> = store.webhooks(mine).await.unwrap().iter().map(|it| it.id).collect();
    assert_eq!(ids, [made.id, second.id]);
    assert_eq!(store.webhooks(theirs).await.unwrap(), []);
    assert_eq!(store.webhook(theirs, made.id).await.unwrap(), None);
    let change = WebhookChange { disabled: Some(true), ..WebhookChange::default() };
    assert_eq!(store.change_webhook(theirs, made.id, change, noon(1)).await.unwrap(), None);
    assert!(!store.delete_webhook(theirs, made.id).await.unwrap());
    let all = Deliveries { status: None, before: None, limit: 9 };
    assert_eq!(store.deliveries(theirs, made.id, all).await.unwrap(), None);
}

pub(crate) async fn an_account_has_twenty_endpoints_at_most(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let mut last = register(store, endpoint(mine)).await;
    for _ in 1..20 {
        last = register(store, endpoint(mine)).await;
    }
    let more = store.create_webhook(endpoint(mine)).await.unwrap();
    assert_eq!(more, CreateWebhookOutcome::TooMany);
    register(store, endpoint(theirs)).await;
    assert!(store.delete_webhook(mine, last.id).await.unwrap());
    register(store, endpoint(mine)).await;
}

pub(crate) async fn what_is_changed_of_an_endpoint_is_changed_and_nothing_else(store: &Shared) {
    let account = account(store, "a").await;
    let made = register(store, endpoint(account)).await;
    let change = |change| store.change_webhook(account, made.id, change, noon(5));
    let url = Some("https://example.org/".to_owned());
    let moved = change(WebhookChange { url, ..WebhookChange::default() }).await.unwrap().unwrap();
    let expected =
        Webhook { url: "https://example.org/".to_owned(), updated_at: noon(5), ..made.clone() };
    assert_eq!(moved, expected);
    let events = Some(vec![EventType::Deleted]);
    let fewer =
        change(WebhookChange { events, ..WebhookChange::default() }).await.unwrap().unwrap();
    assert_eq!(fewer, Webhook { events: vec![EventType::Deleted], ..expected.clone() });
    let events = Some(Vec::new());
    let all = change(WebhookChange { events, ..WebhookChange::default() }).await.unwrap().unwrap();
    assert_eq!(all, expected);
    let nobody = WebhookId::new(999).unwrap();
    let unknown = store.change_webhook(account, nobody, WebhookChange::default(), noon(5));
    assert_eq!(unknown.await.unwrap(), None);
}

pub(crate) async fn a_former_secret_counts_until_its_time_and_a_second_rotation_waits(
    store: &Shared,
) {
    let account = account(store, "a").await;
    let made = register(store, endpoint(account)).await;
    let rotate = |secret: u8, anyway, at| {
        store.rotate_webhook(account, made.id, kept(secret), noon(at + 1_000), anyway, noon(at))
    };
    let Rotation::Done(first) = rotate(7, false, 0).await.unwrap() else {
        panic!("it is the first")
    };
    assert_eq!(
        (&first.secret, &first.former_secret),
        (&kept(7), &Some((made.secret.clone(), noon(1_000))))
    );
    assert_eq!(rotate(8, false, 999).await.unwrap(), Rotation::Open(noon(1_000)));
    assert_eq!(now(store, &made).await, *first);
    let Rotation::Done(forced) = rotate(8, true, 999).await.unwrap() else {
        panic!("it was forced")
    };
    assert_eq!((&forced.secret, &forced.former_secret), (&kept(8), &Some((kept(7), noon(1_999)))));
    assert!(matches!(rotate(9, false, 1_999).await.unwrap(), Rotation::Done(_)));
    let nobody = WebhookId::new(999).unwrap();
    let unknown = store.rotate_webhook(account, nobody, kept(1), noon(1), false, noon(0));
    assert_eq!(unknown.await.unwrap(), Rotation::NoWebhook);
}

pub(crate) async fn an_endpoint_that_was_switched_off_goes_on_where_it_was(store: &Shared) {
    let account = account(store, "a").await;
    let made = register(store, endpoint(account)).await;
    let switch = |off| {
        let change = WebhookChange { disabled: Some(off), ..WebhookChange::default() };
        store.change_webhook(account, made.id, change, noon(3))
    };
    let off = switch(true).await.unwrap().unwrap();
    assert_eq!(off.disabled, Some((noon(3), DisableReason::SwitchedOff)));
    create(store, new(account, "meanwhile")).await;
    assert_eq!(store.due_webhooks(noon(9)).await.unwrap().now, []);
    let take = || store.lease_delivery(made.id, noon(9), noon(99));
    assert_eq!(take().await.unwrap(), DeliveryLease::Nothing(None));
    let on = switch(false).await.unwrap().unwrap();
    assert_eq!((on.disabled, on.behind), (None, 1));
    let DeliveryLease::Due(due) = take().await.unwrap() else { panic!("it goes on") };
    assert_eq!(due.event.seq, 1);

    // What was forgotten while it was off is not there any more.
    switch(true).await.unwrap();
    create(store, new(account, "long_ago")).await;
    assert_eq!(store.delete_expired_events(noon(100)).await.unwrap(), 2);
    create(store, new(account, "kept")).await;
    let on = switch(false).await.unwrap().unwrap();
    assert_eq!((on.cursor, on.behind), (2, 1));
    let DeliveryLease::Due(due) =
        store.lease_delivery(made.id, noon(100), noon(199)).await.unwrap()
    else {
        panic!("there is one more")
    };
    assert_eq!(due.event.seq, 3);
}

pub(crate) async fn a_deleted_endpoint_gets_nothing_and_its_deliveries_are_forgotten(
    store: &Shared,
) {
    let account = account(store, "a").await;
    let made = register(store, endpoint(account)).await;
    create(store, new(account, "one")).await;
    let DeliveryLease::Due(due) = store.lease_delivery(made.id, noon(1), noon(9)).await.unwrap()
    else {
        panic!("there is one")
    };
    assert_eq!(due.event.seq, 1);
    assert!(store.delete_webhook(account, made.id).await.unwrap());
    assert!(!store.delete_webhook(account, made.id).await.unwrap());
    assert_eq!(
        store.lease_delivery(made.id, noon(99), noon(199)).await.unwrap(),
        DeliveryLease::Nothing(None)
    );
    assert_eq!(store.due_webhooks(noon(99)).await.unwrap().now, []);
    let mut forgotten = 0;
    while store.delete_expired_events(noon(0)).await.unwrap() > 0 {
        forgotten += 1;
        assert!(forgotten < 9, "there is no end to it");
    }
    assert!(forgotten > 0, "there was a delivery");
    assert_eq!(events(store, account, 0, 9).await.len(), 1, "events stay for their time");
    let next = register(store, endpoint(account)).await;
    assert_ne!(next.id, made.id);
    let all = Deliveries { status: None, before: None, limit: 9 };
    assert_eq!(store.deliveries(account, next.id, all).await.unwrap(), Some(Vec::new()));
}

pub(crate) async fn what_is_forgotten_while_an_endpoint_is_off_blocks_nothing_afterwards(
    store: &Shared,
) {
    let account = account(store, "a").await;
    let made = register(store, endpoint(account)).await;
    let id = create(store, new(account, "one")).await;
    done(store.review_template(change(account, id), Trigger::Pause, None).await.unwrap());
    // Both events wait in the line of the template, the first of them on its way.
    let taken = store.lease_delivery(made.id, noon(2_000), noon(9_000)).await.unwrap();
    assert!(matches!(taken, DeliveryLease::Due(due) if due.event.seq == 1));
    let switch = |off| {
        let change = WebhookChange { disabled: Some(off), ..WebhookChange::default() };
        store.change_webhook(account, made.id, change, noon(3_000))
    };
    switch(true).await.unwrap();
    assert_eq!(store.delete_expired_events(noon(500)).await.unwrap(), 1, "the first event");
    switch(false).await.unwrap();
    let taken = store.lease_delivery(made.id, noon(4_000), noon(9_000)).await.unwrap();
    assert!(matches!(taken, DeliveryLease::Due(due) if due.event.seq == 2), "the second moves up");
}
