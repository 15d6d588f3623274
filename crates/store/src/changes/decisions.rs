//! What an edit, a review or a deletion does to a template: a refusal, or the next state with the
//! category, the revision and the events.

mod authors;
mod deletions;
mod edit;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, iter};

use galley_domain::{
    rulebook::Category,
    template::{
        Review,
        lifecycle::{EventType, InvalidTransition, State, Trigger},
    },
};
use jiff::Timestamp;

pub(crate) use self::{
    authors::{FourEyes, VersionAuthor, tokens_of_person},
    deletions::{Initiator, deleted, plan_deletions},
    edit::{
        ExpiredVersions, MAX_EXPIRED_VERSIONS, PlannedEdit, Siblings, accepted_edit, plan_edit,
    },
};
use crate::{
    Actor, ChangeOutcome, CredentialId, StoredTemplate, TemplateChange, emulator::Emulation,
    events::NewEvent,
};

/// A change that the state of the template allows.
pub(crate) struct Planned {
    /// The template before the change.
    pub(crate) before: StoredTemplate,
    /// Its state after the change.
    pub(crate) next: State,
    /// Its category after the change.
    pub(crate) category: Category,
    event: EventType,
    /// Whether it makes the content of a provider a version.
    is_accepted: bool,
    /// The time of the clock of an emulator account.
    emulated_at: Option<Timestamp>,
}

/// Plans a change of the stored template, or refuses it. `emulation`: how an emulator account decides.
pub(crate) fn plan(
    change: &TemplateChange,
    trigger: Trigger,
    stored: Option<StoredTemplate>,
    emulation: Option<Emulation>,
) -> Result<Planned, ChangeOutcome> {
    let before = stored.ok_or(ChangeOutcome::NoTemplate)?;
    let is_expected = change.expected.as_ref().is_none_or(|it| it.contains(&before.revision))
        && change.version.is_none_or(|version| version == before.state.version);
    if !is_expected {
        return Err(ChangeOutcome::RevisionMismatch(before.revision));
    }
    let applied = if trigger == Trigger::Edit && Emulation::edits_in_place(emulation) {
        before.state.edited_in_place()
    } else {
        before.state.apply(trigger, change.review)
    };
    let (next, event) = applied
        .and_then(|next| decided_refusal(trigger, change.review, &before).map_or(Ok(next), Err))
        .map_err(|refusal| ChangeOutcome::InvalidTransition(undecided(refusal, change, &before)))?;
    let category = before.template.category();
    let emulated_at = emulation.map(|it| it.now);
    Ok(Planned { before, next, category, event, is_accepted: false, emulated_at })
}

/// Refuses a second decision on a version of a connected account. The version of any other account
/// has another status after the first one.
fn decided_refusal(
    trigger: Trigger,
    review: Review,
    before: &StoredTemplate,
) -> Option<InvalidTransition> {
    let is_decision = DECISIONS.contains(&trigger) && review == Review::InHouseThenProvider;
    (is_decision && before.decided_by.is_some()).then(|| InvalidTransition {
        status: before.state.status(),
        possible: before.state.possible_triggers(review),
    })
}

/// A refusal that offers no second decision on a version of a connected account.
fn undecided(
    mut refusal: InvalidTransition,
    change: &TemplateChange,
    before: &StoredTemplate,
) -> InvalidTransition {
    if change.review == Review::InHouseThenProvider && before.decided_by.is_some() {
        refusal.possible.retain(|trigger| !DECISIONS.contains(trigger));
    }
    refusal
}

const DECISIONS: [Trigger; 2] = [Trigger::Approve, Trigger::Reject];

impl Planned {
    /// The category before the change, if the change replaces it.
    pub(crate) fn previous_category(&self) -> Option<Category> {
        Some(self.before.template.category()).filter(|before| *before != self.category)
    }

    /// The category before the change as it is stored. An edit does not end the hold of a template
    /// whose category the provider of the account has changed.
    pub(crate) fn stored_previous_category(&self, review: Review) -> Option<Category> {
        let before = &self.before;
        if self.is_accepted && !before.template.allow_category_change() {
            return None;
        }
        let is_held = !self.is_accepted && review.is_by_provider() && before.is_category_held();
        self.previous_category().or_else(|| before.previous_category.filter(|_| is_held))
    }

    /// Whether the change is a reviewer's decision on the newest version, which stores its reason.
    pub(crate) fn is_decision(&self) -> bool {
        matches!(self.event, EventType::Approved | EventType::Rejected | EventType::ReviewPassed)
    }

    /// The version that the change submits to the provider of a connected account.
    pub(crate) fn submitted_version(&self, review: Review) -> Option<u64> {
        let is_submitted = match self.event {
            EventType::Edited => review.submits_at_once() && !self.is_accepted,
            EventType::ReviewPassed => true,
            _ => false,
        };
        is_submitted.then_some(self.next.version)
    }

    /// The token that decides, if the change is a decision of a client. Four eyes apply to it.
    pub(crate) fn reviewer(&self, change: &TemplateChange) -> Option<CredentialId> {
        match change.actor {
            Actor::Token(token) if self.is_decision() => Some(token),
            _ => None,
        }
    }

    /// Whether four eyes permit the decision of a person, by the authors of all stored versions,
    /// newest first.
    pub(crate) fn four_eyes(
        &self,
        person: &HashSet<CredentialId>,
        versions: &[VersionAuthor],
    ) -> FourEyes {
        if versions.first().is_some_and(|newest| authors::is_by(newest.author, person)) {
            FourEyes::Refused
        } else if self.makes_live() {
            authors::by_authors(versions, self.before.state.approved_version, person)
        } else {
            FourEyes::Permitted
        }
    }

    /// Whether the decision approves the version, here or for a provider.
    fn makes_live(&self) -> bool {
        matches!(self.event, EventType::Approved | EventType::ReviewPassed)
    }

    /// The revision after the change: each event increments it.
    pub(crate) fn revision(&self) -> u64 {
        self.before.revision + self.event_types().count() as u64
    }

    /// The events of the change, in order.
    pub(crate) fn events<'r>(
        &self,
        change: &TemplateChange,
        reason: Option<&'r str>,
    ) -> impl Iterator<Item = NewEvent<'r>> {
        self.event_types().map(move |kind| NewEvent {
            account: change.account,
            kind,
            template: change.id,
            version: self.next.version,
            at: change.at,
            emulated_at: self.emulated_at,
            actor: change.actor,
            category: self.category,
            status: self.next.status(),
            reason,
            trace: change.trace,
        })
    }

    fn event_types(&self) -> impl Iterator<Item = EventType> + use<> {
        let category_changed = self.previous_category().map(|_| EventType::CategoryChanged);
        iter::once(self.event).chain(category_changed)
    }
}

/// The outcome of a change, from the template that was read after it.
pub(crate) fn done(changed: Option<StoredTemplate>) -> ChangeOutcome {
    changed.map_or(ChangeOutcome::NoTemplate, |changed| ChangeOutcome::Done(Box::new(changed)))
}
