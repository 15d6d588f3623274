//! The target of a migration: a PostgreSQL database. Two extra tables mark it as incomplete and
//! record the progress of each table; no store opens it while they exist.

use std::{collections::HashMap, pin::pin};

use tokio_postgres::{Client, IsolationLevel, binary_copy::BinaryCopyInWriter, types::Type};

use super::{
    MigrateError, TableChecksum,
    compare::ChecksumBuilder,
    rules::{INITIAL_ROWS, LARGE_ROWS},
    source::MaxRowId,
    tables::{Column, Table, TargetSchema},
    value,
};
use crate::{
    engine::Value,
    postgres::{
        PostgresAddress,
        schema::{self, IS_PARTIAL_COPY, MARK_PARTIAL_COPY},
    },
};

/// Number of rows to fetch at a time for the comparison.
const FETCH_ROWS: i32 = 512;

/// Number of large rows to fetch at a time.
const FETCH_LARGE_ROWS: i32 = 16;

const CREATE_PROGRESS: &str = "CREATE TABLE galley_migration_table ( \
     name TEXT PRIMARY KEY, rows BIGINT NOT NULL, last_key BYTEA)";

/// The columns of all tables except those of extensions: the type of each, whether it generates row ids, and its position in the
/// primary key.
const COLUMNS: &str = "SELECT c.relname::text, a.attname::text, a.atttypid, \
     a.attidentity <> '' AS is_generated, array_position(k.conkey, a.attnum) AS key_position \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
     LEFT JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p' \
     WHERE n.nspname = current_schema() AND c.relkind = 'r' AND NOT EXISTS \
     (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') \
     ORDER BY c.relname, a.attnum";

/// The tables that refer to others.
const REFERENCES: &str = "SELECT c.relname::text, r.relname::text FROM pg_constraint k \
     JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_class r ON r.oid = k.confrelid WHERE n.nspname = current_schema() AND k.contype = 'f'";

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
    /// Connects to the database, and creates its tables and its mark if it is empty.
    pub(super) async fn connect(address: &PostgresAddress) -> Result<Self, MigrateError> {
        let client = schema::prepare_to_fill(address).await.map_err(MigrateError::Target)?;
        Ok(Self { client, progress: HashMap::new() })
    }

    /// The tables of the database.
    pub(super) async fn schema(&self) -> Result<TargetSchema, MigrateError> {
        let mut schema = TargetSchema::new();
        for row in self.client.query(COLUMNS, &[]).await? {
            let (table, name): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            // All columns to copy have built-in types.
            let ty = Type::from_oid(row.try_get(2)?).unwrap_or(Type::UNKNOWN);
            let found = schema.entry(table).or_default();
            if let Some(position) = row.try_get("key_position")? {
                found.key.insert(position, name.clone());
            }
            if row.try_get("is_generated")? {
                found.generated_id = Some(name.clone());
            }
            found.columns.push(Column { name, ty });
        }
        for row in self.client.query(REFERENCES, &[]).await? {
            let table = schema.entry(row.try_get(0)?).or_default();
            table.references.insert(row.try_get(1)?);
        }
        Ok(schema)
    }

    /// Marks a store without rows as a partial copy, unless it has the mark.
    pub(super) async fn mark(&mut self, tables: &[Table]) -> Result<(), MigrateError> {
        let open = self.client.transaction().await?;
        // A concurrent migration waits here, and finds the mark.
        open.batch_execute("LOCK TABLE account IN SHARE ROW EXCLUSIVE MODE").await?;
        if open.query_one(IS_PARTIAL_COPY, &[]).await?.try_get(0)? {
            return Ok(());
        }
        for table in tables.iter().filter(|table| table.name != INITIAL_ROWS) {
            let has_rows = format!("SELECT EXISTS (SELECT FROM {})", table.name);
            if open.query_one(&has_rows, &[]).await?.try_get(0)? {
                return Err(MigrateError::NotEmpty(table.name.clone()));
            }
        }
        open.batch_execute(MARK_PARTIAL_COPY).await?;
        Ok(open.commit().await?)
    }

    /// Begins the copy of this source in a marked store, or continues it.
    pub(super) async fn begin(
        &mut self,
        tables: &[Table],
        fingerprint: &[u8],
    ) -> Result<(), MigrateError> {
        let open = self.client.transaction().await?;
        // A concurrent migration waits here, and finds the fingerprint.
        open.batch_execute("LOCK TABLE galley_migration IN SHARE ROW EXCLUSIVE MODE").await?;
        match open.query_opt("SELECT fingerprint FROM galley_migration", &[]).await? {
            None => {
                open.batch_execute(CREATE_PROGRESS).await?;
                open.batch_execute(&format!("DELETE FROM {INITIAL_ROWS}")).await?;
                open.execute("INSERT INTO galley_migration VALUES ($1)", &[&fingerprint]).await?;
                for table in tables {
                    let insert = "INSERT INTO galley_migration_table VALUES ($1, 0, NULL)";
                    open.execute(insert, &[&table.name]).await?;
                }
            }
            Some(row) if row.try_get::<_, &[u8]>(0)? != fingerprint => {
                return Err(MigrateError::SourceChanged);
            }
            Some(_) => {}
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
    pub(super) fn last_key(
        &self,
        table: &Table,
    ) -> Result<Option<Vec<Value<'static>>>, MigrateError> {
        let Some(key) = self.progress.get(&table.name).and_then(|it| it.last_key.as_deref()) else {
            return Ok(None);
        };
        let key = value::decode_all(key).filter(|key| key.len() == table.key_len);
        // This program did not write it.
        key.map(Some).ok_or(MigrateError::SourceChanged)
    }

    /// Appends rows to a table and records its progress, in one transaction.
    pub(super) async fn append(
        &mut self,
        table: &Table,
        batch: &[Vec<Value<'_>>],
    ) -> Result<(), MigrateError> {
        let Some(last) = batch.last() else { return Ok(()) };
        let mut last_key = Vec::new();
        last[..table.key_len].iter().for_each(|it| value::encode(it, &mut last_key));
        let progress = self.progress.entry(table.name.clone()).or_default();
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
        let types: Vec<Type> = table.columns.iter().map(|column| column.ty.clone()).collect();
        let mut writer = pin!(BinaryCopyInWriter::new(open.copy_in(&copy).await?, &types));
        for row in batch {
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
        tables: &[Table],
        mut report: impl FnMut(&str, u64),
    ) -> Result<Vec<TableChecksum>, MigrateError> {
        // Without statistics, the first queries of the service would scan whole tables.
        let names: Vec<&str> = tables.iter().map(|table| &*table.name).collect();
        self.client.batch_execute(&format!("ANALYZE {}", names.join(", "))).await?;
        let snapshot = self.client.build_transaction().read_only(true);
        let snapshot = snapshot.isolation_level(IsolationLevel::RepeatableRead).start().await?;
        let mut checksums = Vec::with_capacity(tables.len());
        for table in tables {
            let (columns, keys) = (table.column_list(), table.key_list());
            let select = format!("SELECT {columns} FROM {} ORDER BY {keys}", table.name);
            let rows = snapshot.bind(&select, &[]).await?;
            let max_rows = if table.name == LARGE_ROWS { FETCH_LARGE_ROWS } else { FETCH_ROWS };
            let mut checksum = ChecksumBuilder::default();
            loop {
                let fetched = snapshot.query_portal(&rows, max_rows).await?;
                for row in &fetched {
                    let values: Result<Vec<Value<'_>>, _> =
                        (0..row.len()).map(|index| value::read_column(row, index)).collect();
                    checksum.add(&values?);
                }
                if fetched.is_empty() {
                    break;
                }
                report(&table.name, fetched.len() as u64);
            }
            checksums.push(checksum.finish());
        }
        snapshot.commit().await?;
        Ok(checksums)
    }

    /// Drops the marker tables, which completes the store. The service rebuilds the search index
    /// from all templates, and new row ids follow all that were ever assigned.
    pub(super) async fn complete(mut self, max_row_ids: &[MaxRowId]) -> Result<(), MigrateError> {
        let open = self.client.transaction().await?;
        open.batch_execute("INSERT INTO search_progress SELECT id, last_seq, 0 FROM account")
            .await?;
        for MaxRowId { table, column, id } in max_row_ids.iter().filter(|it| it.id > 0) {
            let set = "SELECT setval(pg_get_serial_sequence($1, $2)::regclass, $3)";
            open.query_one(set, &[table, column, id]).await?;
        }
        open.batch_execute("DROP TABLE galley_migration_table, galley_migration").await?;
        Ok(open.commit().await?)
    }
}
