//! Cases about the mirror: what an observation changes in the account.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{
        Review, Status,
        lifecycle::{EventType, Hold, Trigger},
        quality::Quality,
    },
    upstream::{RemoteStatus, RemoteTemplate},
};
use galley_store::{
    Actor, Fence, ListQuery, NewTemplate, StoredTemplate, TemplateChange, ToRead, TranslationGroup,
    UpstreamFilter,
};
use galley_test_macros::on_both_databases;
use jiff::Timestamp;

use super::{
    emulator::stored,
    fixture::{Shared, change, create, done as changed, events, new, noon, template_subject},
    sqlite_only::body_edit,
    upstream::{connected, done, header, id, kinds, last_page, mirror, read_record, remote, sweep},
};

/// Creates the account's own template with this name.
async fn own(store: &Shared, account: AccountId, name: &str) -> TemplateId {
    let template = new(account, name);
    let unique_key = (galley_domain::rulebook::WHATSAPP.unique_key)(account, name, "en_US");
    let translation_group = Some(TranslationGroup::of(account, name));
    create(store, NewTemplate { unique_key, translation_group, ..template }).await
}

/// The provider's view of a stored template.
fn shown(id: &str, stored: &StoredTemplate, status: &str) -> RemoteTemplate {
    let members = stored.template.content().strip_prefix('{').unwrap();
    let document = format!(
        r#"{{"id":"{id}","name":"{}","language":"en_US","status":"{status}","category":"UTILITY",{members}"#,
        stored.template.name()
    );
    RemoteTemplate::parse(&document).unwrap()
}

async fn read(store: &Shared, fence: Fence, template: &RemoteTemplate, at: i64) {
    let asked = store.mirrored_template(fence.account, &template.id).await.unwrap();
    let asked = asked.and_then(|row| row.dirty_at);
    done(
        store.record_read(fence, read_record(template.clone(), asked, at), noon(at)).await.unwrap(),
    );
}

async fn local(store: &Shared, fence: Fence, remote: &str) -> StoredTemplate {
    let template = mirror(store, fence.account, remote).await.template.unwrap();
    stored(store, fence.account, template).await
}

#[on_both_databases]
async fn an_unknown_template_is_imported_as_it_was_received(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let template = remote("1", "welcome", "APPROVED", "Grüße 😀");
    let page = sweep(store, fence, std::slice::from_ref(&template), 1).await;
    assert_eq!((page.changed, page.imported, page.to_read), (1, 1, Vec::new()));
    let row = mirror(store, account, "1").await;
    assert_eq!((row.version, row.drifted, row.sweep), (Some(1), false, 1));
    assert_eq!(
        (&*row.name, &*row.language, row.status),
        ("welcome", "en_US", RemoteStatus::Approved)
    );
    let document = store.mirrored_document(account, id("1")).await.unwrap();
    assert_eq!(document, template.document, "byte for byte");
    let imported = local(store, fence, "1").await;
    assert_eq!(imported.state.live_version(), Some(1));
    assert_eq!((imported.template.category(), imported.revision), (Category::Utility, 1));
    let content = imported.template.content();
    assert!(content.contains(r#"{"type":"NOVELTY","x":1.50}"#), "{content}");
    assert!(!content.contains("health_status"), "{content}");
    let [created] = &events(store, account, 0, 10).await[..] else { panic!("one event") };
    assert_eq!((created.kind, created.actor), (EventType::Created, Actor::Service));
    assert_eq!(template_subject(created), (1, "welcome", Status::Approved));
    let names = store.translations(account, "welcome").await.unwrap();
    assert_eq!(names.len(), 1, "it belongs to a translation group");
    let listed = store.mirror_of(account, vec![imported.id]).await.unwrap();
    assert_eq!(listed.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["1"]);
    for (number, status) in
        ["REJECTED", "PAUSED", "DISABLED", "ARCHIVED", "NEWS"].iter().enumerate()
    {
        let id = format!("2{number}");
        read(store, fence, &remote(&id, &format!("b{number}"), status, "Hi"), 2).await;
        let imported = local(store, fence, &id).await;
        let shown = RemoteStatus::parse(status).state();
        assert_eq!(imported.state.hold, shown.hold, "{status}");
        assert_eq!(imported.state.live_version(), None, "{status}");
    }
    read(store, fence, &remote("3", "c", "DELETED", "Hi"), 2).await;
    assert_eq!(mirror(store, account, "3").await.template, None, "a deleted one is not imported");
    // The provider has other categories in other languages, which the account does not refuse.
    let mut german = remote("4", "welcome", "APPROVED", "Hallo");
    "de".clone_into(&mut german.language);
    "MARKETING".clone_into(&mut german.category);
    read(store, fence, &german, 3).await;
    assert_eq!(store.translations(account, "welcome").await.unwrap().len(), 2);
    let findings = store.check_integrity().await.unwrap();
    assert!(findings.iter().all(|finding| finding.ok), "{findings:?}");
    store.update_search_index().await.unwrap();
    let query = ListQuery { statuses: vec![Status::Paused], ..ListQuery::new(account, 10) };
    assert_eq!(store.list(query).await.unwrap().templates.len(), 2);
}

#[on_both_databases]
async fn a_header_without_a_document_asks_for_a_read(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = remote("1", "a", "APPROVED", "Hi");
    let page = sweep(store, fence, &[header(&template)], 1).await;
    let to_read = vec![ToRead { id: id("1"), dirty_at: Some(noon(1)), missing: 0 }];
    assert_eq!((page.imported, &page.to_read), (0, &to_read));
    assert_eq!(kinds(store, fence.account).await, []);
    assert_eq!(store.templates_to_read(fence.account, 10).await.unwrap(), to_read);
    read(store, fence, &template, 2).await;
    assert_eq!(kinds(store, fence.account).await, [EventType::Created]);
    assert_eq!(store.templates_to_read(fence.account, 10).await.unwrap(), []);
    let page = sweep(store, fence, &[header(&template)], 3).await;
    assert_eq!((page.changed, page.to_read), (0, Vec::new()), "nothing has changed");
}

#[on_both_databases]
async fn a_header_that_has_changed_changes_the_template_after_a_read(store: &Shared) {
    let fence = connected(store, "a").await;
    sweep(store, fence, &[remote("1", "a", "PENDING", "Hi")], 1).await;
    let approved = remote("1", "a", "APPROVED", "Hi");
    let page = sweep(store, fence, &[header(&approved)], 2).await;
    assert_eq!((page.changed, page.to_read.len()), (1, 1));
    let row = mirror(store, fence.account, "1").await;
    assert_eq!((row.status, row.changed_at), (RemoteStatus::Approved, noon(2)));
    assert_eq!(local(store, fence, "1").await.state.status(), Status::Pending, "not read yet");
    read(store, fence, &approved, 3).await;
    assert_eq!(local(store, fence, "1").await.state.live_version(), Some(1));
    assert_eq!(kinds(store, fence.account).await, [EventType::Created, EventType::Approved]);
}

#[on_both_databases]
async fn an_observation_that_changes_nothing_appends_nothing(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = own(store, fence.account, "a").await;
    let before = stored(store, fence.account, template).await;
    let remote = shown("1", &before, "APPROVED");
    for at in [1, 2] {
        let page = sweep(store, fence, std::slice::from_ref(&remote), at).await;
        assert_eq!((page.imported, page.to_read), (0, Vec::new()));
    }
    assert_eq!(stored(store, fence.account, template).await, before);
    assert_eq!(mirror(store, fence.account, "1").await.template, Some(template));
    assert_eq!(kinds(store, fence.account).await, [EventType::Created]);
}

#[on_both_databases]
async fn a_status_at_the_provider_becomes_that_of_the_template(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = own(store, fence.account, "a").await;
    let before = stored(store, fence.account, template).await;
    let mut expected = vec![EventType::Created];
    for (at, (status, events, hold)) in [
        ("PENDING", &[EventType::Submitted][..], None),
        ("REJECTED", &[EventType::Rejected], None),
        ("IN_APPEAL", &[EventType::Submitted], None),
        ("PAUSED", &[EventType::Approved, EventType::Paused], Some(Hold::Paused)),
        ("APPROVED", &[EventType::Resumed], None),
        ("DISABLED", &[EventType::Disabled], Some(Hold::Disabled)),
        ("APPROVED", &[EventType::Resumed], None),
        ("ARCHIVED", &[EventType::Archived], Some(Hold::Archived)),
        ("APPROVED", &[EventType::Unarchived], None),
        ("SOMETHING_NEW", &[EventType::Paused], Some(Hold::Paused)),
    ]
    .into_iter()
    .enumerate()
    {
        let mut remote = shown("1", &before, status);
        remote.rejected_reason = (status == "REJECTED").then(|| "SCAM".to_owned());
        read(store, fence, &remote, i64::try_from(at).unwrap()).await;
        expected.extend(events);
        assert_eq!(kinds(store, fence.account).await, expected, "{status}");
        let after = stored(store, fence.account, template).await;
        assert_eq!(after.state.hold, hold, "{status}");
        let is_live = status == "APPROVED";
        assert_eq!(after.state.live_version(), is_live.then_some(1), "{status}");
        assert_eq!(after.reason.as_deref(), (status == "REJECTED").then_some("SCAM"), "{status}");
        assert_eq!(after.revision, expected.len() as u64, "{status}");
        assert_eq!(after.template, before.template, "{status}");
    }
    let last = events(store, fence.account, 0, 100).await.pop().unwrap();
    assert_eq!((last.actor, template_subject(&last)), (Actor::Service, (1, "a", Status::Paused)));
}

#[on_both_databases]
async fn another_content_at_the_provider_is_drift_until_it_is_equal(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = own(store, fence.account, "a").await;
    let before = stored(store, fence.account, template).await;
    let foreign = remote("1", "a", "APPROVED", "Edited by hand");
    for at in [1, 2] {
        read(store, fence, &foreign, at).await;
        let row = mirror(store, fence.account, "1").await;
        assert_eq!((row.drifted, row.version, row.template), (true, None, Some(template)));
    }
    let drifted = stored(store, fence.account, template).await;
    assert_eq!(drifted.template, before.template, "the content stays");
    assert_eq!(drifted.state.status(), Status::Pending, "the provider never had this content");
    assert_eq!(drifted.state.live_version(), None);
    assert_eq!(kinds(store, fence.account).await, [EventType::Created, EventType::Drifted]);
    read(store, fence, &shown("1", &before, "APPROVED"), 3).await;
    let row = mirror(store, fence.account, "1").await;
    assert_eq!((row.drifted, row.version), (false, Some(1)));
    assert_eq!(stored(store, fence.account, template).await.state.live_version(), Some(1));
}

#[on_both_databases]
async fn a_version_that_waits_for_its_review_is_not_drift(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let template = own(store, account, "a").await;
    let remote = shown("1", &stored(store, account, template).await, "APPROVED");
    read(store, fence, &remote, 1).await;
    changed(store.edit_template(change(account, template), body_edit(2)).await.unwrap());
    sweep(store, fence, &[header(&remote)], 2_000).await;
    let row = mirror(store, account, "1").await;
    assert_eq!((row.drifted, row.version), (false, Some(1)));
    let pending = stored(store, account, template).await;
    assert_eq!((pending.state.status(), pending.state.live_version()), (Status::Pending, Some(1)));
    // A review in the account approves a content that the provider does not have.
    let review = TemplateChange { at: noon(3_000), ..change(account, template) };
    changed(store.review_template(review, Trigger::Approve, None).await.unwrap());
    sweep(store, fence, &[header(&remote)], 4_000).await;
    assert!(mirror(store, account, "1").await.drifted);
    let after = stored(store, account, template).await;
    assert_eq!((after.state.status(), after.state.live_version()), (Status::Pending, Some(1)));
    assert_eq!(kinds(store, account).await.last(), Some(&EventType::Drifted));
    sweep(store, fence, &[header(&remote)], 5_000).await;
    assert_eq!(stored(store, account, template).await, after, "told once");
}

#[on_both_databases]
async fn category_and_quality_follow_the_provider(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = own(store, fence.account, "a").await;
    let before = stored(store, fence.account, template).await;
    let mut remote = shown("1", &before, "APPROVED");
    read(store, fence, &remote, 1).await;
    remote.correct_category = Some("MARKETING".to_owned());
    remote.quality = Some(Quality::Green);
    sweep(store, fence, &[header(&remote)], 2).await;
    "MARKETING".clone_into(&mut remote.category);
    remote.correct_category = None;
    remote.quality = Some(Quality::Red);
    sweep(store, fence, &[header(&remote)], 3).await;
    let after = stored(store, fence.account, template).await;
    assert_eq!(after.template.category(), Category::Marketing);
    assert_eq!(after.previous_category, Some(Category::Utility));
    assert_eq!(after.announced_category, Some(Category::Marketing));
    assert_eq!((after.quality, after.state.live_version()), (Quality::Red, Some(1)));
    let events = events(store, fence.account, 1, 100).await;
    let told: Vec<_> = events.iter().map(|it| (it.kind, it.reason.as_deref())).collect();
    assert_eq!(
        told,
        [
            (EventType::CategoryAnnounced, Some("MARKETING")),
            (EventType::QualityChanged, Some("UNKNOWN to GREEN")),
            (EventType::CategoryChanged, None),
            (EventType::QualityChanged, Some("GREEN to RED")),
        ]
    );
    "FREE_SERVICE".clone_into(&mut remote.category);
    sweep(store, fence, &[header(&remote)], 4).await;
    assert_eq!(stored(store, fence.account, template).await, after, "an unknown category");
    assert_eq!(mirror(store, fence.account, "1").await.category, "FREE_SERVICE");
}

#[on_both_databases]
async fn a_read_settles_only_the_reasons_that_were_known_before(store: &Shared) {
    let fence = connected(store, "a").await;
    let template = remote("1", "a", "APPROVED", "Hi");
    let page = sweep(store, fence, &[header(&template)], 1).await;
    let asked: Option<Timestamp> = page.to_read[0].dirty_at;
    let hook = br#"{"object":"whatsapp_business_account","entry":[{"id":"900","changes":[
        {"field":"message_template_components_update","value":{"message_template_id":1}}]}]}"#;
    let hints = galley_domain::upstream::read_hook(hook, "900").unwrap();
    store.record_hints(fence.account, hints, noon(1)).await.unwrap();
    done(store.record_read(fence, read_record(template.clone(), asked, 2), noon(2)).await.unwrap());
    let [again] = &store.templates_to_read(fence.account, 10).await.unwrap()[..] else {
        panic!("the hint came while the template was read");
    };
    assert!(again.dirty_at > asked);
    done(
        store.record_read(fence, read_record(template, again.dirty_at, 3), noon(3)).await.unwrap(),
    );
    assert_eq!(store.templates_to_read(fence.account, 10).await.unwrap(), []);
}

#[on_both_databases]
async fn a_template_that_was_created_again_replaces_the_old_one(store: &Shared) {
    let fence = connected(store, "a").await;
    sweep(store, fence, &[remote("1", "a", "APPROVED", "Hi")], 1).await;
    let template = local(store, fence, "1").await.id;
    let again = [remote("1", "a", "DELETED", "Hi"), remote("2", "a", "PENDING", "Hi")];
    sweep(store, fence, &again, 2).await;
    sweep(store, fence, &again, 3).await;
    assert_eq!(mirror(store, fence.account, "1").await.template, Some(template), "a former id");
    assert_eq!(mirror(store, fence.account, "2").await.template, Some(template));
    let after = stored(store, fence.account, template).await;
    assert_eq!(after.state.status(), Status::Pending);
    let own = store.mirror_of(fence.account, vec![template]).await.unwrap();
    assert_eq!(own.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["2", "1"]);
    let missing =
        ListQuery { upstream: Some(UpstreamFilter::Missing), ..ListQuery::new(fence.account, 10) };
    assert!(store.list(missing).await.unwrap().templates.is_empty(), "the provider has it");
    // The account deletes it, and the provider still has it: the next sweep brings it back.
    let delete =
        TemplateChange { review: Review::Auto, at: noon(4), ..change(fence.account, template) };
    changed(store.delete_template(delete).await.unwrap());
    let page = sweep(store, fence, &[header(&again[1])], 5).await;
    assert_eq!(page.to_read.len(), 1, "its document is needed");
    read(store, fence, &again[1], 6).await;
    let imported = local(store, fence, "2").await.id;
    assert_ne!(imported, template);
    // The former id belonged to the template that was deleted, and to no other one.
    sweep(store, fence, &again, 7).await;
    assert_eq!(mirror(store, fence.account, "1").await.template, Some(template));
    assert_eq!(mirror(store, fence.account, "2").await.template, Some(imported));
}

#[on_both_databases]
async fn a_former_template_that_is_gone_does_not_end_the_present_one(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    sweep(store, fence, &[remote("9", "a", "APPROVED", "Else")], 1).await;
    done(store.finish_sweep(fence, noon(2)).await.unwrap());
    let template = local(store, fence, "9").await.id;
    for at in [10, 20] {
        sweep(store, fence, &[remote("10", "a", "APPROVED", "Else")], at).await;
        done(store.finish_sweep(fence, noon(at + 1)).await.unwrap());
        let rows = store.mirror_of(account, vec![template]).await.unwrap();
        let ids: Vec<_> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["10", "9"], "the one that was seen last comes first");
    }
    let is_gone = done(store.record_absent(fence, id("9"), None, noon(30)).await.unwrap());
    assert!(is_gone);
    assert!(mirror(store, account, "9").await.gone_at.is_some());
    let after = stored(store, account, template).await;
    assert_eq!((after.state.live_version(), after.state.hold), (Some(1), None));
    assert!(!kinds(store, account).await.contains(&EventType::Gone));
    // The present one is gone, too.
    for at in [40, 50] {
        sweep(store, fence, &[remote("11", "b", "APPROVED", "Hi")], at).await;
        done(store.finish_sweep(fence, noon(at + 1)).await.unwrap());
    }
    let is_gone = done(store.record_absent(fence, id("10"), None, noon(60)).await.unwrap());
    assert!(is_gone);
    assert_eq!(stored(store, account, template).await.state.hold, Some(Hold::Disabled));
    for former in ["9", "10"] {
        assert_eq!(mirror(store, account, former).await.template, Some(template));
    }
}

#[on_both_databases]
async fn texts_that_no_rulebook_knows_are_stored_by_both_databases(store: &Shared) {
    let fence = connected(store, "a").await;
    let document = r#"{"id":123456789012345678901,"name":"n","language":"x"}"#;
    assert!(RemoteTemplate::parse(document).is_err(), "an id must be readable");
    let document = r#"{"id":9007199254740993,"name":"a\u0000b","language":"zz","status":"APPROVED\u0000",
        "category":"MARKETING","rejected_reason":"\u0000",
        "components":[{"type":"BODY","text":"\u0000\ud83d\ude00"}]}"#;
    let template = RemoteTemplate::parse(document).unwrap();
    done(store.begin_sweep(fence, true, noon(1)).await.unwrap());
    let page = store.record_page(fence, last_page(&[template], 1), noon(1)).await.unwrap();
    assert_eq!(done(page).imported, 1);
    let row = mirror(store, fence.account, "9007199254740993").await;
    assert_eq!(&*row.name, "a b");
    assert_eq!(local(store, fence, "9007199254740993").await.template.name(), "a b");
}
