//! The checksums of rows as SQL expressions, and the error for a row that does not match its own. Only
//! SQLite stores them: PostgreSQL has checksums of its pages.

use std::fmt::Display;

use crate::{StoreError, error::cause};

/// The columns of `template` that its checksum covers.
macro_rules! template_columns {
    () => {
        "id, account_id, phone_id, name, language, category, allow_category_change, content, \
         version, status, live_version, hold, previous_category, reason, revision, created_at, \
         updated_at, actor, version_at, decided_at, decided_by"
    };
}

/// The checksum of a row of `template`, as an SQL expression.
macro_rules! template_checksum {
    () => {
        concat!("row_checksum(", $crate::row_checksum::template_columns!(), ")")
    };
}

/// The checksum of a row of `former_version`, as an SQL expression.
macro_rules! former_version_checksum {
    () => {
        "row_checksum(template_id, version, category, status, created_at, actor, content, \
         previous_category, reason, decided_at, decided_by)"
    };
}

/// The checksum of a row of `event`, as an SQL expression. It leaves out the trace and the emulated
/// time: damage to them harms nothing.
macro_rules! event_checksum {
    () => {
        "row_checksum(account_id, seq, type, template_id, version, at, actor, category, status, \
         reason, webhook_id, origin)"
    };
}

/// The checksum of a row of `upload_chunk`, as an SQL expression.
macro_rules! upload_chunk_checksum {
    () => {
        "row_checksum(upload, place, bytes)"
    };
}

pub(crate) use {
    event_checksum, former_version_checksum, template_checksum, template_columns,
    upload_chunk_checksum,
};

/// The error for a row that does not match its checksum.
pub(crate) fn damaged(table: &'static str, key: impl Display) -> StoreError {
    StoreError::Damaged(cause(format!(
        "the row {key} of the table {table} does not match its checksum: the disk has damaged it; \
         restore a backup"
    )))
}
