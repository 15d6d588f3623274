//! Deliveries in Meta's format over a real connection to a receiver that checks the signature.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use galley_domain::{
    document::Document,
    id::{AccountId, TemplateId},
    rulebook::{Category, WHATSAPP},
    template::{Review, Template, edit::Edit, lifecycle::Trigger},
    webhook::{Format, Redacted},
};
use galley_server::workers::DeliveryStepOutcome;
use galley_server::{
    Clock,
    delivery::{
        EndpointError, HttpWebhookClient, ReceivedDelivery, Secret, SignatureCheck,
        VerificationError, WebhookClient, WebhookReceiver, secret_overlap_end,
    },
};
use galley_store::{Actor, Author, ChangeOutcome, CreateOutcome, NewTemplate, RotateOutcome};
use jiff::Timestamp;
use rustls::RootCertStore;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use super::fake_receiver::{Harness, keyring, private_guard, webhook_context};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const TOKEN: &str = "the verify token";
const NOON: i64 = 1_794_744_000;

/// A clock that is always at noon.
struct NoonClock;

impl Clock for NoonClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(NOON).unwrap()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// A harness whose endpoint is a local receiver.
struct MetaHarness {
    harness: Harness,
    deliveries: mpsc::Receiver<ReceivedDelivery>,
}

impl MetaHarness {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hooks?shop=1", listener.local_addr().unwrap());
        let (sender, deliveries) = mpsc::channel(64);
        let receiver = WebhookReceiver {
            secret: Some(Secret::from_app_secret(SECRET).unwrap()),
            verify_token: Some(TOKEN.to_owned()),
            response_status: StatusCode::OK,
            clock: Arc::new(NoonClock),
            deliveries: sender,
        };
        tokio::spawn(receiver.serve(listener));
        let timeout = Duration::from_secs(30);
        let client = HttpWebhookClient::new(private_guard(), timeout, RootCertStore::empty());
        let client: Arc<dyn WebhookClient> = Arc::new(client);
        let check = async |token: &str| {
            webhook_context(Arc::clone(&client))
                .check_endpoint(AccountId::new(1).unwrap(), &url, Some(&Redacted(token.to_owned())))
                .await
        };
        assert!(matches!(
            check("another").await,
            Err(EndpointError::Verification(VerificationError::Status(403)))
        ));
        check(TOKEN).await.unwrap();
        let secret = Secret::from_app_secret(SECRET).unwrap();
        let harness = Harness::start_with(&WHATSAPP, client, Format::Whatsapp, &url, secret).await;
        assert_eq!(harness.now(), NoonClock.now());
        Self { harness, deliveries }
    }

    async fn create_template(&self, name: &str, review: Review) -> TemplateId {
        let account = self.harness.account;
        let template = parse_template(name, &components("Hello"));
        let new = NewTemplate {
            account,
            phone: None,
            unique_key: (WHATSAPP.unique_key)(account, name, "en_US"),
            translation_group: None,
            template,
            review,
            actor: Actor::Operator,
            trace: None,
            idempotency: None,
            at: self.harness.now(),
        };
        match self.harness.store.create_template(new).await.unwrap() {
            CreateOutcome::Created(receipt) => receipt.id,
            other => panic!("{other:?}"),
        }
    }

    async fn edit(&self, id: TemplateId, components: &Value, category: Option<Category>) {
        let review = if category.is_some() { Review::Manual } else { Review::Auto };
        let content = Some(parse_template("hello", components).content().to_owned());
        let edit = Edit::Replace { content, category };
        let change = self.harness.change(id, review);
        let changed = self.harness.store.edit_template(change, edit).await.unwrap();
        assert!(matches!(changed, ChangeOutcome::Done(_)), "{changed:?}");
    }

    async fn review(&self, id: TemplateId, trigger: Trigger, reason: Option<&str>) {
        let change = self.harness.change(id, Review::Manual);
        let reason = reason.map(str::to_owned);
        let changed = self.harness.store.review_template(change, trigger, reason).await.unwrap();
        assert!(matches!(changed, ChangeOutcome::Done(_)), "{changed:?}");
    }

    /// Delivers due events and returns the received changes as pairs of field and value.
    async fn delivered_changes(&mut self) -> Vec<(String, Value)> {
        let steps = self.harness.run_until_idle().await;
        let mut changes = Vec::new();
        for step in steps {
            assert_eq!(step, DeliveryStepOutcome::Delivered);
            let message = self.deliveries.try_recv().unwrap();
            assert_eq!(message.signature, SignatureCheck::Verified, "{message:?}");
            assert!(message.id.is_some_and(|id| id.starts_with("evt_")));
            let body: Value = serde_json::from_slice(&message.body).unwrap();
            assert_eq!(body["object"], "whatsapp_business_account");
            let [entry] = &body["entry"].as_array().unwrap()[..] else { panic!("{body}") };
            let account = self.harness.account.to_string();
            assert_eq!((&entry["id"], &entry["time"]), (&json!(account), &json!(NOON)));
            for change in entry["changes"].as_array().unwrap() {
                let field = change["field"].as_str().unwrap().to_owned();
                changes.push((field, change["value"].clone()));
            }
        }
        assert!(self.deliveries.try_recv().is_err(), "one message per event");
        changes
    }
}

fn parse_template(name: &str, components: &Value) -> Template {
    let document = json!({
        "name": name, "language": "en_US", "category": "UTILITY", "components": components,
    });
    let text = document.to_string();
    Template::read(&Document::parse(text.as_bytes()).unwrap(), &WHATSAPP).unwrap()
}

fn components(body: &str) -> Value {
    json!([{"type": "BODY", "text": body}])
}

/// A status update of the template `hello`, with its field.
fn status_update(id: TemplateId, event: &str, reason: &str, more: Value) -> (String, Value) {
    let mut value = json!({
        "event": event,
        "message_template_id": id.get(),
        "message_template_name": "hello",
        "message_template_language": "en_US",
        "reason": reason,
        "message_template_category": "UTILITY",
    });
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    ("message_template_status_update".to_owned(), value)
}

#[tokio::test]
async fn template_changes_are_sent_in_metas_format() {
    let mut meta = MetaHarness::start().await;
    let id = meta.create_template("hello", Review::Auto).await;
    assert_eq!(meta.delivered_changes().await, [status_update(id, "APPROVED", "NONE", json!({}))]);
    meta.review(id, Trigger::Pause, Some("for the \"holidays\"")).await;
    meta.review(id, Trigger::Resume, None).await;
    let paused = json!({"title": "RATE_LIMITING_PAUSE", "description": "for the \"holidays\""});
    let resumed = json!({"title": "UNPAUSE", "description": "The pause has ended."});
    assert_eq!(
        meta.delivered_changes().await,
        [
            status_update(id, "PAUSED", "NONE", json!({"other_info": paused})),
            status_update(id, "APPROVED", "NONE", json!({"other_info": resumed})),
        ]
    );
    meta.review(id, Trigger::Archive, None).await;
    meta.review(id, Trigger::Unarchive, None).await;
    assert_eq!(
        meta.delivered_changes().await,
        [
            status_update(id, "ARCHIVED", "NONE", json!({})),
            status_update(id, "UNARCHIVED", "NONE", json!({})),
        ]
    );
    meta.review(id, Trigger::Disable, Some("complaints")).await;
    let change = meta.harness.change(id, Review::Auto);
    meta.harness.store.delete_template(change).await.unwrap();
    let disabled = json!({
        "other_info": {"title": "DISABLED", "description": "complaints"},
        "disable_info": {"disable_date": NOON.to_string()},
    });
    assert_eq!(
        meta.delivered_changes().await,
        [
            status_update(id, "DISABLED", "NONE", disabled),
            status_update(id, "DELETED", "NONE", json!({}))
        ]
    );
}

#[tokio::test]
async fn a_template_in_review_causes_no_message_until_the_decision() {
    let mut meta = MetaHarness::start().await;
    let id = meta.create_template("hello", Review::Manual).await;
    assert_eq!(meta.delivered_changes().await, []);
    assert_eq!(meta.harness.webhook().await.behind, 0);
    meta.review(id, Trigger::Reject, Some("too loud")).await;
    let info = json!({
        "reason": "too loud", "recommendation": "Edit the template and submit it again.",
    });
    let rejected = status_update(id, "REJECTED", "INVALID_FORMAT", json!({"rejection_info": info}));
    assert_eq!(meta.delivered_changes().await, [rejected]);
    let other = meta.create_template("other", Review::Manual).await;
    meta.review(other, Trigger::Reject, Some("SCAM")).await;
    let [(_, value)] = &meta.delivered_changes().await[..] else { panic!("not one change") };
    assert_eq!((&value["event"], &value["reason"]), (&json!("REJECTED"), &json!("SCAM")));
    assert_eq!(value.get("rejection_info"), None);
}

#[tokio::test]
async fn an_edit_is_sent_with_its_texts_and_its_url_and_phone_buttons() {
    let mut meta = MetaHarness::start().await;
    let id = meta.create_template("hello", Review::Auto).await;
    meta.delivered_changes().await;
    let whole = json!([
        {"type": "HEADER", "format": "TEXT", "text": "News"},
        {"type": "BODY", "text": "Your order is on its way to you"},
        {"type": "FOOTER", "text": "See you"},
        {"type": "BUTTONS", "buttons": [
            {"type": "QUICK_REPLY", "text": "Thanks"},
            {"type": "URL", "text": "Track", "url": "https://shop.example/track"},
            {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
        ]},
    ]);
    meta.edit(id, &whole, Some(Category::Marketing)).await;
    // The message has the state at the time of the edit, even after the deletion.
    let change = meta.harness.change(id, Review::Auto);
    meta.harness.store.delete_template(change).await.unwrap();
    let changes = meta.delivered_changes().await;
    let about = |more: Value| {
        let mut value = json!({
            "message_template_id": id.get(),
            "message_template_name": "hello",
            "message_template_language": "en_US",
        });
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        value
    };
    let edited = about(json!({
        "message_template_title": "News",
        "message_template_element": "Your order is on its way to you",
        "message_template_footer": "See you",
        "message_template_buttons": [
            {
                "message_template_button_type": "URL",
                "message_template_button_text": "Track",
                "message_template_button_url": "https://shop.example/track",
            },
            {
                "message_template_button_type": "PHONE_NUMBER",
                "message_template_button_text": "Call",
                "message_template_button_phone_number": "+15550001111",
            },
        ],
    }));
    assert_eq!(changes[0], ("message_template_components_update".to_owned(), edited));
    let category = about(json!({"previous_category": "UTILITY", "new_category": "MARKETING"}));
    assert_eq!(changes[1], ("template_category_update".to_owned(), category));
    assert_eq!((changes.len(), &changes[2].1["event"]), (3, &json!("DELETED")));
}

#[tokio::test]
async fn an_edit_and_its_automatic_approval_are_in_the_same_message() {
    let mut meta = MetaHarness::start().await;
    let id = meta.create_template("hello", Review::Auto).await;
    meta.delivered_changes().await;
    meta.edit(id, &components("Other"), None).await;
    let [(first, texts), second] = &meta.delivered_changes().await[..] else {
        panic!("not two changes")
    };
    assert_eq!(first, "message_template_components_update");
    assert_eq!(texts["message_template_element"], "Other");
    assert_eq!(second, &status_update(id, "APPROVED", "NONE", json!({})));
}

#[tokio::test]
async fn a_rotated_secret_replaces_the_former_one_immediately() {
    let mut meta = MetaHarness::start().await;
    for (secret, name) in [("another-secret-than-before", "one"), (SECRET, "two")] {
        let (harness, secret) = (&meta.harness, Secret::from_app_secret(secret).unwrap());
        let encrypted = keyring().encrypt(harness.account.get(), &secret, [4; 24]);
        let until = secret_overlap_end(Format::Whatsapp, harness.now());
        let (account, webhook, now) = (harness.account, harness.webhook, harness.now());
        let rotated = harness.store.rotate_webhook(
            account,
            webhook,
            encrypted,
            until,
            false,
            Author::operator(now),
        );
        assert!(matches!(rotated.await.unwrap(), RotateOutcome::Done(_)));
        meta.create_template(name, Review::Auto).await;
        // The receiver knows only the second secret, and refuses what it cannot verify.
        let outcomes = meta.harness.run_until_idle().await;
        let is_delivered = outcomes == [DeliveryStepOutcome::Delivered];
        assert_eq!((outcomes.len(), is_delivered), (1, name == "two"), "{outcomes:?}");
        let message = meta.deliveries.try_recv().unwrap();
        assert_eq!(message.signature == SignatureCheck::Verified, is_delivered, "{message:?}");
    }
}
