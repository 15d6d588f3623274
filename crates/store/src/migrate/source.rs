//! The SQLite file that is moved, as it was when it was opened. Nobody else has it open meanwhile.

use std::path::Path;

use rusqlite::{Connection, Row, types::ValueRef};
use sha2::{Digest as _, Sha256};

use super::{
    MigrateError, Sum, Unfit,
    cell::Cell,
    compare::Summing,
    tables::{TABLES, Table},
};
use crate::sqlite::connection;

/// How many rows a batch has at most, and how many bytes, roughly.
const MOST_ROWS: usize = 5_000;
const MOST_BYTES: usize = 4 * 1_024 * 1_024;

/// Tables that are small, and change with whatever counts: the fingerprint has every row of them,
/// and of all others the number of rows.
const TELLING: [&str; 4] = ["account", "credential", "credential_epoch", "webhook"];

/// Texts that are only shown to people. What PostgreSQL cannot keep in them is replaced by
/// something as long.
const SHOWN: [(&str, &str); 1] = [("upload", "file_name")];

/// The file, in a transaction that sees one state of it.
pub(super) struct Source {
    connection: Connection,
}

/// What is known before the first row is copied.
pub(super) struct Overview {
    /// How many rows there are in all.
    pub(super) rows: u64,
    /// What tells this state of this file from others.
    pub(super) fingerprint: Vec<u8>,
    /// The highest number that each table that counts its rows has ever given.
    pub(super) highest: Vec<(&'static Table, i64)>,
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self, MigrateError> {
        let connection = connection::open_alone(path).map_err(MigrateError::Source)?;
        Ok(Self { connection })
    }

    pub(super) fn overview(&self) -> Result<Overview, MigrateError> {
        let (mut rows, mut digest, mut highest) = (0, Sha256::new(), Vec::new());
        for table in &TABLES {
            let count: i64 = self.ask(&format!("SELECT count(*) FROM {}", table.name))?;
            rows += count.unsigned_abs();
            digest.update(format!("{} {count} ", table.name));
            if TELLING.contains(&table.name) {
                digest.update(self.sum(table)?.to_string());
            }
            if let Some(column) = table.counts {
                // Numbers of rows that are gone are not given again, either.
                let query = format!(
                    "SELECT max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{0}'), 0), \
                     coalesce((SELECT max({column}) FROM {0}), 0))",
                    table.name
                );
                highest.push((table, self.ask(&query)?));
            }
        }
        Ok(Overview { rows, fingerprint: digest.finalize().to_vec(), highest })
    }

    fn ask(&self, query: &str) -> Result<i64, MigrateError> {
        Ok(self.connection.query_row(query, [], |row| row.get(0))?)
    }

    /// Hands over all rows behind a key, in batches, until nobody takes them any more.
    pub(super) fn batches(
        &self,
        table: &'static Table,
        after: Option<&[Cell]>,
        mut take: impl FnMut(Vec<Vec<Cell>>) -> bool,
    ) -> Result<(), MigrateError> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        self.each(table, after, |row| {
            bytes += row.iter().map(Cell::size).sum::<usize>();
            batch.push(row);
            if batch.len() < MOST_ROWS && bytes < MOST_BYTES {
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

    /// What the tables are compared by.
    pub(super) fn sums(&self) -> Result<Vec<Sum>, MigrateError> {
        TABLES.iter().map(|table| self.sum(table)).collect()
    }

    fn sum(&self, table: &'static Table) -> Result<Sum, MigrateError> {
        let mut sum = Summing::default();
        self.each(table, None, |row| {
            sum.add(row);
            true
        })?;
        Ok(sum.sum())
    }

    /// Every row behind a key, in the order of keys, for as long as they are wanted.
    fn each(
        &self,
        table: &'static Table,
        after: Option<&[Cell]>,
        mut take: impl FnMut(Vec<Cell>) -> bool,
    ) -> Result<(), MigrateError> {
        let (columns, keys, from) = (table.column_list(), table.key_list(), table.source());
        let places = vec!["?"; table.key].join(", ");
        let behind = after.map(|_| format!("WHERE ({keys}) > ({places})")).unwrap_or_default();
        let query = format!("SELECT {columns} FROM {from} {behind} ORDER BY {keys}");
        let mut query = self.connection.prepare(&query)?;
        let mut rows =
            query.query(rusqlite::params_from_iter(after.into_iter().flatten().cloned()))?;
        while let Some(row) = rows.next()? {
            if !take(cells(table, row)?) {
                break;
            }
        }
        Ok(())
    }
}

fn cells(table: &'static Table, row: &Row<'_>) -> Result<Vec<Cell>, MigrateError> {
    let mut cells = Vec::with_capacity(table.columns.len());
    for (place, column) in table.columns.iter().enumerate() {
        let value = row.get_ref(place)?;
        let cell = match (Cell::read(value), value) {
            (Err(Unfit::Zero), ValueRef::Text(text)) if SHOWN.contains(&(table.name, *column)) => {
                let shown: Vec<u8> =
                    text.iter().map(|byte| if *byte == 0 { b'_' } else { *byte }).collect();
                Cell::read(ValueRef::Text(&shown))
            }
            (cell, _) => cell,
        };
        cells.push(cell.map_err(|unfit| {
            let row = table.row(&cells);
            MigrateError::Unfit { table: table.name, row, column, cause: unfit.into() }
        })?);
    }
    Ok(cells)
}
