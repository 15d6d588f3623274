//! Taking over what the provider has under the name of a template.

use axum::http::Method;
use galley_server::Clock as _;
use galley_store::Author;
use serde_json::json;

use super::connected::Connected;
use crate::sandbox::emulator::order;

#[tokio::test]
async fn an_adopted_template_is_read_at_once_and_both_contents_stay() {
    let connected = Connected::start().await;
    let remote = connected.emulator().create_named("order_shipped").await;
    connected.sweep(true).await.unwrap();
    let (_, before) = connected.only_template().await;
    let mut edit = order("order_shipped");
    edit["components"][0]["text"] = json!("Hello {{1}}, your parcel left the warehouse today.");
    let edit = json!({"components": edit["components"]});
    let path = format!("/v23.0/{remote}");
    connected.emulator().call(Method::POST, &path, &edit).await.expect_success();
    let (store, account) = (&connected.service.store, connected.account);
    let (template, at) = (before.id, connected.service.clock.now());
    let mut own = order("order_shipped");
    own["components"][0]["text"] = json!("Hello {{1}}, your parcel is on its way to you.");
    connected.edit(template, &own).await;
    let before = store.template(account, template).await.unwrap().unwrap();

    let session = connected.session().await;
    let found = session.adopt("order_shipped", "en_US").await.unwrap().unwrap();
    session.end().await.unwrap();
    assert_eq!(found.id.to_string(), remote);
    let by = Author::operator(at);
    assert_eq!(store.abandon_operations(account, template, by).await.unwrap(), 1);
    let (mirrored, after) = connected.only_template().await;
    assert_eq!((mirrored.template, mirrored.drifted), (Some(template), true));
    assert_eq!(after.template.content(), before.template.content());
}

#[tokio::test]
async fn nothing_is_adopted_that_the_provider_does_not_have() {
    let connected = Connected::start().await;
    let session = connected.session().await;
    assert_eq!(session.adopt("order_shipped", "en_US").await.unwrap(), None);
    session.end().await.unwrap();
    assert!(connected.mirrored().await.is_empty());
}
