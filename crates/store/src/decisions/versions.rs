//! Decodes the rows of versions.

use galley_domain::rulebook::Category;

use crate::{Actor, Decision, StoreError, Version, VersionSummary, stored_row::StoredRow};

/// The columns of a summary that a version with content does not have.
macro_rules! actor_names {
    () => {
        "coalesce((SELECT name FROM credential WHERE id = actor), '') AS actor_name, \
         coalesce((SELECT name FROM credential WHERE id = decided_by), '') AS decided_by_name, "
    };
}
pub(crate) use actor_names;

/// The version in a row.
pub(crate) fn version(row: &impl StoredRow) -> Result<Version, StoreError> {
    Ok(Version {
        number: row.number("version")?,
        status: row.status("status")?,
        category: row.category("category")?,
        previous_category: previous_category(row)?,
        content: row.value("content")?,
        created_at: row.timestamp("created_at")?,
        created_by: row.actor("actor")?,
        decision: decision(row)?,
    })
}

/// The version in a row that has the names of its actors and no content.
pub(crate) fn summary(row: &impl StoredRow) -> Result<VersionSummary, StoreError> {
    let (created_by, decision) = (row.actor("actor")?, decision(row)?);
    let decided_by = decision.as_ref().map_or(Actor::Service, |decision| decision.by);
    Ok(VersionSummary {
        number: row.number("version")?,
        status: row.status("status")?,
        category: row.category("category")?,
        previous_category: previous_category(row)?,
        created_at: row.timestamp("created_at")?,
        created_by,
        created_by_name: row.actor_name("actor_name", created_by)?,
        decision,
        decided_by_name: row.actor_name("decided_by_name", decided_by)?,
    })
}

fn previous_category(row: &impl StoredRow) -> Result<Option<Category>, StoreError> {
    row.optional("previous_category", |category: String| Category::parse(&category))
}

/// The reviewer's decision, once there is one.
fn decision(row: &impl StoredRow) -> Result<Option<Decision>, StoreError> {
    let Some(at) = row.optional_timestamp("decided_at")? else { return Ok(None) };
    Ok(Some(Decision { at, by: row.actor("decided_by")?, reason: row.value("reason")? }))
}
