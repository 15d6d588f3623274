//! When an edit is refused because of its version or its category.

use std::borrow::Cow;

use galley_domain::template::{Status, edit::Edit};

use crate::{
    ChangeOutcome, Version,
    template_rows::{Planned, PlannedEdit},
};

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

impl PlannedEdit<'_> {
    /// Whether the edit changes the category. If so, the body calls
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
}
