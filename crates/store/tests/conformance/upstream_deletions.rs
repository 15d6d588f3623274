//! Cases about what deletions of templates queue at a provider.

use galley_domain::{
    id::TemplateId,
    template::Review,
    upstream::{CallDone, CallFailure, OperationKind as Kind, OperationState as State},
};
use galley_store::DeleteOutcome;
use galley_test_macros::on_both_databases;

use super::{
    fixture::{Shared, create, done as changed, initiator, noon},
    upstream::{connected, done, mirror, read_record, remote, sweep},
    upstream_submission::{changing, created_as, make, queued, submitted},
};

#[on_both_databases]
async fn a_delete_is_queued_only_if_the_provider_may_have_the_template(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let delete = async |template| {
        let change = changing(account, template, Review::Provider);
        changed(store.delete_template(change).await.unwrap());
        let operation = store.newest_operation(account, template).await.unwrap();
        operation.map(|it| (it.operation.kind, it.operation.state))
    };
    let template = create(store, submitted(account, "a", Review::Provider)).await;
    assert_eq!(delete(template).await, Some((Kind::Create, State::Superseded)), "never sent");
    let own = create(store, submitted(account, "b", Review::Auto)).await;
    assert_eq!(delete(own).await, None, "it was never submitted");
    sweep(store, fence, &[remote("5", "c", "APPROVED", "Hi")], 1).await;
    let mirrored = mirror(store, account, "5").await.template.unwrap();
    assert_eq!(delete(mirrored).await, Some((Kind::Delete, State::Queued)));
    make(store, fence, Ok(CallDone::Deleted), 2).await;
    let template = create(store, submitted(account, "d", Review::Provider)).await;
    make(store, fence, Err(CallFailure::Unknown("timeout".to_owned())), 3).await;
    assert_eq!(delete(template).await, Some((Kind::Delete, State::Queued)));
    let open = store.open_operations(account, 10).await.unwrap();
    assert_eq!(open[0].operation.state, State::Unknown, "the outcome of the create comes first");
}

#[on_both_databases]
async fn a_template_whose_create_was_lost_is_found_and_deleted(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let deleted = async |name| {
        let template = create(store, submitted(account, name, Review::Provider)).await;
        let id = store.newest_operation(account, template).await.unwrap().unwrap().id;
        done(store.begin_operation(fence, id, noon(1)).await.unwrap()).unwrap();
        let change = changing(account, template, Review::Provider);
        changed(store.delete_template(change).await.unwrap());
        (template, id)
    };
    // The response of the create arrives after the delete.
    let (late, id) = deleted("a").await;
    done(store.record_call(fence, id, Ok(created_as("77")), noon(2)).await.unwrap());
    assert_eq!(mirror(store, account, "77").await.template, Some(late));
    // The create is found by a probe.
    let (lost, id) = deleted("b").await;
    let unknown = Err(CallFailure::Unknown("timeout".to_owned()));
    done(store.record_call(fence, id, unknown, noon(2)).await.unwrap());
    let found = remote("78", "b", "PENDING", "Hi");
    done(store.record_read(fence, read_record(found, None, 3), noon(3)).await.unwrap());
    assert_eq!(mirror(store, account, "78").await.template, Some(lost), "it is not imported");
    assert!(store.translations(account, "b").await.unwrap().is_empty());
}

#[on_both_databases]
async fn a_name_is_created_again_after_its_delete(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    sweep(store, fence, &[remote("5", "a", "APPROVED", "Hi")], 1).await;
    let former = mirror(store, account, "5").await.template.unwrap();
    let change = changing(account, former, Review::Provider);
    changed(store.delete_template(change).await.unwrap());
    create(store, submitted(account, "a", Review::Provider)).await;
    let other = create(store, submitted(account, "b", Review::Provider)).await;
    sweep(store, fence, &[remote("5", "a", "APPROVED", "Hi")], 1).await;
    assert_eq!(mirror(store, account, "5").await.template, Some(former), "the delete finds it");
    let open = store.open_operations(account, 10).await.unwrap();
    let open: Vec<_> = open.iter().map(|it| (it.template, it.operation.kind)).collect();
    assert_eq!(open, [(former, Kind::Delete), (other, Kind::Create)]);
    make(store, fence, Ok(CallDone::Deleted), 2).await;
    assert_eq!(store.open_operations(account, 10).await.unwrap().len(), 2);
}

#[on_both_databases]
async fn several_deletes_are_queued_with_the_deletion(store: &Shared) {
    let fence = connected(store, "a").await;
    let account = fence.account;
    let mut german = remote("6", "a", "APPROVED", "Hallo");
    "de".clone_into(&mut german.language);
    let names = [remote("5", "a", "APPROVED", "Hi"), german, remote("7", "b", "APPROVED", "Hi")];
    sweep(store, fence, &names, 1).await;
    let by = |at| initiator(account, Review::Provider, noon(at));
    let deleted = store.delete_translations(by(2), "a").await.unwrap();
    assert!(matches!(deleted, DeleteOutcome::Done(ids) if ids.len() == 2));
    let delete = (Kind::Delete, 1, State::Queued);
    assert_eq!(queued(store, account).await, [delete, delete]);
    let other = mirror(store, account, "7").await.template.unwrap();
    let missing = TemplateId::new(1).unwrap();
    for ids in [vec![other, missing], vec![other]] {
        store.delete_templates(by(3), ids).await.unwrap();
    }
    assert_eq!(queued(store, account).await, [delete; 3]);
}
