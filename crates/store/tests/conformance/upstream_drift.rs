//! Cases about edits of templates whose content was changed at the provider.

use galley_domain::{
    template::Review,
    upstream::{OperationKind, OperationState, operation::changed_outside},
};
use galley_store::{Fenced, UpstreamAction, UpstreamActionOutcome};

use super::{
    emulator::HOUR,
    fixture::{Shared, done as changed, noon},
    sqlite_only::body_edit,
    upstream::{connected, done, kinds, mirror, read_record, remote, sweep},
    upstream_submission::{changing, queued},
};

use OperationKind as Kind;
use OperationState as State;

pub(crate) async fn an_edit_of_drifted_content_ends_in_a_conflict_without_a_call(store: &Shared) {
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
    let next = store.lease_connection(account, noon(1_000 * HOUR), noon(1_001 * HOUR)).await;
    assert!(next.unwrap().is_some());
    assert_eq!(conflict(2_002).await.unwrap(), Fenced::LeaseLost);
}

pub(crate) async fn a_push_names_the_content_that_it_replaces(store: &Shared) {
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
