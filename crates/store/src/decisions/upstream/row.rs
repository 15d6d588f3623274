//! How a row of the mirror is decoded.

use galley_domain::{
    id::TemplateId,
    template::quality::Quality,
    upstream::{RemoteId, RemoteStatus},
};

use crate::{MirroredTemplate, StoreError, ToRead, stored_row::StoredRow};

/// The columns that [`mirrored`] reads.
pub(crate) const MIRROR_COLUMNS: &str = "remote_id, template_id, name, language, status, category, \
     correct_category, quality, reason, remote_updated_at, content_key, version, drifted, \
     observed_at, changed_at, sweep, missing, gone_at, dirty_at, info";

/// A row of the mirror.
pub(crate) fn mirrored(row: &impl StoredRow) -> Result<MirroredTemplate, StoreError> {
    let template = |id: i64| TemplateId::new(u64::try_from(id).ok()?);
    Ok(MirroredTemplate {
        id: row.parsed("remote_id", RemoteId::parse)?,
        template: row.optional("template_id", template)?,
        name: row.value("name")?,
        language: row.value("language")?,
        status: row.parsed("status", |word| Some(RemoteStatus::parse(word)))?,
        category: row.value("category")?,
        correct_category: row.value("correct_category")?,
        quality: row.optional("quality", |word: String| Quality::parse(&word))?,
        reason: row.value("reason")?,
        remote_updated_at: row.optional_timestamp("remote_updated_at")?,
        content_key: row.optional("content_key", |key: Vec<u8>| key.try_into().ok())?,
        version: row.optional("version", |version: i64| u64::try_from(version).ok())?,
        drifted: row.value("drifted")?,
        observed_at: row.timestamp("observed_at")?,
        changed_at: row.timestamp("changed_at")?,
        sweep: row.number("sweep")?,
        missing: row.decoded("missing", |count: i64| u32::try_from(count).ok())?,
        gone_at: row.optional_timestamp("gone_at")?,
        dirty_at: row.optional_timestamp("dirty_at")?,
        info: row.value("info")?,
    })
}

/// A template to read, from a row with `remote_id`, `dirty_at` and `missing`.
pub(crate) fn to_read(row: &impl StoredRow) -> Result<ToRead, StoreError> {
    Ok(ToRead {
        id: row.parsed("remote_id", RemoteId::parse)?,
        dirty_at: row.optional_timestamp("dirty_at")?,
        missing: row.decoded("missing", |count: i64| u32::try_from(count).ok())?,
    })
}
