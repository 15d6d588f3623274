//! The peer's database: SQLite through sqlx, one transaction per create.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};

use crate::credentials::Hash;
use crate::rules::Document;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS credentials (
    kind TEXT NOT NULL,
    hash BLOB NOT NULL,
    account INTEGER NOT NULL,
    PRIMARY KEY (kind, hash)
);
CREATE TABLE IF NOT EXISTS templates (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL,
    phone_number_id TEXT NOT NULL,
    name TEXT NOT NULL UNIQUE,
    language TEXT NOT NULL,
    category TEXT NOT NULL,
    allow_category_change INTEGER NOT NULL,
    status TEXT NOT NULL,
    components TEXT NOT NULL,
    created_at INTEGER NOT NULL DEFAULT (unixepoch())
);
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    template INTEGER NOT NULL REFERENCES templates (id),
    type TEXT NOT NULL,
    at INTEGER NOT NULL DEFAULT (unixepoch())
);
";

pub(crate) struct Store {
    pool: SqlitePool,
}

pub(crate) enum Created {
    Template(i64),
    NameInUse,
}

impl Store {
    pub(crate) async fn open(file: &Path) -> Result<Self, sqlx::Error> {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(5));
        // SQLite allows one writer at a time. One connection behind a fair queue measured faster than
        // two or eight connections that wait for each other's locks.
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
        sqlx::raw_sql(SCHEMA).execute(&pool).await?;
        Ok(Self { pool })
    }

    pub(crate) async fn add_credential(&self, kind: &str, hash: &Hash) -> Result<(), sqlx::Error> {
        sqlx::query("INSERT OR IGNORE INTO credentials (kind, hash, account) VALUES (?, ?, 1)")
            .bind(kind)
            .bind(&hash[..])
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    pub(crate) async fn credentials(&self) -> Result<HashMap<(String, Hash), i64>, sqlx::Error> {
        let rows: Vec<(String, Vec<u8>, i64)> =
            sqlx::query_as("SELECT kind, hash, account FROM credentials")
                .fetch_all(&self.pool)
                .await?;
        let credentials = rows.into_iter().filter_map(|(kind, hash, account)| {
            Some(((kind, Hash::try_from(hash).ok()?), account))
        });
        Ok(credentials.collect())
    }

    /// Stores a template and its event in one transaction.
    pub(crate) async fn create(
        &self,
        account: i64,
        phone_number_id: &str,
        document: &Document,
    ) -> Result<Created, sqlx::Error> {
        let components = serde_json::to_string(&document.components)
            .map_err(|error| sqlx::Error::Encode(error.into()))?;
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
        let inserted = sqlx::query_scalar(
            "INSERT INTO templates (account, phone_number_id, name, language, category,
                 allow_category_change, status, components)
             VALUES (?, ?, ?, ?, ?, ?, 'APPROVED', ?) ON CONFLICT (name) DO NOTHING RETURNING id",
        )
        .bind(account)
        .bind(phone_number_id)
        .bind(&document.name)
        .bind(&document.language)
        .bind(&document.category)
        .bind(document.allow_category_change)
        .bind(components)
        .fetch_optional(&mut *transaction)
        .await?;
        let Some(id) = inserted else { return Ok(Created::NameInUse) };
        sqlx::query("INSERT INTO events (template, type) VALUES (?, 'template.created')")
            .bind(id)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(Created::Template(id))
    }
}
