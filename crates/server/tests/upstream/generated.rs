//! Templates that the provider generates from messages, and removes by itself.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use galley_domain::upstream::{OperationState, SweepVerdict, read_hook};
use galley_server::Clock as _;
use galley_store::{ListQuery, UpstreamAction};
use galley_upstream::Method as UpstreamMethod;
use serde_json::{Value, json};

use super::{connected::Connected, provider::Loss, rng::scale};
use crate::sandbox::emulator::order;

/// The templates on a page.
const PAGE: usize = 100;

/// What the provider has generated, and the paths of the calls.
#[derive(Clone, Default)]
struct Generator {
    templates: Arc<Mutex<Vec<Value>>>,
    /// Whether the provider leaves them out when it counts its templates.
    is_uncounted: Arc<AtomicBool>,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Generator {
    /// Shows the generated templates at the end of each list.
    fn start(connected: &Connected) -> Self {
        let generator = Self::default();
        let Self { templates, is_uncounted, paths } = generator.clone();
        let left = Mutex::new(Vec::new());
        connected.rewrite(move |path, body| {
            paths.lock().unwrap().push(path.to_owned());
            let Some(own) = body["data"].as_array().cloned() else { return };
            let mut left = left.lock().unwrap();
            if let Some(total) = body["summary"]["total_count"].as_u64() {
                let mut made = templates.lock().unwrap().clone();
                if !is_uncounted.load(Ordering::Relaxed) {
                    body["summary"]["total_count"] = json!(total + made.len() as u64);
                }
                if own.first().is_some_and(|own| own.get("components").is_none()) {
                    for it in &mut made {
                        it.as_object_mut().unwrap().remove("components");
                    }
                }
                *left = [own, made].concat();
            }
            let shown = left.len().min(PAGE);
            let rest = left.split_off(shown);
            body["data"] = std::mem::replace(&mut *left, rest).into();
            let after = (!left.is_empty()).then(|| {
                // The emulator refuses cursors that are not its own.
                let cursor = format!("1.{}", 4_000_000_000 + left.len());
                BASE64_URL_SAFE_NO_PAD.encode(cursor)
            });
            body["paging"] = match after {
                Some(after) => {
                    json!({"cursors": {"after": after}, "next": "https://provider.test/"})
                }
                None => Value::Null,
            };
        });
        generator
    }

    /// Lets the provider have these, and no others.
    fn set(&self, templates: impl IntoIterator<Item = Value>) {
        *self.templates.lock().unwrap() = templates.into_iter().collect();
    }

    /// Whether a call was about one template, since the last question.
    fn take_single_calls(&self) -> usize {
        let paths = std::mem::take(&mut *self.paths.lock().unwrap());
        let is_about_all =
            |it: &&String| it.ends_with("/message_templates") || it.contains("debug");
        paths.len() - paths.iter().filter(is_about_all).count()
    }
}

/// A template that the provider made, with the text and the parameter of [`order`].
fn generated(number: usize, name: &str) -> Value {
    let mut template = order(name);
    let members = [
        ("id", json!(format!("9{number:012}"))),
        ("status", json!("APPROVED")),
        ("source", json!("AUTO_GENERATED")),
        ("last_updated_time", json!(1_789_000_000 + number)),
    ];
    template.as_object_mut().unwrap().extend(members.map(|(key, value)| (key.to_owned(), value)));
    template
}

fn auto(number: usize) -> Value {
    generated(number, &format!("auto_generated_{number}"))
}

/// Everything about the templates of the account.
async fn account_state(connected: &Connected) -> Vec<String> {
    let query = ListQuery::new(connected.account, 1_000);
    let page = connected.service.store.list(query).await.unwrap();
    page.templates.iter().map(|it| format!("{it:?}")).collect()
}

#[tokio::test]
async fn creates_are_sent_after_the_provider_has_removed_what_it_generated() {
    let connected = Connected::start().await;
    for number in 0..20 {
        connected.emulator().create_named(&format!("order_{number}")).await;
    }
    let generator = Generator::start(&connected);
    generator.set((0..40).map(auto));
    let report = connected.sweep(true).await.unwrap();
    assert_eq!((report.seen, report.generated, report.changed), (60, 40, 20));
    assert_eq!(account_state(&connected).await.len(), 20, "none of them is imported");
    generator.set([]);
    let report = connected.sweep(false).await.unwrap();
    assert_eq!((report.verdict, report.suspicious), (SweepVerdict::Counted, false));
    assert_eq!(connected.mirrored().await.len(), 20);
    connected.create(&order("order_new")).await;
    connected.step().await;
    assert_eq!(connected.states().await, [OperationState::Done]);
}

/// `GALLEY_UPSTREAM_SWEEPS=96` makes as many sweeps a day as the service does.
#[tokio::test]
async fn ten_days_of_five_hundred_generated_templates_change_nothing() {
    for is_counted in [true, false] {
        ten_days(is_counted, scale("GALLEY_UPSTREAM_SWEEPS", 6)).await;
    }
}

async fn ten_days(is_counted: bool, sweeps_per_day: usize) {
    const DAYS: usize = 10;
    const MADE_PER_DAY: usize = 500;
    const OWN: usize = 20;
    let connected = Connected::start().await;
    for number in 0..OWN {
        connected.emulator().create_named(&format!("order_{number}")).await;
    }
    connected.advance(Duration::from_mins(15));
    let generator = Generator::start(&connected);
    generator.is_uncounted.store(!is_counted, Ordering::Relaxed);
    connected.step().await;
    let (before, events) = (account_state(&connected).await, connected.events().await);
    connected.take_calls();
    generator.take_single_calls();
    let interval = Duration::from_hours(24) / u32::try_from(sweeps_per_day).unwrap();
    let (mut calls, mut pages, mut seen) = (0, 0, 0);
    for sweep in 1..=DAYS * sweeps_per_day {
        connected.advance(interval);
        // Each lives for a day.
        let made = sweep * MADE_PER_DAY / sweeps_per_day;
        let living = made.saturating_sub(MADE_PER_DAY)..made;
        pages += (OWN + living.len()).div_ceil(PAGE);
        tell_of(&connected, living.clone()).await;
        generator.set(living.map(auto));
        connected.step().await;
        calls += connected.take_calls() as usize;
        let connection = connected.service.store.connection(connected.account).await;
        let connection = connection.unwrap().unwrap();
        assert_eq!((connection.suspicious_at, connection.sweep.is_none()), (None, true));
        assert_eq!(connection.swept_at, connection.sweep_ended_at, "each sweep counts");
        let counts = connected.service.store.mirror_counts(connected.account).await.unwrap();
        assert_eq!(counts.present - counts.generated, OWN as u64);
        assert_eq!((counts.drifted, counts.missing, counts.gone), (0, 0, 0));
        assert_eq!(connected.mirrored().await.len() as u64, counts.present, "nothing else is left");
        seen = seen.max(counts.generated);
    }
    assert_eq!(usize::try_from(seen).unwrap(), MADE_PER_DAY);
    assert_eq!(generator.take_single_calls(), 0, "no call is about one of them");
    // The pages, and once a day a question about the token.
    assert_eq!(calls, pages + DAYS, "counted: {is_counted}");
    assert_eq!(connected.provider.fetched.lock().unwrap().len(), 0);
    assert_eq!(account_state(&connected).await, before);
    assert_eq!(connected.events().await, events);
    connected.create(&order("order_new")).await;
    connected.step().await;
    assert_eq!(connected.states().await, [OperationState::Done]);
}

/// Webhooks about generated templates, of which the mirror may know some.
async fn tell_of(connected: &Connected, numbers: std::ops::Range<usize>) {
    let waba = connected.emulator().account.to_string();
    let change = |template: Value| {
        let value = json!({
            "event": "APPROVED", "message_template_id": template["id"],
            "message_template_name": template["name"], "message_template_language": "en_US",
        });
        json!({"field": "message_template_status_update", "value": value})
    };
    let changes: Vec<Value> = numbers.map(|number| change(auto(number))).collect();
    let body = json!({"object": "whatsapp_business_account", "entry": [{
        "id": waba, "time": 1, "changes": changes,
    }]});
    let hints = read_hook(body.to_string().as_bytes(), &waba).unwrap();
    let (store, now) = (&connected.service.store, connected.service.clock.now());
    store.record_hints(connected.account, hints, now).await.unwrap();
}

#[tokio::test]
async fn samples_of_generated_templates_are_not_fetched() {
    let connected = Connected::start().await;
    let generator = Generator::start(&connected);
    let mut template = auto(1);
    let image = json!({"type": "HEADER", "format": "IMAGE",
        "example": {"header_handle": ["https://cdn.example/1.png"]}});
    template["components"].as_array_mut().unwrap().push(image);
    generator.set([template]);
    assert_eq!(connected.sweep(true).await.unwrap().generated, 1);
    assert_eq!(connected.provider.fetched.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_generated_template_is_never_taken_for_an_own_one() {
    let connected = Connected::start().await;
    let generator = Generator::start(&connected);
    // The provider has generated one with the name and the content.
    generator.set([generated(1, "parcel_news")]);
    connected.sweep(true).await.unwrap();
    let id = connected.create(&order("parcel_news")).await;
    connected.lose(UpstreamMethod::Post, Loss::Request);
    connected.step().await;
    assert_eq!(connected.states().await, [OperationState::Unknown]);
    connected.advance(Duration::from_mins(5));
    connected.step().await;
    assert_eq!(connected.states().await, [OperationState::Conflict]);
    let rows = connected.service.store.mirror_of(connected.account, vec![id]).await.unwrap();
    assert_eq!(rows, [], "it stays a template of the provider");
    let session = connected.session().await;
    assert_eq!(session.adopt("parcel_news", "en_US").await.unwrap(), None);
    session.end().await.unwrap();
    // When the provider has removed it, the name is free.
    generator.set([]);
    connected.sweep(false).await.unwrap();
    let change = connected.change(id).await;
    let retry = UpstreamAction::Retry;
    connected.service.store.act_upstream(change, retry).await.unwrap();
    connected.step_until_settled().await;
    assert_eq!(connected.states().await, [OperationState::Done]);
    assert_eq!(connected.provided().await, ["parcel_news"]);
    // Both can exist for a time: the own one is found.
    generator.set([generated(2, "parcel_news")]);
    let session = connected.session().await;
    let found = session.adopt("parcel_news", "en_US").await.unwrap().unwrap();
    session.end().await.unwrap();
    assert!(!found.is_generated());
}

#[tokio::test]
async fn a_generated_template_that_was_imported_is_not_changed_at_the_provider() {
    let connected = Connected::start().await;
    let generator = Generator::start(&connected);
    let mut unknown = auto(1);
    unknown.as_object_mut().unwrap().remove("source");
    generator.set([unknown]);
    connected.sweep(true).await.unwrap();
    let (_, imported) = connected.only_template().await;
    generator.set([auto(1)]);
    connected.sweep(true).await.unwrap();
    assert_eq!(connected.only_template().await.1, imported, "it stays as it is");
    let mut edit = order("auto_generated_1");
    edit["components"][0]["text"] = json!("Hello {{1}}, your parcel left the warehouse today.");
    connected.edit(imported.id, &edit).await;
    generator.paths.lock().unwrap().clear();
    connected.step().await;
    assert_eq!(connected.states().await, [OperationState::Refused]);
    let refused = connected.operations().await.remove(0).operation.error.unwrap();
    assert_eq!((refused.code, refused.subcode), (100, Some(2_388_318)));
    assert!(refused.message.contains("generated"), "{refused}");
    connected.delete(imported.id).await;
    connected.step().await;
    assert_eq!(*generator.paths.lock().unwrap(), <[&str; 0]>::default(), "no call is made");
    assert!(connected.open_operations().await.is_empty());
}
