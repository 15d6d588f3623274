//! Cases about templates that the provider generates: the mirror shows them, and nothing else does.

use galley_domain::{
    template::{Review, lifecycle::Hold},
    upstream::{RemoteTemplate, SweepVerdict, TemplateSource, read_hook},
};
use galley_store::{
    Author, ConnectionChange, Fence, HintReport, MirrorCounts, MirrorFilter, PageRecord,
    SweepReport, UpstreamAction, UpstreamActionOutcome,
};
use galley_test_macros::on_both_databases;

use super::{
    emulator::stored,
    fixture::{Shared, noon},
    lists::{all, names},
    upstream::{connected, done, header, id, kinds, last_page, mirror, read_record, remote, sweep},
    upstream_submission::changing,
};

fn sourced(source: &str, template: RemoteTemplate) -> RemoteTemplate {
    RemoteTemplate { source: Some(TemplateSource::parse(source)), ..template }
}

/// Templates of the business.
fn own(numbers: std::ops::Range<u32>) -> Vec<RemoteTemplate> {
    let own = |it: u32| remote(&it.to_string(), &format!("t{it}"), "APPROVED", "Hi");
    numbers.map(own).collect()
}

/// Templates that the provider generated.
fn generated(numbers: std::ops::Range<u32>) -> Vec<RemoteTemplate> {
    let generated = |it: u32| {
        let template = remote(&format!("g{it}"), &format!("auto_generated_{it}"), "APPROVED", "Yo");
        sourced("AUTO_GENERATED", template)
    };
    numbers.map(generated).collect()
}

/// A sweep with this page, which counts what it has.
async fn swept(store: &Shared, fence: Fence, page: &[RemoteTemplate], at: i64) -> SweepReport {
    done(store.begin_sweep(fence, false, noon(at)).await.unwrap());
    let total = u32::try_from(page.len()).ok();
    let page = PageRecord { total, ..last_page(page, at) };
    let recorded = done(store.record_page(fence, page, noon(at)).await.unwrap());
    assert_eq!(recorded.to_read, [], "at {at}");
    done(store.finish_sweep(fence, noon(at + 1)).await.unwrap())
}

/// The names of a list of the mirror.
async fn listed(store: &Shared, fence: Fence, filter: MirrorFilter) -> Vec<String> {
    let rows = store.mirrored(fence.account, filter, None, 100).await.unwrap();
    rows.into_iter().map(|row| row.name).collect()
}

#[on_both_databases]
async fn generated_templates_come_and_go_and_nothing_follows(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    sweep(store, fence, &own(1..21), 1).await;
    done(store.finish_sweep(fence, noon(2)).await.unwrap());
    let (events, before) = (kinds(store, account).await, names(store, all(account)).await);
    for day in 1..4 {
        let headers: Vec<_> = own(1..21).iter().map(header).collect();
        // One has the name of a template of the account, with another content.
        let taken = remote("g0", "t1", "REJECTED", "Other words");
        let made = [generated(1..41), vec![sourced("auto_generated", taken)]].concat();
        let seen = [headers.clone(), made].concat();
        let report = swept(store, fence, &seen, 100 * day).await;
        assert_eq!((report.verdict, report.suspicious), (SweepVerdict::Counted, false));
        assert_eq!((report.seen, report.generated), (61, 41));
        assert_eq!((report.changed, report.missing), (0, 0));
        let counts = store.mirror_counts(account).await.unwrap();
        let expected = MirrorCounts { present: 61, generated: 41, ..MirrorCounts::default() };
        assert_eq!(counts, expected);
        let row = mirror(store, account, "g0").await;
        assert_eq!((row.template, row.dirty_at, row.drifted), (None, None, false));
        // A page without contents causes no reads, either.
        let seen: Vec<_> = seen.iter().map(header).collect();
        assert_eq!(swept(store, fence, &seen, 100 * day + 10).await.generated, 41);
        // The provider removes all of them.
        let report = swept(store, fence, &headers, 100 * day + 20).await;
        assert_eq!((report.verdict, report.missing), (SweepVerdict::Counted, 0));
        assert!(!report.suspicious && report.generated == 0);
        let left = listed(store, fence, MirrorFilter::All).await;
        assert_eq!(left.len(), 20, "they are forgotten: {left:?}");
    }
    assert_eq!(store.templates_to_read(account, 10).await.unwrap(), []);
    assert_eq!(
        (kinds(store, account).await, names(store, all(fence.account)).await),
        (events, before)
    );
}

#[on_both_databases]
async fn templates_are_listed_by_their_source(store: &Shared) {
    let fence = connected(store, "a").await;
    let library = sourced("LIBRARY", remote("7", "b", "APPROVED", "Hi"));
    let deleted = sourced("AUTO_GENERATED", remote("g9", "auto_generated_9", "DELETED", "Yo"));
    let page = [own(1..2), vec![library.clone(), deleted], generated(1..3)].concat();
    sweep(store, fence, &page, 1).await;
    done(store.finish_sweep(fence, noon(2)).await.unwrap());
    let of = async |source: &str| {
        let source = Some(TemplateSource::parse(source));
        listed(store, fence, MirrorFilter::Present(source)).await
    };
    assert_eq!(of("AUTO_GENERATED").await, ["auto_generated_1", "auto_generated_2"]);
    assert_eq!(of("LIBRARY").await, ["b"]);
    assert_eq!(of("OTHER").await, <[&str; 0]>::default());
    let present = listed(store, fence, MirrorFilter::Present(None)).await;
    assert_eq!(present, ["t1", "b", "auto_generated_1", "auto_generated_2"]);
    assert_eq!(listed(store, fence, MirrorFilter::All).await.len(), 5);
    // A provider that does not tell the source any more has told it.
    let silent = [generated(1..3), vec![library]].concat();
    let silent = silent.into_iter().map(|it| RemoteTemplate { source: None, ..it });
    sweep(store, fence, &silent.collect::<Vec<_>>(), 10).await;
    assert_eq!(of("AUTO_GENERATED").await.len(), 2);
    assert_eq!(of("LIBRARY").await, <[&str; 0]>::default(), "of the account: what is told now");
    assert_eq!(names(store, all(fence.account)).await.len(), 2, "the two of the business");
}

#[on_both_databases]
async fn webhooks_about_generated_templates_cause_no_calls(store: &Shared) {
    let fence = connected(store, "a").await;
    let named = sourced("AUTO_GENERATED", remote("50", "parcel_news", "PENDING", "Yo"));
    sweep(store, fence, &[own(1..2), vec![named]].concat(), 1).await;
    done(store.finish_sweep(fence, noon(2)).await.unwrap());
    let hook = |id: u32, name: &str| {
        format!(
            r#"{{"object":"whatsapp_business_account","entry":[{{"id":"900","changes":[
            {{"field":"message_template_status_update","value":{{"event":"APPROVED",
            "message_template_id":{id},"message_template_name":"{name}"}}}}]}}]}}"#
        )
    };
    let tell = async |hook: String, at: i64| {
        let hints = read_hook(hook.as_bytes(), "900").unwrap();
        store.record_hints(fence.account, hints, noon(at)).await.unwrap()
    };
    assert_eq!(tell(hook(50, "parcel_news"), 10).await, HintReport { known: 1, unknown: 0 });
    assert_eq!(tell(hook(51, "auto_generated_51"), 11).await, HintReport::default());
    assert_eq!(store.templates_to_read(fence.account, 10).await.unwrap(), []);
    let wanted = async || store.connection(fence.account).await.unwrap().unwrap().sweep_wanted;
    assert!(!wanted().await);
    assert_eq!(tell(hook(52, "order_52"), 12).await, HintReport { known: 0, unknown: 1 });
    assert!(wanted().await, "any other name may be one of the business");
    // The business may use such a name, too.
    let notes = remote("53", "auto_generated_notes", "PENDING", "Hi");
    sweep(store, fence, &[notes], 20).await;
    done(store.finish_sweep(fence, noon(21)).await.unwrap());
    let told = tell(hook(53, "auto_generated_notes"), 22).await;
    assert_eq!(told, HintReport { known: 1, unknown: 0 });
    assert!(mirror(store, fence.account, "53").await.dirty_at.is_some());
}

/// The provider did not show the source at first.
#[on_both_databases]
async fn a_generated_template_that_was_imported_has_the_status_of_the_provider(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let unknown = generated(1..11).into_iter().map(|it| RemoteTemplate { source: None, ..it });
    sweep(store, fence, &[own(1..6), unknown.collect()].concat(), 1).await;
    done(store.finish_sweep(fence, noon(2)).await.unwrap());
    let template = mirror(store, account, "g1").await.template.unwrap();
    assert_eq!(stored(store, account, template).await.state.live_version(), Some(1));
    let changed = sourced("AUTO_GENERATED", remote("g1", "auto_generated_1", "PAUSED", "New"));
    let seen = [own(1..6), vec![changed.clone()], generated(2..11)].concat();
    assert_eq!(swept(store, fence, &seen, 10).await.generated, 10);
    let row = mirror(store, account, "g1").await;
    assert_eq!((row.template, row.drifted), (Some(template), false));
    let (before, events) = (stored(store, account, template).await, kinds(store, account).await);
    assert_eq!(before.state.hold, Some(Hold::Paused));
    assert_eq!(before.state.approved_version, None, "another content");
    for action in [
        UpstreamAction::Submit,
        UpstreamAction::Push,
        UpstreamAction::Accept,
        UpstreamAction::Archive,
        UpstreamAction::Unarchive,
    ] {
        let change = changing(account, template, Review::Provider);
        let refused = store.act_upstream(change, action).await.unwrap();
        let UpstreamActionOutcome::NotPossible(why) = refused else { panic!("{refused:?}") };
        assert!(why.contains("generated"), "{action:?}: {why}");
    }
    // The provider removes all of them: that is neither suspicious nor missing.
    for at in [20, 30] {
        let report = swept(store, fence, &own(1..6), at).await;
        assert_eq!((report.verdict, report.missing), (SweepVerdict::Counted, 0));
        assert_eq!(store.mirror_counts(account).await.unwrap().missing, 0);
    }
    assert_eq!(stored(store, account, template).await, before);
    assert_eq!(kinds(store, account).await, events);
    // A template of the account changes only after a read.
    assert_eq!(store.templates_to_read(account, 100).await.unwrap().len(), 10);
    let absent = store.record_absent(fence, id("g1"), None, noon(40)).await.unwrap();
    assert!(done(absent));
    assert_eq!(stored(store, account, template).await.state.hold, Some(Hold::Disabled));
    done(store.record_read(fence, read_record(changed, None, 50), noon(50)).await.unwrap());
    assert_eq!(stored(store, account, template).await.state.hold, Some(Hold::Paused));
}

#[on_both_databases]
async fn a_suspicious_sweep_names_what_it_missed(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    sweep(store, fence, &[own(1..31), generated(1..9)].concat(), 1).await;
    done(store.finish_sweep(fence, noon(2)).await.unwrap());
    let unseen = async || {
        let named = listed(store, fence, MirrorFilter::Unseen).await;
        let counts = store.mirror_counts(account).await.unwrap();
        assert_eq!(usize::try_from(counts.unseen).unwrap(), named.len());
        named
    };
    assert_eq!(unseen().await, <[&str; 0]>::default());
    let report = swept(store, fence, &own(1..4), 10).await;
    assert_eq!((report.verdict, report.missing), (SweepVerdict::Suspicious, 27));
    assert_eq!(unseen().await.len(), 27, "without the generated ones");
    assert_eq!(listed(store, fence, MirrorFilter::All).await.len(), 30);
    // A sweep that ends before its last page tells nothing of the others.
    done(store.begin_sweep(fence, false, noon(12)).await.unwrap());
    let page = PageRecord { after: Some("MTA=".to_owned()), ..last_page(&own(1..2), 13) };
    done(store.record_page(fence, page, noon(13)).await.unwrap());
    done(store.finish_sweep(fence, noon(14)).await.unwrap());
    assert_eq!(unseen().await.len(), 27);
    // The next sweep has begun, and has seen nothing yet.
    done(store.begin_sweep(fence, false, noon(20)).await.unwrap());
    assert_eq!(unseen().await.len(), 27);
    let page = last_page(&own(1..30), 21);
    done(store.record_page(fence, page, noon(21)).await.unwrap());
    done(store.finish_sweep(fence, noon(22)).await.unwrap());
    assert_eq!(unseen().await, ["t30"]);
    let by = Author::operator(noon(30));
    store.change_connection(account, ConnectionChange::MissingAccepted, by).await.unwrap();
    let to_read = store.templates_to_read(account, 100).await.unwrap();
    assert_eq!(to_read.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["30"]);
    // It waits for its read, and is not missed by the next suspicious sweep. Nor is one that a read
    // sees meanwhile.
    done(store.begin_sweep(fence, false, noon(40)).await.unwrap());
    let read = read_record(own(29..30).remove(0), None, 41);
    done(store.record_read(fence, read, noon(41)).await.unwrap());
    done(store.record_page(fence, last_page(&own(1..10), 42), noon(42)).await.unwrap());
    let report = done(store.finish_sweep(fence, noon(43)).await.unwrap());
    assert_eq!((report.verdict, report.missing), (SweepVerdict::Suspicious, 19));
    assert_eq!(unseen().await.len(), 19);
}
