//! A template after changes of its state that are not edits: by a review script, or by what the
//! provider of the account shows.

use std::borrow::Cow;

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{
        lifecycle::{EventType, Hold, State},
        message_text::MessageText,
        quality::Quality,
    },
};
use jiff::Timestamp;

use super::update_checksum;
use crate::{
    Actor, NewTemplate, StoreError, StoredTemplate,
    encoding::{actor_key, text_hash},
    engine::{Tx, values},
    events::NewEvent,
};

/// What a change does to the decision on the newest version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NewDecision {
    /// It is decided, with this reason.
    Made(Option<String>),
    /// It is no longer decided.
    Withdrawn,
}

/// The message text after a change of the category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedText {
    /// Its index key; `None` if texts of the category are not compared.
    pub(crate) key: Option<[u8; 16]>,
}

impl ChangedText {
    /// The text of a content in another category.
    pub(crate) fn of(account: AccountId, category: Category, content: &str) -> Self {
        let text = MessageText::from_content(category, content);
        Self { key: text.map(|text| text_hash(account, &text)) }
    }
}

/// The row of a template after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangedTemplate {
    pub(crate) id: TemplateId,
    pub(crate) state: State,
    pub(crate) category: Category,
    pub(crate) previous_category: Option<Category>,
    pub(crate) announced_category: Option<Category>,
    pub(crate) quality: Quality,
    pub(crate) revision: u64,
    /// `None` if the decision stays as it is.
    pub(crate) decision: Option<NewDecision>,
    /// `None` if the text stays as it is.
    pub(crate) text: Option<ChangedText>,
    pub(crate) at: Timestamp,
}

impl ChangedTemplate {
    /// The row of a stored template, before what changes at a time.
    pub(crate) fn of(stored: &StoredTemplate, at: Timestamp) -> Self {
        Self {
            id: stored.id,
            state: stored.state,
            category: stored.template.category(),
            previous_category: stored.previous_category,
            announced_category: stored.announced_category,
            quality: stored.quality,
            revision: stored.revision,
            decision: None,
            text: None,
            at,
        }
    }

    /// The row of a template that was just created in this state.
    pub(crate) fn of_new(new: &NewTemplate, id: TemplateId, state: State) -> Self {
        Self {
            id,
            state,
            category: new.template.category(),
            previous_category: None,
            announced_category: None,
            quality: Quality::Unknown,
            revision: 1,
            decision: None,
            text: None,
            at: new.at,
        }
    }

    /// Counts a change by the service as a revision; returns its event.
    pub(crate) fn event(
        &mut self,
        account: AccountId,
        kind: EventType,
        reason: Option<String>,
    ) -> NewEvent<'static> {
        self.revision += 1;
        NewEvent {
            account,
            kind,
            template: self.id,
            version: self.state.version,
            at: self.at,
            emulated_at: None,
            actor: Actor::Service,
            category: self.category,
            status: self.state.status(),
            reason: reason.map(Cow::Owned),
            trace: None,
        }
    }
}

/// Writes the row of a template after a change by the service.
pub(crate) async fn write_state(
    tx: &mut Tx<'_>,
    changed: &ChangedTemplate,
) -> Result<(), StoreError> {
    let State { newest_status, approved_version, hold, .. } = changed.state;
    let quality = Some(changed.quality).filter(|it| *it != Quality::Unknown);
    let (decided_at, reason) = match &changed.decision {
        Some(NewDecision::Made(reason)) => (Some(changed.at), reason.as_deref()),
        Some(NewDecision::Withdrawn) | None => (None, None),
    };
    let update = "UPDATE template SET status = $2, live_version = $3, hold = $4, category = $5, \
                  previous_category = $6, announced_category = $7, quality = $8, updated_at = $9, \
                  revision = $10, reason = CASE WHEN $11 THEN $12 ELSE reason END, \
                  decided_at = CASE WHEN $11 THEN $13 ELSE decided_at END, \
                  decided_by = CASE WHEN $11 THEN $14 ELSE decided_by END, \
                  message_text = CASE WHEN $15 AND translation_group IS NOT NULL THEN $16 \
                  ELSE message_text END WHERE id = $1";
    let values = values![
        changed.id,
        newest_status.as_str(),
        approved_version,
        hold.map(Hold::as_str),
        changed.category.as_str(),
        changed.previous_category.map(Category::as_str),
        changed.announced_category.map(Category::as_str),
        quality.map(Quality::as_str),
        changed.at,
        changed.revision,
        changed.decision.is_some(),
        reason,
        decided_at,
        decided_at.map(|_| actor_key(Actor::Service)),
        changed.text.is_some(),
        changed.text.as_ref().and_then(|text| text.key),
    ];
    tx.execute(update, &values).await?;
    update_checksum(tx, changed.id)
}
