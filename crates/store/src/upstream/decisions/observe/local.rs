//! What an observation changes in the template of the account, the events of that, and which approval it
//! ends.

use galley_domain::{
    id::AccountId,
    rulebook::Category,
    template::{
        Status,
        lifecycle::{EventType, Hold, State},
        quality::QualityChange,
    },
    upstream::{RemoteId, RemoteStatus},
};
use jiff::Timestamp;

use crate::{
    Actor, EndReason, EndedApproval, MirroredTemplate, StoredTemplate, TemplateChange,
    events::NewEvent,
    template_rows::{ChangedTemplate, ChangedText, NewDecision},
};

/// A change of the account's template, with its events.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LocalChange {
    /// The row.
    pub(crate) changed: ChangedTemplate,
    /// The events, in order. The service causes them, unless a person accepts what the provider shows.
    pub(crate) events: Vec<NewEvent<'static>>,
    /// The approval that it ends.
    pub(crate) ended: Option<EndedApproval>,
}

/// What an observation tells about the account's template.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// The version with the provider's content.
    pub(super) matched: Option<u64>,
    /// Whether the observed template was known to be the account's template.
    pub(super) is_known: bool,
    /// Whether the content differs since now.
    pub(super) is_new_drift: bool,
    /// Whether the provider shows a former version in the category that it had before: the category of
    /// the newest version is an edit that was not sent yet.
    pub(super) is_category_unsent: bool,
}

impl LocalChange {
    /// The template as the provider shows it in a row of the mirror; `None` if nothing changes.
    pub(super) fn followed(
        account: AccountId,
        local: &StoredTemplate,
        row: &MirroredTemplate,
        seen: Seen,
        at: Timestamp,
    ) -> Option<Self> {
        let mut change = Changing::new(account, local, at);
        let is_decided = is_decided_by_provider(local, seen);
        let next = next_state(local, row, seen.matched, is_decided);
        let category = if seen.is_category_unsent {
            NextCategory { category: local.template.category(), previous: local.previous_category }
        } else {
            NextCategory::new(local, row)
        };
        change.version(next, row, seen, is_decided);
        let held_because = category.hold_reason(local.template.allow_category_change());
        if held_because.is_none() {
            change.hold(next.hold, None);
        }
        change.category(category, row, local.template.content());
        if held_because.is_some() {
            change.hold(next.hold.or(Some(Hold::Paused)), held_because);
        }
        change.quality(row);
        if seen.is_new_drift {
            change.event(EventType::Drifted, None);
        }
        let ended = EndedApproval::followed(local, change.changed.state, row, seen.matched);
        Some(Self { ended, ..change.finish(local)? })
    }

    /// The template after a person has made the content of this row its newest version: it has the
    /// status that the provider shows.
    pub(crate) fn accepted(
        account: AccountId,
        local: &StoredTemplate,
        row: &MirroredTemplate,
        at: Timestamp,
    ) -> Option<Self> {
        let matched = Some(local.state.version);
        let seen = Seen { matched, is_known: true, is_new_drift: false, is_category_unsent: false };
        Self::followed(account, local, row, seen, at)
    }

    /// The template after a person has accepted its category, which had put it on hold.
    pub(crate) fn accepted_category(
        change: &TemplateChange,
        local: &StoredTemplate,
        row: &MirroredTemplate,
    ) -> Option<Self> {
        let mut changing = Changing::new(change.account, local, change.at);
        changing.changed.previous_category = None;
        changing.hold(row.status.state().hold, None);
        if changing.events.is_empty() {
            changing.event(EventType::CategoryChanged, None);
        }
        let mut accepted = changing.finish(local)?;
        accepted.events.iter_mut().for_each(|event| event.actor = change.actor);
        Some(accepted)
    }

    /// The template without its approval, which is from the time before the account was connected:
    /// the provider does not have it. Who decided on the newest version stays known, so that it need
    /// not be reviewed again. `None` if nothing is approved.
    pub(crate) fn withdrawn(
        account: AccountId,
        local: &StoredTemplate,
        at: Timestamp,
    ) -> Option<Self> {
        let mut change = Changing::new(account, local, at);
        let state = &mut change.changed.state;
        if state.newest_status == Status::Approved {
            state.newest_status = Status::Pending;
        }
        state.approved_version = None;
        if *state == local.state {
            return None;
        }
        let reason = EndReason::NotProvided;
        change.event(EventType::Drifted, Some(reason.to_string()));
        let version = local.state.approved_version.unwrap_or(local.state.version);
        let ended = Some(EndedApproval::new(local, version, reason));
        Some(Self { ended, ..change.finish(local)? })
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

    /// The template after the provider was found not to have it any more. `rows` are the rows of the
    /// mirror that belong to it, before one of them was found to be `gone`; `None` if another one has
    /// taken its place.
    pub(crate) fn gone(
        account: AccountId,
        local: &StoredTemplate,
        gone: &RemoteId,
        rows: &[MirroredTemplate],
        at: Timestamp,
    ) -> Option<Self> {
        if rows.iter().any(|row| row.id != *gone && row.is_present()) {
            return None;
        }
        let mut change = Changing::new(account, local, at);
        change.changed.state.hold = Some(Hold::Disabled);
        change.event(EventType::Gone, None);
        change.finish(local)
    }
}

impl EndedApproval {
    pub(crate) fn new(local: &StoredTemplate, version: u64, reason: EndReason) -> Self {
        let (name, language) = (local.template.name(), local.template.language());
        let [name, language] = [name, language].map(str::to_owned);
        Self { template: local.id, name, language, version, reason }
    }

    /// The approval that ends when the template gets the state `after`, because of what a row
    /// shows with the content of the version `matched`. A later version that takes its place ends none.
    fn followed(
        local: &StoredTemplate,
        after: State,
        row: &MirroredTemplate,
        matched: Option<u64>,
    ) -> Option<Self> {
        let before = local.state;
        let approved = before.approved_version?;
        let is_kept = |after: Option<u64>| after.is_some_and(|after| after >= approved);
        let loses_live = before.live_version().is_some() && !is_kept(after.live_version());
        if is_kept(after.approved_version) && !loses_live {
            return None;
        }
        let reason = match matched {
            Some(version) if version < approved => EndReason::FormerVersion(version),
            None => EndReason::OtherContent,
            Some(_) if row.status == RemoteStatus::Approved => {
                let category = Category::parse(&row.category);
                EndReason::Category(category.unwrap_or(local.template.category()))
            }
            Some(_) => EndReason::Status(row.status.clone()),
        };
        Some(Self::new(local, approved, reason))
    }
}

/// The templates of a connected account that are approved, and that the mirror does not know, as an SQL
/// condition: the account approved them itself.
pub(crate) const OWN_APPROVALS: &str = "unique_key IS NOT NULL AND \
     (status = 'APPROVED' OR live_version IS NOT NULL) AND NOT EXISTS (SELECT 1 \
     FROM upstream_template m WHERE m.account_id = template.account_id AND \
     m.template_id = template.id)";

/// Templates that are not being sent to the provider, as an SQL condition. They lose their own approval
/// when the provider has listed all of its templates.
pub(crate) const UNSENT: &str = "NOT EXISTS (SELECT 1 FROM upstream_operation o WHERE \
     o.account_id = template.account_id AND o.template_id = template.id AND \
     o.state IN ('queued', 'sending', 'unknown', 'probing', 'held'))";

/// Whether the provider has decided on the newest version. It has not if the version was approved before
/// the account was connected to it, or is not sent yet.
fn is_decided_by_provider(local: &StoredTemplate, seen: Seen) -> bool {
    let is_approved = local.state.approved_version == Some(local.state.version);
    seen.is_known && (local.decided_by == Some(Actor::Service) || is_approved)
}

/// The state of a template that the provider shows, if the version `matched` has its content.
/// `is_decided`: the provider has decided on the newest version before.
fn next_state(
    local: &StoredTemplate,
    row: &MirroredTemplate,
    matched: Option<u64>,
    is_decided: bool,
) -> State {
    let before = local.state;
    let shown = row.status.state();
    let newest_status = match matched {
        // The status is about another content than the one that a reviewer of the account decided on.
        other
            if other != Some(before.version)
                && before.newest_status != Status::Approved
                && local.has_own_decision() =>
        {
            before.newest_status
        }
        // The status is about a former version, or about a content that the account does not have. The
        // newest version is not at the provider, or was rejected there.
        other
            if other != Some(before.version)
                && (other.is_some() || !is_decided || before.newest_status == Status::Rejected) =>
        {
            match before.newest_status {
                Status::Approved => Status::Pending,
                undecided => undecided,
            }
        }
        // The provider has rejected another content than the one that it had approved.
        None if shown.version_status == Some(Status::Rejected) => Status::Pending,
        _ => shown.version_status.unwrap_or(before.newest_status),
    };
    let approved_version = match shown.version_status {
        Some(Status::Approved) => matched,
        Some(_) => None,
        None => before.approved_version.filter(|version| Some(*version) == matched),
    };
    State { version: before.version, newest_status, approved_version, hold: shown.hold }
}

/// The category of a template that the provider shows.
#[derive(Clone, Copy)]
struct NextCategory {
    category: Category,
    previous: Option<Category>,
}

impl NextCategory {
    /// A template that does not allow another category keeps its first one as the previous category,
    /// until the provider shows that one again or a person accepts the other one.
    fn new(local: &StoredTemplate, row: &MirroredTemplate) -> Self {
        let (before, previous) = (local.template.category(), local.previous_category);
        let category = Category::parse(&row.category).unwrap_or(before);
        let previous = match previous {
            _ if category == before => previous,
            Some(first) if !local.template.allow_category_change() => {
                Some(first).filter(|first| *first != category)
            }
            _ => Some(before),
        };
        Self { category, previous }
    }

    /// Why the template is on hold, if it is because of its category.
    fn hold_reason(self, allow_category_change: bool) -> Option<String> {
        let previous = self.previous.filter(|_| !allow_category_change)?;
        let [from, to] = [previous, self.category].map(Category::as_str);
        Some(format!("the provider changed the category from {from} to {to}"))
    }
}

/// A template while an observation changes it.
struct Changing {
    account: AccountId,
    changed: ChangedTemplate,
    /// Who decided on the newest version before.
    decided_by: Option<Actor>,
    events: Vec<NewEvent<'static>>,
}

impl Changing {
    fn new(account: AccountId, local: &StoredTemplate, at: Timestamp) -> Self {
        let changed = ChangedTemplate::of(local, at);
        Self { account, changed, decided_by: local.decided_by, events: Vec::new() }
    }

    fn event(&mut self, kind: EventType, reason: Option<String>) {
        self.events.push(self.changed.event(self.account, kind, reason));
    }

    fn version(&mut self, next: State, row: &MirroredTemplate, seen: Seen, is_decided: bool) {
        let before = self.changed.state;
        let is_about_newest = seen.matched == Some(next.version);
        let is_approved = before.approved_version == Some(next.version);
        if !is_about_newest && is_decided && is_approved {
            // The version stays known as a decided one, although another content replaces it.
            let decision = NewDecision::Made(None);
            self.changed.decision = Some(decision).filter(|_| self.decided_by.is_none());
        }
        if !is_about_newest && !seen.is_known && self.decided_by == Some(Actor::Service) {
            // A former provider has decided on it, or this one on a template that it has no more.
            self.changed.decision = Some(NewDecision::Withdrawn);
        }
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
                self.decide(is_about_newest, NewDecision::Made(None));
                self.event(EventType::Approved, None);
            }
            Status::Rejected => {
                let reason = row.reason.clone();
                self.decide(is_about_newest, NewDecision::Made(reason.clone()));
                self.event(EventType::Rejected, reason);
            }
            _ => {
                self.decide(is_about_newest, NewDecision::Withdrawn);
                if !seen.is_new_drift {
                    self.event(EventType::Submitted, None);
                }
            }
        }
    }

    /// Records a decision of the provider, if it is about the newest version.
    fn decide(&mut self, is_about_newest: bool, decision: NewDecision) {
        if is_about_newest {
            self.changed.decision = Some(decision);
        }
    }

    fn hold(&mut self, hold: Option<Hold>, reason: Option<String>) {
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
        self.event(kind, reason.filter(|_| hold == Some(Hold::Paused)));
    }

    fn category(&mut self, next: NextCategory, row: &MirroredTemplate, content: &str) {
        let category = next.category;
        if category != self.changed.category {
            self.changed.category = category;
            self.changed.previous_category = next.previous;
            self.changed.text = Some(ChangedText::of(self.account, category, content));
            self.event(EventType::CategoryChanged, None);
        }
        let announced = row.correct_category.as_deref().and_then(Category::parse);
        let is_new =
            |it: &Category| *it != category && self.changed.announced_category != Some(*it);
        if let Some(announced) = announced.filter(is_new) {
            self.changed.announced_category = Some(announced);
            self.event(EventType::CategoryAnnounced, Some(announced.as_str().to_owned()));
        }
    }

    fn quality(&mut self, row: &MirroredTemplate) {
        let from = self.changed.quality;
        if let Some(to) = row.quality.filter(|to| *to != from) {
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
        let Self { changed, events, .. } = self;
        (!events.is_empty()).then_some(LocalChange { changed, events, ended: None })
    }
}
