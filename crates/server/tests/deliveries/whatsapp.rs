//! What Meta's receivers get: events in its envelope, over a real connection to a receiver that
//! knows its signature.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use galley_domain::{
    document::Document,
    id::TemplateId,
    rulebook::{Category, WHATSAPP},
    template::{Review, Template, edit::Edit, lifecycle::Trigger},
    webhook::{Format, Redacted},
};
use galley_server::workers::Step;
use galley_server::{
    Clock,
    delivery::{
        Checked, HttpOutgoing, NoHandshake, NotAdmitted, Outgoing, Received, Receiver, Secret,
        both_secrets_until,
    },
};
use galley_store::{Actor, ChangeOutcome, CreateOutcome, NewTemplate, Rotation};
use jiff::Timestamp;
use rustls::RootCertStore;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use super::bench::{Bench, keyring, nearby, setup};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const TOKEN: &str = "what the receiver knows";
const NOON: i64 = 1_794_744_000;

/// The clock of a receiver, which needs none.
struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(NOON).unwrap()
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// A bench, and a receiver on this machine that its endpoint leads to.
struct Line {
    bench: Bench,
    heard: mpsc::Receiver<Received>,
}

impl Line {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hooks?shop=1", listener.local_addr().unwrap());
        let (hear, heard) = mpsc::channel(64);
        let receiver = Receiver {
            secret: Some(Secret::of_app(SECRET).unwrap()),
            verify_token: Some(TOKEN.to_owned()),
            answer: StatusCode::OK,
            clock: Arc::new(Noon),
            hear,
        };
        tokio::spawn(receiver.receive(listener));
        let timeout = Duration::from_secs(30);
        let outgoing = HttpOutgoing::new(nearby(), timeout, RootCertStore::empty());
        let outgoing: Arc<dyn Outgoing> = Arc::new(outgoing);
        let asked = async |token: &str| {
            setup(Arc::clone(&outgoing)).admit(&url, Some(&Redacted(token.to_owned()))).await
        };
        assert!(matches!(
            asked("another").await,
            Err(NotAdmitted::NoHandshake(NoHandshake::Status(403)))
        ));
        asked(TOKEN).await.unwrap();
        let secret = Secret::of_app(SECRET).unwrap();
        let bench = Bench::begin(&WHATSAPP, outgoing, Format::Whatsapp, &url, secret).await;
        assert_eq!(bench.now(), Noon.now());
        Self { bench, heard }
    }

    async fn create(&self, name: &str, review: Review) -> TemplateId {
        let account = self.bench.account;
        let template = read(name, &components("Hello"));
        let new = NewTemplate {
            account,
            phone: None,
            claim: (WHATSAPP.claim)(account, name, "en_US"),
            family: None,
            template,
            review,
            actor: Actor::Operator,
            idempotency: None,
            at: self.bench.now(),
        };
        match self.bench.store.create_template(new).await.unwrap() {
            CreateOutcome::Created(receipt) => receipt.id,
            other => panic!("{other:?}"),
        }
    }

    async fn edit(&self, id: TemplateId, components: &Value, category: Option<Category>) {
        let review = if category.is_some() { Review::Manual } else { Review::Auto };
        let content = Some(read("hello", components).content().to_owned());
        let edit = Edit::Replace { content, category };
        let change = self.bench.change(id, review);
        let changed = self.bench.store.edit_template(change, edit).await.unwrap();
        assert!(matches!(changed, ChangeOutcome::Done(_)), "{changed:?}");
    }

    async fn decide(&self, id: TemplateId, trigger: Trigger, reason: Option<&str>) {
        let change = self.bench.change(id, Review::Manual);
        let reason = reason.map(str::to_owned);
        let changed = self.bench.store.review_template(change, trigger, reason).await.unwrap();
        assert!(matches!(changed, ChangeOutcome::Done(_)), "{changed:?}");
    }

    /// Delivers what is due; answers the changes that arrived, each as its field and its value.
    async fn told(&mut self) -> Vec<(String, Value)> {
        let steps = self.bench.settle().await;
        let mut told = Vec::new();
        for step in steps {
            assert_eq!(step, Step::Delivered);
            let message = self.heard.try_recv().unwrap();
            assert_eq!(message.checked, Checked::Verified, "{message:?}");
            assert!(message.id.is_some_and(|id| id.starts_with("evt_")));
            let body: Value = serde_json::from_slice(&message.body).unwrap();
            assert_eq!(body["object"], "whatsapp_business_account");
            let [entry] = &body["entry"].as_array().unwrap()[..] else { panic!("{body}") };
            let account = self.bench.account.to_string();
            assert_eq!((&entry["id"], &entry["time"]), (&json!(account), &json!(NOON)));
            for change in entry["changes"].as_array().unwrap() {
                let field = change["field"].as_str().unwrap().to_owned();
                told.push((field, change["value"].clone()));
            }
        }
        assert!(self.heard.try_recv().is_err(), "one event, one message");
        told
    }
}

fn read(name: &str, components: &Value) -> Template {
    let document = json!({
        "name": name, "language": "en_US", "category": "UTILITY", "components": components,
    });
    let text = document.to_string();
    Template::read(&Document::parse(text.as_bytes()).unwrap(), &WHATSAPP).unwrap()
}

fn components(body: &str) -> Value {
    json!([{"type": "BODY", "text": body}])
}

/// The value of a status update of a template called `hello`.
fn status(id: TemplateId, event: &str, reason: &str, more: Value) -> (String, Value) {
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
async fn what_becomes_of_a_template_is_told_as_meta_tells_it() {
    let mut line = Line::start().await;
    let id = line.create("hello", Review::Auto).await;
    assert_eq!(line.told().await, [status(id, "APPROVED", "NONE", json!({}))]);
    line.decide(id, Trigger::Pause, Some("for the \"holidays\"")).await;
    line.decide(id, Trigger::Resume, None).await;
    let paused = json!({"title": "RATE_LIMITING_PAUSE", "description": "for the \"holidays\""});
    let resumed = json!({"title": "UNPAUSE", "description": "The pause has ended."});
    assert_eq!(
        line.told().await,
        [
            status(id, "PAUSED", "NONE", json!({"other_info": paused})),
            status(id, "APPROVED", "NONE", json!({"other_info": resumed})),
        ]
    );
    line.decide(id, Trigger::Disable, Some("complaints")).await;
    let change = line.bench.change(id, Review::Auto);
    line.bench.store.delete_template(change).await.unwrap();
    let disabled = json!({
        "other_info": {"title": "DISABLED", "description": "complaints"},
        "disable_info": {"disable_date": NOON.to_string()},
    });
    assert_eq!(
        line.told().await,
        [status(id, "DISABLED", "NONE", disabled), status(id, "DELETED", "NONE", json!({}))]
    );
}

#[tokio::test]
async fn a_template_that_waits_is_not_told_of_until_it_is_decided_on() {
    let mut line = Line::start().await;
    let id = line.create("hello", Review::Manual).await;
    assert_eq!(line.told().await, []);
    assert_eq!(line.bench.endpoint().await.behind, 0);
    line.decide(id, Trigger::Reject, Some("too loud")).await;
    let info = json!({
        "reason": "too loud", "recommendation": "Edit the template and submit it again.",
    });
    let rejected = status(id, "REJECTED", "INVALID_FORMAT", json!({"rejection_info": info}));
    assert_eq!(line.told().await, [rejected]);
    let other = line.create("other", Review::Manual).await;
    line.decide(other, Trigger::Reject, Some("SCAM")).await;
    let [(_, value)] = &line.told().await[..] else { panic!("not one") };
    assert_eq!((&value["event"], &value["reason"]), (&json!("REJECTED"), &json!("SCAM")));
    assert_eq!(value.get("rejection_info"), None);
}

#[tokio::test]
async fn an_edit_tells_its_texts_and_the_buttons_that_lead_somewhere() {
    let mut line = Line::start().await;
    let id = line.create("hello", Review::Auto).await;
    line.told().await;
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
    line.edit(id, &whole, Some(Category::Marketing)).await;
    // It is told as it was then, whatever has become of it.
    let change = line.bench.change(id, Review::Auto);
    line.bench.store.delete_template(change).await.unwrap();
    let told = line.told().await;
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
    assert_eq!(told[0], ("message_template_components_update".to_owned(), edited));
    let category = about(json!({"previous_category": "UTILITY", "new_category": "MARKETING"}));
    assert_eq!(told[1], ("template_category_update".to_owned(), category));
    assert_eq!((told.len(), &told[2].1["event"]), (3, &json!("DELETED")));
}

#[tokio::test]
async fn an_edit_that_is_approved_at_once_says_so_in_the_same_message() {
    let mut line = Line::start().await;
    let id = line.create("hello", Review::Auto).await;
    line.told().await;
    line.edit(id, &components("Other"), None).await;
    let [(first, texts), second] = &line.told().await[..] else { panic!("not two") };
    assert_eq!(first, "message_template_components_update");
    assert_eq!(texts["message_template_element"], "Other");
    assert_eq!(second, &status(id, "APPROVED", "NONE", json!({})));
}

#[tokio::test]
async fn a_rotated_secret_signs_alone_and_at_once() {
    let mut line = Line::start().await;
    for (secret, name) in [("another-secret-than-before", "one"), (SECRET, "two")] {
        let (bench, secret) = (&line.bench, Secret::of_app(secret).unwrap());
        let sealed = keyring().seal(bench.account.get(), &secret, [4; 24]);
        let until = both_secrets_until(Format::Whatsapp, bench.now());
        let (account, webhook, now) = (bench.account, bench.webhook, bench.now());
        let rotated = bench.store.rotate_webhook(account, webhook, sealed, until, false, now);
        assert!(matches!(rotated.await.unwrap(), Rotation::Done(_)));
        line.create(name, Review::Auto).await;
        assert_eq!(line.bench.settle().await, [Step::Delivered]);
        let message = line.heard.try_recv().unwrap();
        // The receiver knows the second one only.
        assert_eq!(message.checked == Checked::Verified, name == "two", "{message:?}");
    }
}
