//! Cases about connections to a provider, and helpers for the other cases about them.

use std::sync::Arc;

use galley_domain::{
    emulator::EmulatorKind,
    id::AccountId,
    template::lifecycle::EventType,
    upstream::{CallKind, ProviderError, RemoteId, RemoteTemplate, read_hook},
};
use galley_store::{
    Author, ConnectOutcome, ConnectionChange, CreateAccountOutcome, Degraded, DegradedReason,
    DeleteAccountOutcome, DueWork, Event, EventSubject, Fence, Fenced, HintReport, MirrorFilter,
    MirroredTemplate, NewAccount, NewConnection, PageRecord, PageResult, ReadRecord, SecretHash,
    StoredSecret,
};
use galley_test_macros::on_both_databases;
use jiff::{SignedDuration, Timestamp};

use super::{
    emulator::{HOUR, MINUTE},
    fixture::{Shared, account, events, new_account, noon, times},
    upstream_calls::degraded,
};

const CALLS: u32 = 200;
const INTERVAL: SignedDuration = SignedDuration::from_mins(15);

/// Creates an account that can be connected.
pub(crate) async fn whatsapp(store: &Shared, name: &str) -> AccountId {
    let new = NewAccount { rulebook: "whatsapp", ..new_account(name) };
    match store.create_account(new).await.unwrap() {
        CreateAccountOutcome::Created(id, _) => id,
        other => panic!("{other:?}"),
    }
}

fn new_connection(account: AccountId) -> NewConnection {
    NewConnection {
        account,
        base_url: "https://graph.example/v23.0".to_owned(),
        waba: "900".to_owned(),
        app_id: Some("77".to_owned()),
        token: StoredSecret(vec![1, 2, 3]),
        token_expires_at: Some(noon(24 * HOUR)),
        app_secret: None,
        hook_hash: SecretHash::of(&format!("hook of {account}")),
        by: Author::operator(noon(0)),
    }
}

/// Connects an account.
pub(crate) async fn connect(store: &Shared, account: AccountId) {
    let connected = store.connect_upstream(new_connection(account)).await.unwrap();
    assert_eq!(connected, ConnectOutcome::Connected);
}

/// Leases a connection for a long time.
pub(crate) async fn lease(store: &Shared, account: AccountId) -> Fence {
    let lease = store.lease_connection(account, times(0, 1_000 * HOUR)).await.unwrap();
    lease.expect("no other lease").fence
}

/// A connected account with a lease.
pub(crate) async fn connected(store: &Shared, name: &str) -> Fence {
    let account = whatsapp(store, name).await;
    connect(store, account).await;
    lease(store, account).await
}

pub(crate) fn done<T>(fenced: Fenced<T>) -> T {
    match fenced {
        Fenced::Done(result) => result,
        Fenced::LeaseLost => panic!("the lease lasts"),
    }
}

pub(crate) fn id(text: &str) -> RemoteId {
    RemoteId::parse(text).unwrap()
}

/// A template at the provider, with its components.
pub(crate) fn remote(id: &str, name: &str, status: &str, text: &str) -> RemoteTemplate {
    let document = format!(
        r#"{{"id":"{id}", "name":"{name}","language":"en_US","status":"{status}",
        "category":"UTILITY","last_updated_time":1789990000,"health_status":{{}},
        "components":[{{"type":"BODY","text":"{text}"}}, {{"type":"NOVELTY","x":1.50}}]}}"#
    );
    RemoteTemplate::parse(&document).unwrap()
}

/// The same without its components.
pub(crate) fn header(template: &RemoteTemplate) -> RemoteTemplate {
    RemoteTemplate { document: None, ..template.clone() }
}

/// The last page of a list.
pub(crate) fn last_page(templates: &[RemoteTemplate], at: i64) -> PageRecord {
    PageRecord { templates: templates.to_vec(), seen_at: noon(at), ..PageRecord::default() }
}

/// A template that is read for this reason.
pub(crate) fn read_record(
    template: RemoteTemplate,
    asked: Option<Timestamp>,
    at: i64,
) -> ReadRecord {
    ReadRecord { template, asked, confirmed: None, seen_at: noon(at) }
}

/// Begins a sweep and records its only page.
pub(crate) async fn sweep(
    store: &Shared,
    fence: Fence,
    templates: &[RemoteTemplate],
    at: i64,
) -> PageResult {
    done(store.begin_sweep(fence, true, noon(at)).await.unwrap());
    done(store.record_page(fence, last_page(templates, at), noon(at)).await.unwrap())
}

pub(crate) async fn mirror(store: &Shared, account: AccountId, remote: &str) -> MirroredTemplate {
    store.mirrored_template(account, &id(remote)).await.unwrap().unwrap()
}

/// The types of the account's events.
pub(crate) async fn kinds(store: &Shared, account: AccountId) -> Vec<EventType> {
    events(store, account, 0, 1_000).await.iter().map(|event| event.kind).collect()
}

fn by(at: i64) -> Author {
    Author::operator(noon(at))
}

#[on_both_databases]
async fn only_accounts_of_whatsapp_that_are_no_emulators_connect(store: &Shared) {
    let v1 = account(store, "v1").await;
    let kind = Some(EmulatorKind { faithful: true });
    let emulated = NewAccount { rulebook: "whatsapp", emulator: kind, ..new_account("emulated") };
    let CreateAccountOutcome::Created(emulated, _) = store.create_account(emulated).await.unwrap()
    else {
        panic!("the account is created")
    };
    let wanted = whatsapp(store, "mine").await;
    let missing = AccountId::new(7).unwrap();
    for (account, expected) in [
        (v1, ConnectOutcome::NotWhatsapp),
        (missing, ConnectOutcome::NoAccount),
        (emulated, ConnectOutcome::Emulator),
        (wanted, ConnectOutcome::Connected),
        (wanted, ConnectOutcome::Exists),
    ] {
        let outcome = store.connect_upstream(new_connection(account)).await.unwrap();
        assert_eq!(outcome, expected, "{account}");
    }
    assert_eq!(store.connections().await.unwrap().len(), 1);
}

#[on_both_databases]
async fn a_connection_is_found_by_its_account_and_its_hook(store: &Shared) {
    let [mine, other] = [whatsapp(store, "a").await, whatsapp(store, "b").await];
    connect(store, mine).await;
    connect(store, other).await;
    let found = store.connection(mine).await.unwrap().unwrap();
    assert_eq!((&*found.waba, &*found.base_url), ("900", "https://graph.example/v23.0"));
    assert_eq!(
        (found.token.clone(), found.app_secret.clone()),
        (StoredSecret(vec![1, 2, 3]), None)
    );
    assert_eq!((found.sweep.clone(), found.leased_until), (None, None));
    let hash = SecretHash::of(&format!("hook of {mine}"));
    assert_eq!(store.connection_by_hook(hash).await.unwrap(), Some(found.clone()));
    assert_eq!(store.connection_by_hook(SecretHash::of("guess")).await.unwrap(), None);
    let all = store.connections().await.unwrap();
    assert_eq!(all.iter().map(|it| it.account).collect::<Vec<_>>(), [mine, other]);
    for (change, hook) in [
        (ConnectionChange::Token(StoredSecret(vec![9]), None), "old"),
        (ConnectionChange::AppSecret(Some(StoredSecret(vec![8]))), "old"),
        (ConnectionChange::Hook(SecretHash::of("new")), "new"),
    ] {
        assert!(store.change_connection(mine, change, by(1)).await.unwrap(), "{hook}");
    }
    let changed = store.connection_by_hook(SecretHash::of("new")).await.unwrap().unwrap();
    assert_eq!((changed.token, changed.token_expires_at), (StoredSecret(vec![9]), None));
    assert_eq!(changed.app_secret, Some(StoredSecret(vec![8])));
    assert_eq!(store.connection_by_hook(hash).await.unwrap(), None);
}

#[on_both_databases]
async fn connections_are_found_by_their_accounts_at_the_provider(store: &Shared) {
    let mut accounts = Vec::new();
    for (name, waba) in [("a", "900"), ("b", "901"), ("c", "900"), ("d", "902")] {
        let account = whatsapp(store, name).await;
        let new = NewConnection { waba: waba.to_owned(), ..new_connection(account) };
        assert_eq!(store.connect_upstream(new).await.unwrap(), ConnectOutcome::Connected);
        accounts.push(account);
    }
    let find = async |wabas: &[&str], limit| {
        let wabas: Vec<_> = wabas.iter().map(|waba| (*waba).to_owned()).collect();
        let found = store.connections_to(&wabas, limit).await.unwrap();
        found.iter().map(|it| it.account).collect::<Vec<_>>()
    };
    assert_eq!(find(&["901", "900", "77"], 10).await, accounts[..3]);
    assert_eq!(find(&["900"], 10).await, [accounts[0], accounts[2]]);
    assert_eq!(find(&["900", "902"], 2).await, [accounts[0], accounts[2]]);
    assert_eq!(find(&["77"], 10).await, []);
    assert_eq!(find(&[], 10).await, []);
}

#[on_both_databases]
async fn a_disconnected_account_keeps_its_templates_and_loses_its_mirror(store: &Shared) {
    let fence = connected(store, "a").await;
    sweep(store, fence, &[remote("1", "a", "APPROVED", "Hi")], 1).await;
    let template = mirror(store, fence.account, "1").await.template.unwrap();
    assert!(store.disconnect_upstream(fence.account, by(2)).await.unwrap());
    assert!(!store.disconnect_upstream(fence.account, by(2)).await.unwrap());
    assert!(
        !store.change_connection(fence.account, ConnectionChange::Paused, by(2)).await.unwrap()
    );
    assert!(store.template(fence.account, template).await.unwrap().is_some());
    assert_eq!(store.connection(fence.account).await.unwrap(), None);
    assert_eq!(store.mirrored(fence.account, MirrorFilter::All, None, 10).await.unwrap(), []);
    let page = store.record_page(fence, PageRecord::default(), noon(3)).await.unwrap();
    assert_eq!(page, Fenced::LeaseLost);
    connect(store, fence.account).await;
}

#[on_both_databases]
async fn deleting_an_account_deletes_its_connection(store: &Shared) {
    let fence = connected(store, "a").await;
    sweep(store, fence, &[remote("1", "a", "DELETED", "Hi")], 1).await;
    assert_eq!(store.mirrored(fence.account, MirrorFilter::All, None, 10).await.unwrap().len(), 1);
    store.set_account_disabled(fence.account, true, by(2)).await.unwrap();
    let deleted = store.delete_account(fence.account, by(3)).await.unwrap();
    assert_eq!(deleted, DeleteAccountOutcome::Deleted);
    assert_eq!(store.connections().await.unwrap(), []);
    assert_eq!(store.mirrored(fence.account, MirrorFilter::All, None, 10).await.unwrap(), []);
}

#[on_both_databases]
async fn a_lease_is_exclusive_until_it_ends(store: &Shared) {
    let account = whatsapp(store, "a").await;
    assert_eq!(store.lease_connection(account, times(0, 10)).await.unwrap(), None);
    connect(store, account).await;
    let lease = async |at, until| store.lease_connection(account, times(at, until)).await.unwrap();
    let first = lease(0, 10).await.unwrap();
    assert_eq!(first.connection.waba, "900");
    assert_eq!(lease(9, 20).await, None);
    done(store.extend_lease(first.fence, noon(15)).await.unwrap());
    assert_eq!(lease(14, 20).await, None);
    let second = lease(15, 20).await.unwrap();
    assert_ne!(first.fence, second.fence);
    assert_eq!(store.extend_lease(first.fence, noon(30)).await.unwrap(), Fenced::LeaseLost);
    assert_eq!(store.release_connection(first.fence).await.unwrap(), Fenced::LeaseLost);
    done(store.release_connection(second.fence).await.unwrap());
    assert_eq!(store.release_connection(second.fence).await.unwrap(), Fenced::LeaseLost);
    let last = lease(15, 20).await.unwrap();
    // A worker of an earlier connection writes nothing to a later one.
    assert!(store.disconnect_upstream(account, Author::operator(noon(16))).await.unwrap());
    let again = NewConnection { by: Author::operator(noon(17)), ..new_connection(account) };
    assert_eq!(store.connect_upstream(again).await.unwrap(), ConnectOutcome::Connected);
    let fences = [lease(17, 18).await, lease(18, 19).await, lease(19, 20).await];
    let fences = fences.map(|lease| lease.unwrap().fence);
    assert!(![first.fence, last.fence].iter().any(|old| fences.contains(old)), "{fences:?}");
}

#[on_both_databases]
async fn a_worker_without_its_lease_writes_nothing(store: &Shared) {
    let account = whatsapp(store, "a").await;
    connect(store, account).await;
    let old = store.lease_connection(account, times(0, 1)).await.unwrap().unwrap().fence;
    let new = store.lease_connection(account, times(1, HOUR)).await.unwrap().unwrap().fence;
    sweep(store, new, &[remote("1", "a", "APPROVED", "Hi")], 2).await;
    let before = (store.connection(account).await.unwrap(), kinds(store, account).await);
    let template = remote("1", "a", "REJECTED", "Hi");
    let degraded = Some(degraded(DegradedReason::Throttle, 3));
    assert_eq!(store.begin_sweep(old, true, noon(3)).await.unwrap(), Fenced::LeaseLost);
    let page = last_page(std::slice::from_ref(&template), 3);
    assert_eq!(store.record_page(old, page, noon(3)).await.unwrap(), Fenced::LeaseLost);
    assert_eq!(store.finish_sweep(old, noon(3)).await.unwrap(), Fenced::LeaseLost);
    let read = store.record_read(old, read_record(template, None, 3), noon(3)).await.unwrap();
    assert_eq!(read, Fenced::LeaseLost);
    let absent = store.record_absent(old, id("1"), None, noon(3)).await.unwrap();
    assert_eq!(absent, Fenced::LeaseLost);
    assert_eq!(store.set_degraded(old, degraded, noon(3)).await.unwrap(), Fenced::LeaseLost);
    let call = store.take_call(old, CallKind::Read, false, CALLS, noon(3)).await.unwrap();
    assert_eq!(call, Fenced::LeaseLost);
    let after = (store.connection(account).await.unwrap(), kinds(store, account).await);
    assert_eq!(after, before);
    assert_eq!(mirror(store, account, "1").await.status.as_str(), "APPROVED");
}

#[on_both_databases]
async fn one_of_many_concurrent_workers_gets_the_lease(store: &Shared) {
    let account = whatsapp(store, "a").await;
    connect(store, account).await;
    let workers: Vec<_> = (0..10)
        .map(|_| {
            let store = Arc::clone(store);
            tokio::spawn(async move { store.lease_connection(account, times(0, 9)).await })
        })
        .collect();
    let mut leases = 0;
    for worker in workers {
        leases += usize::from(worker.await.unwrap().unwrap().is_some());
    }
    assert_eq!(leases, 1);
}

#[on_both_databases]
async fn a_write_under_an_old_lease_is_not_committed_after_the_next_lease(store: &Shared) {
    let account = whatsapp(store, "a").await;
    connect(store, account).await;
    for round in 0..5 {
        let at = round * 1_000;
        let lease = store.lease_connection(account, times(at, at + 1)).await.unwrap();
        let old = lease.unwrap().fence;
        let writers: Vec<_> = (0..4)
            .map(|_| {
                let store = Arc::clone(store);
                tokio::spawn(async move {
                    for number in 0.. {
                        let text = format!("{round} {number}");
                        let template = remote("1", "a", "APPROVED", &text);
                        let read = store
                            .record_read(old, read_record(template, None, at), noon(at))
                            .await
                            .unwrap();
                        if read == Fenced::LeaseLost {
                            return number;
                        }
                    }
                    unreachable!("the lease is lost")
                })
            })
            .collect();
        while store.mirrored_template(account, &id("1")).await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
        let next = store.lease_connection(account, times(at + 1, at + 2)).await.unwrap();
        assert!(next.is_some());
        let document = store.mirrored_document(account, id("1")).await.unwrap();
        let newest = store.newest_event(account).await.unwrap();
        for writer in writers {
            writer.await.unwrap();
        }
        let after = store.mirrored_document(account, id("1")).await.unwrap();
        assert_eq!(after, document, "a stale write was stored");
        assert_eq!(store.newest_event(account).await.unwrap(), newest);
    }
}

fn upstream_event(event: &Event) -> (EventType, Option<&str>) {
    let origin = "https://graph.example".to_owned();
    assert_eq!(event.subject, EventSubject::Upstream { origin });
    (event.kind, event.reason.as_deref())
}

#[on_both_databases]
async fn calls_that_fail_raise_one_event_until_they_succeed(store: &Shared) {
    let fence = connected(store, "a").await;
    let error = ProviderError {
        code: 190,
        subcode: Some(463),
        title: None,
        message: "Session has expired".to_owned(),
    };
    let set = async |reason: Option<DegradedReason>, at: i64| {
        let until = Some(noon(at + 15 * MINUTE));
        let degraded = reason.map(|reason| {
            let error = Some(error.clone());
            Degraded { until, error, ..degraded(reason, at) }
        });
        done(store.set_degraded(fence, degraded, noon(at)).await.unwrap());
        store.connection(fence.account).await.unwrap().unwrap().degraded
    };
    assert_eq!(set(None, 0).await, None);
    for at in [1, 2] {
        let degraded = set(Some(DegradedReason::Credentials), at).await.unwrap();
        assert_eq!((degraded.since, degraded.until), (noon(1), Some(noon(at + 15 * MINUTE))));
        assert_eq!(degraded.error, Some(error.clone()));
    }
    set(Some(DegradedReason::Throttle), 3).await.unwrap();
    assert_eq!(set(None, 4).await, None);
    let events = events(store, fence.account, 0, 10).await;
    assert_eq!(
        events.iter().map(upstream_event).collect::<Vec<_>>(),
        [
            (EventType::UpstreamDegraded, Some("credentials")),
            (EventType::UpstreamDegraded, Some("throttle")),
            (EventType::UpstreamRecovered, Some("throttle")),
        ]
    );
}

async fn work(store: &Shared, at: i64) -> DueWork<AccountId> {
    store.connections_with_work(noon(at), INTERVAL, CALLS).await.unwrap()
}

fn later(at: Timestamp) -> DueWork<AccountId> {
    DueWork { now: Vec::new(), next_at: Some(at) }
}

#[on_both_databases]
async fn a_person_pauses_and_resumes_a_connection(store: &Shared) {
    let account = whatsapp(store, "a").await;
    connect(store, account).await;
    let fence = store.lease_connection(account, times(0, 1)).await.unwrap().unwrap().fence;
    done(store.begin_sweep(fence, true, noon(0)).await.unwrap());
    let now = DueWork { now: vec![account], next_at: None };
    assert_eq!(work(store, 1).await, now);
    assert!(store.change_connection(account, ConnectionChange::Paused, by(2)).await.unwrap());
    assert_eq!(work(store, 3).await, DueWork::default());
    assert!(store.change_connection(account, ConnectionChange::Resumed, by(4)).await.unwrap());
    assert_eq!(store.connection(account).await.unwrap().unwrap().paused_at, None);
    assert_eq!(work(store, 5).await, now);
    store.set_account_disabled(account, true, by(6)).await.unwrap();
    assert_eq!(work(store, 7).await, DueWork::default());
}

#[on_both_databases]
async fn a_connection_has_work_when_something_is_due(store: &Shared) {
    let account = whatsapp(store, "a").await;
    connect(store, account).await;
    let now = DueWork { now: vec![account], next_at: None };
    let until = noon(MINUTE);
    let fence = store.lease_connection(account, times(0, MINUTE)).await.unwrap().unwrap().fence;
    done(store.begin_sweep(fence, true, noon(1)).await.unwrap());
    assert_eq!(work(store, 1).await, later(until), "another worker has the lease");
    let template = remote("1", "a", "APPROVED", "Hi");
    sweep(store, fence, std::slice::from_ref(&template), 2).await;
    done(store.finish_sweep(fence, noon(3)).await.unwrap());
    done(store.release_connection(fence).await.unwrap());
    let next = noon(3 + 15 * MINUTE);
    assert_eq!(work(store, 4).await, later(next), "a sweep has ended");
    assert_eq!(work(store, 3 + 15 * MINUTE).await, now);
    let hook = |id: u32| {
        let body = format!(
            r#"{{"object":"whatsapp_business_account","entry":[{{"id":"900","changes":[
            {{"field":"message_template_status_update","value":{{"message_template_id":{id}}}}}]}}]}}"#
        );
        read_hook(body.as_bytes(), "900").unwrap()
    };
    let report = store.record_hints(account, hook(8), noon(5)).await.unwrap();
    assert_eq!(report, HintReport { known: 0, unknown: 1 });
    assert_eq!(work(store, 6).await, later(noon(3 + MINUTE)), "a sweep finds it soon");
    store.record_hints(account, hook(1), noon(7)).await.unwrap();
    assert_eq!(work(store, 8).await, now, "a template has to be read");
    let fence = store.lease_connection(account, times(8, 9)).await.unwrap().unwrap().fence;
    let degraded =
        Some(Degraded { until: Some(noon(HOUR)), ..degraded(DegradedReason::Unreachable, 8) });
    done(store.set_degraded(fence, degraded, noon(8)).await.unwrap());
    assert_eq!(work(store, 10).await, later(noon(HOUR)), "no calls before that");
    let token = ConnectionChange::Token(StoredSecret(vec![7]), None);
    assert!(store.change_connection(account, token, by(11)).await.unwrap());
    assert_eq!(work(store, 12).await, now, "a new token is tried at once");
}

#[on_both_databases]
async fn hints_are_kept_and_mark_templates_to_read(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let approved = [remote("1", "a", "APPROVED", "Hi"), remote("2", "b", "APPROVED", "Ho")];
    assert_eq!(sweep(store, fence, &approved, 1).await.to_read, []);
    let rejected = r#"{"field":"message_template_status_update","value":{"message_template_id":1,
        "message_template_name":"a","message_template_language":"en-US","event":"REJECTED",
        "rejection_info":{"reason":"Too vague","recommendation":"Say more"}}}"#;
    let body = format!(
        r#"{{"object":"whatsapp_business_account","entry":[{{"id":"900","changes":[{rejected},{rejected}]}}]}}"#
    );
    let hints = read_hook(body.as_bytes(), "900").unwrap();
    let events = kinds(store, account).await;
    let report = store.record_hints(account, hints.clone(), noon(2)).await.unwrap();
    assert_eq!(report, HintReport { known: 1, unknown: 0 });
    assert_eq!(kinds(store, account).await, events, "a hint changes no status");
    let row = mirror(store, account, "1").await;
    assert_eq!((row.status.as_str(), row.dirty_at), ("APPROVED", Some(noon(2))));
    assert!(row.info.unwrap().contains("Say more"));
    let to_read = store.templates_to_read(account, 10).await.unwrap();
    assert_eq!(to_read.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["1"]);
    let other = whatsapp(store, "b").await;
    let report = store.record_hints(other, hints, noon(3)).await.unwrap();
    assert_eq!(report, HintReport::default(), "the account is not connected");
}

#[on_both_databases]
async fn the_expiry_of_a_token_is_recorded_under_the_lease(store: &Shared) {
    let account = whatsapp(store, "a").await;
    connect(store, account).await;
    let expiry = async || store.connection(account).await.unwrap().unwrap().token_expires_at;
    let first = store.lease_connection(account, times(0, 10)).await.unwrap().unwrap().fence;
    done(store.record_token_expiry(first, Some(noon(HOUR))).await.unwrap());
    assert_eq!(expiry().await, Some(noon(HOUR)));
    let second = store.lease_connection(account, times(10, 20)).await.unwrap().unwrap().fence;
    let late = store.record_token_expiry(first, Some(noon(2 * HOUR))).await.unwrap();
    assert_eq!(late, Fenced::LeaseLost);
    assert_eq!(expiry().await, Some(noon(HOUR)));
    done(store.record_token_expiry(second, None).await.unwrap());
    assert_eq!(expiry().await, None);
}
