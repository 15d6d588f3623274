//! A property of edits at a provider: whatever is edited, lost, accepted or changed by others, an
//! operation is done only if the provider has exactly its version, and a version is live only if the
//! provider has approved exactly it.

use galley_domain::upstream::{
    CallDone, LostCall, Operation, OperationKind, OperationState, ProbeResult, Replaced,
    content::{ContentMatch, VersionContent},
    observation::Created,
};
use proptest::prelude::*;
use serde_json::{Value, json};

mod documents;
mod events;

use self::events::{Event, Look, PlannedFrom, history};
use super::*;
use crate::upstream::{
    actions::{PlannedAction, Provided, plan_action},
    decisions::content::imported_content,
    operations::outcomes::{TemplateIdentity, called},
};
use crate::{StoredOperation, TemplateChange, UpstreamAction};

/// What the provider has.
#[derive(Clone, Debug)]
struct Provision {
    content: Value,
    status: &'static str,
    updated_at: i64,
    /// Whether another author has edited it, and no person has accepted that.
    is_foreign: bool,
}

/// The account and the provider.
struct Model {
    is_code: bool,
    /// Whether the provider shows phone numbers in a notation of its own.
    rewrites: bool,
    versions: Vec<Value>,
    local: StoredTemplate,
    operation: StoredOperation,
    row: MirroredTemplate,
    /// The document that is stored with the row.
    document: String,
    provided: Provision,
    /// What the provider had before the last change, unless that was read.
    former: Provision,
    /// When the provider got the last call.
    called_at: i64,
    /// What the provider has approved.
    approved: Vec<Value>,
    now: i64,
}

/// Writes phone numbers as some providers show them.
fn rewrite_numbers(content: &mut Value) {
    let components = content["components"].as_array_mut().into_iter().flatten();
    for button in components.filter_map(|it| it["buttons"].as_array_mut()).flatten() {
        if let Some(number) = button["phone_number"].as_str() {
            let digits = number.replace(|it: char| !it.is_ascii_digit(), "");
            button["phone_number"] = json!(format!("+{digits}"));
        }
    }
}

impl Model {
    fn new(first: Value, rewrites: bool) -> Self {
        let is_code = first.pointer("/components/1/buttons/0/otp_type").is_some();
        let state = State {
            version: 1,
            newest_status: Status::Pending,
            approved_version: None,
            hold: None,
        };
        let local = StoredTemplate { template: template(is_code, &first), ..stored(state) };
        let operation = queued(1, None);
        let created = Created {
            id: remote("APPROVED", "").id,
            status: galley_domain::upstream::RemoteStatus::Approved,
            category: None,
        };
        let identity = TemplateIdentity {
            id: local.id,
            name: "a".to_owned(),
            language: "en".to_owned(),
            category: local.template.category().as_str().to_owned(),
        };
        let row = called(&CallDone::Created(created), 1, &[], Some(&identity), time(1)).unwrap();
        let provided = Provision {
            content: first.clone(),
            status: "APPROVED",
            updated_at: 1,
            is_foreign: false,
        };
        let mut model = Self {
            is_code,
            rewrites,
            versions: vec![first.clone()],
            local,
            operation,
            row,
            document: String::new(),
            former: provided.clone(),
            provided,
            called_at: 0,
            approved: vec![first],
            now: 100,
        };
        model.operation.operation.state = OperationState::Done;
        model.observe(Look::Read, None);
        assert_eq!(model.local.state.live_version(), Some(1));
        model
    }

    /// The provider gets another content, or another status.
    fn provide(&mut self, content: Value, status: &'static str, is_foreign: bool) {
        let provided = Provision { content, status, updated_at: self.now, is_foreign };
        self.former = std::mem::replace(&mut self.provided, provided);
        if status == "APPROVED" {
            self.approved.push(self.provided.content.clone());
        }
    }

    /// The content that the provider approves: without the file of a sample, which no read shows.
    fn approved(&self, content: &Value) -> Value {
        let mut content = content.clone();
        if let Some(handle) = content.pointer_mut("/components/0/example/header_handle") {
            *handle = json!(["https://cdn.example/a.png"]);
        }
        if self.rewrites {
            rewrite_numbers(&mut content);
        }
        content
    }

    /// The template as the provider shows it.
    fn remote(&self, provided: &Provision) -> RemoteTemplate {
        let mut shown = self.shown(&provided.content);
        let members = [
            ("id", "5"),
            ("name", "a"),
            ("language", "en"),
            ("status", provided.status),
            ("category", self.local.template.category().as_str()),
        ];
        for (key, value) in members {
            shown[key] = json!(value);
        }
        shown["last_updated_time"] = json!(provided.updated_at);
        RemoteTemplate::parse(&shown.to_string()).unwrap()
    }

    /// The content as the provider shows it.
    fn shown(&self, content: &Value) -> Value {
        let mut shown = self.approved(content);
        for component in shown["components"].as_array_mut().unwrap() {
            component.as_object_mut().unwrap().retain(|_, value| *value != json!(false));
            if self.is_code && component["type"] == "BODY" && component.get("text").is_none() {
                component["text"] = json!("{{1}} is your code.");
            }
            let buttons = component.get_mut("buttons").and_then(Value::as_array_mut);
            for button in buttons.into_iter().flatten() {
                if let Some(kind) = button.get("otp_type").and_then(Value::as_str) {
                    let url = format!("https://www.whatsapp.com/otp/code/?otp_type={kind}");
                    *button = json!({"type": "URL", "text": button["text"], "url": url});
                }
            }
        }
        shown
    }

    /// Observes what the provider has, and applies it.
    fn observe(&mut self, look: Look, confirmed: Option<u64>) {
        self.observe_provision(&self.provided.clone(), look, confirmed);
        if look == Look::Read {
            // Later looks show nothing older.
            self.former = self.provided.clone();
        }
        let Some(live) = self.local.state.live_version() else { return };
        // A look without the content tells nothing new.
        if look == Look::Read {
            assert!(
                self.is_version(live, &self.provided.content) && self.provided.status == "APPROVED"
            );
        }
    }

    fn observe_provision(&mut self, provided: &Provision, look: Look, confirmed: Option<u64>) {
        let mut remote = self.remote(provided);
        match (look, &remote.document) {
            (Look::Read, Some(document)) => self.document.clone_from(document),
            _ => remote.document = None,
        }
        let former = self.versions.iter().enumerate().rev().skip(1);
        let former: Vec<_> = former
            .map(|(index, content)| FormerVersion {
                number: index as u64 + 1,
                category: self.local.template.category(),
                content: content.to_string(),
            })
            .collect();
        let source = match look {
            Look::Header => Source::Page(1),
            Look::Read | Look::ReadWithoutContent => {
                Source::Read { asked: self.row.dirty_at, confirmed }
            }
        };
        let at = time(self.now + 50);
        let is_uncertain = self.operation.operation.state.is_uncertain();
        let observation = Observation {
            open_call: is_uncertain.then_some(OpenCall::Edit(self.operation.version)),
            seen_at: at,
            at,
            ..observation(&remote, &self.local, Some(&self.row), source)
        };
        let observed = observation.decide(&former);
        let versions = |state: State| (state.newest_status, state.approved_version);
        let before = (self.row.version, versions(self.local.state));
        self.follow(observed.change);
        self.row = observed.row;
        if look != Look::Read {
            assert_eq!((self.row.version, versions(self.local.state)), before);
        }
    }

    fn follow(&mut self, change: Option<LocalChange>) {
        let Some(change) = change else { return };
        self.local.state = change.changed.state;
        match change.changed.decision {
            Some(NewDecision::Made(_)) => self.local.decided_by = Some(Actor::Service),
            Some(NewDecision::Withdrawn) => self.local.decided_by = None,
            None => {}
        }
        let Some(live) = self.local.state.live_version() else { return };
        assert!(self.approved.iter().any(|it| self.is_version(live, it)), "{live}");
    }

    /// Whether a content of the provider is that of a version: all of it, if the account has written it.
    fn is_version(&self, version: u64, content: &Value) -> bool {
        let own = self.version(version);
        own == self.approved(content) || own["components"] == self.shown(content)["components"]
    }

    fn version(&self, version: u64) -> Value {
        self.approved(&self.versions[usize::try_from(version).unwrap() - 1])
    }

    fn done(&mut self) {
        self.operation.operation.state = OperationState::Done;
        assert!(self.is_version(self.operation.version, &self.provided.content));
    }

    fn apply(&mut self, event: Event) {
        let state = self.operation.operation.state;
        self.now += 100;
        let now = time(self.now);
        match event {
            Event::Edit(mut content, index) if !state.is_uncertain() => {
                let mut edited = self.versions.last().unwrap().clone();
                let component = format!("/components/{index}");
                if let (Some(old), Some(new)) =
                    (edited.pointer_mut(&component), content.pointer_mut(&component))
                {
                    *old = new.take();
                    content = edited;
                }
                self.add_version(content);
                self.operation = queued(self.local.state.version, None);
            }
            Event::Restore if !state.is_uncertain() && self.versions.len() > 1 => {
                self.add_version(self.versions[self.versions.len() - 2].clone());
                self.operation = queued(self.local.state.version, None);
            }
            Event::Push if !state.is_uncertain() && self.row.drifted => {
                self.operation = queued(self.local.state.version, self.row.content_key);
            }
            Event::Call { planned_from, is_made, is_answered }
                if state == OperationState::Queued =>
            {
                self.look_before_call(planned_from);
                if self.row.has_version(&self.local) {
                    return self.done();
                }
                if !self.operation.may_replace(&self.row)
                    && !self.operation.may_have_made(&self.local, &self.document)
                {
                    return;
                }
                self.operation =
                    self.operation.begun(std::slice::from_ref(&self.row), now).unwrap();
                if is_made {
                    self.called_at = self.now;
                    self.provide(self.versions.last().unwrap().clone(), "PENDING", false);
                }
                if is_made && is_answered {
                    let rows = std::slice::from_ref(&self.row);
                    let version = self.operation.version;
                    self.row = called(&CallDone::Edited, version, rows, None, now).unwrap();
                    self.done();
                } else {
                    self.operation.operation.state = OperationState::Unknown;
                }
            }
            Event::Probe if state == OperationState::Unknown => {
                let call = LostCall {
                    replaced: Replaced::Content(self.operation.replaces),
                    may_be_made: true,
                    sent_at: None,
                };
                let found = self.remote(&self.provided);
                let wanted = VersionContent::of(&self.local.template);
                let result = ProbeResult::compare(Some(&found), wanted, call);
                if result == ProbeResult::Equal {
                    self.observe(Look::Read, Some(self.operation.version));
                    self.done();
                } else {
                    self.observe(Look::Read, None);
                    self.operation.operation.state = OperationState::Queued;
                }
            }
            Event::Look { look, is_late: false } => self.observe(look, None),
            Event::Look { look, is_late: true } => {
                self.observe_provision(&self.former.clone(), look, None);
            }
            Event::Review(status) => {
                let Provision { content, is_foreign, .. } = self.provided.clone();
                self.provide(content, status, is_foreign);
            }
            Event::Accept => self.accept(),
            Event::Outside(content, status) if !self.imitates_sent(&content) => {
                self.provide(content, status, true);
            }
            Event::Imitation
                if self.row.drifted && self.row.version.or(self.row.sent_version).is_none() =>
            {
                let mut content = self.versions.last().unwrap().clone();
                let app = "/components/1/buttons/0/supported_apps/0/package_name";
                if let Some(app) = content.pointer_mut(app) {
                    *app = json!("of another author");
                    self.provide(content, "PENDING", true);
                }
            }
            _ => {}
        }
    }

    /// Looks at the template before a call. Only a look of now shows what others have done since the last
    /// one. A late read shows what was seen before the last call.
    fn look_before_call(&mut self, planned_from: PlannedFrom) {
        let is_called = self.provided.updated_at == self.called_at;
        let is_seen = |it: &Provision| self.row.remote_updated_at == Some(time(it.updated_at));
        match planned_from {
            PlannedFrom::LateRead if is_called && is_seen(&self.former) => {
                self.observe_provision(&self.former.clone(), Look::Read, None);
            }
            PlannedFrom::Row
                if (is_called || is_seen(&self.provided))
                    && !self.row.may_have_changed(time(self.now)) => {}
            _ => self.observe(Look::Read, None),
        }
    }

    /// Whether a content looks like a version that was sent and not seen yet: no read tells who wrote it.
    fn imitates_sent(&self, content: &Value) -> bool {
        let provided = Provision { content: content.clone(), ..self.provided.clone() };
        let document = self.remote(&provided).document.unwrap();
        let is_alike = |own: &Value| {
            let (category, own) = (self.local.template.category(), own.to_string());
            VersionContent { category, content: &own }.compare(&document) == ContentMatch::Alike
        };
        self.row.sent_version.is_some() && self.versions.iter().any(is_alike)
    }

    fn add_version(&mut self, content: Value) {
        self.local.template = template(self.is_code, &content);
        self.versions.push(content);
        self.local.state.version += 1;
        self.local.state.newest_status = Status::Pending;
        self.local.decided_by = None;
    }

    fn accept(&mut self) {
        let change = TemplateChange {
            account: account(),
            id: self.local.id,
            expected: None,
            version: None,
            review: Review::Provider,
            actor: Actor::Operator,
            trace: None,
            at: time(self.now),
        };
        let (rows, operations) = (vec![self.row.clone()], vec![self.operation.clone()]);
        let provided = Provided { rows, operations };
        let planned =
            plan_action(UpstreamAction::Accept, &change, Some(&self.local), &provided, None);
        let Ok(PlannedAction::Accept(row)) = planned else { return };
        let content = imported_content(&self.document).unwrap();
        self.add_version(serde_json::from_str(&content).unwrap());
        self.follow(LocalChange::accepted(account(), &self.local, &row, change.at));
        self.row = row.accepted_as(self.local.state.version);
        let is_current = self.is_version(self.local.state.version, &self.provided.content);
        self.provided.is_foreign = !is_current;
        self.operation.operation.state = OperationState::Superseded;
    }
}

pub(super) fn queued(version: u64, replaces: Option<ContentKey>) -> StoredOperation {
    StoredOperation {
        id: 1,
        template: TemplateId::new(9).unwrap(),
        name: None,
        language: None,
        version,
        operation: Operation::new(OperationKind::Edit),
        replaces,
        created_at: time(0),
        sent_at: None,
        updated_at: time(0),
    }
}

#[expect(clippy::disallowed_methods, reason = "a test needs no valid template")]
fn template(is_code: bool, content: &Value) -> Template {
    let category = if is_code { Category::Authentication } else { Category::Utility };
    Template::restore("a".to_owned(), "en".to_owned(), category, true, content.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn only_what_the_provider_has_is_done_or_live(
        (first, events) in history(),
        rewrites in any::<bool>(),
    ) {
        let mut model = Model::new(first, rewrites);
        for event in events {
            model.apply(event);
        }
        // In the end, the newest version is sent, unless a person has to decide.
        model.apply(Event::Probe);
        model.apply(Event::Call { planned_from: PlannedFrom::Read, is_made: true, is_answered: true });
        model.apply(Event::Review("APPROVED"));
        model.observe(Look::Read, None);
        if !model.row.drifted && !model.provided.is_foreign {
            prop_assert_eq!(model.local.state.live_version(), Some(model.local.state.version));
        }
    }
}
