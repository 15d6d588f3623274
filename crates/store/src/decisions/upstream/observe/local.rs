//! What an observation changes in the template of the account, and the events of that.

use galley_domain::{
    id::AccountId,
    rulebook::Category,
    template::{
        Status,
        lifecycle::{EventType, Hold, State},
        quality::QualityChange,
    },
    upstream::RemoteTemplate,
};
use jiff::Timestamp;

use crate::{
    Actor, StoredTemplate,
    decisions::{
        events::NewEvent,
        template_state::{ChangedTemplate, ChangedText, NewDecision},
    },
};

/// A change of the account's template, with its events.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LocalChange {
    account: AccountId,
    /// The row.
    pub(crate) changed: ChangedTemplate,
    events: Vec<ObservedEvent>,
}

#[derive(Debug, PartialEq, Eq)]
struct ObservedEvent {
    kind: EventType,
    state: State,
    category: Category,
    reason: Option<String>,
}

impl LocalChange {
    /// The events, in order.
    pub(crate) fn events(&self) -> impl Iterator<Item = NewEvent<'_>> {
        self.events.iter().map(|event| NewEvent {
            account: self.account,
            kind: event.kind,
            template: self.changed.id,
            version: event.state.version,
            at: self.changed.at,
            emulated_at: None,
            actor: Actor::Service,
            category: event.category,
            status: event.state.status(),
            reason: event.reason.as_deref(),
            trace: None,
        })
    }

    /// The template as the provider shows it; `None` if nothing changes. `matched` is the version
    /// with the provider's content, and `is_new_drift` says that the content differs since now.
    pub(super) fn followed(
        account: AccountId,
        local: &StoredTemplate,
        remote: &RemoteTemplate,
        matched: Option<u64>,
        is_new_drift: bool,
        at: Timestamp,
    ) -> Option<Self> {
        let mut change = Changing::new(account, local, at);
        let next = next_state(local.state, remote, matched);
        change.version(next, remote, is_new_drift);
        change.hold(next.hold);
        change.category(remote, local.template.content());
        change.quality(remote);
        if is_new_drift {
            change.event(EventType::Drifted, None);
        }
        change.finish(local)
    }

    /// The unchanged template, with an event.
    pub(crate) fn told(
        account: AccountId,
        local: &StoredTemplate,
        kind: EventType,
        reason: Option<String>,
        at: Timestamp,
    ) -> Option<Self> {
        let mut change = Changing::new(account, local, at);
        change.event(kind, reason);
        change.finish(local)
    }

    /// The template after the provider was found not to have it any more.
    pub(crate) fn gone(account: AccountId, local: &StoredTemplate, at: Timestamp) -> Option<Self> {
        let mut change = Changing::new(account, local, at);
        change.changed.state.hold = Some(Hold::Disabled);
        change.event(EventType::Gone, None);
        change.finish(local)
    }
}

/// The state of a template that the provider shows, if the version `matched` has its content.
fn next_state(before: State, remote: &RemoteTemplate, matched: Option<u64>) -> State {
    let shown = remote.status.state();
    let newest_status = match matched {
        // The status is about a former version. The newest one is not at the provider.
        Some(version) if version != before.version => match before.newest_status {
            Status::Approved => Status::Pending,
            undecided => undecided,
        },
        _ => shown.version_status.unwrap_or(before.newest_status),
    };
    let approved_version = match shown.version_status {
        Some(Status::Approved) => matched,
        Some(_) => None,
        None => before.approved_version.filter(|version| Some(*version) == matched),
    };
    State { version: before.version, newest_status, approved_version, hold: shown.hold }
}

/// A template while an observation changes it.
struct Changing {
    account: AccountId,
    changed: ChangedTemplate,
    events: Vec<ObservedEvent>,
}

impl Changing {
    fn new(account: AccountId, local: &StoredTemplate, at: Timestamp) -> Self {
        let changed = ChangedTemplate {
            id: local.id,
            state: local.state,
            category: local.template.category(),
            previous_category: local.previous_category,
            announced_category: local.announced_category,
            quality: local.quality,
            revision: local.revision,
            decision: None,
            text: None,
            at,
        };
        Self { account, changed, events: Vec::new() }
    }

    fn event(&mut self, kind: EventType, reason: Option<String>) {
        let ChangedTemplate { state, category, .. } = self.changed;
        self.changed.revision += 1;
        self.events.push(ObservedEvent { kind, state, category, reason });
    }

    fn version(&mut self, next: State, remote: &RemoteTemplate, is_new_drift: bool) {
        let before = self.changed.state;
        self.changed.state = State { hold: before.hold, ..next };
        let is_newly_live =
            next.approved_version.is_some() && next.approved_version != before.approved_version;
        if next.newest_status == before.newest_status {
            if is_newly_live {
                self.event(EventType::Approved, None);
            }
            return;
        }
        match next.newest_status {
            Status::Approved => {
                self.changed.decision = Some(NewDecision::Made(None));
                self.event(EventType::Approved, None);
            }
            Status::Rejected => {
                let reason = remote.rejected_reason.clone();
                self.changed.decision = Some(NewDecision::Made(reason.clone()));
                self.event(EventType::Rejected, reason);
            }
            _ => {
                self.changed.decision = Some(NewDecision::Withdrawn);
                if !is_new_drift {
                    self.event(EventType::Submitted, None);
                }
            }
        }
    }

    fn hold(&mut self, hold: Option<Hold>) {
        let before = self.changed.state.hold;
        if hold == before {
            return;
        }
        self.changed.state.hold = hold;
        let kind = match (hold, before) {
            (Some(Hold::Paused), _) => EventType::Paused,
            (Some(Hold::Disabled), _) => EventType::Disabled,
            (Some(Hold::Archived), _) => EventType::Archived,
            (None, Some(Hold::Archived)) => EventType::Unarchived,
            (None, _) => EventType::Resumed,
        };
        self.event(kind, None);
    }

    fn category(&mut self, remote: &RemoteTemplate, content: &str) {
        let before = self.changed.category;
        let category = Category::parse(&remote.category).unwrap_or(before);
        if category != before {
            self.changed.category = category;
            self.changed.previous_category = Some(before);
            self.changed.text = Some(ChangedText::of(self.account, category, content));
            self.event(EventType::CategoryChanged, None);
        }
        let announced = remote.correct_category.as_deref().and_then(Category::parse);
        let is_new =
            |it: &Category| *it != category && self.changed.announced_category != Some(*it);
        if let Some(announced) = announced.filter(is_new) {
            self.changed.announced_category = Some(announced);
            self.event(EventType::CategoryAnnounced, Some(announced.as_str().to_owned()));
        }
    }

    fn quality(&mut self, remote: &RemoteTemplate) {
        let from = self.changed.quality;
        if let Some(to) = remote.quality.filter(|to| *to != from) {
            self.changed.quality = to;
            let change = QualityChange { from, to };
            self.event(EventType::QualityChanged, Some(change.to_string()));
        }
    }

    /// The change, if there is one. Every change has an event: the search index follows them.
    fn finish(mut self, local: &StoredTemplate) -> Option<LocalChange> {
        if self.events.is_empty() && self.changed.state != local.state {
            self.event(EventType::Drifted, None);
        }
        let Self { account, changed, events } = self;
        (!events.is_empty()).then_some(LocalChange { account, changed, events })
    }
}
