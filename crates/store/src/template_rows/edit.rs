//! What an edit writes: the new version, and the former versions that it deletes.

use std::borrow::Cow;

use galley_domain::{
    id::AccountId,
    rulebook::Category,
    template::{
        Status,
        lifecycle::{EventType, State},
        message_text::MessageText,
        sample,
    },
};

use super::Planned;
use crate::{StoredTemplate, decisions::stored_bytes::version_bytes, encoding::text_hash};

/// How many of the newest versions of a template are kept. An edit deletes older ones, except the
/// approved version.
pub const MAX_VERSIONS: u64 = 100;

/// An edit whose version exists and whose category the template allows.
pub(crate) struct PlannedEdit<'e> {
    /// The transition, with the new category.
    pub(crate) planned: Planned,
    /// The new content; `None` if it stays.
    pub(crate) content: Option<Cow<'e, str>>,
}

/// The former versions that an edit deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExpiredVersions {
    /// The newest of them.
    pub(crate) last: u64,
    /// The approved version, which stays.
    pub(crate) except: Option<u64>,
}

/// Maximum number of versions that one edit deletes. Usually there is one; a template with more
/// loses the rest with its next edits.
pub(crate) const MAX_EXPIRED_VERSIONS: i64 = 16;

/// The new version that has this content and category of the provider. It waits for the status that
/// the provider shows; the rules for edits do not apply to what the provider already has.
pub(crate) fn accepted_edit(
    before: StoredTemplate,
    content: String,
    category: Option<Category>,
) -> PlannedEdit<'static> {
    let next =
        State { version: before.state.version + 1, newest_status: Status::Pending, ..before.state };
    let planned = Planned {
        category: category.unwrap_or(before.template.category()),
        before,
        next,
        event: EventType::Edited,
        is_accepted: true,
        emulated_at: None,
    };
    PlannedEdit { planned, content: Some(Cow::Owned(content)) }
}

impl PlannedEdit<'_> {
    /// The former versions that the edit deletes, if there can be any.
    pub(crate) fn expired_versions(&self) -> Option<ExpiredVersions> {
        let next = &self.planned.next;
        let last = next.version.checked_sub(MAX_VERSIONS).filter(|last| *last > 0)?;
        Some(ExpiredVersions { last, except: next.approved_version })
    }

    /// The quota bytes that the new version takes.
    pub(crate) fn added_bytes(&self) -> i64 {
        version_bytes(self.content.as_deref().unwrap_or(self.planned.before.template.content()))
    }

    /// The index key of the new message text.
    pub(crate) fn text_key(&self, account: AccountId) -> Option<[u8; 16]> {
        let content = self.content.as_deref().unwrap_or(self.planned.before.template.content());
        let text = MessageText::from_content(self.planned.category, content);
        text.map(|text| text_hash(account, &text))
    }

    /// The uploaded media that the new content references.
    pub(crate) fn media_handles(&self) -> impl Iterator<Item = &str> {
        self.content.as_deref().map(sample::referenced_names).into_iter().flatten()
    }
}
