//! Cases about the budget of calls, and rests that a provider asks for.

use std::sync::Arc;

use galley_domain::{
    template::lifecycle::EventType,
    upstream::{CallKind, ProviderError},
};
use galley_store::{
    Author, CallPermit, ConnectionChange, Degraded, DegradedReason, Fenced, StoredSecret,
};
use jiff::SignedDuration;

use super::{
    emulator::{HOUR, MINUTE, SECOND},
    fixture::{Shared, events, noon, times},
    upstream::{connect, connected, done, kinds, whatsapp},
};
use galley_test_macros::on_both_databases;

/// Why calls have failed since a time.
pub(crate) fn degraded(reason: DegradedReason, since: i64) -> Degraded {
    Degraded { reason, since: noon(since), until: None, error: None }
}

#[on_both_databases]
async fn calls_rest_as_long_as_the_provider_asks_for(store: &Shared) {
    let fence = connected(store, "a").await;
    let call = async |at| {
        done(store.take_call(fence, CallKind::Read, false, 200, noon(at)).await.unwrap())
    };
    let rest = async |minutes, at| {
        let rest = SignedDuration::from_mins(minutes);
        done(store.rest_calls(fence, rest, noon(at)).await.unwrap());
    };
    assert_eq!(call(0).await, CallPermit::Granted);
    rest(10, 0).await;
    rest(1, MINUTE).await;
    let until = noon(10 * MINUTE);
    assert_eq!(call(10 * MINUTE - 1).await, CallPermit::NotBefore(until), "the longer one counts");
    let interval = SignedDuration::from_mins(15);
    done(store.begin_sweep(fence, true, noon(MINUTE)).await.unwrap());
    done(store.release_connection(fence).await.unwrap());
    let work = store.connections_with_work(noon(MINUTE), interval, 200).await.unwrap();
    assert_eq!((work.now.len(), work.next_at), (0, Some(until)), "for all instances");
    let connection = store.connection(fence.account).await.unwrap().unwrap();
    assert_eq!(connection.degraded, None, "calls do not fail");
    assert!(kinds(store, fence.account).await.is_empty());
    assert!(connection.is_resting(CallKind::Edit, 200, noon(10 * MINUTE - 1)));
    assert!(!connection.is_resting(CallKind::Edit, 200, until));
}

#[on_both_databases]
async fn a_worker_without_its_lease_does_not_let_calls_rest(store: &Shared) {
    let account = whatsapp(store, "a").await;
    connect(store, account).await;
    let old = store.lease_connection(account, times(0, 1)).await.unwrap().unwrap().fence;
    store.lease_connection(account, times(1, HOUR)).await.unwrap().unwrap();
    let rest = store.rest_calls(old, SignedDuration::from_mins(9), noon(2)).await.unwrap();
    assert_eq!(rest, Fenced::LeaseLost);
    let connection = store.connection(account).await.unwrap().unwrap();
    assert_eq!(connection.budget.rest_until, None);
}

#[on_both_databases]
async fn a_connection_rests_for_each_reason_that_prevents_a_call(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let rests = async |kind, calls_per_hour, at| {
        let connection = store.connection(account).await.unwrap().unwrap();
        connection.is_resting(kind, calls_per_hour, noon(at))
    };
    assert!(!rests(CallKind::Create, 200, 0).await);
    for _ in 0..100 {
        let call = store.take_call(fence, CallKind::Create, false, 200, noon(0)).await.unwrap();
        assert_eq!(done(call), CallPermit::Granted);
    }
    assert!(rests(CallKind::Create, 200, 1).await, "no more creates in this hour");
    assert!(!rests(CallKind::Edit, 200, 1).await);
    assert!(rests(CallKind::Edit, 100, 1).await, "no more calls in this hour");
    assert!(!rests(CallKind::Create, 100, 2 * HOUR).await);
    let degraded = Some(Degraded {
        until: Some(noon(3 * HOUR)),
        ..degraded(DegradedReason::Unreachable, 2 * HOUR)
    });
    done(store.set_degraded(fence, degraded, noon(2 * HOUR)).await.unwrap());
    assert!(rests(CallKind::Edit, 200, 3 * HOUR - 1).await);
    assert!(!rests(CallKind::Edit, 200, 3 * HOUR).await);
    let by = galley_store::Author::operator(noon(3 * HOUR));
    assert!(store.change_connection(account, ConnectionChange::Paused, by).await.unwrap());
    assert!(rests(CallKind::Edit, 200, 3 * HOUR).await);
}

#[on_both_databases]
async fn concurrent_calls_do_not_exceed_the_budget(store: &Shared) {
    let fence = connected(store, "a").await;
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                store.take_call(fence, CallKind::Read, false, 7, noon(0)).await.unwrap()
            })
        })
        .collect();
    let mut granted = 0;
    for call in calls {
        granted += usize::from(done(call.await.unwrap()) == CallPermit::Granted);
    }
    assert_eq!(granted, 7);
}

#[on_both_databases]
async fn calls_are_counted_until_the_budget_is_used_up(store: &Shared) {
    let fence = connected(store, "a").await;
    let call = async |kind, is_sweep, at| {
        done(store.take_call(fence, kind, is_sweep, 20, noon(at)).await.unwrap())
    };
    for _ in 0..2 {
        assert_eq!(call(CallKind::Page, true, 0).await, CallPermit::Granted);
    }
    let CallPermit::NotBefore(until) = call(CallKind::Page, true, 0).await else {
        panic!("sweeps have a tenth of the budget");
    };
    assert!(until > noon(59 * MINUTE) && until <= noon(62 * MINUTE), "{until}");
    for _ in 0..18 {
        assert_eq!(call(CallKind::Read, false, SECOND).await, CallPermit::Granted);
    }
    assert!(matches!(call(CallKind::Create, false, 2).await, CallPermit::NotBefore(_)));
    assert_eq!(call(CallKind::Create, false, 62 * MINUTE).await, CallPermit::Granted);
}

#[on_both_databases]
async fn a_new_token_ends_that_calls_fail(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let error = ProviderError { code: 190, subcode: None, title: None, message: "No".to_owned() };
    let degraded = Some(Degraded {
        until: Some(noon(HOUR)),
        error: Some(error),
        ..degraded(DegradedReason::Credentials, 1)
    });
    done(store.set_degraded(fence, degraded, noon(1)).await.unwrap());
    let rest = SignedDuration::from_hours(2);
    done(store.rest_calls(fence, rest, noon(1)).await.unwrap());
    let token = |byte| ConnectionChange::Token(StoredSecret(vec![byte]), Some(noon(9 * HOUR)));
    for (at, byte) in [(2, 7), (3, 8)] {
        let by = Author::operator(noon(at));
        assert!(store.change_connection(account, token(byte), by).await.unwrap());
        let connection = store.connection(account).await.unwrap().unwrap();
        assert_eq!((connection.degraded.as_ref(), connection.token.0[0]), (None, byte));
        assert_eq!(connection.token_expires_at, Some(noon(9 * HOUR)));
        let rest_until = connection.budget.rest_until;
        assert_eq!(rest_until, Some(noon(1) + rest), "the budget is one of the account");
    }
    let events = events(store, account, 0, 10).await;
    let events: Vec<_> = events.iter().map(|it| (it.kind, it.reason.as_deref())).collect();
    let reason = Some("credentials");
    let expected = [EventType::UpstreamDegraded, EventType::UpstreamRecovered];
    assert_eq!(events, expected.map(|kind| (kind, reason)), "calls succeed again, once");
}
