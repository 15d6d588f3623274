//! A change by a client or a reviewer that is planned: the next state of the template, and its events.

use std::{borrow::Cow, iter};

use galley_domain::{
    rulebook::Category,
    template::{
        Review,
        lifecycle::{EventType, State},
    },
};
use jiff::Timestamp;

use crate::{StoredTemplate, TemplateChange, events::NewEvent};

/// A change that the state of the template allows.
pub(crate) struct Planned {
    /// The template before the change.
    pub(crate) before: StoredTemplate,
    /// Its state after the change.
    pub(crate) next: State,
    /// Its category after the change.
    pub(crate) category: Category,
    pub(crate) event: EventType,
    /// Whether it makes the content of a provider a version.
    pub(crate) is_accepted: bool,
    /// The time of the clock of an emulator account.
    pub(crate) emulated_at: Option<Timestamp>,
}

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
            reason: reason.map(Cow::Borrowed),
            trace: change.trace,
        })
    }

    fn event_types(&self) -> impl Iterator<Item = EventType> + use<> {
        let category_changed = self.previous_category().map(|_| EventType::CategoryChanged);
        iter::once(self.event).chain(category_changed)
    }
}
