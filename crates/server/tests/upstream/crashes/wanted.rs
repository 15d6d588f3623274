//! The templates that the account has, and what it asked the provider for.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use axum::{
    body::Body,
    http::{Method, Request, header},
};
use galley_domain::{
    id::TemplateId,
    upstream::{OperationState, RemoteId},
};
use galley_store::{MirroredTemplate, StoredOperation, UpstreamAction, UpstreamActionOutcome};
use serde_json::json;

use crate::{
    sandbox::emulator::{TOKEN, order},
    upstream::{connected::Connected, rng::Rng},
};

/// How many templates change before the next kill.
const CHANGES_PER_KILL: usize = 4;

/// How often an edit at the provider is tried.
const MAX_OUTSIDE_CALLS: usize = 20;

/// Longer than a look at a template is believed.
const LOOK_EXPIRED: Duration = Duration::from_mins(2);

/// A change that a kill needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    Create,
    /// An edit and one back to the content before: no call is needed.
    Revert,
    /// The deletion of the template that was edited last, which the worker is yet to read.
    DeleteEdited,
    /// An edit of a template that was edited at the provider, too.
    Conflict,
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
    conflicts: usize,
    archived: usize,
    unarchived: usize,
    last_edited: Option<String>,
    /// The template whose content a person has to push.
    in_conflict: Option<String>,
    /// The names of the templates in the archive.
    archive: BTreeSet<String>,
}

impl Wanted {
    /// The number of operations. The first edit of a revert is superseded, and so is one in conflict.
    pub(super) fn operations(&self) -> usize {
        let versions = self.created + self.edited + 2 * self.reverted + 2 * self.conflicts;
        versions + self.deleted + self.archived + self.unarchived
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
            Some(Needed::Conflict) => {
                if let Some(name) = self.any(rng) {
                    self.conflict(connected, &name).await;
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
        // A version that is held does not keep the archive waiting, and an archived template is not
        // edited: the archive is changed only if nothing is open.
        if needed.is_none() {
            self.change_archive(connected, rng, changed).await;
        }
    }

    fn any(&self, rng: &mut Rng) -> Option<String> {
        let names = || self.templates.keys().filter(|name| !self.archive.contains(*name));
        names().nth(rng.below(names().count().max(1))).cloned()
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

    /// Takes a template back from the archive after every other time, and puts one aside, of those that
    /// have not changed.
    async fn change_archive(
        &mut self,
        connected: &Connected,
        rng: &mut Rng,
        mut changed: BTreeSet<String>,
    ) {
        if self.archived > 2 * self.unarchived
            && let Some(name) = self.archive.pop_first()
        {
            self.unarchived += 1;
            assert!(self.act(connected, &name, UpstreamAction::Unarchive).await, "{name}");
            changed.insert(name);
        }
        if let Some(name) = self.any(rng).filter(|name| !changed.contains(name))
            && self.act(connected, &name, UpstreamAction::Archive).await
        {
            self.archived += 1;
            self.last_edited.take_if(|edited| *edited == name);
            self.archive.insert(name);
        }
    }

    /// Queues an operation by an action, if that is possible.
    async fn act(&self, connected: &Connected, name: &str, action: UpstreamAction) -> bool {
        let change = connected.change(self.templates[name].0).await;
        let outcome = connected.service.store.act_upstream(change, action).await.unwrap();
        matches!(outcome, UpstreamActionOutcome::Queued(_))
    }

    /// Edits a template at the provider, and then here.
    async fn conflict(&mut self, connected: &Connected, name: &str) {
        let own = vec![self.templates[name].0];
        let rows = connected.service.store.mirror_of(connected.account, own).await.unwrap();
        let Some(row) = rows.into_iter().find(MirroredTemplate::is_present) else { return };
        self.conflicts += 1;
        let number = self.conflicts;
        let theirs = format!("Hello {{{{1}}}}, their text number {number} is on its way.");
        edit_outside(connected, &row.id, name, &theirs).await;
        // What was seen before is not believed any more.
        connected.advance(LOOK_EXPIRED);
        let ours = format!("Hello {{{{1}}}}, our text number {number} is on its way.");
        self.store(connected, name, &ours).await;
        self.templates.get_mut(name).unwrap().1 = ours;
        self.in_conflict = Some(name.to_owned());
    }

    /// Pushes the content of the template that is in conflict, if there is one.
    pub(super) async fn push_conflict(&mut self, connected: &Connected) -> bool {
        let Some(name) = self.in_conflict.take() else { return false };
        assert!(self.act(connected, &name, UpstreamAction::Push).await, "{name}");
        true
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
            let name = &mirrored.name;
            if wanted != Some(&text) {
                violations.push(format!("{name} has the text {text:?}, not {wanted:?}"));
            }
            let status = connected.provided_status(&mirrored.id).await;
            if (status == "ARCHIVED") != self.archive.contains(name) {
                violations.push(format!("{name} is {status}"));
            }
        }
        let events = connected.provider_events().await;
        for (kind, wanted) in [
            ("template.created", self.created),
            ("template.edited", self.edited + 2 * self.conflicts),
            ("template.deleted", self.deleted),
            ("template.archived", self.archived),
            ("template.unarchived", self.unarchived),
        ] {
            let made = events.iter().filter(|it| **it == kind).count();
            if made != wanted {
                violations.push(format!("{made} times {kind} at the provider, not {wanted}"));
            }
        }
        let operations = all_operations(connected).await;
        let count = |state| operations.iter().filter(|it| it.operation.state == state).count();
        let found = (count(OperationState::Done), count(OperationState::Superseded));
        let superseded = self.reverted + self.conflicts;
        let expected = (self.operations() - superseded, superseded);
        if found != expected || operations.len() != self.operations() {
            let all = operations.len();
            violations.push(format!(
                "of {all} operations (done, superseded) {found:?}, not {expected:?}"
            ));
        }
        violations
    }
}

/// Edits a template at the provider, whatever calls to it fail.
async fn edit_outside(connected: &Connected, id: &RemoteId, name: &str, text: &str) {
    let emulator = connected.emulator();
    let template: TemplateId = id.as_str().parse().unwrap();
    let mut document = order(name);
    document["components"][0]["text"] = json!(text);
    let edit = json!({"components": document["components"]}).to_string();
    for _ in 0..MAX_OUTSIDE_CALLS {
        let request = Request::builder().method(Method::POST).uri(format!("/v23.0/{id}"));
        let request = request.header(header::AUTHORIZATION, format!("Bearer {TOKEN}"));
        let _ = emulator.handle(request.body(Body::from(edit.clone())).unwrap()).await;
        let stored = emulator.store.template(emulator.account, template).await.unwrap().unwrap();
        if stored.template.content().contains(text) {
            return;
        }
    }
    panic!("the provider does not make the edit");
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
