//! The source of a migration: a snapshot of a SQLite file, which no other process has open.

use std::path::Path;

use rusqlite::{Connection, Row, types::ValueRef};
use sha2::{Digest as _, Sha256};

use super::{
    MigrateError, TableChecksum,
    compare::ChecksumBuilder,
    rules::{DISPLAY_TEXTS, FINGERPRINTED_TABLES},
    tables::{SourceSchema, Table},
    value,
};
use crate::{
    engine::Value,
    sqlite::{checksum, connection},
};

/// Maximum number of rows in a batch.
const MAX_BATCH_ROWS: usize = 5_000;

/// Approximate maximum size of a batch.
const MAX_BATCH_BYTES: usize = 4 * 1_024 * 1_024;

/// The file, in a transaction with a snapshot.
pub(super) struct Source {
    connection: Connection,
}

/// What is read before the first row is copied.
pub(super) struct Overview {
    /// Total number of rows.
    pub(super) rows: u64,
    /// Identifies this state of this file.
    pub(super) fingerprint: Vec<u8>,
    /// The highest row id that each table with generated ids has ever assigned.
    pub(super) max_row_ids: Vec<MaxRowId>,
}

/// The highest row id that a table has ever assigned.
pub(super) struct MaxRowId {
    pub(super) table: String,
    pub(super) column: String,
    pub(super) id: i64,
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, MigrateError> {
        let connection = connection::open_exclusive(path).map_err(MigrateError::Source)?;
        match checksum::damaged_rows(&connection).map_err(MigrateError::Source)? {
            (0, _) => Ok(Self { connection }),
            (count, rows) => Err(MigrateError::Damaged { count, rows: rows.join(", ") }),
        }
    }

    /// The stored columns of all tables. Generated columns are not stored.
    pub(super) fn schema(&self) -> Result<SourceSchema, MigrateError> {
        let mut query = self.connection.prepare(
            "SELECT t.name, c.name, c.type FROM sqlite_schema t, pragma_table_xinfo(t.name) c \
             WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND c.hidden = 0",
        )?;
        let mut rows = query.query([])?;
        let mut schema = SourceSchema::new();
        while let Some(row) = rows.next()? {
            schema.entry(row.get(0)?).or_default().insert(row.get(1)?, row.get(2)?);
        }
        Ok(schema)
    }

    pub(super) fn overview(&self, tables: &[Table]) -> Result<Overview, MigrateError> {
        let (mut rows, mut digest, mut max_row_ids) = (0, Sha256::new(), Vec::new());
        for table in tables {
            let count: i64 = self.query_number(&format!("SELECT count(*) FROM {}", table.name))?;
            rows += count.unsigned_abs();
            digest.update(format!("{} {count} ", table.name));
            if FINGERPRINTED_TABLES.contains(&&*table.name) {
                digest.update(self.checksum(table)?.to_string());
            }
            if let Some(column) = &table.generated_id {
                // Include deleted rows: their ids are not assigned again.
                let query = format!(
                    "SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{0}'), 0), \
                     coalesce((SELECT max({column}) FROM {0}), 0))",
                    table.name
                );
                let (table, column) = (table.name.clone(), column.clone());
                max_row_ids.push(MaxRowId { table, column, id: self.query_number(&query)? });
            }
        }
        Ok(Overview { rows, fingerprint: digest.finalize().to_vec(), max_row_ids })
    }

    fn query_number(&self, query: &str) -> Result<i64, MigrateError> {
        Ok(self.connection.query_row(query, [], |row| row.get(0))?)
    }

    /// Passes all rows after a key to `take`, in batches, until it returns `false`.
    pub(super) fn batches(
        &self,
        table: &Table,
        after: Option<&[Value<'_>]>,
        mut take: impl FnMut(Vec<Vec<Value<'static>>>) -> bool,
    ) -> Result<(), MigrateError> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        self.for_each_row(table, after, |row| {
            bytes += row.iter().map(value::size).sum::<usize>();
            batch.push(row);
            if batch.len() < MAX_BATCH_ROWS && bytes < MAX_BATCH_BYTES {
                return true;
            }
            bytes = 0;
            take(std::mem::take(&mut batch))
        })?;
        if !batch.is_empty() {
            take(batch);
        }
        Ok(())
    }

    pub(super) fn checksum(&self, table: &Table) -> Result<TableChecksum, MigrateError> {
        let mut checksum = ChecksumBuilder::default();
        self.for_each_row(table, None, |row| {
            checksum.add(&row);
            true
        })?;
        Ok(checksum.finish())
    }

    /// Passes every row after a key to `take`, in key order, until it returns `false`.
    fn for_each_row(
        &self,
        table: &Table,
        after: Option<&[Value<'_>]>,
        mut take: impl FnMut(Vec<Value<'static>>) -> bool,
    ) -> Result<(), MigrateError> {
        let (columns, keys, from) = (table.column_list(), table.key_list(), table.source());
        let parameters = vec!["?"; table.key_len].join(", ");
        let condition =
            after.map(|_| format!("WHERE ({keys}) > ({parameters})")).unwrap_or_default();
        let query = format!("SELECT {columns} FROM {from} {condition} ORDER BY {keys}");
        let mut query = self.connection.prepare(&query)?;
        let mut rows = query.query(rusqlite::params_from_iter(after.into_iter().flatten()))?;
        while let Some(row) = rows.next()? {
            if !take(values(table, row)?) {
                break;
            }
        }
        Ok(())
    }
}

fn values(table: &Table, row: &Row<'_>) -> Result<Vec<Value<'static>>, MigrateError> {
    let mut values = Vec::with_capacity(table.columns.len());
    for (index, column) in table.columns.iter().enumerate() {
        let is_display_text = DISPLAY_TEXTS.contains(&(&*table.name, &*column.name));
        let visible = |byte: &u8| if *byte == 0 { b'_' } else { *byte };
        let replaced: Option<Vec<u8>> = match row.get_ref(index)? {
            ValueRef::Text(text) if is_display_text => Some(text.iter().map(visible).collect()),
            _ => None,
        };
        let stored = replaced.as_deref().map_or(row.get_ref(index)?, ValueRef::Text);
        let value = value::read(stored, &column.ty);
        values.push(value.map_err(|cause| MigrateError::InvalidValue {
            table: table.name.clone(),
            row: table.display_key(&values),
            column: column.name.clone(),
            cause,
        })?);
    }
    Ok(values)
}
