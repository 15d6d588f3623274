//! Whether an edit, a review or a deletion of a template is refused, and by what.

mod authors;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::HashSet};

use galley_domain::template::{
    Review, Status,
    edit::Edit,
    lifecycle::{EventType, InvalidTransition, Trigger},
};

pub(super) use self::authors::{FourEyes, VersionAuthor, tokens_of_person};
use crate::{
    Actor, ChangeOutcome, CredentialId, StoredTemplate, TemplateChange, Version,
    emulator::Emulation,
    template_rows::{Planned, PlannedEdit},
};

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
    // Of a connected account, a version is decided once. That of any other account has another status
    // after the first decision.
    let is_decided = change.review == Review::InHouseThenProvider && before.decided_by.is_some();
    let mut refusal = match applied {
        Ok(_) if is_decided && DECISIONS.contains(&trigger) => InvalidTransition {
            status: before.state.status(),
            possible: before.state.possible_triggers(change.review),
        },
        Ok((next, event)) => {
            let category = before.template.category();
            let emulated_at = emulation.map(|it| it.now);
            return Ok(Planned { before, next, category, event, is_accepted: false, emulated_at });
        }
        Err(refusal) => refusal,
    };
    if is_decided {
        refusal.possible.retain(|trigger| !DECISIONS.contains(trigger));
    }
    Err(ChangeOutcome::InvalidTransition(refusal))
}

const DECISIONS: [Trigger; 2] = [Trigger::Approve, Trigger::Reject];

/// The other languages of a template's name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Siblings {
    /// Whether the template has a translation group; without one, its name has only one language.
    pub(crate) has_group: bool,
    /// Whether the group contains other templates.
    pub(crate) has_others: bool,
}

/// Plans the new version of a template, or refuses it. `restored` is the stored version that the
/// edit restores.
pub(crate) fn plan_edit(
    mut planned: Planned,
    edit: &Edit,
    restored: Option<Version>,
) -> Result<PlannedEdit<'_>, ChangeOutcome> {
    let old = planned.category;
    let (content, category) = match edit {
        Edit::Replace { content, category } => {
            (content.as_deref().map(Cow::Borrowed), category.unwrap_or(old))
        }
        Edit::Restore(_) => {
            let version = restored.ok_or(ChangeOutcome::NoVersion)?;
            (Some(Cow::Owned(version.content)), version.category)
        }
    };
    if category != old && !planned.before.template.allow_category_change() {
        return Err(ChangeOutcome::CategoryLocked(old));
    }
    planned.category = category;
    Ok(PlannedEdit { planned, content })
}

impl PlannedEdit<'_> {
    /// Why the category cannot change, if it cannot: all templates of a translation group have the
    /// same category, and a live version keeps it.
    pub(crate) fn category_refusal(&self, siblings: Siblings) -> Option<ChangeOutcome> {
        let old = self.planned.previous_category()?;
        if siblings.has_group && siblings.has_others {
            return Some(ChangeOutcome::GroupCategory(old));
        }
        let is_live = self.planned.before.state.live_version().is_some();
        (siblings.has_group && is_live).then_some(ChangeOutcome::LiveCategory(old))
    }

    /// Whether the edit counts towards the limits of an account that has them.
    pub(crate) fn is_counted(&self) -> bool {
        self.planned.before.state.status() == Status::Approved
    }
}

impl Planned {
    /// Whether the change is a reviewer's decision on the newest version, which stores its reason.
    pub(crate) fn is_decision(&self) -> bool {
        matches!(self.event, EventType::Approved | EventType::Rejected | EventType::ReviewPassed)
    }

    /// The version that the change submits to the provider of a connected account.
    pub(crate) fn submitted_version(&self, review: Review) -> Option<u64> {
        let is_submitted = match self.event {
            EventType::Edited => review.submits_at_once(),
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
        } else if matches!(self.event, EventType::Approved | EventType::ReviewPassed) {
            // It makes the version live, here or for a provider.
            authors::by_authors(versions, self.before.state.approved_version, person)
        } else {
            FourEyes::Permitted
        }
    }
}
