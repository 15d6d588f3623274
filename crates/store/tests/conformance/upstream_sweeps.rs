//! Cases about sweeps: how they resume, and what they prove.

use galley_domain::{
    template::{
        Review, Status,
        lifecycle::{EventType, Hold, State, Trigger},
    },
    upstream::{
        CallFailure, OperationState, ProviderError, RemoteTemplate, SweepVerdict, read_hook,
    },
};
use galley_store::{
    Author, ConnectionChange, Degraded, DegradedReason, DueWork, Fence, MirrorFilter, PageRecord,
    SweepPosition, SweepReport, UpstreamAction, UpstreamActionOutcome,
};
use galley_test_macros::on_both_databases;
use jiff::SignedDuration;

use super::{
    emulator::{HOUR, MINUTE, stored},
    fixture::{Shared, create, done as changed, events, noon, template_subject, times},
    sqlite_only::body_edit,
    upstream::{
        connect, connected, done, header, id, kinds, last_page, lease, mirror, read_record, remote,
        sweep, whatsapp,
    },
    upstream_calls::degraded,
    upstream_submission::{changing, shown, submitted},
};

fn templates(numbers: std::ops::Range<u32>) -> Vec<RemoteTemplate> {
    numbers
        .map(|number| remote(&number.to_string(), &format!("t{number}"), "APPROVED", "Hi"))
        .collect()
}

async fn finish(store: &Shared, fence: Fence, at: i64) -> SweepReport {
    done(store.finish_sweep(fence, noon(at)).await.unwrap())
}

/// A whole sweep that sees these templates.
async fn counted(
    store: &Shared,
    fence: Fence,
    templates: &[RemoteTemplate],
    at: i64,
) -> SweepReport {
    sweep(store, fence, templates, at).await;
    finish(store, fence, at + 1).await
}

#[on_both_databases]
async fn a_sweep_resumes_where_its_last_page_ended(store: &Shared) {
    let fence = connected(store, "a").await;
    let current = async || store.connection(fence.account).await.unwrap().unwrap();
    assert_eq!(done(store.begin_sweep(fence, true, noon(1)).await.unwrap()), 1);
    assert_eq!(current().await.sweep.unwrap().position, SweepPosition::Start);
    let page = PageRecord {
        templates: templates(1..3),
        unreadable: 1,
        after: Some("MTA=".to_owned()),
        total: Some(5),
        limit: Some(250),
        restarted: false,
        seen_at: noon(2),
    };
    done(store.record_page(fence, page, noon(2)).await.unwrap());
    let running = current().await;
    let sweep = running.sweep.unwrap();
    assert_eq!((sweep.number, sweep.full, sweep.began_at), (1, true, noon(1)));
    assert_eq!(sweep.position, SweepPosition::After("MTA=".to_owned()));
    assert_eq!((sweep.progress.seen, sweep.progress.total, sweep.changed), (3, Some(5), 2));
    assert_eq!(running.template_limit, Some(250));
    done(store.record_page(fence, last_page(&templates(3..5), 3), noon(3)).await.unwrap());
    assert_eq!(current().await.sweep.unwrap().position, SweepPosition::End);
    let report = finish(store, fence, 4).await;
    assert_eq!(report.verdict, SweepVerdict::Counted);
    assert_eq!((report.seen, report.changed, report.missing), (5, 4, 0));
    let ended = current().await;
    assert_eq!(
        (ended.sweep, ended.swept_at, ended.read_all_at),
        (None, Some(noon(4)), Some(noon(4)))
    );
    assert_eq!(done(store.begin_sweep(fence, false, noon(5)).await.unwrap()), 2);
}

#[on_both_databases]
async fn a_template_is_gone_after_two_sweeps_and_a_read(store: &Shared) {
    let fence = connected(store, "a").await;
    let all = templates(1..11);
    counted(store, fence, &all, 1).await;
    let template = mirror(store, fence.account, "1").await.template.unwrap();
    let before = stored(store, fence.account, template).await;
    let absent =
        async |at| done(store.record_absent(fence, id("1"), None, noon(at)).await.unwrap());
    assert!(!absent(3).await, "no sweep has missed it");
    let report = counted(store, fence, &all[1..], 10).await;
    assert_eq!((report.verdict, report.missing), (SweepVerdict::Counted, 1));
    assert!(!absent(15).await, "one sweep is not enough");
    assert_eq!(store.templates_to_read(fence.account, 10).await.unwrap(), []);
    counted(store, fence, &all[1..], 20).await;
    assert_eq!(stored(store, fence.account, template).await, before, "nothing is erased");
    let to_read = store.templates_to_read(fence.account, 10).await.unwrap();
    assert_eq!(
        to_read.iter().map(|it| (it.id.as_str(), it.missing)).collect::<Vec<_>>(),
        [("1", 2)]
    );
    assert!(absent(25).await);
    assert!(!absent(26).await, "told once");
    assert_eq!(mirror(store, fence.account, "1").await.gone_at, Some(noon(25)));
    let gone = stored(store, fence.account, template).await;
    assert_eq!((gone.state.hold, &gone.template), (Some(Hold::Disabled), &before.template));
    assert_eq!(kinds(store, fence.account).await.last(), Some(&EventType::Gone));
    assert_eq!(store.templates_to_read(fence.account, 10).await.unwrap(), []);
    let report = counted(store, fence, &all[1..], 30).await;
    assert_eq!(report.missing, 0, "a template that is gone is not missing");
    counted(store, fence, &all, 40).await;
    assert_eq!(mirror(store, fence.account, "1").await.gone_at, None, "it came back");
    assert_eq!(stored(store, fence.account, template).await.state, before.state);
}

#[on_both_databases]
async fn a_template_that_is_read_again_is_not_gone(store: &Shared) {
    let fence = connected(store, "a").await;
    let all = templates(1..11);
    for (at, seen) in [(1, &all[..]), (10, &all[1..]), (20, &all[1..])] {
        counted(store, fence, seen, at).await;
    }
    done(store.record_read(fence, read_record(all[0].clone(), None, 25), noon(25)).await.unwrap());
    assert_eq!(mirror(store, fence.account, "1").await.missing, 0);
    let absent = store.record_absent(fence, id("1"), None, noon(26)).await.unwrap();
    assert!(!done(absent));
}

#[on_both_databases]
async fn an_incomplete_sweep_marks_nothing_as_missing(store: &Shared) {
    let fence = connected(store, "a").await;
    let all = templates(1..11);
    counted(store, fence, &all, 1).await;
    let page = |after: Option<&str>, restarted| PageRecord {
        after: after.map(str::to_owned),
        restarted,
        ..last_page(&all[1..], 11)
    };
    for (page, expected) in [
        (page(Some("next"), false), SweepVerdict::Incomplete),
        (page(None, true), SweepVerdict::Incomplete),
    ] {
        done(store.begin_sweep(fence, false, noon(10)).await.unwrap());
        done(store.record_page(fence, page, noon(11)).await.unwrap());
        assert_eq!(finish(store, fence, 12).await.verdict, expected);
    }
    assert_eq!(mirror(store, fence.account, "1").await.missing, 0);
    let current = async || store.connection(fence.account).await.unwrap().unwrap();
    let connection = current().await;
    assert_eq!((connection.swept_at, connection.sweep_ended_at), (Some(noon(2)), Some(noon(12))));
    // A walk that begins again sees its templates anew, and a list that repeats itself then, too.
    let number = done(store.begin_sweep(fence, false, noon(20)).await.unwrap());
    for (restarted, seen, is_endless) in [(false, 9, false), (true, 9, false), (false, 9, true)] {
        let page = page(Some("next"), restarted);
        let progress = done(store.record_page(fence, page, noon(21)).await.unwrap()).progress;
        assert_eq!((progress.seen, progress.is_endless()), (seen, is_endless), "{restarted}");
        assert_eq!(current().await.sweep.unwrap().progress, progress, "it is stored");
    }
    let sweep = current().await.sweep.unwrap();
    assert!(sweep.number > number && sweep.progress.restarted);
}

#[on_both_databases]
async fn an_empty_list_makes_the_connection_suspicious(store: &Shared) {
    let fence = connected(store, "a").await;
    let all = templates(1..11);
    counted(store, fence, &all, 1).await;
    for at in [10, 20, 30] {
        let report = counted(store, fence, &[], at).await;
        assert_eq!((report.verdict, report.suspicious), (SweepVerdict::Suspicious, true));
    }
    // While it is suspicious, no sweep counts what it does not see.
    let report = counted(store, fence, &all[1..], 40).await;
    assert_eq!((report.verdict, report.suspicious), (SweepVerdict::Counted, true));
    assert_eq!(mirror(store, fence.account, "1").await.missing, 0);
    let events = kinds(store, fence.account).await;
    assert_eq!(events.iter().filter(|it| **it == EventType::UpstreamDegraded).count(), 1);
    assert!(!events.contains(&EventType::Gone));
    let by = Author::operator(noon(50));
    assert!(store.change_connection(fence.account, ConnectionChange::Resumed, by).await.unwrap());
    assert_eq!(kinds(store, fence.account).await.last(), Some(&EventType::UpstreamRecovered));
    counted(store, fence, &all[1..], 60).await;
    assert_eq!(mirror(store, fence.account, "1").await.missing, 1);
}

#[on_both_databases]
async fn templates_that_a_person_accepts_as_missing_are_gone_after_a_read(store: &Shared) {
    let fence = connected(store, "a").await;
    let (account, all) = (fence.account, templates(1..11));
    counted(store, fence, &all, 1).await;
    let queued = create(store, submitted(account, "new", Review::Provider)).await;
    let work = async |at| {
        let interval = SignedDuration::from_hours(1);
        store.connections_with_work(noon(at), interval, 100).await.unwrap().now
    };
    assert!(counted(store, fence, &all[..2], 1_010).await.suspicious);
    done(store.release_connection(fence).await.unwrap());
    assert_eq!(work(1_020).await, [], "operations wait while it is suspicious");
    let by = Author::operator(noon(1_030));
    store.change_connection(account, ConnectionChange::MissingAccepted, by).await.unwrap();
    assert_eq!(work(1_040).await, [account]);
    let lease = store.lease_connection(account, times(1_050, 9_000)).await.unwrap().unwrap();
    let fence = lease.fence;
    assert_eq!(store.templates_to_read(account, 100).await.unwrap().len(), 8);
    done(store.record_absent(fence, id("3"), None, noon(1_060)).await.unwrap());
    // One of them is there.
    done(
        store
            .record_read(fence, read_record(all[3].clone(), None, 1_060), noon(1_060))
            .await
            .unwrap(),
    );
    assert!(mirror(store, account, "3").await.gone_at.is_some());
    assert_eq!(mirror(store, account, "4").await.missing, 0);
    // The others wait for their reads, and are not suspicious again.
    let seen = [&all[..2], &all[3..4]].concat();
    let report = counted(store, fence, &seen, 1_070).await;
    assert_eq!((report.verdict, report.suspicious), (SweepVerdict::Counted, false));
    assert_eq!(store.templates_to_read(account, 100).await.unwrap().len(), 6);
    let operation = store.newest_operation(account, queued).await.unwrap().unwrap();
    assert_eq!(operation.operation.state, OperationState::Queued);
}

#[on_both_databases]
async fn templates_that_are_read_during_a_sweep_are_not_missing(store: &Shared) {
    let fence = connected(store, "a").await;
    counted(store, fence, &templates(1..3), 1).await;
    done(store.begin_sweep(fence, false, noon(10)).await.unwrap());
    for template in templates(10..30) {
        done(store.record_read(fence, read_record(template, None, 11), noon(11)).await.unwrap());
    }
    let headers: Vec<RemoteTemplate> = templates(1..3).iter().map(header).collect();
    let page = PageRecord { total: Some(2), ..last_page(&headers, 12) };
    done(store.record_page(fence, page, noon(12)).await.unwrap());
    let report = finish(store, fence, 13).await;
    assert_eq!((report.verdict, report.missing), (SweepVerdict::Counted, 0));
    // The next sweep sees them for the first time.
    let all: Vec<RemoteTemplate> = templates(1..3).into_iter().chain(templates(10..30)).collect();
    done(store.begin_sweep(fence, false, noon(20)).await.unwrap());
    done(store.record_read(fence, read_record(all[5].clone(), None, 21), noon(21)).await.unwrap());
    let page = PageRecord { total: Some(22), ..last_page(&all, 22) };
    done(store.record_page(fence, page, noon(22)).await.unwrap());
    let report = finish(store, fence, 23).await;
    assert_eq!((report.verdict, report.seen), (SweepVerdict::Counted, 22));
}

#[on_both_databases]
async fn a_page_that_is_recorded_again_counts_its_templates_once(store: &Shared) {
    let fence = connected(store, "a").await;
    done(store.begin_sweep(fence, true, noon(1)).await.unwrap());
    let overlapping = [templates(1..3), templates(2..5), templates(1..2)];
    for (at, page) in overlapping.iter().enumerate() {
        let after = (at < 2).then(|| at.to_string());
        let page = PageRecord { after, total: Some(4), ..last_page(page, 2) };
        done(store.record_page(fence, page, noon(2)).await.unwrap());
    }
    let report = finish(store, fence, 3).await;
    assert_eq!((report.seen, report.changed, report.verdict), (4, 4, SweepVerdict::Counted));
    let doubled = [templates(6..7), templates(6..7)].concat();
    let page = sweep(store, fence, &doubled, 10).await;
    assert_eq!((page.imported, page.changed), (1, 1), "twice on one page");
    let names = store.mirrored(fence.account, MirrorFilter::All, Some(id("2")), 2).await.unwrap();
    assert_eq!(names.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["3", "4"]);
}

#[on_both_databases]
async fn a_person_begins_a_first_sweep_that_may_end_approvals(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let work = async |at| {
        let interval = SignedDuration::from_mins(15);
        store.connections_with_work(noon(at), interval, 200).await.unwrap()
    };
    done(store.release_connection(fence).await.unwrap());
    let now = DueWork { now: vec![account], next_at: None };
    let later = DueWork { now: Vec::new(), next_at: Some(noon(15 * MINUTE)) };
    assert_eq!(work(1).await, later, "nothing can be lost");
    let body = br#"{"object":"whatsapp_business_account","entry":[{"id":"900","changes":[
        {"field":"message_template_status_update","value":{"message_template_id":8}}]}]}"#;
    let hints = read_hook(body, "900").unwrap();
    assert_eq!(store.record_hints(account, hints, noon(2)).await.unwrap().unknown, 1);
    assert_eq!(work(61).await, later, "a webhook does not hasten the first sweep");
    assert_eq!(work(15 * MINUTE).await, now);
    assert!(!store.has_own_approvals(account).await.unwrap());

    create(store, submitted(account, "pending", Review::Manual)).await;
    assert!(!store.has_own_approvals(account).await.unwrap());
    let approved = create(store, submitted(account, "approved", Review::Auto)).await;
    assert!(store.has_own_approvals(account).await.unwrap());
    let submit = changing(account, approved, Review::Provider);
    store.act_upstream(submit, UpstreamAction::Submit).await.unwrap();
    assert!(store.has_own_approvals(account).await.unwrap(), "it is not at the provider yet");
    let by = Author::operator(noon(2));
    assert_eq!(store.abandon_operations(account, approved, by).await.unwrap(), 1);
    assert_eq!(work(HOUR).await, DueWork::default(), "a person looks first");

    let fence = lease(store, account).await;
    let degraded = Some(Degraded {
        until: Some(noon(15 * MINUTE)),
        ..degraded(DegradedReason::Credentials, 3)
    });
    done(store.set_degraded(fence, degraded, noon(3)).await.unwrap());
    done(store.release_connection(fence).await.unwrap());
    assert_eq!(work(4).await, later, "a check shows that calls succeed");
    assert_eq!(work(15 * MINUTE).await, now);

    let fence = lease(store, account).await;
    done(store.set_degraded(fence, None, noon(5)).await.unwrap());
    done(store.begin_sweep(fence, true, noon(5)).await.unwrap());
    done(store.release_connection(fence).await.unwrap());
    assert!(store.connection(account).await.unwrap().unwrap().has_begun_import());
    assert_eq!(work(6).await, now, "an import that was interrupted");
}

#[on_both_databases]
async fn approvals_from_before_the_connection_end_with_a_counted_sweep(store: &Shared) {
    let account = whatsapp(store, "a").await;
    let own = async |name, review| create(store, submitted(account, name, review)).await;
    let (kept, sent) = (own("kept", Review::Auto).await, own("sent", Review::Auto).await);
    let decided = own("decided", Review::Manual).await;
    let change = changing(account, decided, Review::Manual);
    changed(store.review_template(change, Trigger::Approve, None).await.unwrap());
    let edited = own("edited", Review::Auto).await;
    let change = changing(account, edited, Review::Manual);
    changed(store.edit_template(change, body_edit(1)).await.unwrap());
    connect(store, account).await;
    let fence = lease(store, account).await;
    let withdraw = async |at| done(store.withdraw_approvals(fence, noon(at)).await.unwrap()).len();
    assert_eq!(withdraw(1).await, 0, "no sweep has counted");
    let submit = changing(account, sent, Review::Provider);
    store.act_upstream(submit, UpstreamAction::Submit).await.unwrap();
    let at_provider = shown("5", &stored(store, account, kept).await, "APPROVED");
    counted(store, fence, std::slice::from_ref(&at_provider), 2_000).await;
    assert_eq!((withdraw(2_010).await, withdraw(2_020).await), (2, 0));
    for id in [decided, edited] {
        let State { newest_status, approved_version, .. } = stored(store, account, id).await.state;
        assert_eq!((newest_status, approved_version), (Status::Pending, None));
    }
    let told = events(store, account, 0, 100).await;
    let told: Vec<_> = told
        .iter()
        .filter(|it| it.kind == EventType::Drifted)
        .map(|it| (template_subject(it), it.reason.as_deref()))
        .collect();
    let reason = Some("The provider does not have the template.");
    let expected = [(1, "decided"), (2, "edited")];
    assert_eq!(told, expected.map(|(version, name)| ((version, name, Status::Pending), reason)));
    for id in [kept, sent] {
        assert_eq!(stored(store, account, id).await.state.live_version(), Some(1));
    }
    // An operation that has failed gives the provider nothing.
    let operation = store.newest_operation(account, sent).await.unwrap().unwrap().id;
    done(store.begin_operation(fence, operation, noon(2_030)).await.unwrap()).unwrap();
    let message = "No".to_owned();
    let error = ProviderError { code: 100, subcode: None, title: None, message };
    let refused = Err(CallFailure::Refused(error));
    done(store.record_call(fence, operation, refused, noon(2_040)).await.unwrap()).unwrap();
    assert_eq!(withdraw(2_050).await, 1);
    assert_eq!(stored(store, account, sent).await.state.live_version(), None);
    // The decision of the reviewer still counts.
    let submit = changing(account, decided, Review::InHouseThenProvider);
    let submitted = store.act_upstream(submit, UpstreamAction::Submit).await.unwrap();
    assert!(matches!(submitted, UpstreamActionOutcome::Queued(_)), "{submitted:?}");

    own("late", Review::Auto).await;
    assert!(counted(store, fence, &[], 3_000).await.suspicious);
    assert_eq!(withdraw(3_010).await, 0, "nothing is certain now");
    let by = Author::operator(noon(3_020));
    store.change_connection(account, ConnectionChange::Resumed, by).await.unwrap();
    assert_eq!(withdraw(3_030).await, 1);
    done(store.release_connection(fence).await.unwrap());
    let lost = store.withdraw_approvals(fence, noon(3_040)).await.unwrap();
    assert_eq!(lost, galley_store::Fenced::LeaseLost);
    let findings = store.check_integrity().await.unwrap();
    assert!(findings.iter().all(|finding| finding.ok), "{findings:?}");
}
