//! Media samples of imported templates, which a provider shows as links that expire.

use std::{net::TcpListener, sync::Arc, time::Duration};

use async_trait::async_trait;
use axum::{
    body::{Body, to_bytes},
    http::{Method, Request, StatusCode, header},
};
use galley_domain::{
    emulator::SAMPLE_LINK_LIFETIME,
    template::Review,
    upstream::{OperationState, RemoteId},
};
use galley_server::{
    Clock as _,
    delivery::{HttpWebhookClient, trusted_roots},
    upstream::HttpTransport,
    workers::sample_statistics,
};
use galley_store::{StoreError, UpstreamAction, UpstreamActionOutcome, testing::Fault};
use galley_upstream::{
    Method::Post, Request as UpstreamRequest, Response, Transport, TransportError,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    connected::{Connected, MEDIA_BYTES},
    provider::Provider,
};
use crate::{
    graph::uploads::PNG,
    harness::setup,
    sandbox::emulator::{Emulator, TOKEN, order},
};

/// The process ends at this point.
const FAILS: Fault = Fault::Fails(|| StoreError::Busy);

const OTHER_PNG: &[u8] = b"\x89PNG\r\n\x1a\n and another picture";

/// Uploads a picture to the provider and returns its handle there.
async fn uploaded(emulator: &Emulator, bytes: &[u8]) -> Value {
    let path =
        format!("/v23.0/1/uploads?file_name=a.png&file_length={}&file_type=image/png", bytes.len());
    let begun = emulator.call(Method::POST, &path, &Value::Null).await.expect_success();
    let request = Request::builder().method(Method::POST).header("file_offset", "0");
    let request = request.uri(format!("/v23.0/{}", begun["id"].as_str().unwrap()));
    let request = request.header(header::AUTHORIZATION, format!("OAuth {TOKEN}"));
    let sent = emulator.send(request.body(Body::from(bytes.to_vec())).unwrap()).await;
    sent.expect_success()["h"].clone()
}

/// A template with this picture.
fn with_picture(name: &str, handle: &Value) -> Value {
    let mut document = order(name);
    let header =
        json!({"type": "HEADER", "format": "IMAGE", "example": {"header_handle": [handle]}});
    document["components"].as_array_mut().unwrap().insert(0, header);
    document
}

/// A connected account whose provider has one template with a picture, which is not imported yet.
async fn with_template() -> (Connected, RemoteId) {
    let connected = Connected::start_with(Review::Auto, Some("634974688087057")).await;
    let emulator = connected.emulator();
    let document = with_picture("order_shipped", &uploaded(emulator, PNG).await);
    let created = emulator.create(&document).await.expect_success();
    let id = RemoteId::parse(created["id"].as_str().unwrap()).unwrap();
    (connected, id)
}

/// What is behind the link to the sample that the provider shows.
async fn provided_sample(connected: &Connected, id: &RemoteId) -> (StatusCode, Vec<u8>) {
    let shown = connected.emulator().get(&format!("/v23.0/{id}")).await.expect_success();
    let link = &shown["components"][0]["example"]["header_handle"][0];
    behind(connected, link.as_str().unwrap()).await
}

async fn behind(connected: &Connected, link: &str) -> (StatusCode, Vec<u8>) {
    let path = link.strip_prefix("https://galley.test").unwrap();
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = connected.emulator().handle(request).await;
    let status = response.status();
    (status, to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec())
}

fn fetched(connected: &Connected) -> Vec<String> {
    std::mem::take(&mut *connected.provider.fetched.lock().unwrap())
}

/// The handles in the content of the only template.
async fn handle(connected: &Connected) -> String {
    let (_, stored) = connected.only_template().await;
    let content: Value = serde_json::from_str(stored.template.content()).unwrap();
    content["components"][0]["example"]["header_handle"][0].as_str().unwrap().to_owned()
}

/// The bytes of the file of a handle.
async fn kept(connected: &Connected, handle: &str) -> Vec<u8> {
    let name = handle.strip_prefix("4::galley.").unwrap_or_else(|| panic!("{handle}"));
    connected.service.store.media_chunk(name, 0).await.unwrap()
}

#[tokio::test]
async fn the_sample_of_an_imported_template_is_kept_and_an_edit_uploads_it() {
    let (connected, id) = with_template().await;
    connected.sweep(true).await.unwrap();
    let links = fetched(&connected);
    assert_eq!(links.len(), 1);
    let own = handle(&connected).await;
    assert_eq!(kept(&connected, &own).await, PNG);
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.version, mirrored.drifted), (Some(1), false));
    let document = connected.service.store.mirrored_document(connected.account, id.clone());
    let document = document.await.unwrap().unwrap();
    assert!(document.contains(&links[0]), "the document stays as it was: {document}");
    // The same content is not fetched again.
    connected.sweep(true).await.unwrap();
    assert_eq!(fetched(&connected), Vec::<String>::new());
    assert_eq!(behind(&connected, &links[0]).await.0, StatusCode::OK);
    let lifetime = SAMPLE_LINK_LIFETIME.as_secs() + 1;
    connected.emulator().advance(&format!("{lifetime}s")).await;
    assert_eq!(behind(&connected, &links[0]).await.0, StatusCode::NOT_FOUND);
    let mut edited = with_picture("order_shipped", &json!(own));
    edited["components"][1]["text"] = json!("Hello {{1}}, your parcel left the warehouse today.");
    connected.edit(stored.id, &edited).await;
    connected.step().await;
    assert_eq!(connected.states().await, [OperationState::Done]);
    assert_eq!(provided_sample(&connected, &id).await, (StatusCode::OK, PNG.to_vec()));
    connected.step().await;
    assert!(!connected.only_template().await.0.drifted);
    assert_eq!(fetched(&connected), Vec::<String>::new(), "the account has the sample");
}

#[tokio::test]
async fn the_sample_of_a_drifted_template_is_there_when_a_person_accepts_it() {
    let (connected, id) = with_template().await;
    connected.sweep(true).await.unwrap();
    let before = handle(&connected).await;
    let other = uploaded(connected.emulator(), OTHER_PNG).await;
    let mut edited = with_picture("order_shipped", &other);
    edited["components"][1]["text"] = json!("Hello {{1}}, your parcel left the warehouse today.");
    let edited = json!({"components": edited["components"]});
    let path = format!("/v23.0/{id}");
    connected.advance(Duration::from_secs(2));
    connected.emulator().call(Method::POST, &path, &edited).await.expect_success();
    connected.sweep(true).await.unwrap();
    let (mirrored, stored) = connected.only_template().await;
    assert!(mirrored.drifted);
    assert_eq!(handle(&connected).await, before, "the content of the account stays");
    assert_eq!(fetched(&connected).len(), 2, "one for each content");
    connected.emulator().advance("5000000s").await;
    let change = connected.change(stored.id).await;
    let accepted = connected.service.store.act_upstream(change, UpstreamAction::Accept).await;
    assert!(matches!(accepted.unwrap(), UpstreamActionOutcome::Changed(_)));
    let after = handle(&connected).await;
    assert_eq!(kept(&connected, &after).await, OTHER_PNG);
}

/// A sweep during which a file is fetched for a minute and a half; returns when it began.
async fn sweep_slowly(connected: &Connected, full: bool) -> Timestamp {
    let began_at = connected.service.clock.now();
    let faults = &connected.store_faults;
    faults.set("begin_upload", Fault::Held);
    let session = connected.session().await;
    let fetch = async {
        faults.held().await;
        connected.service.clock.advance(Duration::from_secs(90));
        faults.release();
    };
    let mut ignored = |_| {};
    let (swept, ()) = tokio::join!(session.sweep(full, false, &mut ignored), fetch);
    swept.unwrap();
    session.end().await.unwrap();
    began_at
}

#[tokio::test]
async fn what_was_read_is_as_old_as_the_read_and_changes_the_account_when_it_is_recorded() {
    let (connected, id) = with_template().await;
    let read_at = sweep_slowly(&connected, true).await;
    let now = connected.service.clock.now();
    let (mirrored, stored) = connected.only_template().await;
    assert_eq!((mirrored.observed_at, stored.created_at), (read_at, now));
    let other = uploaded(connected.emulator(), OTHER_PNG).await;
    let mut edited = with_picture("order_shipped", &other);
    edited["components"][1]["text"] = json!("Hello {{1}}, your parcel left the warehouse today.");
    let edited = json!({"components": edited["components"]});
    connected.advance(Duration::from_mins(15));
    let path = format!("/v23.0/{id}");
    connected.emulator().call(Method::POST, &path, &edited).await.expect_success();
    connected.advance(Duration::from_secs(2));
    let read_at = sweep_slowly(&connected, false).await;
    let now = connected.service.clock.now();
    let (mirrored, stored) = connected.only_template().await;
    assert!(mirrored.drifted);
    assert_eq!((mirrored.observed_at, stored.updated_at), (read_at, now));
}

#[tokio::test]
async fn a_sample_that_was_fetched_before_a_crash_is_not_fetched_again() {
    let (connected, _) = with_template().await;
    connected.store_faults.set("record_page", FAILS);
    connected.sweep(true).await.unwrap_err();
    connected.store_faults.clear();
    assert_eq!(fetched(&connected).len(), 1);
    // Nor is it when its link has died meanwhile.
    connected.emulator().advance("5000000s").await;
    connected.sweep(true).await.unwrap();
    assert_eq!(fetched(&connected), Vec::<String>::new());
    assert_eq!(kept(&connected, &handle(&connected).await).await, PNG);
}

#[tokio::test]
async fn a_sample_whose_fetch_was_interrupted_is_fetched_again() {
    let (connected, _) = with_template().await;
    connected.store_faults.set("append_upload", FAILS);
    connected.sweep(true).await.unwrap_err();
    connected.store_faults.clear();
    connected.sweep(true).await.unwrap();
    assert_eq!(fetched(&connected).len(), 2);
    assert_eq!(kept(&connected, &handle(&connected).await).await, PNG);
}

/// Shows this link instead of that of the sample.
fn show_link(connected: &Connected, link: String) {
    connected.rewrite(move |_, body: &mut Value| {
        for template in body["data"].as_array_mut().into_iter().flatten() {
            if let Some(handle) = template.pointer_mut("/components/0/example/header_handle/0") {
                *handle = json!(link);
            }
        }
    });
}

/// A template whose sample cannot be kept is there, and an edit that has the link is refused without a
/// call.
async fn assert_not_kept(connected: &Connected, link: &str) {
    connected.sweep(true).await.unwrap();
    assert_eq!(handle(connected).await, link);
    let (_, stored) = connected.only_template().await;
    let usage = connected.service.store.account(connected.account).await.unwrap().unwrap().usage;
    assert_eq!(usage.media_bytes, 0, "nothing is left behind");
    connected.take_count(Post);
    let mut edited = with_picture("order_shipped", &json!(link));
    edited["components"][1]["text"] = json!("Hello {{1}}, your parcel left the warehouse today.");
    connected.edit(stored.id, &edited).await;
    connected.step().await;
    assert_eq!(connected.states().await, [OperationState::Refused]);
    let error = connected.operations().await.remove(0).operation.error.unwrap();
    assert!(error.message.contains("Upload the sample"), "{error}");
    assert_eq!(connected.take_count(Post), 0);
}

#[tokio::test]
async fn a_template_is_imported_although_its_sample_cannot_be_fetched() {
    let (connected, _) = with_template().await;
    let link = format!("https://galley.test/media/{}?oe=1", "a".repeat(32));
    show_link(&connected, link.clone());
    assert_not_kept(&connected, &link).await;
    assert_eq!(fetched(&connected)[0], link);
}

#[tokio::test]
async fn a_file_that_is_not_of_a_type_for_the_header_is_not_kept() {
    let (connected, _) = with_template().await;
    let link = "https://galley.test/docs?oe=1".to_owned();
    show_link(&connected, link.clone());
    assert_not_kept(&connected, &link).await;
}

#[tokio::test]
async fn a_sample_beyond_the_quota_of_the_account_is_not_kept() {
    let connected = Connected::start_with(Review::Auto, Some("634974688087057")).await;
    let mut large = PNG.to_vec();
    large.resize(usize::try_from(MEDIA_BYTES).unwrap(), 7);
    let handle = uploaded(connected.emulator(), &large).await;
    let document = with_picture("order_shipped", &handle);
    connected.emulator().create(&document).await.expect_success();
    let link = "https://galley.test/media/";
    connected.sweep(true).await.unwrap();
    assert!(self::handle(&connected).await.starts_with(link));
    let account = connected.service.store.account(connected.account).await.unwrap().unwrap();
    assert_eq!(account.usage.media_bytes, 0);
    assert_eq!(fetched(&connected).len(), 1);
}

/// Fetches files over the network, as a service without `upstream_allow_private` does.
struct Guarded {
    provider: Arc<Provider>,
    network: Arc<dyn Transport>,
}

#[async_trait]
impl Transport for Guarded {
    async fn exchange(&self, request: UpstreamRequest) -> Result<Response, TransportError> {
        match request.kind {
            Some(_) => self.provider.exchange(request).await,
            None => self.network.exchange(request).await,
        }
    }
}

#[tokio::test]
async fn no_private_address_is_asked_for_a_sample() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for link in [
        format!("http://127.0.0.1:{port}/a.png"),
        format!("https://127.0.0.1:{port}/a.png"),
        "https://private.example/a.png".to_owned(),
        "file:///etc/hostname".to_owned(),
    ] {
        let (mut connected, _) = with_template().await;
        let client =
            HttpWebhookClient::new(setup::webhooks(false).guard, Duration::ZERO, trusted_roots());
        let network = HttpTransport::factory(Arc::new(client));
        let provider = Arc::clone(&connected.provider);
        connected.context.transports = Arc::new(move |account| {
            Arc::new(Guarded { provider: Arc::clone(&provider), network: network(account) })
        });
        show_link(&connected, link.clone());
        connected.sweep(true).await.unwrap();
        assert_eq!(handle(&connected).await, link);
    }
    let asked = listener.accept().map(|_| ()).unwrap_err();
    assert_eq!(asked.kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn a_walk_that_records_nothing_fetches_nothing() {
    let (connected, _) = with_template().await;
    let session = connected.session().await;
    assert_eq!(session.walk(&mut |_| {}).await.unwrap().templates().len(), 1);
    session.end().await.unwrap();
    assert_eq!(fetched(&connected), Vec::<String>::new());
}

#[tokio::test]
async fn fetched_samples_are_counted_and_use_none_of_the_budget() {
    let (connected, _) = with_template().await;
    let worker = connected.run_worker();
    while connected.mirrored().await.is_empty() {
        tokio::task::yield_now().await;
    }
    drop(worker);
    sample_statistics(&connected.service.app).await;
    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    let metrics = connected.service.send(request).await.text().to_owned();
    for line in [
        "galley_upstream_samples_total{outcome=\"kept\"} 1\n",
        "galley_upstream_samples_total{outcome=\"failed\"} 0\n",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    let connection = connected.service.store.connection(connected.account).await.unwrap().unwrap();
    let used = connection.budget.calls.used(connected.service.clock.now());
    assert_eq!(used, connected.take_calls());
}
