//! A template after changes of its state that are not edits: by a review script, or by what the
//! provider of the account shows.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{lifecycle::State, message_text::MessageText, quality::Quality},
};
use jiff::Timestamp;

use crate::encoding::text_hash;

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
    /// The quality as it is stored.
    pub(crate) fn stored_quality(&self) -> Option<&'static str> {
        Some(self.quality).filter(|it| *it != Quality::Unknown).map(Quality::as_str)
    }

    /// The reason of the decision, if it has one.
    pub(crate) fn reason(&self) -> Option<&str> {
        match &self.decision {
            Some(NewDecision::Made(reason)) => reason.as_deref(),
            Some(NewDecision::Withdrawn) | None => None,
        }
    }

    /// The time of a decision that was made.
    pub(crate) fn decided_at(&self) -> Option<Timestamp> {
        matches!(self.decision, Some(NewDecision::Made(_))).then_some(self.at)
    }

    /// The key of the changed text.
    pub(crate) fn text_key(&self) -> Option<[u8; 16]> {
        self.text.as_ref().and_then(|text| text.key)
    }
}
