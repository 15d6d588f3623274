//! What an edit writes, and when it is refused because of its version or its category.

use std::borrow::Cow;

use galley_domain::{
    id::AccountId,
    rulebook::Category,
    template::{
        Status,
        edit::Edit,
        lifecycle::{EventType, State},
        message_text::MessageText,
        sample,
    },
};

use super::Planned;
use crate::{
    ChangeOutcome, MAX_VERSIONS, StoredTemplate, Version, decisions::stored_bytes::version_bytes,
    encoding::text_hash,
};

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

/// The other languages of a template's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Siblings {
    /// The template has no translation group: its name has only one language.
    NoGroup,
    /// The template is the only one in its group.
    Absent,
    /// The group contains other templates.
    Present,
}

impl Siblings {
    /// The siblings of a template, by whether it has a group and whether others are in it.
    pub(crate) fn new(has_group: bool, has_others: bool) -> Self {
        match (has_group, has_others) {
            (false, _) => Self::NoGroup,
            (true, false) => Self::Absent,
            (true, true) => Self::Present,
        }
    }
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
    /// Whether the edit changes the category. If so, the backend calls
    /// [`category_refusal`](Self::category_refusal).
    pub(crate) fn changes_category(&self) -> bool {
        self.planned.previous_category().is_some()
    }

    /// Why the category cannot change, if it cannot: all templates of a translation group have the
    /// same category, and a live version keeps it.
    pub(crate) fn category_refusal(&self, siblings: Siblings) -> Option<ChangeOutcome> {
        let old = self.planned.previous_category()?;
        match siblings {
            Siblings::NoGroup => None,
            Siblings::Present => Some(ChangeOutcome::GroupCategory(old)),
            Siblings::Absent => {
                let live_version = self.planned.before.state.live_version();
                live_version.map(|_| ChangeOutcome::LiveCategory(old))
            }
        }
    }

    /// Whether the edit counts towards the limits of an account that has them.
    pub(crate) fn is_counted(&self) -> bool {
        self.planned.before.state.status() == Status::Approved
    }

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
