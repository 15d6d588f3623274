//! Webhooks of the provider are lost, doubled and out of order: the mirror shows only states that the
//! provider had, and in the end its state.

use std::{collections::HashSet, time::Duration};

use axum::http::Method;
use galley_domain::{template::Status, upstream::read_hook};
use galley_server::Clock as _;
use serde_json::{Value, json};

use super::{
    connected::Connected,
    rng::{Rng, scale},
};
use crate::sandbox::emulator::order;

const TEMPLATES: usize = 40;
const TEXTS: [&str; 3] = [
    "Hi {{1}}, your order is on its way to you.",
    "Hello {{1}}, your parcel left the warehouse today.",
    "Dear {{1}}, the courier will ring at your door soon.",
];

/// A state that is shown, and whether a version is live.
type Shown = (Status, bool);

/// A template at the provider, and all states that it had.
struct Remote {
    id: String,
    name: String,
    text: usize,
    status: Status,
    history: HashSet<Shown>,
}

impl Remote {
    fn shown(&self) -> Shown {
        // The account has the first text alone.
        (self.status, self.status == Status::Approved && self.text == 0)
    }

    /// Changes the template at the provider.
    async fn change(&mut self, connected: &Connected, rng: &mut Rng) {
        let emulator = connected.emulator();
        match (self.status, rng.below(3)) {
            (Status::Archived, _) => {
                self.archive(connected, "unarchive").await;
                self.status = Status::Approved;
            }
            (_, 0) => {
                self.archive(connected, "archive").await;
                self.status = Status::Archived;
            }
            _ => {
                self.text = (self.text + 1 + rng.below(2)) % TEXTS.len();
                let mut components = order(&self.name)["components"].take();
                components[0]["text"] = json!(TEXTS[self.text]);
                let (path, edit) =
                    (format!("/v23.0/{}", self.id), json!({"components": components}));
                emulator.call(Method::POST, &path, &edit).await.expect_success();
            }
        }
        self.history.insert(self.shown());
    }

    async fn archive(&self, connected: &Connected, verb: &str) {
        let path = format!("{}/{verb}", connected.emulator().templates());
        let body = json!({"hsm_ids": [self.id]});
        connected.emulator().call(Method::POST, &path, &body).await.expect_success();
    }

    /// The webhook of a change. What it says may be outdated when it arrives.
    fn webhook(&self, connected: &Connected) -> Value {
        let waba = connected.emulator().account.to_string();
        let value = json!({
            "event": self.status.as_str(), "message_template_id": self.id.parse::<u64>().unwrap(),
            "message_template_name": self.name, "message_template_language": "en-US",
            "reason": "NONE",
        });
        let change = json!({"field": "message_template_status_update", "value": value});
        json!({
            "object": "whatsapp_business_account",
            "entry": [{"id": waba, "time": 1, "changes": [change]}],
        })
    }
}

/// Receives a webhook as the service does.
async fn receive(connected: &Connected, webhook: &Value) {
    let waba = connected.emulator().account.to_string();
    let hints = read_hook(webhook.to_string().as_bytes(), &waba).unwrap();
    let now = connected.service.clock.now();
    connected.service.store.record_hints(connected.account, hints, now).await.unwrap();
}

/// The states that the account shows, by name.
async fn shown(connected: &Connected) -> Vec<(String, Shown)> {
    let mut all = Vec::new();
    for mirrored in connected.mirrored().await {
        let id = mirrored.template.unwrap();
        let stored = connected.service.store.template(connected.account, id);
        let state = stored.await.unwrap().unwrap().state;
        all.push((mirrored.name, (state.status(), state.live_version().is_some())));
    }
    all
}

/// `GALLEY_UPSTREAM_CHANGES=10000` makes it longer.
#[tokio::test]
async fn webhooks_that_are_lost_doubled_or_late_lead_to_the_state_of_the_provider() {
    let connected = Connected::start().await;
    let (mut rng, mut remotes) = (Rng::new(21), Vec::new());
    for number in 0..TEMPLATES {
        let name = format!("order_{number}");
        let id = connected.emulator().create_named(&name).await;
        let history = HashSet::from([(Status::Approved, true)]);
        remotes.push(Remote { id, name, text: 0, status: Status::Approved, history });
    }
    connected.step().await;
    let (mut waiting, mut received, mut checked) = (Vec::new(), 0, 0);
    let changes = scale("GALLEY_UPSTREAM_CHANGES", 1_000);
    for _ in 0..changes {
        let remote = &mut remotes[rng.below(TEMPLATES)];
        remote.change(&connected, &mut rng).await;
        // Several changes happen within a second, and no more in an hour than a provider allows.
        let longest = if rng.percent(50) { 700 } else { 7_000 };
        let time = Duration::from_millis(rng.next() % longest);
        connected.emulator().clock.advance(time);
        connected.service.clock.advance(time);
        if !rng.percent(30) {
            waiting.push(remote.webhook(&connected));
            if rng.percent(30) {
                waiting.push(remote.webhook(&connected));
            }
        }
        while waiting.len() > 20 {
            let webhook = waiting.swap_remove(rng.below(waiting.len()));
            receive(&connected, &webhook).await;
            received += 1;
        }
        if rng.percent(4) {
            // After many calls in an hour, the provider asks for a rest.
            connected.try_step().await;
            for (name, shown) in shown(&connected).await {
                let remote = remotes.iter().find(|it| it.name == name).unwrap();
                assert!(remote.history.contains(&shown), "{name} never was {shown:?} there");
                checked += 1;
            }
        }
    }
    println!("{changes} changes, {received} webhooks received, {checked} states checked");
    assert!(received > changes / 2 && checked > changes / 2, "{received} {checked}");
    // The webhooks that are left never arrive: the sweeps find the rest.
    connected.advance(Duration::from_hours(1));
    while connected.has_work().await {
        connected.step().await;
    }
    for (name, shown) in shown(&connected).await {
        let remote = remotes.iter().find(|it| it.name == name).unwrap();
        assert_eq!(shown, remote.shown(), "{name}");
    }
}
