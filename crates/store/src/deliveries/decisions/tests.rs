//! Tests of the decisions about deliveries.

use galley_domain::{
    id::{AccountId, WebhookId},
    webhook::delivery::DisableReason,
};

use super::*;
use crate::StoredSecret;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).unwrap()
}

fn webhook() -> Webhook {
    Webhook {
        id: WebhookId::new(7).unwrap(),
        account: AccountId::new(1).unwrap(),
        url: "https://example.com/hook".to_owned(),
        events: Vec::new(),
        format: Format::Galley,
        subscribed: false,
        secret: StoredSecret(vec![1]),
        former_secret: None,
        cursor: 10,
        behind: 0,
        failing_since: None,
        resting_until: None,
        disabled: None,
        created_at: at(-100),
        updated_at: at(-100),
    }
}

fn event(seq: u64, template: u64) -> PendingEvent {
    let status = Some(Status::Approved);
    let kind = Some(EventType::Created);
    PendingEvent { seq, kind, template, version: 1, status, is_blocked: false }
}

#[test]
fn only_the_first_unblocked_delivery_of_a_template_is_due() {
    let webhook = webhook();
    let mut fan_out = FanOut::new(&webhook, at(0));
    for event in [
        PendingEvent { is_blocked: true, ..event(11, 1) },
        event(12, 2),
        event(13, 2),
        event(14, 3),
    ] {
        fan_out.add(event);
    }
    let due: Vec<_> = fan_out.deliveries.iter().map(|it| (it.seq, it.due_at)).collect();
    assert_eq!(due, [(11, None), (12, Some(at(0))), (13, None), (14, Some(at(0)))]);
    assert_eq!(fan_out.first_due, Some(event(12, 2)));
    assert_eq!(fan_out.cursor(20), 20, "no event is left");
    assert_eq!(fan_out.cursor(13), 14, "an event is newer than the account's row");
}

#[test]
fn a_fan_out_stops_after_many_deliveries_or_many_events() {
    let all = webhook();
    let mut fan_out = FanOut::new(&all, at(0));
    let mut next = 11;
    while !fan_out.is_full() {
        fan_out.add(event(next, next));
        next += 1;
    }
    assert_eq!(fan_out.deliveries.len(), MAX_FAN_OUT_DELIVERIES);
    assert_eq!(fan_out.cursor(9_999), next - 1);
    let paused_only = Webhook { events: vec![EventType::Paused], ..webhook() };
    let mut fan_out = FanOut::new(&paused_only, at(0));
    let mut read = 0;
    while !fan_out.is_full() {
        read += 1;
        fan_out.add(event(10 + read, read));
    }
    assert_eq!(read, u64::from(MAX_FAN_OUT_EVENTS));
    assert_eq!((fan_out.deliveries.len(), fan_out.cursor(9_999)), (0, 10 + read));
}

#[test]
fn a_lease_waits_for_a_pause_and_for_the_probe_of_an_endpoint_that_is_down() {
    let nothing_until = |until| Some(DeliveryLease::NothingDue(until));
    let disabled = Webhook {
        disabled: Some((at(0), DisableReason::Gone)),
        resting_until: Some(at(9)),
        ..webhook()
    };
    assert_eq!(lease_refusal(&disabled, false, None, at(0)), nothing_until(None));
    assert_eq!(lease_refusal(&webhook(), true, None, at(0)), nothing_until(None));
    let resting = Webhook { resting_until: Some(at(9)), ..webhook() };
    assert_eq!(lease_refusal(&resting, false, Some(at(5)), at(8)), nothing_until(Some(at(9))));
    assert_eq!(lease_refusal(&resting, false, Some(at(12)), at(9)), nothing_until(Some(at(12))));
    assert_eq!(lease_refusal(&resting, false, None, at(9)), None);
}
