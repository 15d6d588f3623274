//! Cases about endpoints with another payload format than Galley's own.

use galley_domain::{
    rulebook::Category,
    template::{Review, edit::Edit, lifecycle::Trigger},
    webhook::Format,
};
use galley_store::{
    Author, CreateWebhookOutcome, DeliveryLease, EventSubject, NewTemplate, NewWebhook, Replay,
    ReplayOutcome, Webhook,
};
use galley_test_macros::on_both_databases;

use super::{
    deliveries::{deliver, deliver_all, lease, statuses},
    fixture::{Shared, account, change, create, done, new, noon},
    webhooks::{endpoint, register},
};

async fn whatsapp(store: &Shared) -> Webhook {
    let account = account(store, "a").await;
    register(store, NewWebhook { format: Format::Whatsapp, ..endpoint(account) }).await
}

#[on_both_databases]
async fn events_that_a_format_excludes_are_not_delivered(store: &Shared) {
    let webhook = whatsapp(store).await;
    assert_eq!((webhook.format, webhook.subscribed), (Format::Whatsapp, false));
    let account = webhook.account;
    let pending_template =
        |name: &str| NewTemplate { review: Review::Manual, ..new(account, name) };
    let galley = register(store, endpoint(account)).await.id;
    let pending = create(store, pending_template("pending")).await;
    create(store, new(account, "approved")).await;
    for index in 0..600 {
        create(store, pending_template(&format!("t{index}"))).await;
    }
    done(store.review_template(change(account, pending), Trigger::Approve, None).await.unwrap());
    assert_eq!(deliver_all(store, webhook.id, 5_000).await, [2, 603]);
    assert_eq!(statuses(store, account, webhook.id).await.len(), 2);
    let now = store.webhook(account, webhook.id).await.unwrap().unwrap();
    assert_eq!((now.behind, now.format), (0, Format::Whatsapp));
    let nothing = store.lease_delivery(webhook.id, noon(9_000)..noon(9_999)).await.unwrap();
    assert_eq!(nothing, DeliveryLease::NothingDue(None));
    for (seq, queued) in [(1, 0), (2, 1)] {
        let again = store.replay(account, webhook.id, Replay::One(seq), noon(9_000)).await.unwrap();
        assert_eq!(again, ReplayOutcome::Queued(queued), "{seq}");
    }
    assert_eq!(deliver_all(store, webhook.id, 9_000).await, [2]);
    assert_eq!(
        deliver_all(store, galley, 9_000).await.len(),
        603,
        "the Galley format includes all events"
    );
}

#[on_both_databases]
async fn a_leased_edit_includes_the_version_it_created(store: &Shared) {
    let webhook = whatsapp(store).await;
    let account = webhook.account;
    let galley = register(store, endpoint(account)).await;
    let id = create(store, new(account, "one")).await;
    let content = r#"{"components":[{"type":"BODY","text":"Second"}]}"#.to_owned();
    let edit =
        Edit::Replace { content: Some(content.clone()), category: Some(Category::Marketing) };
    done(store.edit_template(change(account, id), edit).await.unwrap());
    done(store.edit_template(change(account, id), Edit::Restore(1)).await.unwrap());
    done(store.delete_template(change(account, id)).await.unwrap());
    let mut sent = Vec::new();
    while let Some(due) = lease(store, webhook.id, 5_000).await {
        let version = due.version.clone();
        let EventSubject::Template { version: number, .. } = due.event.subject else {
            panic!("the event is not about a template")
        };
        assert!(version.as_ref().is_none_or(|version| version.number == number));
        sent.push((due.event.kind.as_str(), version.map(|it| (it.number, it.previous_category))));
        deliver(store, &due, 5_000).await;
    }
    let (utility, marketing) = (Some(Category::Utility), Some(Category::Marketing));
    assert_eq!(
        sent,
        [
            ("template.created", None),
            ("template.edited", Some((2, utility))),
            ("template.category_changed", Some((2, utility))),
            ("template.edited", Some((3, marketing))),
            ("template.category_changed", Some((3, marketing))),
            ("template.deleted", None),
        ]
    );
    while let Some(due) = lease(store, galley.id, 5_000).await {
        assert_eq!(due.version, None, "the Galley format does not include the content");
        deliver(store, &due, 5_000).await;
    }
}

#[on_both_databases]
async fn an_account_has_one_subscribed_endpoint(store: &Shared) {
    let (mine, theirs) = (account(store, "a").await, account(store, "b").await);
    let subscribed =
        |account| NewWebhook { subscribed: true, format: Format::Whatsapp, ..endpoint(account) };
    register(store, endpoint(mine)).await;
    let first = register(store, subscribed(mine)).await;
    assert!(first.subscribed);
    let second = store.create_webhook(subscribed(mine)).await.unwrap();
    assert_eq!(second, CreateWebhookOutcome::Subscribed(first.id));
    register(store, subscribed(theirs)).await;
    assert!(store.delete_webhook(mine, first.id, Author::operator(noon(0))).await.unwrap());
    register(store, subscribed(mine)).await;
}
