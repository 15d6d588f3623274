//! The worker is killed at every point of an operation while responses of the provider are lost: each
//! operation is made once, and none is lost.

use std::{collections::BTreeMap, time::Duration};

use galley_domain::{id::TemplateId, upstream::OperationState};
use galley_store::testing::Fault;
use serde_json::json;

use super::{
    connected::Connected,
    rng::{Rng, scale},
};
use crate::sandbox::emulator::order;

/// Where a worker is killed: before a write of the store begins, or after it is committed.
const KILL_POINTS: [(&str, Fault); 9] = [
    ("take_call", Fault::Held),
    ("begin_operation", Fault::Hangs),
    ("begin_operation", Fault::Held),
    ("record_call", Fault::Hangs),
    ("record_call", Fault::Hangs),
    ("record_call", Fault::Held),
    ("record_probe", Fault::Hangs),
    ("record_probe", Fault::Held),
    ("record_read", Fault::Hangs),
];

/// How many operations are queued before the next kill.
const OPERATIONS_PER_KILL: usize = 4;

/// Longer than a lease.
const LEASE_EXPIRED: Duration = Duration::from_mins(3);

/// The templates that the account has, and what was asked for.
#[derive(Default)]
struct Wanted {
    /// The id and the text of each template, by name.
    templates: BTreeMap<String, (TemplateId, String)>,
    created: usize,
    edited: usize,
    deleted: usize,
}

impl Wanted {
    fn operations(&self) -> usize {
        self.created + self.edited + self.deleted
    }

    /// Changes templates of the account, each in one way.
    async fn change(&mut self, connected: &Connected, rng: &mut Rng) {
        let mut changed: Vec<String> = Vec::new();
        while changed.len() < OPERATIONS_PER_KILL {
            let existing = self.templates.keys().nth(rng.below(self.templates.len().max(1)));
            match existing.filter(|name| !changed.contains(*name)).cloned() {
                Some(name) if rng.percent(55) => {
                    self.edit(connected, &name).await;
                    changed.push(name);
                }
                Some(name) if self.templates.len() > 20 && rng.percent(30) => {
                    self.delete(connected, &name).await;
                    changed.push(name);
                }
                _ => changed.push(self.create(connected).await),
            }
        }
    }

    async fn create(&mut self, connected: &Connected) -> String {
        self.created += 1;
        let name = format!("order_{}", self.created);
        let document = order(&name);
        let id = connected.create(&document).await;
        let text = document["components"][0]["text"].as_str().unwrap().to_owned();
        self.templates.insert(name.clone(), (id, text));
        name
    }

    async fn edit(&mut self, connected: &Connected, name: &str) {
        self.edited += 1;
        let (id, text) = self.templates.get_mut(name).unwrap();
        *text = format!("Hi {{{{1}}}}, this is the text number {} of it.", self.edited);
        let mut document = order(name);
        document["components"][0]["text"] = json!(text);
        connected.edit(*id, &document).await;
    }

    async fn delete(&mut self, connected: &Connected, name: &str) {
        self.deleted += 1;
        let (id, _) = self.templates.remove(name).unwrap();
        connected.delete(id).await;
    }
}

/// Lets the worker begin, and kills it at this point. Returns whether it came there.
async fn kill_at(connected: &Connected, point: (&'static str, Fault)) -> bool {
    let faults = &connected.store_faults;
    faults.set(point.0, point.1);
    let killed = tokio::select! {
        biased;
        () = faults.hanging(1) => true,
        () = faults.held() => true,
        () = connected.try_step() => false,
    };
    faults.clear();
    if killed {
        connected.advance(LEASE_EXPIRED);
    }
    killed
}

/// Lets the worker work until all operations are settled. Returns how long that took.
async fn settle(connected: &Connected) -> Duration {
    let mut waited = Duration::ZERO;
    while !connected.open_operations().await.is_empty() {
        if connected.has_work().await {
            connected.try_step().await;
        }
        connected.advance(Duration::from_secs(1));
        waited += Duration::from_secs(1);
        assert!(waited < Duration::from_hours(2), "{:?}", connected.open_operations().await);
    }
    waited
}

/// `GALLEY_UPSTREAM_KILLS=500` makes it longer: 2,000 operations.
#[tokio::test]
async fn operations_are_made_once_although_the_worker_is_killed_and_responses_are_lost() {
    let connected = Connected::start().await;
    let (mut rng, mut wanted, mut kills) = (Rng::new(21), Wanted::default(), 0);
    for call in ["create", "edit", "delete"] {
        for (kind, share) in [("close_after_commit", 0.1), ("close_before", 0.05)] {
            let fault = json!({"call": call, "share": share, "kind": kind});
            connected.emulator().add_fault(&fault).await;
        }
    }
    for call in ["create", "edit", "delete", "list", "read"] {
        let fault = json!({"call": call, "share": 0.05, "kind": "error", "code": 2});
        connected.emulator().add_fault(&fault).await;
    }
    let intended_kills = scale("GALLEY_UPSTREAM_KILLS", 60);
    while kills < intended_kills {
        wanted.change(&connected, &mut rng).await;
        let point = KILL_POINTS[rng.below(KILL_POINTS.len())];
        kills += usize::from(kill_at(&connected, point).await);
        settle(&connected).await;
    }
    // The last operations are still open when the faults end.
    wanted.change(&connected, &mut rng).await;
    kills += usize::from(kill_at(&connected, ("record_call", Fault::Hangs)).await);
    connected.clear_faults().await;
    let settled = settle(&connected).await;
    println!("{kills} kills, {} operations, settled in {settled:?}", wanted.operations());
    assert!(settled <= Duration::from_secs(90), "{settled:?}");

    let mut names = connected.provided().await;
    names.sort_unstable();
    assert_eq!(names, wanted.templates.keys().cloned().collect::<Vec<_>>());
    for mirrored in connected.mirrored().await.iter().filter(|it| it.is_present()) {
        let text = connected.provided_text(&mirrored.id).await;
        assert_eq!(text, wanted.templates[&mirrored.name].1, "{}", mirrored.name);
    }
    let events = connected.provider_events().await;
    let count = |kind: &str| events.iter().filter(|it| **it == kind).count();
    let made = ["template.created", "template.edited", "template.deleted"].map(count);
    assert_eq!(made, [wanted.created, wanted.edited, wanted.deleted]);
    let states = connected.states().await;
    assert!(states.iter().all(|it| *it == OperationState::Done), "{states:?}");
}
