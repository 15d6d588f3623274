//! Checksums of rows, so that a flipped bit on the disk is an error and never wrong text.
//!
//! SQLite detects damage to its own structures, but not to the values in them. Each row with content
//! therefore stores a checksum of its columns. The SQL function `row_checksum` computes it; frequent reads
//! compute the same value in Rust.

use rusqlite::{Connection, functions::FunctionFlags};

use crate::{
    StoreError,
    row_checksum::{
        event_checksum, extended, former_version_checksum, template_checksum, upload_chunk_checksum,
    },
};

/// Maximum number of damaged rows that a check names.
const MAX_NAMED_ROWS: usize = 10;

/// The tables with checksums: the name, what names a row of it, and the checksum of a row.
const TABLES: [(&str, &str, &str); 4] = [
    ("template", "id || ''", template_checksum!()),
    ("former_version", "template_id || ' version ' || version", former_version_checksum!()),
    ("event", "account_id || ' number ' || seq", event_checksum!()),
    ("upload_chunk", "upload || ' offset ' || place", upload_chunk_checksum!()),
];

/// Adds the function `row_checksum` to a connection.
pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("row_checksum", -1, flags, |values| {
        let values = (0..values.len()).map(|index| values.get_raw(index));
        Ok(values.fold(0, extended).cast_signed())
    })
}

/// The damaged rows of a store: how many, and the first ones by table and
/// key.
pub(crate) fn damaged_rows(connection: &Connection) -> Result<(usize, Vec<String>), StoreError> {
    let (mut count, mut named) = (0, Vec::new());
    for (table, key, checksum) in TABLES {
        let select = format!("SELECT {key} FROM {table} WHERE checksum IS NOT {checksum}");
        let mut query = connection.prepare(&select)?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            count += 1;
            if named.len() < MAX_NAMED_ROWS {
                let key = row.get(0).unwrap_or_else(|_| "?".to_owned());
                named.push(format!("{table} {key}"));
            }
        }
    }
    Ok((count, named))
}

/// Recomputes the checksums of all rows. For tests that write to the file of a store themselves.
#[cfg(debug_assertions)]
pub fn recompute(path: &std::path::Path) -> Result<(), StoreError> {
    let connection = Connection::open(path)?;
    register(&connection)?;
    for (table, _, checksum) in TABLES {
        connection.execute(&format!("UPDATE {table} SET checksum = {checksum}"), [])?;
    }
    Ok(())
}
