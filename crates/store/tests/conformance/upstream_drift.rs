//! Cases about templates whose content was changed at the provider: their edits, and the approvals that
//! an import ends.

use std::collections::HashSet;

use galley_domain::{
    document::Document,
    id::{AccountId, TemplateId},
    rulebook::{Category, WHATSAPP},
    template::{Review, Template},
    upstream::{
        OperationKind, OperationState, RemoteStatus, RemoteTemplate, operation::changed_outside,
    },
};
use galley_store::{
    EndReason, EndedApproval, Fence, Fenced, ImportPreview, MirrorFilter, NewTemplate,
    StoredTemplate, UpstreamAction, UpstreamActionOutcome,
};
use galley_test_macros::on_both_databases;

use super::{
    emulator::{HOUR, stored},
    fixture::{Shared, create, done as changed, noon, times},
    sqlite_only::body_edit,
    upstream::{
        connect, connected, done, header, kinds, lease, mirror, read_record, remote, sweep,
        whatsapp,
    },
    upstream_submission::{changing, queued, shown, submitted},
};

use OperationKind as Kind;
use OperationState as State;

#[on_both_databases]
async fn an_edit_of_drifted_content_ends_in_a_conflict_without_a_call(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    sweep(store, fence, &[remote("5", "a", "APPROVED", "Hi")], 1).await;
    let template = mirror(store, account, "5").await.template.unwrap();
    let change = changing(account, template, Review::Provider);
    changed(store.edit_template(change, body_edit(1)).await.unwrap());
    let edit = store.newest_operation(account, template).await.unwrap().unwrap();
    assert_eq!(edit.replaces, None);
    let events = kinds(store, account).await;
    let conflict =
        async |at| store.record_conflict(fence, edit.id, changed_outside(), noon(at)).await;
    let ended = done(conflict(2_000).await.unwrap()).unwrap();
    assert_eq!((ended.operation.state, ended.operation.attempts), (State::Conflict, 0));
    assert_eq!((ended.sent_at, ended.updated_at), (None, noon(2_000)));
    let stored = store.newest_operation(account, template).await.unwrap();
    assert_eq!(stored, Some(ended), "with its error");
    assert_eq!(done(conflict(2_001).await.unwrap()), None, "it has ended");
    assert_eq!(kinds(store, account).await, events);
    assert_eq!(store.open_operations(account, 10).await.unwrap(), []);
    let retried =
        store.act_upstream(changing(account, template, Review::Provider), UpstreamAction::Retry);
    assert!(matches!(retried.await.unwrap(), UpstreamActionOutcome::Queued(_)));
    let next = store.lease_connection(account, times(1_000 * HOUR, 1_001 * HOUR)).await;
    assert!(next.unwrap().is_some());
    assert_eq!(conflict(2_002).await.unwrap(), Fenced::LeaseLost);
}

#[on_both_databases]
async fn a_push_names_the_content_that_it_replaces(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    sweep(store, fence, &[remote("5", "a", "APPROVED", "Hi")], 1).await;
    let template = mirror(store, account, "5").await.template.unwrap();
    let other = remote("5", "a", "APPROVED", "Else");
    done(store.record_read(fence, read_record(other, None, 2), noon(2)).await.unwrap());
    let change = changing(account, template, Review::Provider);
    changed(store.edit_template(change.clone(), body_edit(1)).await.unwrap());
    let edit = store.newest_operation(account, template).await.unwrap().unwrap();
    let row = mirror(store, account, "5").await;
    assert!(row.drifted && !edit.may_replace(&row));
    done(store.record_conflict(fence, edit.id, changed_outside(), noon(3)).await.unwrap());
    let pushed = store.act_upstream(change, UpstreamAction::Push).await.unwrap();
    let UpstreamActionOutcome::Queued(pushed) = pushed else { panic!("{pushed:?}") };
    assert_eq!(pushed.replaces, row.content_key);
    assert!(pushed.may_replace(&row));
    let expected = [(Kind::Edit, 2, State::Superseded), (Kind::Edit, 2, State::Queued)];
    assert_eq!(queued(store, account).await, expected);
    let begun = done(store.begin_operation(fence, pushed.id, noon(4)).await.unwrap()).unwrap();
    assert_eq!(begun.replaces, row.content_key, "it stays while its state changes");
    let again = remote("5", "a", "APPROVED", "Else again");
    done(store.record_read(fence, read_record(again, None, 5), noon(5)).await.unwrap());
    let row = mirror(store, account, "5").await;
    assert!(row.drifted && !begun.may_replace(&row), "it was changed once more");
}

/// Every template of the account.
async fn own(store: &Shared, account: AccountId, ids: &[TemplateId]) -> Vec<StoredTemplate> {
    let mut own = Vec::new();
    for id in ids {
        own.push(stored(store, account, *id).await);
    }
    own
}

/// What a preview says of an import of these templates.
async fn previewed(
    store: &Shared,
    account: AccountId,
    own: Vec<StoredTemplate>,
    shown: &[RemoteTemplate],
    at: i64,
) -> Vec<EndedApproval> {
    let mirror = store.mirrored(account, MirrorFilter::All, None, 100).await.unwrap();
    let mut preview = ImportPreview::new(account, mirror, own);
    for remote in shown {
        let mut former = Vec::new();
        if let Some(local) = preview.wants_former_versions(remote, noon(at)) {
            for number in (1..local.state.version).rev() {
                former.extend(store.version(account, local.id, number).await.unwrap());
            }
        }
        preview.observe(remote, former, noon(at));
    }
    let open = store.open_operations(account, 100).await.unwrap();
    let sent: HashSet<TemplateId> = open.iter().map(|it| it.template).collect();
    preview.ending(&sent)
}

/// What the import of these templates ends.
async fn imported(
    store: &Shared,
    fence: Fence,
    shown: &[RemoteTemplate],
    at: i64,
) -> Vec<EndedApproval> {
    let mut ended = sweep(store, fence, shown, at).await.ended;
    done(store.finish_sweep(fence, noon(at + 1)).await.unwrap());
    ended.extend(done(store.withdraw_approvals(fence, noon(at + 2)).await.unwrap()));
    ended.sort_by_key(|it| it.template);
    ended
}

/// A template whose category the provider must not change.
fn strict(account: AccountId, name: &str) -> NewTemplate {
    let document = format!(
        r#"{{"name":"{name}","language":"en_US","category":"UTILITY","allow_category_change":false,
        "components":[{{"type":"BODY","text":"Hi"}}]}}"#
    );
    let document = Document::parse(document.as_bytes()).unwrap();
    let template = Template::read(&document, &WHATSAPP).unwrap();
    NewTemplate { template, ..submitted(account, name, Review::Auto) }
}

/// The provider's view with another text in one place.
fn with(remote: &RemoteTemplate, from: &str, to: &str) -> RemoteTemplate {
    let document = remote.document.as_deref().unwrap();
    assert!(document.contains(from), "{document}");
    RemoteTemplate::parse(&document.replacen(from, to, 1)).unwrap()
}

#[on_both_databases]
async fn an_import_ends_the_approvals_that_its_preview_lists(store: &Shared) {
    let account = whatsapp(store, "a").await;
    let names = ["same", "other", "rejected", "paused", "former", "absent", "sent", "pending"];
    let mut ids = Vec::new();
    for name in names {
        ids.push(create(store, submitted(account, name, Review::Auto)).await);
    }
    ids.push(create(store, strict(account, "strict")).await);
    let [same, other, rejected, paused, former, absent, sent, pending, strict] = ids[..] else {
        panic!("{ids:?}")
    };
    let before = stored(store, account, former).await;
    let change = changing(account, former, Review::Auto);
    changed(store.edit_template(change, body_edit(7)).await.unwrap());
    connect(store, account).await;
    let fence = lease(store, account).await;
    let submit = changing(account, sent, Review::Provider);
    store.act_upstream(submit, UpstreamAction::Submit).await.unwrap();
    let read = async |id| stored(store, account, id).await;
    let list = [
        shown("1", &read(same).await, "APPROVED"),
        with(&shown("2", &read(other).await, "APPROVED"), r#""text":""#, r#""text":"Else "#),
        shown("3", &read(rejected).await, "REJECTED"),
        shown("4", &read(paused).await, "PAUSED"),
        shown("5", &before, "APPROVED"),
        shown("6", &read(pending).await, "PENDING"),
        with(&shown("7", &read(strict).await, "APPROVED"), "UTILITY", "MARKETING"),
    ];
    let before = own(store, account, &ids).await;
    assert!(before.iter().all(|it| it.state.live_version().is_some()), "{before:?}");
    let predicted = previewed(store, account, before.clone(), &list, 2_000).await;
    assert_eq!(own(store, account, &ids).await, before, "a preview records nothing");
    let ended = imported(store, fence, &list, 2_000).await;
    assert_eq!(ended, predicted);
    let reasons: Vec<_> = ended.iter().map(|it| (it.template, it.version, &it.reason)).collect();
    let status = |word| EndReason::Status(RemoteStatus::parse(word));
    let mut expected = [
        (other, 1, &EndReason::OtherContent),
        (rejected, 1, &status("REJECTED")),
        (paused, 1, &status("PAUSED")),
        (former, 2, &EndReason::FormerVersion(1)),
        (absent, 1, &EndReason::NotProvided),
        (pending, 1, &status("PENDING")),
        (strict, 1, &EndReason::Category(Category::Marketing)),
    ];
    expected.sort_by_key(|it| it.0);
    assert_eq!(reasons, expected);
    let after = own(store, account, &ids).await;
    for (before, after) in before.iter().zip(&after) {
        let is_ended = ended.iter().any(|it| it.template == before.id);
        let is_lost = before.state.live_version() != after.state.live_version();
        assert_eq!(is_lost, is_ended, "{before:?} {after:?}");
    }

    // The next import changes nothing, and one after another change at the provider is foretold.
    assert_eq!(previewed(store, account, after.clone(), &list, 3_000).await, []);
    assert_eq!(imported(store, fence, &list, 3_000).await, []);
    let changed = [&[with(&list[0], "APPROVED", "DISABLED")], &list[1..]].concat();
    let predicted = previewed(store, account, after, &changed, 4_000).await;
    assert_eq!(imported(store, fence, &changed, 4_000).await, predicted);
    let expected = [(same, &status("DISABLED"))];
    assert_eq!(predicted.iter().map(|it| (it.template, &it.reason)).collect::<Vec<_>>(), expected);

    // A list without contents tells nothing about them.
    let other = whatsapp(store, "b").await;
    let id = create(store, submitted(other, "order", Review::Auto)).await;
    connect(store, other).await;
    let local = own(store, other, &[id]).await;
    let header = header(&shown("1", &local[0], "APPROVED"));
    let predicted = previewed(store, other, local, &[header], 1).await;
    let reasons: Vec<_> = predicted.iter().map(|it| (it.template, &it.reason)).collect();
    assert_eq!(reasons, [(id, &EndReason::ContentUnknown)]);
}

#[on_both_databases]
async fn a_preview_lists_what_the_next_read_finds_gone(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let list = ["1", "2", "3"].map(|id| remote(id, &format!("order_{id}"), "APPROVED", "Hi"));
    for (seen, at) in [(&list[..], 1_000), (&list[..2], 2_000)] {
        sweep(store, fence, seen, at).await;
        done(store.finish_sweep(fence, noon(at + 1)).await.unwrap());
    }
    let missing = mirror(store, account, "3").await;
    assert_eq!(missing.missing, 1);
    let mut ids = Vec::new();
    for id in ["1", "2", "3"] {
        ids.extend(mirror(store, account, id).await.template);
    }
    let local = own(store, account, &ids).await;
    let predicted = previewed(store, account, local.clone(), &list[..2], 3_000).await;
    let reasons: Vec<_> = predicted.iter().map(|it| (it.template, &it.reason)).collect();
    assert_eq!(reasons, [(ids[2], &EndReason::NotProvided)]);
    assert_eq!(previewed(store, account, local, &list, 3_000).await, []);
}
