//! Decodes the rows of versions.

use galley_domain::rulebook::Category;

use crate::{Decision, StoreError, Version, stored_row::StoredRow};

/// The version in a row.
pub(crate) fn version(row: &impl StoredRow) -> Result<Version, StoreError> {
    Ok(Version {
        number: row.number("version")?,
        status: row.status("status")?,
        category: row.category("category")?,
        previous_category: row
            .optional("previous_category", |category: String| Category::parse(&category))?,
        content: row.value("content")?,
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
