//! The PostgreSQL database that is filled. A table of its own marks it as unfinished and says how
//! far each table has come; no store opens it as long as that is there.

use std::{collections::HashMap, pin::pin};

use tokio_postgres::{Client, IsolationLevel, binary_copy::BinaryCopyInWriter, types::Type};

use super::{
    MigrateError, Sum,
    cell::Cell,
    compare::Summing,
    tables::{TABLES, Table},
};
use crate::postgres::{PostgresAddress, schema};

/// How many rows are fetched at once to be compared; those with many bytes are few.
const FETCHED: i32 = 512;
const FETCHED_CHUNKS: i32 = 16;

const MARK: &str = "CREATE TABLE galley_migration (fingerprint BYTEA NOT NULL); \
     CREATE TABLE galley_migration_table ( \
     name TEXT PRIMARY KEY, rows BIGINT NOT NULL, last_key BYTEA); \
     DELETE FROM credential_epoch";

/// The database, and how far its tables have come.
pub(super) struct Target {
    client: Client,
    reached: HashMap<String, Reached>,
}

#[derive(Default)]
struct Reached {
    rows: i64,
    last_key: Option<Vec<u8>>,
}

impl Target {
    /// Marks an empty database, or finds one that this source was being copied to.
    pub(super) async fn open(
        address: &PostgresAddress,
        fingerprint: &[u8],
    ) -> Result<Self, MigrateError> {
        let client = schema::prepare_to_fill(address).await.map_err(MigrateError::Target)?;
        let mut target = Self { client, reached: HashMap::new() };
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
        // Whoever else begins waits here, and finds the mark.
        open.batch_execute("LOCK TABLE account IN SHARE ROW EXCLUSIVE MODE").await?;
        let marked = "SELECT to_regclass('galley_migration') IS NOT NULL";
        if !open.query_one(marked, &[]).await?.try_get::<_, bool>(0)? {
            for table in TABLES.iter().filter(|table| table.name != "credential_epoch") {
                let any = format!("SELECT EXISTS (SELECT FROM {})", table.name);
                if open.query_one(&any, &[]).await?.try_get(0)? {
                    return Err(MigrateError::NotEmpty(table.name));
                }
            }
            open.batch_execute(MARK).await?;
            open.execute("INSERT INTO galley_migration VALUES ($1)", &[&fingerprint]).await?;
            for table in &TABLES {
                let begin = "INSERT INTO galley_migration_table VALUES ($1, 0, NULL)";
                open.execute(begin, &[&table.name]).await?;
            }
        }
        let row = open.query_one("SELECT fingerprint FROM galley_migration", &[]).await?;
        if row.try_get::<_, &[u8]>(0)? != fingerprint {
            return Err(MigrateError::Changed);
        }
        // A run that was killed may still be about to end on the server: that is waited for.
        let reached = "SELECT name, rows, last_key FROM galley_migration_table FOR UPDATE";
        for row in open.query(reached, &[]).await? {
            let reached = Reached { rows: row.try_get(1)?, last_key: row.try_get(2)? };
            self.reached.insert(row.try_get(0)?, reached);
        }
        Ok(open.commit().await?)
    }

    /// How many rows are there.
    pub(super) fn rows(&self) -> u64 {
        self.reached.values().map(|it| it.rows.unsigned_abs()).sum()
    }

    /// The key of the last row of a table that is there.
    pub(super) fn last_key(&self, table: &Table) -> Result<Option<Vec<Cell>>, MigrateError> {
        let Some(key) = self.reached.get(table.name).and_then(|it| it.last_key.as_deref()) else {
            return Ok(None);
        };
        let key = Cell::read_all(key).filter(|key| key.len() == table.key);
        // Not one that this program has written.
        key.map(Some).ok_or(MigrateError::Changed)
    }

    /// The types of a table's columns.
    pub(super) async fn types(&self, table: &Table) -> Result<Vec<Type>, MigrateError> {
        let select = format!("SELECT {} FROM {}", table.column_list(), table.name);
        let statement = self.client.prepare(&select).await?;
        Ok(statement.columns().iter().map(|column| column.type_().clone()).collect())
    }

    /// Adds rows to a table and notes how far it has come, in one transaction.
    pub(super) async fn append(
        &mut self,
        table: &'static Table,
        types: &[Type],
        batch: &[Vec<Cell>],
    ) -> Result<(), MigrateError> {
        let Some(last) = batch.last() else { return Ok(()) };
        let mut last_key = Vec::new();
        last[..table.key].iter().for_each(|cell| cell.write(&mut last_key));
        let reached = self.reached.entry(table.name.to_owned()).or_default();
        let rows = reached.rows.saturating_add(i64::try_from(batch.len()).unwrap_or(i64::MAX));
        let open = self.client.transaction().await?;
        let note = "UPDATE galley_migration_table SET rows = $2, last_key = $3 \
                    WHERE name = $1 AND rows = $4";
        let noted = open.execute(note, &[&table.name, &rows, &last_key, &reached.rows]).await?;
        if noted != 1 {
            return Err(MigrateError::Elsewhere);
        }
        let copy = format!("COPY {} ({}) FROM STDIN BINARY", table.name, table.column_list());
        let mut writer = pin!(BinaryCopyInWriter::new(open.copy_in(&copy).await?, types));
        for row in batch {
            if let Some(unfit) = unfit(table, types, row) {
                return Err(unfit);
            }
            writer.as_mut().write_raw(row).await?;
        }
        writer.finish().await?;
        open.commit().await?;
        *reached = Reached { rows, last_key: Some(last_key) };
        Ok(())
    }

    /// What the tables are compared by, all of one moment; tells how many rows were read of which.
    pub(super) async fn sums(
        &mut self,
        mut tell: impl FnMut(&'static str, u64),
    ) -> Result<Vec<Sum>, MigrateError> {
        // So that whoever asks first is not answered by a scan of everything.
        let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        self.client.batch_execute(&format!("ANALYZE {}", names.join(", "))).await?;
        let moment = self.client.build_transaction().read_only(true);
        let moment = moment.isolation_level(IsolationLevel::RepeatableRead).start().await?;
        let mut sums = Vec::with_capacity(TABLES.len());
        for table in &TABLES {
            let (columns, keys) = (table.column_list(), table.key_list());
            let select = format!("SELECT {columns} FROM {} ORDER BY {keys}", table.name);
            let rows = moment.bind(&select, &[]).await?;
            let most = if table.name == "upload_chunk" { FETCHED_CHUNKS } else { FETCHED };
            let mut sum = Summing::default();
            loop {
                let fetched = moment.query_portal(&rows, most).await?;
                for row in &fetched {
                    let cells: Result<Vec<Cell>, _> =
                        (0..row.len()).map(|place| row.try_get(place)).collect();
                    sum.add(cells?);
                }
                if fetched.is_empty() {
                    break;
                }
                tell(table.name, fetched.len() as u64);
            }
            sums.push(sum.sum());
        }
        moment.commit().await?;
        Ok(sums)
    }

    /// Takes the mark away: from here on it is a store. The service makes the search anew, from a
    /// walk over all templates, and new numbers are behind all that were ever given.
    pub(super) async fn hand_over(
        mut self,
        highest: &[(&'static Table, i64)],
    ) -> Result<(), MigrateError> {
        let open = self.client.transaction().await?;
        open.batch_execute("INSERT INTO followed SELECT id, last_seq, 0 FROM account").await?;
        for (table, number) in highest.iter().filter(|(_, number)| *number > 0) {
            let set = "SELECT setval(pg_get_serial_sequence($1, $2)::regclass, $3)";
            open.query_one(set, &[&table.name, &table.counts, number]).await?;
        }
        open.batch_execute("DROP TABLE galley_migration_table, galley_migration").await?;
        Ok(open.commit().await?)
    }
}

/// What of a row has no place in its column, if anything.
fn unfit(table: &'static Table, types: &[Type], row: &[Cell]) -> Option<MigrateError> {
    let places = table.columns.iter().zip(types.iter().zip(row));
    for (column, (kind, cell)) in places {
        if let Err(cause) = cell.fits(kind) {
            let row = table.row(row);
            return Some(MigrateError::Unfit { table: table.name, row, column, cause });
        }
    }
    None
}
