//! The checksums of rows, also as SQL expressions, and the error for a row that does not match its own.
//! Only SQLite stores them: PostgreSQL has checksums of its pages.

use std::fmt::Display;

use rusqlite::{Row, types::ValueRef};
use xxhash_rust::xxh3::xxh3_64_with_seed;

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

/// A checksum of values in order, extended by one value; the first one extends 0. Values of different
/// types never have the same bytes here.
pub(crate) fn extended(checksum: u64, value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Null => xxh3_64_with_seed(&[0], checksum),
        ValueRef::Integer(number) => xxh3_64_with_seed(&number.to_le_bytes(), checksum ^ 1),
        ValueRef::Real(number) => xxh3_64_with_seed(&number.to_le_bytes(), checksum ^ 2),
        ValueRef::Text(bytes) => xxh3_64_with_seed(bytes, checksum ^ 3),
        ValueRef::Blob(bytes) => xxh3_64_with_seed(bytes, checksum ^ 4),
    }
}

/// Whether the first columns of a row match the checksum, which is the last column. For frequent
/// reads: SQL would decode each column a second time for the function.
pub(crate) fn is_intact(row: &Row<'_>, columns: usize) -> rusqlite::Result<bool> {
    let mut checksum = 0;
    for index in 0..columns {
        checksum = extended(checksum, row.get_ref(index)?);
    }
    Ok(row.get::<_, Option<i64>>(columns)? == Some(checksum.cast_signed()))
}

/// The error for a row that does not match its checksum.
pub(crate) fn damaged(table: &'static str, key: impl Display) -> StoreError {
    StoreError::Damaged(cause(format!(
        "the row {key} of the table {table} does not match its checksum: the disk has damaged it; \
         restore a backup"
    )))
}
