//! Cases about webhook endpoints.

use galley_domain::{
    id::{AccountId, WebhookId},
    template::lifecycle::{EventType, Trigger},
    webhook::{Format, delivery::DisableReason},
};
use galley_store::{
    Author, CreateWebhookOutcome, DeliveryLease, DeliveryQuery, NewWebhook, RotateOutcome,
    StoredSecret, Webhook, WebhookChange,
};
use galley_test_macros::on_both_databases;

use super::fixture::{Shared, account, change, create, done, events, new, noon};

pub(crate) fn endpoint(account: AccountId) -> NewWebhook {
    NewWebhook {
        account,
        url: "https://example.com/hook".to_owned(),
        events: Vec::new(),
        format: Format::Galley,
        subscribed: false,
        from_start: false,
        secret: StoredSecret(vec![1, 2, 3]),
        by: Author::operator(noon(0)),
    }
}

pub(crate) async fn register(store: &Shared, new: NewWebhook) -> Webhook {
    match store.create_webhook(new).await.unwrap() {
        CreateWebhookOutcome::Created(webhook) => *webhook,
        other => panic!("{other:?}"),
    }
}

fn secret(byte: u8) -> StoredSecret {
    StoredSecret(vec![byte])
}

async fn now(store: &Shared, webhook: &Webhook) -> Webhook {
    store.webhook(webhook.account, webhook.id).await.unwrap().unwrap()
}

#[on_both_databases]
async fn an_endpoint_reads_back_as_registered_only_in_its_account(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    create(store, new(mine, "before")).await;
    let events = vec![EventType::Approved, EventType::WebhookDisabled];
    let webhook = register(store, NewWebhook { events: events.clone(), ..endpoint(mine) }).await;
    assert_eq!(
        (webhook.account, &*webhook.url, &webhook.events),
        (mine, "https://example.com/hook", &events)
    );
    assert_eq!((&webhook.secret, &webhook.former_secret), (&StoredSecret(vec![1, 2, 3]), &None));
    assert_eq!((webhook.cursor, webhook.behind, webhook.created_at), (1, 0, noon(0)));
    assert_eq!(
        (webhook.failing_since, webhook.resting_until, webhook.disabled),
        (None, None, None)
    );
    assert_eq!(now(store, &webhook).await, webhook);
    create(store, new(mine, "after")).await;
    assert_eq!(now(store, &webhook).await.behind, 1);
    let second = register(store, endpoint(mine)).await;
    let ids: Vec<_> = store.webhooks(mine).await.unwrap().iter().map(|it| it.id).collect();
    assert_eq!(ids, [webhook.id, second.id]);
    assert_eq!(store.webhooks(theirs).await.unwrap(), []);
    assert_eq!(store.webhook(theirs, webhook.id).await.unwrap(), None);
    let change = WebhookChange { disabled: Some(true), ..WebhookChange::default() };
    assert_eq!(
        store.change_webhook(theirs, webhook.id, change, Author::operator(noon(1))).await.unwrap(),
        None
    );
    assert!(!store.delete_webhook(theirs, webhook.id, Author::operator(noon(0))).await.unwrap());
    let all = DeliveryQuery { status: None, before: None, limit: 9 };
    assert_eq!(store.deliveries(theirs, webhook.id, all).await.unwrap(), None);
}

#[on_both_databases]
async fn an_account_has_at_most_twenty_endpoints(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let mut last = register(store, endpoint(mine)).await;
    for _ in 1..20 {
        last = register(store, endpoint(mine)).await;
    }
    let more = store.create_webhook(endpoint(mine)).await.unwrap();
    assert_eq!(more, CreateWebhookOutcome::TooMany);
    let subscribed = NewWebhook { subscribed: true, format: Format::Whatsapp, ..endpoint(mine) };
    let more = store.create_webhook(subscribed).await.unwrap();
    assert_eq!(more, CreateWebhookOutcome::TooMany);
    register(store, endpoint(theirs)).await;
    assert!(store.delete_webhook(mine, last.id, Author::operator(noon(0))).await.unwrap());
    register(store, endpoint(mine)).await;
}

#[on_both_databases]
async fn a_change_to_an_endpoint_leaves_other_properties_alone(store: &Shared) {
    let account = account(store, "a").await;
    let webhook = register(store, endpoint(account)).await;
    let change =
        |change| store.change_webhook(account, webhook.id, change, Author::operator(noon(5)));
    let url = Some("https://example.org/".to_owned());
    let with_url =
        change(WebhookChange { url, ..WebhookChange::default() }).await.unwrap().unwrap();
    let expected =
        Webhook { url: "https://example.org/".to_owned(), updated_at: noon(5), ..webhook.clone() };
    assert_eq!(with_url, expected);
    let events = Some(vec![EventType::Deleted]);
    let with_events =
        change(WebhookChange { events, ..WebhookChange::default() }).await.unwrap().unwrap();
    assert_eq!(with_events, Webhook { events: vec![EventType::Deleted], ..expected.clone() });
    let events = Some(Vec::new());
    let all = change(WebhookChange { events, ..WebhookChange::default() }).await.unwrap().unwrap();
    assert_eq!(all, expected);
    let unknown_id = WebhookId::new(999).unwrap();
    let unknown = store.change_webhook(
        account,
        unknown_id,
        WebhookChange::default(),
        Author::operator(noon(5)),
    );
    assert_eq!(unknown.await.unwrap(), None);
}

#[on_both_databases]
async fn a_second_rotation_is_refused_while_the_first_is_in_progress(store: &Shared) {
    let account = account(store, "a").await;
    let webhook = register(store, endpoint(account)).await;
    let rotate = |byte: u8, force, at| {
        store.rotate_webhook(
            account,
            webhook.id,
            secret(byte),
            noon(at + 1_000),
            force,
            Author::operator(noon(at)),
        )
    };
    let RotateOutcome::Done(first) = rotate(7, false, 0).await.unwrap() else {
        panic!("no rotation is in progress")
    };
    assert_eq!(
        (&first.secret, &first.former_secret),
        (&secret(7), &Some((webhook.secret.clone(), noon(1_000))))
    );
    assert_eq!(rotate(8, false, 999).await.unwrap(), RotateOutcome::InProgress(noon(1_000)));
    assert_eq!(now(store, &webhook).await, *first);
    let RotateOutcome::Done(forced) = rotate(8, true, 999).await.unwrap() else {
        panic!("the rotation was forced")
    };
    assert_eq!(
        (&forced.secret, &forced.former_secret),
        (&secret(8), &Some((secret(7), noon(1_999))))
    );
    assert!(matches!(rotate(9, false, 1_999).await.unwrap(), RotateOutcome::Done(_)));
    let unknown_id = WebhookId::new(999).unwrap();
    let unknown = store.rotate_webhook(
        account,
        unknown_id,
        secret(1),
        noon(1),
        false,
        Author::operator(noon(0)),
    );
    assert_eq!(unknown.await.unwrap(), RotateOutcome::NoWebhook);
}

#[on_both_databases]
async fn an_enabled_endpoint_resumes_at_its_cursor(store: &Shared) {
    let account = account(store, "a").await;
    let webhook = register(store, endpoint(account)).await;
    let set_disabled = |off| {
        let change = WebhookChange { disabled: Some(off), ..WebhookChange::default() };
        store.change_webhook(account, webhook.id, change, Author::operator(noon(3)))
    };
    let off = set_disabled(true).await.unwrap().unwrap();
    assert_eq!(off.disabled, Some((noon(3), DisableReason::SwitchedOff)));
    create(store, new(account, "meanwhile")).await;
    assert_eq!(store.webhooks_with_work(noon(9)).await.unwrap().now, []);
    let lease = || store.lease_delivery(webhook.id, noon(9)..noon(99));
    assert_eq!(lease().await.unwrap(), DeliveryLease::NothingDue(None));
    let on = set_disabled(false).await.unwrap().unwrap();
    assert_eq!((on.disabled, on.behind), (None, 1));
    let DeliveryLease::Due(due) = lease().await.unwrap() else { panic!("the endpoint resumes") };
    assert_eq!(due.event.seq, 1);

    // Events that expired while the endpoint was disabled are skipped.
    set_disabled(true).await.unwrap();
    create(store, new(account, "long_ago")).await;
    assert_eq!(store.delete_expired_events(noon(100)).await.unwrap(), 2);
    create(store, new(account, "kept")).await;
    let on = set_disabled(false).await.unwrap().unwrap();
    assert_eq!((on.cursor, on.behind), (2, 1));
    let DeliveryLease::Due(due) =
        store.lease_delivery(webhook.id, noon(100)..noon(199)).await.unwrap()
    else {
        panic!("one more event is due")
    };
    assert_eq!(due.event.seq, 3);
}

#[on_both_databases]
async fn deleting_an_endpoint_deletes_its_deliveries(store: &Shared) {
    let account = account(store, "a").await;
    let webhook = register(store, endpoint(account)).await;
    create(store, new(account, "one")).await;
    let DeliveryLease::Due(due) = store.lease_delivery(webhook.id, noon(1)..noon(9)).await.unwrap()
    else {
        panic!("one event is due")
    };
    assert_eq!(due.event.seq, 1);
    assert!(store.delete_webhook(account, webhook.id, Author::operator(noon(0))).await.unwrap());
    assert!(!store.delete_webhook(account, webhook.id, Author::operator(noon(0))).await.unwrap());
    assert_eq!(
        store.lease_delivery(webhook.id, noon(99)..noon(199)).await.unwrap(),
        DeliveryLease::NothingDue(None)
    );
    assert_eq!(store.webhooks_with_work(noon(99)).await.unwrap().now, []);
    let mut batches = 0;
    while store.delete_expired_events(noon(0)).await.unwrap() > 0 {
        batches += 1;
        assert!(batches < 9, "the deletion does not finish");
    }
    assert!(batches > 0, "there was a delivery to delete");
    assert_eq!(events(store, account, 0, 9).await.len(), 1, "events that have not expired stay");
    let next = register(store, endpoint(account)).await;
    assert_ne!(next.id, webhook.id);
    let all = DeliveryQuery { status: None, before: None, limit: 9 };
    assert_eq!(store.deliveries(account, next.id, all).await.unwrap(), Some(Vec::new()));
}

#[on_both_databases]
async fn events_expired_while_an_endpoint_is_disabled_do_not_block_later_ones(store: &Shared) {
    let account = account(store, "a").await;
    let webhook = register(store, endpoint(account)).await;
    let id = create(store, new(account, "one")).await;
    done(store.review_template(change(account, id), Trigger::Pause, None).await.unwrap());
    // Both events are queued for the template, and the first one is leased.
    let leased = store.lease_delivery(webhook.id, noon(2_000)..noon(9_000)).await.unwrap();
    assert!(matches!(leased, DeliveryLease::Due(due) if due.event.seq == 1));
    let set_disabled = |off| {
        let change = WebhookChange { disabled: Some(off), ..WebhookChange::default() };
        store.change_webhook(account, webhook.id, change, Author::operator(noon(3_000)))
    };
    set_disabled(true).await.unwrap();
    assert_eq!(store.delete_expired_events(noon(500)).await.unwrap(), 1, "the first event expired");
    set_disabled(false).await.unwrap();
    let leased = store.lease_delivery(webhook.id, noon(4_000)..noon(9_000)).await.unwrap();
    assert!(
        matches!(leased, DeliveryLease::Due(due) if due.event.seq == 2),
        "the second event is next"
    );
}
