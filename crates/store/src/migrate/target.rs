//! The target of a migration: a PostgreSQL database. Two extra tables mark it as incomplete and
//! record the progress of each table; no store opens it while they exist.

use std::{collections::HashMap, pin::pin};

use tokio_postgres::{Client, IsolationLevel, binary_copy::BinaryCopyInWriter, types::Type};

use super::{
    MigrateError, TableChecksum,
    cell::Cell,
    compare::ChecksumBuilder,
    tables::{TABLES, Table},
};
use crate::postgres::{PostgresAddress, schema};

/// Number of rows to fetch at a time for the comparison.
const FETCH_ROWS: i32 = 512;

/// Number of upload chunks to fetch at a time; they are large.
const FETCH_CHUNKS: i32 = 16;

const MARK_INCOMPLETE: &str = "CREATE TABLE galley_migration (fingerprint BYTEA NOT NULL); \
     CREATE TABLE galley_migration_table ( \
     name TEXT PRIMARY KEY, rows BIGINT NOT NULL, last_key BYTEA); \
     DELETE FROM credential_epoch";

/// The database, and the progress of its tables.
pub(super) struct Target {
    client: Client,
    progress: HashMap<String, TableProgress>,
}

#[derive(Default)]
struct TableProgress {
    rows: i64,
    last_key: Option<Vec<u8>>,
}

impl Target {
    /// Marks an empty database as incomplete, or continues a partial copy of this source.
    pub(super) async fn open(
        address: &PostgresAddress,
        fingerprint: &[u8],
    ) -> Result<Self, MigrateError> {
        let client = schema::prepare_to_fill(address).await.map_err(MigrateError::Target)?;
        let mut target = Self { client, progress: HashMap::new() };
        target.mark(fingerprint).await?;
        Ok(target)
    }

    async fn mark(&mut self, fingerprint: &[u8]) -> Result<(), MigrateError> {
        let open = self.client.transaction().await?;
        let encoding = open.query_one("SELECT current_setting('server_encoding')", &[]).await?;
        let encoding: String = encoding.try_get(0)?;
        if encoding != "UTF8" {
            return Err(MigrateError::Encoding(encoding));
        }
        // A concurrent migration waits here, and finds the marker tables.
        open.batch_execute("LOCK TABLE account IN SHARE ROW EXCLUSIVE MODE").await?;
        let is_marked = "SELECT to_regclass('galley_migration') IS NOT NULL";
        if !open.query_one(is_marked, &[]).await?.try_get::<_, bool>(0)? {
            for table in TABLES.iter().filter(|table| table.name != "credential_epoch") {
                let has_rows = format!("SELECT EXISTS (SELECT FROM {})", table.name);
                if open.query_one(&has_rows, &[]).await?.try_get(0)? {
                    return Err(MigrateError::NotEmpty(table.name));
                }
            }
            open.batch_execute(MARK_INCOMPLETE).await?;
            open.execute("INSERT INTO galley_migration VALUES ($1)", &[&fingerprint]).await?;
            for table in &TABLES {
                let insert = "INSERT INTO galley_migration_table VALUES ($1, 0, NULL)";
                open.execute(insert, &[&table.name]).await?;
            }
        }
        let row = open.query_one("SELECT fingerprint FROM galley_migration", &[]).await?;
        if row.try_get::<_, &[u8]>(0)? != fingerprint {
            return Err(MigrateError::SourceChanged);
        }
        // The server may still be ending the transaction of a killed run: wait for it.
        let select = "SELECT name, rows, last_key FROM galley_migration_table FOR UPDATE";
        for row in open.query(select, &[]).await? {
            let progress = TableProgress { rows: row.try_get(1)?, last_key: row.try_get(2)? };
            self.progress.insert(row.try_get(0)?, progress);
        }
        Ok(open.commit().await?)
    }

    /// Number of copied rows.
    pub(super) fn rows(&self) -> u64 {
        self.progress.values().map(|it| it.rows.unsigned_abs()).sum()
    }

    /// The key of the last copied row of a table.
    pub(super) fn last_key(&self, table: &Table) -> Result<Option<Vec<Cell>>, MigrateError> {
        let Some(key) = self.progress.get(table.name).and_then(|it| it.last_key.as_deref()) else {
            return Ok(None);
        };
        let key = Cell::decode_all(key).filter(|key| key.len() == table.key_len);
        // This program did not write it.
        key.map(Some).ok_or(MigrateError::SourceChanged)
    }

    /// The types of a table's columns.
    pub(super) async fn types(&self, table: &Table) -> Result<Vec<Type>, MigrateError> {
        let select = format!("SELECT {} FROM {}", table.column_list(), table.name);
        let statement = self.client.prepare(&select).await?;
        Ok(statement.columns().iter().map(|column| column.type_().clone()).collect())
    }

    /// Appends rows to a table and records its progress, in one transaction.
    pub(super) async fn append(
        &mut self,
        table: &'static Table,
        types: &[Type],
        batch: &[Vec<Cell>],
    ) -> Result<(), MigrateError> {
        let Some(last) = batch.last() else { return Ok(()) };
        let mut last_key = Vec::new();
        last[..table.key_len].iter().for_each(|cell| cell.encode(&mut last_key));
        let progress = self.progress.entry(table.name.to_owned()).or_default();
        let rows = progress.rows.saturating_add(i64::try_from(batch.len()).unwrap_or(i64::MAX));
        let open = self.client.transaction().await?;
        let update = "UPDATE galley_migration_table SET rows = $2, last_key = $3 \
                    WHERE name = $1 AND rows = $4";
        let updated =
            open.execute(update, &[&table.name, &rows, &last_key, &progress.rows]).await?;
        if updated != 1 {
            return Err(MigrateError::Concurrent);
        }
        let copy = format!("COPY {} ({}) FROM STDIN BINARY", table.name, table.column_list());
        let mut writer = pin!(BinaryCopyInWriter::new(open.copy_in(&copy).await?, types));
        for row in batch {
            if let Some(error) = invalid_value(table, types, row) {
                return Err(error);
            }
            writer.as_mut().write_raw(row).await?;
        }
        writer.finish().await?;
        open.commit().await?;
        *progress = TableProgress { rows, last_key: Some(last_key) };
        Ok(())
    }

    /// The checksums of all tables, from one snapshot. Reports the number of rows read from each.
    pub(super) async fn checksums(
        &mut self,
        mut report: impl FnMut(&'static str, u64),
    ) -> Result<Vec<TableChecksum>, MigrateError> {
        // Without statistics, the first queries of the service would scan whole tables.
        let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        self.client.batch_execute(&format!("ANALYZE {}", names.join(", "))).await?;
        let snapshot = self.client.build_transaction().read_only(true);
        let snapshot = snapshot.isolation_level(IsolationLevel::RepeatableRead).start().await?;
        let mut checksums = Vec::with_capacity(TABLES.len());
        for table in &TABLES {
            let (columns, keys) = (table.column_list(), table.key_list());
            let select = format!("SELECT {columns} FROM {} ORDER BY {keys}", table.name);
            let rows = snapshot.bind(&select, &[]).await?;
            let max_rows = if table.name == "upload_chunk" { FETCH_CHUNKS } else { FETCH_ROWS };
            let mut checksum = ChecksumBuilder::default();
            loop {
                let fetched = snapshot.query_portal(&rows, max_rows).await?;
                for row in &fetched {
                    let cells: Result<Vec<Cell>, _> =
                        (0..row.len()).map(|index| row.try_get(index)).collect();
                    checksum.add(cells?);
                }
                if fetched.is_empty() {
                    break;
                }
                report(table.name, fetched.len() as u64);
            }
            checksums.push(checksum.finish());
        }
        snapshot.commit().await?;
        Ok(checksums)
    }

    /// Drops the marker tables, which completes the store. The service rebuilds the search index
    /// from all templates, and new row ids follow all that were ever assigned.
    pub(super) async fn complete(
        mut self,
        max_row_ids: &[(&'static Table, i64)],
    ) -> Result<(), MigrateError> {
        let open = self.client.transaction().await?;
        open.batch_execute("INSERT INTO search_progress SELECT id, last_seq, 0 FROM account")
            .await?;
        for (table, row_id) in max_row_ids.iter().filter(|(_, row_id)| *row_id > 0) {
            let set = "SELECT setval(pg_get_serial_sequence($1, $2)::regclass, $3)";
            open.query_one(set, &[&table.name, &table.generated_id, row_id]).await?;
        }
        open.batch_execute("DROP TABLE galley_migration_table, galley_migration").await?;
        Ok(open.commit().await?)
    }
}

/// The error for the first value of a row that does not fit its column, if there is one.
fn invalid_value(table: &'static Table, types: &[Type], row: &[Cell]) -> Option<MigrateError> {
    let cells = table.columns.iter().zip(types.iter().zip(row));
    for (column, (kind, cell)) in cells {
        if let Err(cause) = cell.check_fits(kind) {
            let row = table.display_key(row);
            return Some(MigrateError::InvalidValue { table: table.name, row, column, cause });
        }
    }
    None
}
