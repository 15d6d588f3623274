//! Checksums of rows, so that a flipped bit on the disk is an error and never wrong text.
//!
//! SQLite detects damage to its own structures, but not to the values in them. Each row with content
//! therefore stores a checksum of its columns. The SQL function `row_checksum` computes it; frequent reads
//! compute the same value in Rust.

use rusqlite::{
    Connection, Row,
    functions::{Context, FunctionFlags},
    types::ValueRef,
};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::StoreError;

pub(super) use crate::row_checksum::{
    event_checksum, former_version_checksum, template_checksum, upload_chunk_checksum,
};

/// Maximum number of damaged rows that a check names.
const MAX_NAMED_ROWS: usize = 10;

/// For each table with checksums: its name, and a query for the keys of its damaged rows.
const DAMAGED_ROWS: [(&str, &str); 4] = [
    ("template", concat!("SELECT id FROM template WHERE checksum IS NOT ", template_checksum!())),
    (
        "former_version",
        concat!(
            "SELECT template_id || ' version ' || version FROM former_version WHERE checksum IS NOT ",
            former_version_checksum!()
        ),
    ),
    (
        "event",
        concat!(
            "SELECT account_id || ' number ' || seq FROM event WHERE checksum IS NOT ",
            event_checksum!()
        ),
    ),
    (
        "upload_chunk",
        concat!(
            "SELECT upload || ' offset ' || place FROM upload_chunk WHERE checksum IS NOT ",
            upload_chunk_checksum!()
        ),
    ),
];

/// Adds the function `row_checksum` to a connection.
pub(super) fn register(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_scalar_function("row_checksum", -1, flags, |values| Ok(of_values(values)))
}

fn of_values(values: &Context<'_>) -> i64 {
    Checksum::of((0..values.len()).map(|index| values.get_raw(index))).stored()
}

/// A checksum of values in order.
#[derive(Clone, Copy, Default)]
pub(super) struct Checksum(u64);

impl Checksum {
    pub(super) fn of<'v>(values: impl IntoIterator<Item = ValueRef<'v>>) -> Self {
        values.into_iter().fold(Self::default(), Self::with)
    }

    /// Extends the checksum by one value. Values of different types never have the same bytes here.
    pub(super) fn with(self, value: ValueRef<'_>) -> Self {
        let Self(checksum) = self;
        Self(match value {
            ValueRef::Null => xxh3_64_with_seed(&[0], checksum),
            ValueRef::Integer(number) => xxh3_64_with_seed(&number.to_le_bytes(), checksum ^ 1),
            ValueRef::Real(number) => xxh3_64_with_seed(&number.to_le_bytes(), checksum ^ 2),
            ValueRef::Text(bytes) => xxh3_64_with_seed(bytes, checksum ^ 3),
            ValueRef::Blob(bytes) => xxh3_64_with_seed(bytes, checksum ^ 4),
        })
    }

    /// The checksum as it is stored.
    pub(super) fn stored(self) -> i64 {
        self.0.cast_signed()
    }
}

/// Whether the first columns of a row match the checksum, which is the last column. For frequent
/// reads: SQL would decode each column a second time for the function.
pub(super) fn is_intact(row: &Row<'_>, columns: usize) -> rusqlite::Result<bool> {
    let mut checksum = Checksum::default();
    for index in 0..columns {
        checksum = checksum.with(row.get_ref(index)?);
    }
    Ok(row.get::<_, Option<i64>>(columns)? == Some(checksum.stored()))
}

/// The damaged rows of a store: how many, and the first ones by table and
/// key.
pub(crate) fn damaged_rows(connection: &Connection) -> Result<(usize, Vec<String>), StoreError> {
    let (mut count, mut named) = (0, Vec::new());
    for (table, query) in DAMAGED_ROWS {
        let mut query = connection.prepare(query)?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            count += 1;
            if named.len() < MAX_NAMED_ROWS {
                let key: rusqlite::types::Value = row.get(0)?;
                let key = match key {
                    rusqlite::types::Value::Integer(id) => id.to_string(),
                    rusqlite::types::Value::Text(key) => key,
                    _ => "?".to_owned(),
                };
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
    let update = concat!(
        "UPDATE template SET checksum = ",
        template_checksum!(),
        "; UPDATE former_version SET checksum = ",
        former_version_checksum!(),
        "; UPDATE event SET checksum = ",
        event_checksum!(),
        "; UPDATE upload_chunk SET checksum = ",
        upload_chunk_checksum!(),
    );
    Ok(connection.execute_batch(update)?)
}
