//! Cases about deliveries: selection, order, leases and failures.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    template::lifecycle::{EventType, Trigger},
    webhook::delivery::{DeliveryOutcome, DeliveryStatus, DisableReason, RetryDecision},
};
use galley_store::{
    Actor, Attempt, Author, DeliveryLease, DeliveryQuery, DueDelivery, EventSubject, NewWebhook,
    RecordAttemptOutcome, WebhookChange, WebhookKey,
};
use galley_test_macros::on_both_databases;

use super::{
    fixture::{Shared, account, change, create, done, events, new, noon},
    webhooks::{endpoint, register},
};

const REFUSED: DeliveryOutcome = DeliveryOutcome::Refused { overloaded: false, retry_after: None };
const LEASE: i64 = 20_000;
const NONE: [u64; 0] = [];

/// Leases the delivery that is due at `noon(at)`, if any.
pub(crate) async fn lease(store: &Shared, id: WebhookId, at: i64) -> Option<DueDelivery> {
    match store.lease_delivery(id, noon(at)..noon(at + LEASE)).await.unwrap() {
        DeliveryLease::Due(due) => Some(*due),
        DeliveryLease::NothingDue(_) => None,
    }
}

fn attempt(
    due: &DueDelivery,
    at: i64,
    outcome: DeliveryOutcome,
    decision: RetryDecision,
) -> Attempt {
    Attempt {
        webhook: due.webhook.id,
        seq: due.event.seq,
        lease_until: due.lease_until,
        url: due.webhook.url.clone(),
        at: noon(at),
        outcome,
        response_status: Some(if outcome == DeliveryOutcome::Accepted { 200 } else { 500 }),
        failure: None,
        decision,
    }
}

pub(crate) async fn deliver(store: &Shared, due: &DueDelivery, at: i64) {
    let taken = attempt(due, at, DeliveryOutcome::Accepted, RetryDecision::Delivered);
    assert_eq!(store.record_attempt(taken).await.unwrap(), RecordAttemptOutcome::Recorded);
}

/// Records a failed attempt to be retried after this many seconds.
pub(crate) async fn fail(
    store: &Shared,
    due: &DueDelivery,
    at: i64,
    seconds: u64,
) -> RecordAttemptOutcome {
    let again = RetryDecision::RetryAfter(Duration::from_secs(seconds));
    store.record_attempt(attempt(due, at, REFUSED, again)).await.unwrap()
}

/// Delivers everything that is due; returns the event numbers in order.
pub(crate) async fn deliver_all(store: &Shared, id: WebhookId, at: i64) -> Vec<u64> {
    let mut delivered = Vec::new();
    while let Some(due) = lease(store, id, at).await {
        deliver(store, &due, at).await;
        delivered.push(due.event.seq);
    }
    delivered
}

/// Two templates: events 1, 3 and 4 are about the first, event 2 is about the second.
pub(crate) async fn two_templates(store: &Shared) -> (AccountId, WebhookId, [TemplateId; 2]) {
    let account = account(store, "a").await;
    let webhook = register(store, endpoint(account)).await.id;
    let one = create(store, new(account, "one")).await;
    let two = create(store, new(account, "two")).await;
    for trigger in [Trigger::Pause, Trigger::Resume] {
        done(store.review_template(change(account, one), trigger, None).await.unwrap());
    }
    (account, webhook, [one, two])
}

pub(crate) async fn statuses(
    store: &Shared,
    account: AccountId,
    id: WebhookId,
) -> BTreeMap<u64, &'static str> {
    let all = DeliveryQuery { status: None, before: None, limit: 1_000 };
    let all = store.deliveries(account, id, all).await.unwrap().unwrap();
    all.iter().map(|it| (it.seq, it.status.as_str())).collect()
}

#[on_both_databases]
async fn events_after_the_registration_are_delivered_in_order(store: &Shared) {
    let account = account(store, "a").await;
    create(store, new(account, "before")).await;
    let webhook = register(store, endpoint(account)).await;
    for index in 0..600 {
        create(store, new(account, &format!("t{index}"))).await;
    }
    let first = lease(store, webhook.id, 1_000).await.unwrap();
    assert_eq!(
        (first.attempts, &first.webhook.url, first.lease_until),
        (0, &webhook.url, noon(21_000))
    );
    assert_eq!(first.event, events(store, account, 1, 1).await[0]);
    deliver(store, &first, 1_000).await;
    let rest = deliver_all(store, webhook.id, 1_000).await;
    assert_eq!(rest, (3..=601).collect::<Vec<_>>());
    assert_eq!(store.webhook(account, webhook.id).await.unwrap().unwrap().behind, 0);
    let nothing = store.lease_delivery(webhook.id, noon(9_000)..noon(9_999)).await.unwrap();
    assert_eq!(nothing, DeliveryLease::NothingDue(None));
}

#[on_both_databases]
async fn only_subscribed_event_types_are_delivered(store: &Shared) {
    let account = account(store, "a").await;
    let events = vec![EventType::Paused];
    let filtered = register(store, NewWebhook { events, ..endpoint(account) }).await.id;
    let all = register(store, endpoint(account)).await.id;
    // More events than one lease call scans.
    for index in 0..3_000 {
        create(store, new(account, &format!("t{index}"))).await;
    }
    let last = create(store, new(account, "last")).await;
    done(store.review_template(change(account, last), Trigger::Pause, None).await.unwrap());
    let mut calls = 0;
    let due = loop {
        match store.lease_delivery(filtered, noon(5_000)..noon(9_000)).await.unwrap() {
            DeliveryLease::Due(due) => break due,
            DeliveryLease::NothingDue(next) => {
                assert_eq!(next, Some(noon(5_000)), "there are more events to scan");
            }
        }
        calls += 1;
        assert!(calls < 10, "the cursor does not advance");
    };
    assert_eq!((due.event.seq, due.event.kind), (3_002, EventType::Paused));
    assert_eq!(deliver_all(store, filtered, 5_000).await, NONE);
    assert_eq!(lease(store, all, 5_000).await.unwrap().event.seq, 1, "endpoints are independent");
}

#[on_both_databases]
async fn a_failing_event_delays_only_later_events_of_its_template(store: &Shared) {
    let (account, webhook, _) = two_templates(store).await;
    let first = lease(store, webhook, 2_000).await.unwrap();
    assert_eq!(first.event.seq, 1);
    assert_eq!(fail(store, &first, 2_000, 5).await, RecordAttemptOutcome::Recorded);
    assert_eq!(deliver_all(store, webhook, 2_000).await, [2], "3 and 4 are held back by 1");
    assert_eq!(deliver_all(store, webhook, 6_999).await, NONE);
    let DeliveryLease::NothingDue(next) =
        store.lease_delivery(webhook, noon(6_999)..noon(9_999)).await.unwrap()
    else {
        panic!("the event is not due yet")
    };
    assert_eq!(next, Some(noon(7_000)));
    let again = lease(store, webhook, 7_000).await.unwrap();
    assert_eq!((again.event.seq, again.attempts), (1, 1));
    assert_eq!(again.event, first.event, "the same event as before");
    deliver(store, &again, 7_000).await;
    assert_eq!(deliver_all(store, webhook, 7_000).await, [3, 4]);
    let all = statuses(store, account, webhook).await;
    assert!(all.values().all(|it| *it == "delivered"), "{all:?}");
}

#[on_both_databases]
async fn the_next_event_is_delivered_after_the_last_attempt_fails(store: &Shared) {
    let (account, webhook, _) = two_templates(store).await;
    let first = lease(store, webhook, 2_000).await.unwrap();
    let last = attempt(&first, 2_000, REFUSED, RetryDecision::Failed);
    assert_eq!(store.record_attempt(last).await.unwrap(), RecordAttemptOutcome::Recorded);
    assert_eq!(deliver_all(store, webhook, 2_000).await, [2, 3, 4]);
    let all = statuses(store, account, webhook).await;
    assert_eq!(all, [(1, "failed"), (2, "delivered"), (3, "delivered"), (4, "delivered")].into());
}

#[on_both_databases]
async fn a_leased_delivery_is_exclusive_until_its_lease_ends(store: &Shared) {
    let (_, webhook, _) = two_templates(store).await;
    let first = lease(store, webhook, 2_000).await.unwrap();
    let second = lease(store, webhook, 2_000).await.unwrap();
    assert_eq!((first.event.seq, second.event.seq), (1, 2));
    assert_eq!(lease(store, webhook, 2_000).await, None, "an event of each template is leased");
    let DeliveryLease::NothingDue(next) =
        store.lease_delivery(webhook, noon(2_000)..noon(9_999)).await.unwrap()
    else {
        panic!("everything is leased")
    };
    assert_eq!(next, Some(noon(2_000 + LEASE)));
    // The lease has ended, so another worker gets the delivery.
    let after = 2_000 + LEASE;
    let again = lease(store, webhook, after).await.unwrap();
    assert_eq!((again.event.seq, again.attempts), (1, 0));
    let late = attempt(&first, after, DeliveryOutcome::Accepted, RetryDecision::Delivered);
    assert_eq!(store.record_attempt(late).await.unwrap(), RecordAttemptOutcome::LeaseLost);
    deliver(store, &again, after).await;
    let twice = attempt(&again, after, DeliveryOutcome::Accepted, RetryDecision::Delivered);
    assert_eq!(store.record_attempt(twice).await.unwrap(), RecordAttemptOutcome::LeaseLost);
    assert_eq!(deliver_all(store, webhook, after).await, [2, 3, 4]);
}

#[on_both_databases]
async fn concurrent_workers_lease_each_event_once(store: &Shared) {
    let account = account(store, "a").await;
    let webhook = register(store, endpoint(account)).await.id;
    for index in 0..100 {
        let id = create(store, new(account, &format!("t{index}"))).await;
        done(store.review_template(change(account, id), Trigger::Pause, None).await.unwrap());
    }
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(store);
            tokio::spawn(async move { deliver_all(&store, webhook, 5_000).await })
        })
        .collect();
    let mut delivered = Vec::new();
    for worker in workers {
        delivered.extend(worker.await.unwrap());
    }
    // A worker may stop early while other workers hold the first event of every remaining template.
    delivered.extend(deliver_all(store, webhook, 5_000).await);
    delivered.sort_unstable();
    assert_eq!(delivered, (1..=200).collect::<Vec<_>>());
}

#[on_both_databases]
async fn retry_after_pauses_an_endpoint(store: &Shared) {
    let (account, webhook, _) = two_templates(store).await;
    let first = lease(store, webhook, 2_000).await.unwrap();
    let reply = DeliveryOutcome::from_status(503, Some(Duration::from_secs(30)));
    let again = RetryDecision::RetryAfter(Duration::from_secs(30));
    let throttled = attempt(&first, 2_000, reply, again);
    assert_eq!(store.record_attempt(throttled).await.unwrap(), RecordAttemptOutcome::Recorded);
    let resting = store.webhook(account, webhook).await.unwrap().unwrap();
    assert_eq!(resting.resting_until, Some(noon(32_000)));
    assert_eq!(resting.failing_since, Some(noon(2_000)));
    let due = store.webhooks_with_work(noon(31_999)).await.unwrap();
    assert_eq!((due.now, due.next_at), (vec![], Some(noon(32_000))));
    assert_eq!(lease(store, webhook, 31_999).await, None);
    assert_eq!(deliver_all(store, webhook, 32_000).await, [2, 1, 3, 4]);
    let healthy = store.webhook(account, webhook).await.unwrap().unwrap();
    assert_eq!((healthy.resting_until, healthy.failing_since), (None, None));
}

#[on_both_databases]
async fn a_requested_pause_outlasts_attempts_already_in_flight(store: &Shared) {
    let (account, webhook, _) = two_templates(store).await;
    let (first, second) =
        (lease(store, webhook, 2_000).await.unwrap(), lease(store, webhook, 2_000).await.unwrap());
    let again = RetryDecision::RetryAfter(Duration::from_mins(1));
    let throttled = attempt(
        &first,
        2_000,
        DeliveryOutcome::from_status(429, Some(Duration::from_mins(1))),
        again,
    );
    assert_eq!(store.record_attempt(throttled).await.unwrap(), RecordAttemptOutcome::Recorded);
    deliver(store, &second, 2_100).await;
    let resting = async || store.webhook(account, webhook).await.unwrap().unwrap().resting_until;
    assert_eq!(resting().await, Some(noon(62_000)), "a success does not end the pause");
    assert_eq!(lease(store, webhook, 61_999).await, None);
    let first = lease(store, webhook, 62_000).await.unwrap();
    assert_eq!(fail(store, &first, 62_000, 5).await, RecordAttemptOutcome::Recorded);
    assert_eq!(
        resting().await,
        Some(noon(62_000)),
        "a failure without Retry-After does not extend it"
    );
}

#[on_both_databases]
async fn a_failure_after_a_long_pause_starts_a_new_streak(store: &Shared) {
    const DAY: i64 = 24 * 3_600_000;
    let (account, webhook, _) = two_templates(store).await;
    let first = lease(store, webhook, 2_000).await.unwrap();
    let last = attempt(&first, 2_000, REFUSED, RetryDecision::Failed);
    assert_eq!(store.record_attempt(last).await.unwrap(), RecordAttemptOutcome::Recorded);
    let later = lease(store, webhook, 30 * DAY).await.unwrap();
    assert_eq!(
        fail(store, &later, 30 * DAY, 5).await,
        RecordAttemptOutcome::Recorded,
        "the streak was reset"
    );
    let failing = store.webhook(account, webhook).await.unwrap().unwrap();
    assert_eq!(failing.failing_since, Some(noon(30 * DAY)));
}

#[on_both_databases]
async fn a_result_from_a_previous_url_does_not_affect_the_endpoint(store: &Shared) {
    let (account, webhook, _) = two_templates(store).await;
    let first = lease(store, webhook, 2_000).await.unwrap();
    let url = Some("https://example.org/new".to_owned());
    let moved = WebhookChange { url, ..WebhookChange::default() };
    store.change_webhook(account, webhook, moved, Author::operator(noon(2_100))).await.unwrap();
    let gone = attempt(
        &first,
        2_200,
        DeliveryOutcome::Gone,
        RetryDecision::RetryAfter(Duration::from_secs(5)),
    );
    assert_eq!(store.record_attempt(gone).await.unwrap(), RecordAttemptOutcome::Recorded);
    assert_eq!(store.webhook(account, webhook).await.unwrap().unwrap().disabled, None);
    let again = lease(store, webhook, 9_000).await.unwrap();
    assert_eq!(again.webhook.url, "https://example.org/new");
}

#[on_both_databases]
async fn an_endpoint_that_is_down_is_probed_with_one_event_at_a_time(store: &Shared) {
    let account = account(store, "a").await;
    let webhook = register(store, endpoint(account)).await.id;
    for index in 0..20 {
        create(store, new(account, &format!("t{index}"))).await;
    }
    for _ in 0..10 {
        let due = lease(store, webhook, 1_000).await.unwrap();
        assert_eq!(fail(store, &due, 1_000, 3_600).await, RecordAttemptOutcome::Recorded);
    }
    let probe = lease(store, webhook, 3_000).await.unwrap();
    assert_eq!(lease(store, webhook, 3_000).await, None, "one probe at a time");
    deliver(store, &probe, 3_000).await;
    let (one, two) = (lease(store, webhook, 3_000).await, lease(store, webhook, 3_000).await);
    assert!(one.is_some() && two.is_some(), "the endpoint has recovered");
}

#[on_both_databases]
async fn an_endpoint_that_is_gone_is_disabled_with_an_event(store: &Shared) {
    let (account, webhook, _) = two_templates(store).await;
    let other = register(store, endpoint(account)).await.id;
    let (first, second) =
        (lease(store, webhook, 2_000).await.unwrap(), lease(store, webhook, 2_000).await.unwrap());
    let gone = attempt(
        &first,
        2_000,
        DeliveryOutcome::Gone,
        RetryDecision::RetryAfter(Duration::from_secs(5)),
    );
    let recorded = store.record_attempt(gone).await.unwrap();
    assert_eq!(recorded, RecordAttemptOutcome::Disabled(DisableReason::Gone));
    let again = attempt(&second, 2_100, DeliveryOutcome::Gone, RetryDecision::Failed);
    let recorded = store.record_attempt(again).await.unwrap();
    assert_eq!(recorded, RecordAttemptOutcome::Recorded, "it is disabled once");
    let disabled = store.webhook(account, webhook).await.unwrap().unwrap();
    assert_eq!(disabled.disabled, Some((noon(2_000), DisableReason::Gone)));
    assert_eq!(lease(store, webhook, 99_000).await, None);
    let new_events = events(store, account, 4, 9).await;
    assert_eq!(new_events.len(), 1);
    let subject = EventSubject::Webhook { id: webhook, origin: "https://example.com".to_owned() };
    assert_eq!(
        (new_events[0].kind, &new_events[0].subject),
        (EventType::WebhookDisabled, &subject)
    );
    assert_eq!(
        (new_events[0].actor, new_events[0].reason.as_deref()),
        (Actor::Service, Some("gone"))
    );
    let due = lease(store, other, 3_000).await.unwrap();
    assert_eq!(due.event, new_events[0], "other endpoints receive the event");
}

#[on_both_databases]
async fn an_endpoint_that_fails_for_five_days_is_disabled(store: &Shared) {
    const HOUR: i64 = 3_600_000;
    let (account, webhook, _) = two_templates(store).await;
    let mut at = 2_000;
    while at < 2_000 + 119 * HOUR {
        let due = lease(store, webhook, at).await.unwrap();
        assert_eq!(
            fail(store, &due, at, 3_600).await,
            RecordAttemptOutcome::Recorded,
            "{}",
            at / HOUR
        );
        at += HOUR;
    }
    let due = lease(store, webhook, at + HOUR).await.unwrap();
    let recorded = fail(store, &due, at + HOUR, 3_600).await;
    assert_eq!(recorded, RecordAttemptOutcome::Disabled(DisableReason::Failing));
    let new_events = events(store, account, 4, 9).await;
    assert_eq!(new_events[0].reason.as_deref(), Some("failing"));
}

#[on_both_databases]
async fn deliveries_are_listed_newest_first_by_status_and_page(store: &Shared) {
    let (account, webhook, [one, _]) = two_templates(store).await;
    let first = lease(store, webhook, 2_000).await.unwrap();
    let failed = Attempt {
        response_status: None,
        failure: Some("timeout".to_owned()),
        ..attempt(
            &first,
            2_500,
            DeliveryOutcome::NoResponse,
            RetryDecision::RetryAfter(Duration::from_secs(5)),
        )
    };
    store.record_attempt(failed).await.unwrap();
    assert_eq!(deliver_all(store, webhook, 2_000).await, [2]);
    let list = |status, before, limit| {
        let query = DeliveryQuery { status, before, limit };
        async move { store.deliveries(account, webhook, query).await.unwrap().unwrap() }
    };
    let all = list(None, None, 10).await;
    assert_eq!(all.iter().map(|it| it.seq).collect::<Vec<_>>(), [4, 3, 2, 1]);
    let (held, delivered, waiting) = (&all[0], &all[2], &all[3]);
    assert_eq!((held.due_at, held.attempts, held.template), (None, 0, Some(one)));
    assert_eq!(
        (delivered.status, delivered.response_status),
        (DeliveryStatus::Delivered, Some(200))
    );
    assert_eq!((delivered.attempts, delivered.attempted_at), (1, Some(noon(2_000))));
    assert_eq!((waiting.status, waiting.due_at), (DeliveryStatus::Waiting, Some(noon(7_500))));
    assert_eq!((waiting.response_status, waiting.failure.as_deref()), (None, Some("timeout")));
    assert_eq!((waiting.kind, waiting.template), (Some(EventType::Created), Some(one)));
    let waiting: Vec<_> =
        list(Some(DeliveryStatus::Waiting), None, 10).await.iter().map(|it| it.seq).collect();
    assert_eq!(waiting, [4, 3, 1]);
    let page: Vec<_> = list(None, Some(4), 2).await.iter().map(|it| it.seq).collect();
    assert_eq!(page, [3, 2]);
    assert_eq!(list(Some(DeliveryStatus::Failed), None, 10).await, []);
}

#[on_both_databases]
async fn due_webhooks_lists_only_endpoints_with_work(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let webhook = register(store, endpoint(mine)).await.id;
    let webhook_key = WebhookKey { account: mine, id: webhook };
    register(store, endpoint(theirs)).await;
    assert_eq!(store.webhooks_with_work(noon(0)).await.unwrap().now, []);
    create(store, new(mine, "one")).await;
    assert_eq!(store.webhooks_with_work(noon(1)).await.unwrap().now, [webhook_key]);
    let due = lease(store, webhook, 1_000).await.unwrap();
    let at = |at| store.webhooks_with_work(noon(at));
    assert_eq!(at(1_000).await.unwrap().now, [], "the event is leased");
    assert_eq!(at(1_000).await.unwrap().next_at, Some(noon(1_000 + LEASE)));
    assert_eq!(at(1_000 + LEASE).await.unwrap().now, [webhook_key], "the lease has ended");
    fail(store, &due, 1_000, 5).await;
    let due = at(5_999).await.unwrap();
    assert_eq!((due.now, due.next_at), (vec![], Some(noon(6_000))));
    assert_eq!(at(6_000).await.unwrap().now, [webhook_key]);
    store.set_account_disabled(mine, true, Author::operator(noon(7_000))).await.unwrap();
    assert_eq!(at(9_000).await.unwrap().now, [], "nothing is sent for a disabled account");
    assert_eq!(lease(store, webhook, 9_000).await, None);
}

#[on_both_databases]
async fn events_that_an_endpoint_still_needs_do_not_expire(store: &Shared) {
    let (account, webhook, _) = two_templates(store).await;
    assert_eq!(
        store.delete_expired_events(noon(99_000)).await.unwrap(),
        0,
        "nothing is delivered yet"
    );
    let first = lease(store, webhook, 2_000).await.unwrap();
    assert_eq!(deliver_all(store, webhook, 2_000).await, [2]);
    assert_eq!(
        store.delete_expired_events(noon(99_000)).await.unwrap(),
        0,
        "the first event is undelivered"
    );
    deliver(store, &first, 2_000).await;
    assert_eq!(
        store.delete_expired_events(noon(99_000)).await.unwrap(),
        2,
        "3 and 4 are undelivered"
    );
    assert_eq!(statuses(store, account, webhook).await, [(3, "waiting"), (4, "waiting")].into());
    assert_eq!(deliver_all(store, webhook, 2_000).await, [3, 4]);
    assert_eq!(store.delete_expired_events(noon(99_000)).await.unwrap(), 2);
}
