//! Decodes the rows of versions.

use galley_domain::rulebook::Category;

use crate::{Decision, StoreError, Version, VersionSummary, stored_row::StoredRow};

/// The version in a row.
pub(crate) fn version(row: &impl StoredRow) -> Result<Version, StoreError> {
    let VersionSummary {
        number,
        status,
        category,
        previous_category,
        created_at,
        created_by,
        decision,
    } = summary(row)?;
    let content = row.value("content")?;
    Ok(Version {
        number,
        status,
        category,
        previous_category,
        content,
        created_at,
        created_by,
        decision,
    })
}

/// The version in a row that has no content.
pub(crate) fn summary(row: &impl StoredRow) -> Result<VersionSummary, StoreError> {
    Ok(VersionSummary {
        number: row.number("version")?,
        status: row.status("status")?,
        category: row.category("category")?,
        previous_category: row
            .optional("previous_category", |category: String| Category::parse(&category))?,
        created_at: row.timestamp("created_at")?,
        created_by: row.actor("actor")?,
        decision: decision(row)?,
    })
}

/// The reviewer's decision, once there is one.
fn decision(row: &impl StoredRow) -> Result<Option<Decision>, StoreError> {
    let Some(at) = row.optional_timestamp("decided_at")? else { return Ok(None) };
    Ok(Some(Decision { at, by: row.actor("decided_by")?, reason: row.value("reason")? }))
}
