//! How a row of the mirror is decoded.

use galley_domain::{
    id::TemplateId,
    template::quality::Quality,
    upstream::{RemoteId, RemoteStatus, TemplateSource},
};

use super::sweep::UNSEEN;
use crate::{
    MirrorCounts, MirrorFilter, MirroredTemplate, StoreError, ToRead, stored_row::Row,
    stored_row::StoredRow as _,
};

/// The columns that [`mirrored`] reads.
pub(crate) const MIRROR_COLUMNS: &str = "remote_id, template_id, name, language, status, category, \
     correct_category, quality, reason, remote_updated_at, content_key, version, sent_version, drifted, \
     observed_at, changed_at, sweep, missing, gone_at, dirty_at, info, \
     source";

/// A row of the mirror.
pub(crate) fn mirrored(row: &Row<'_>) -> Result<MirroredTemplate, StoreError> {
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
        sent_version: row.optional("sent_version", |version: i64| u64::try_from(version).ok())?,
        drifted: row.value("drifted")?,
        observed_at: row.timestamp("observed_at")?,
        changed_at: row.timestamp("changed_at")?,
        sweep: row.number("sweep")?,
        missing: row.decoded("missing", |count: i64| u32::try_from(count).ok())?,
        gone_at: row.optional_timestamp("gone_at")?,
        dirty_at: row.optional_timestamp("dirty_at")?,
        info: row.value("info")?,
        source: row.optional("source", |word: String| Some(TemplateSource::parse(&word)))?,
    })
}

impl MirrorFilter {
    /// The SQL condition on a row of an account (`$1`), with [`source`](Self::source) as `$3`.
    pub(crate) fn condition(&self) -> String {
        let present = MirroredTemplate::PRESENT;
        let source = "(CAST($3 AS TEXT) IS NULL OR source = $3)";
        match self {
            Self::All => source.to_owned(),
            Self::Present(_) => format!("{present} AND {source}"),
            Self::Unseen => format!("{present} AND {UNSEEN} AND {source}"),
        }
    }

    /// The source to list.
    pub(crate) fn source(&self) -> Option<&str> {
        match self {
            Self::Present(source) => source.as_ref().map(TemplateSource::as_str),
            Self::All | Self::Unseen => None,
        }
    }
}

/// Counts the mirror of an account (`$1`), as [`counts`] reads them. A template of the provider that the
/// account has deleted is not gone, nor is a former one whose template the provider has again.
pub(crate) fn count_mirror() -> String {
    let (present, own) = (MirroredTemplate::PRESENT, MirroredTemplate::OWN);
    format!(
        "SELECT count(*) FILTER (WHERE {present}) AS present, \
         count(*) FILTER (WHERE {present} AND drifted) AS drifted, \
         count(*) FILTER (WHERE {present} AND missing > 0 AND {own}) AS missing, \
         count(*) FILTER (WHERE {present} AND NOT ({own})) AS generated, \
         count(*) FILTER (WHERE {present} AND {UNSEEN}) AS unseen, \
         (SELECT count(DISTINCT g.template_id) FROM upstream_template g JOIN template t ON \
         t.id = g.template_id AND t.account_id = g.account_id WHERE g.account_id = $1 AND \
         g.gone_at IS NOT NULL AND t.unique_key IS NOT NULL AND NOT EXISTS (SELECT 1 \
         FROM upstream_template WHERE account_id = $1 AND template_id = g.template_id AND \
         {present})) AS gone \
         FROM upstream_template WHERE account_id = $1"
    )
}

/// The counts in a row of [`count_mirror`].
pub(crate) fn counts(row: &Row<'_>) -> Result<MirrorCounts, StoreError> {
    Ok(MirrorCounts {
        present: row.number("present")?,
        drifted: row.number("drifted")?,
        missing: row.number("missing")?,
        gone: row.number("gone")?,
        generated: row.number("generated")?,
        unseen: row.number("unseen")?,
    })
}

/// A template to read, from a row with `remote_id`, `dirty_at` and `missing`.
pub(crate) fn to_read(row: &Row<'_>) -> Result<ToRead, StoreError> {
    Ok(ToRead {
        id: row.parsed("remote_id", RemoteId::parse)?,
        dirty_at: row.optional_timestamp("dirty_at")?,
        missing: row.decoded("missing", |count: i64| u32::try_from(count).ok())?,
    })
}
