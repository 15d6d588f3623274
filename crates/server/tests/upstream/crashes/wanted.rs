//! The templates that the account has, and what it asked the provider for.

use std::collections::{BTreeMap, BTreeSet};

use galley_domain::{id::TemplateId, upstream::OperationState};
use galley_store::StoredOperation;
use serde_json::json;

use crate::{
    sandbox::emulator::order,
    upstream::{connected::Connected, rng::Rng},
};

/// How many templates change before the next kill.
const CHANGES_PER_KILL: usize = 4;

/// A change that a kill needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    Create,
    /// An edit and one back to the content before: no call is needed.
    Revert,
    /// The deletion of the template that was edited last, which the worker is yet to read.
    DeleteEdited,
}

/// The templates that the account has, and what was asked for.
#[derive(Default)]
pub(super) struct Wanted {
    /// The id and the text of each template, by name.
    templates: BTreeMap<String, (TemplateId, String)>,
    created: usize,
    edited: usize,
    deleted: usize,
    reverted: usize,
    last_edited: Option<String>,
}

impl Wanted {
    /// The number of operations. The first edit of a revert is superseded.
    pub(super) fn operations(&self) -> usize {
        self.created + self.edited + self.deleted + 2 * self.reverted
    }

    /// Changes templates of the account, each in one way.
    pub(super) async fn change(
        &mut self,
        connected: &Connected,
        rng: &mut Rng,
        needed: Option<Needed>,
    ) {
        let mut changed: BTreeSet<String> = BTreeSet::new();
        match needed {
            Some(Needed::Create) => {
                changed.insert(self.create(connected).await);
            }
            Some(Needed::Revert) => {
                if let Some(name) = self.any(rng) {
                    self.revert(connected, &name).await;
                    changed.insert(name);
                }
            }
            Some(Needed::DeleteEdited) => {
                if let Some(name) = self.last_edited.take() {
                    self.delete(connected, &name).await;
                    changed.insert(name);
                }
            }
            None => {}
        }
        while changed.len() < CHANGES_PER_KILL {
            let existing = self.any(rng).filter(|name| !changed.contains(name));
            changed.insert(match existing {
                Some(name) if rng.percent(55) => {
                    self.edit(connected, &name).await;
                    name
                }
                Some(name) if self.templates.len() > 20 && rng.percent(30) => {
                    self.delete(connected, &name).await;
                    name
                }
                _ => self.create(connected).await,
            });
        }
    }

    fn any(&self, rng: &mut Rng) -> Option<String> {
        self.templates.keys().nth(rng.below(self.templates.len().max(1))).cloned()
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

    pub(super) async fn edit(&mut self, connected: &Connected, name: &str) {
        self.edited += 1;
        let text = format!("Hi {{{{1}}}}, this is the text number {} of it.", self.edited);
        self.store(connected, name, &text).await;
        self.templates.get_mut(name).unwrap().1 = text;
        self.last_edited = Some(name.to_owned());
    }

    async fn revert(&mut self, connected: &Connected, name: &str) {
        self.reverted += 1;
        let before = self.templates[name].1.clone();
        self.store(connected, name, "Hi {{1}}, this text is never sent to you.").await;
        self.store(connected, name, &before).await;
    }

    async fn store(&self, connected: &Connected, name: &str, text: &str) {
        let mut document = order(name);
        document["components"][0]["text"] = json!(text);
        connected.edit(self.templates[name].0, &document).await;
    }

    async fn delete(&mut self, connected: &Connected, name: &str) {
        self.deleted += 1;
        self.last_edited.take_if(|edited| edited == name);
        let (id, _) = self.templates.remove(name).unwrap();
        connected.delete(id).await;
    }

    /// How the provider and the operations differ from what was asked for.
    pub(super) async fn violations(&self, connected: &Connected) -> Vec<String> {
        let mut violations = Vec::new();
        let mut names = connected.provided().await;
        names.sort_unstable();
        if names != self.templates.keys().cloned().collect::<Vec<_>>() {
            violations.push(format!("the provider has other templates: {names:?}"));
        }
        let mirrored = connected.mirrored().await;
        let present: Vec<_> = mirrored.iter().filter(|it| it.is_present()).collect();
        if present.len() != names.len() {
            violations.push(format!("the mirror has {} templates", present.len()));
        }
        for mirrored in present {
            let text = connected.provided_text(&mirrored.id).await;
            let wanted = self.templates.get(&mirrored.name).map(|it| &it.1);
            if wanted != Some(&text) {
                let name = &mirrored.name;
                violations.push(format!("{name} has the text {text:?}, not {wanted:?}"));
            }
        }
        let events = connected.provider_events().await;
        for (kind, wanted) in [
            ("template.created", self.created),
            ("template.edited", self.edited),
            ("template.deleted", self.deleted),
        ] {
            let made = events.iter().filter(|it| **it == kind).count();
            if made != wanted {
                violations.push(format!("{made} times {kind} at the provider, not {wanted}"));
            }
        }
        let operations = all_operations(connected).await;
        let count = |state| operations.iter().filter(|it| it.operation.state == state).count();
        let found = (count(OperationState::Done), count(OperationState::Superseded));
        let expected = (self.operations() - self.reverted, self.reverted);
        if found != expected || operations.len() != self.operations() {
            let all = operations.len();
            violations.push(format!(
                "of {all} operations (done, superseded) {found:?}, not {expected:?}"
            ));
        }
        violations
    }
}

async fn all_operations(connected: &Connected) -> Vec<StoredOperation> {
    let mut all: Vec<StoredOperation> = Vec::new();
    loop {
        let before = all.last().map(|it| it.id);
        let page = connected.service.store.operations(connected.account, before, 1_000).await;
        let page = page.unwrap();
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}
