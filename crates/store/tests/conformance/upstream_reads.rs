//! Cases about reads of templates at the provider: when they were made, and those that fail.

use galley_domain::{template::lifecycle::EventType, upstream::read_hook};
use galley_store::{
    Author, ConnectionChange, DueWork, Fence, Fenced, LeaseState, NewTemplate, PageRecord,
    ReadRecord,
};
use galley_test_macros::on_both_databases;
use jiff::{SignedDuration, Timestamp};

use super::{
    emulator::{HOUR, MINUTE, SECOND, stored},
    fixture::{Shared, create, events, new, noon, times},
    upstream::{
        connect, connected, done, header, id, last_page, mirror, read_record, remote, sweep,
        whatsapp,
    },
};

/// What a webhook about the template `1` says.
async fn hint(store: &Shared, fence: Fence, at: i64) {
    let hook = br#"{"object":"whatsapp_business_account","entry":[{"id":"900","changes":[
        {"field":"message_template_components_update","value":{"message_template_id":1}}]}]}"#;
    let hints = read_hook(hook, "900").unwrap();
    store.record_hints(fence.account, hints, noon(at)).await.unwrap();
}

/// The ids of the first templates to read.
async fn to_read(store: &Shared, fence: Fence, limit: usize) -> Vec<String> {
    let wanted = store.templates_to_read(fence.account, limit).await.unwrap();
    wanted.iter().map(|it| it.id.to_string()).collect()
}

async fn postpone(
    store: &Shared,
    fence: Fence,
    remote: &str,
    asked: Option<Timestamp>,
    until: i64,
) -> Option<Timestamp> {
    done(store.postpone_read(fence, id(remote), asked, noon(until)).await.unwrap());
    mirror(store, fence.account, remote).await.dirty_at
}

#[on_both_databases]
async fn a_change_has_the_time_of_its_record_and_the_row_that_of_the_read(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    sweep(store, fence, &[remote("1", "a", "PENDING", "Hi")], 1).await;
    let template = mirror(store, account, "1").await.template.unwrap();
    // A client that syncs has seen everything up to here when the read is recorded.
    create(store, NewTemplate { at: noon(20), ..new(account, "other") }).await;
    let read = ReadRecord {
        template: remote("1", "a", "REJECTED", "Hi"),
        asked: None,
        confirmed: None,
        seen_at: noon(10),
    };
    done(store.record_read(fence, read, noon(30)).await.unwrap());
    assert_eq!(stored(store, account, template).await.updated_at, noon(30));
    let row = mirror(store, account, "1").await;
    assert_eq!((row.observed_at, row.changed_at), (noon(10), noon(10)));
    let page =
        PageRecord { seen_at: noon(40), ..last_page(&[remote("2", "b", "PAUSED", "Ho")], 0) };
    done(store.begin_sweep(fence, true, noon(35)).await.unwrap());
    done(store.record_page(fence, page, noon(50)).await.unwrap());
    let row = mirror(store, account, "2").await;
    assert_eq!(row.observed_at, noon(40));
    let imported = stored(store, account, row.template.unwrap()).await;
    assert_eq!((imported.created_at, imported.updated_at), (noon(50), noon(50)));
    let last: Vec<_> = events(store, account, 0, 100).await;
    let last: Vec<_> = last[last.len() - 2..].iter().map(|it| (it.kind, it.at)).collect();
    assert_eq!(last, [(EventType::Rejected, noon(30)), (EventType::Created, noon(50))]);
}

#[on_both_databases]
async fn a_read_in_the_second_of_a_change_is_made_again_however_late_it_is_recorded(
    store: &Shared,
) {
    let fence = connected(store, "a").await;
    let template = remote("1", "a", "APPROVED", "Hi");
    let second = template.updated_at.unwrap();
    let seen_at = second + SignedDuration::from_millis(300);
    let recorded_at = second + SignedDuration::from_mins(3);
    let read = ReadRecord { template, asked: None, confirmed: None, seen_at };
    done(store.record_read(fence, read, recorded_at).await.unwrap());
    let row = mirror(store, fence.account, "1").await;
    assert_eq!(row.dirty_at, Some(second + SignedDuration::from_secs(3)), "by both clocks");
    assert!(!row.may_have_changed(second + SignedDuration::from_millis(2_900)));
    assert!(row.may_have_changed(recorded_at));
}

#[on_both_databases]
async fn a_read_that_fails_is_postponed_and_hides_no_other(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let all = ["1", "2", "3"].map(|it| remote(it, &format!("a{it}"), "APPROVED", "Hi"));
    sweep(store, fence, &all.clone().map(|it| header(&it)), 1).await;
    assert_eq!(to_read(store, fence, 2).await, ["1", "2"]);
    let until = 15 * MINUTE;
    // The first full second after it.
    let postponed = postpone(store, fence, "1", Some(noon(1)), until - 1).await;
    assert_eq!(postponed, Some(noon(until)));
    assert_eq!(to_read(store, fence, 2).await, ["2", "3"]);
    let row = mirror(store, account, "1").await;
    assert!(row.may_have_changed(noon(2)), "no edit replaces a content that was not seen");
    // A sweep in which nothing has changed leaves it as it is.
    let page = sweep(store, fence, &all.clone().map(|it| header(&it)), 5).await;
    let wanted: Vec<_> = page.to_read.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(wanted, ["2", "3"]);
    // A webhook is a reason to read it now.
    hint(store, fence, 10).await;
    assert_eq!(mirror(store, account, "1").await.dirty_at, Some(noon(10)));
    hint(store, fence, 10).await;
    assert_eq!(mirror(store, account, "1").await.dirty_at, Some(noon(11)));
    // A newer reason than the one of the read that failed stays.
    for asked in [None, Some(noon(1)), Some(noon(10)), Some(noon(until))] {
        assert_eq!(postpone(store, fence, "1", asked, until).await, Some(noon(11)), "{asked:?}");
    }
    let postponed = postpone(store, fence, "1", Some(noon(11)), until).await;
    assert_eq!(postponed, Some(noon(until)));
    // A header that has changed, too.
    let paused = remote("1", "a1", "PAUSED", "Hi");
    let page = sweep(store, fence, &[header(&paused)], 20).await;
    assert_eq!(page.to_read[0].dirty_at, Some(noon(20)));
    let postponed = postpone(store, fence, "1", Some(noon(20)), until).await;
    for asked in [Some(noon(20)), postponed] {
        let read = read_record(paused.clone(), asked, until);
        done(store.record_read(fence, read, noon(until)).await.unwrap());
        let is_settled = asked == postponed;
        assert_eq!(mirror(store, account, "1").await.dirty_at.is_none(), is_settled);
    }
    assert_eq!(store.mirrored_document(account, id("1")).await.unwrap(), paused.document);
    // What another read has settled meanwhile is not read again.
    assert_eq!(postpone(store, fence, "1", postponed, HOUR).await, None);
    done(store.postpone_read(fence, id("404"), None, noon(until)).await.unwrap());
    assert_eq!(store.mirrored_template(account, &id("404")).await.unwrap(), None);
}

#[on_both_databases]
async fn a_read_that_has_to_confirm_an_absence_is_postponed(store: &Shared) {
    let account = whatsapp(store, "a").await;
    connect(store, account).await;
    let lease = store.lease_connection(account, times(0, HOUR)).await.unwrap();
    let fence = lease.unwrap().fence;
    let all: Vec<_> =
        (1..11).map(|it| remote(&it.to_string(), &format!("a{it}"), "APPROVED", "Hi")).collect();
    for (seen, at) in [(&all[..], 1), (&all[1..], 10), (&all[1..], 20)] {
        sweep(store, fence, seen, at).await;
        done(store.finish_sweep(fence, noon(at)).await.unwrap());
    }
    assert_eq!(to_read(store, fence, 10).await, ["1"]);
    let until = noon(10 * MINUTE);
    assert_eq!(postpone(store, fence, "1", None, 10 * MINUTE).await, Some(until));
    done(store.release_connection(fence).await.unwrap());
    let interval = SignedDuration::from_mins(15);
    let work = store.connections_with_work(noon(30), interval, 200).await.unwrap();
    assert_eq!(work, DueWork { now: Vec::new(), next_at: Some(until) });
    let work = store.connections_with_work(until, interval, 200).await.unwrap();
    assert_eq!(work.now, [account]);
    let late = store.postpone_read(fence, id("1"), Some(until), noon(HOUR)).await.unwrap();
    assert_eq!(late, Fenced::LeaseLost);
    let lease = store.lease_connection(account, until..noon(HOUR)).await.unwrap();
    let fence = lease.unwrap().fence;
    let absent = store.record_absent(fence, id("1"), Some(until), until).await.unwrap();
    assert!(done(absent));
    // It is gone: there is nothing to read.
    assert_eq!(postpone(store, fence, "1", None, HOUR).await, None);
    assert_eq!(to_read(store, fence, 10).await, Vec::<String>::new());
}

#[on_both_databases]
async fn a_lease_that_is_extended_tells_whether_work_goes_on(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let extend =
        async || done(store.extend_lease(fence, noon(2_000 * HOUR + SECOND)).await.unwrap());
    let by = |at| Author::operator(noon(at));
    assert_eq!(extend().await, LeaseState::Active);
    for (change, expected) in [
        (ConnectionChange::Paused, LeaseState::Paused),
        (ConnectionChange::Resumed, LeaseState::Active),
    ] {
        assert!(store.change_connection(account, change, by(1)).await.unwrap());
        assert_eq!(extend().await, expected);
    }
    for (is_disabled, expected) in [(true, LeaseState::Paused), (false, LeaseState::Active)] {
        store.set_account_disabled(account, is_disabled, by(2)).await.unwrap();
        assert_eq!(extend().await, expected);
    }
}
