//! Checks the server and migrates the schema. Concurrent instances wait for the first one.

use std::sync::Arc;

use tokio::time::timeout;
use tokio_postgres::{Client, Config, GenericClient, error::SqlState};

use super::{
    address::PostgresAddress,
    audit,
    failover::{CONNECT_TIMEOUT, FailoverConnector},
    tls::Tls,
};
use crate::{
    StoreError,
    schema_policy::{SchemaAction, SchemaPolicy},
};

/// All migrations, oldest first. The schema version is the number of applied migrations.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/postgres/0001_all.sql"),
    include_str!("../../migrations/postgres/0002_clock_guard.sql"),
    include_str!("../../migrations/postgres/0003_search_terms.sql"),
    include_str!("../../migrations/postgres/0004_account_quotas.sql"),
    include_str!("../../migrations/postgres/0005_audit.sql"),
    include_str!("../../migrations/postgres/0006_console.sql"),
    include_str!("../../migrations/postgres/0007_emulator.sql"),
    include_str!("../../migrations/postgres/0008_emulated_app.sql"),
    include_str!("../../migrations/postgres/0009_upstream.sql"),
    include_str!("../../migrations/postgres/0010_upstream_replaces.sql"),
    include_str!("../../migrations/postgres/0011_repairs.sql"),
];

/// The oldest supported PostgreSQL, as `server_version_num`.
const MIN_SERVER_VERSION: u32 = 150_000;

/// How often creating the migration table is attempted. A conflict with another instance is over
/// once that has created it; only another object with that name fails every attempt.
const MAX_CREATE_ATTEMPTS: u32 = 10;

/// Why a database is refused.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("the database runs PostgreSQL {0}; the oldest supported version is 15")]
    OldServer(String),
    #[error(
        "the database has schema {found}, newer than schema {known} of this program: use a newer galley"
    )]
    NewerSchema { found: usize, known: usize },
    #[error(
        "the database has schema {found}, older than schema {known} of this program: run `galley serve` to migrate it"
    )]
    OlderSchema { found: usize, known: usize },
    #[error(
        "the database commits without waiting for its disk (synchronous_commit = {0}): acknowledged writes could be lost"
    )]
    AsynchronousCommit(String),
    #[error(
        "the database has the encoding {0}, which cannot store every text: create it with ENCODING 'UTF8'"
    )]
    Encoding(String),
    #[error(
        "the database is being filled by `galley migrate`, which has not completed: run the same command again to continue"
    )]
    IncompleteMigration,
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> Self {
        Self::Failed(Arc::new(refusal))
    }
}

/// The schema version of this program.
pub(super) fn latest_version() -> usize {
    MIGRATIONS.len()
}

/// Checks the server and migrates the schema as the policy says. Returns the `synchronous_commit`
/// setting that was checked.
pub(super) async fn prepare(
    address: &PostgresAddress,
    policy: SchemaPolicy,
) -> Result<String, StoreError> {
    let mut client = connect(&address.without_deadline(), Tls::new(address)?).await?;
    let synchronous_commit = check_server(&client).await?;
    let row = client.query_one("SELECT to_regclass('galley_migration') IS NOT NULL", &[]).await?;
    if row.try_get(0)? {
        return Err(Refusal::IncompleteMigration.into());
    }
    migrate(&mut client, policy).await?;
    Ok(synchronous_commit)
}

/// Connects to a database that `galley migrate` fills or has started to fill, with the latest
/// schema.
pub(crate) async fn prepare_to_fill(address: &PostgresAddress) -> Result<Client, StoreError> {
    let mut client = connect(&address.without_deadline(), Tls::new(address)?).await?;
    check_server(&client).await?;
    create_version_table(&client).await?;
    let row = client.query_one("SELECT count(*) FROM galley_schema", &[]).await?;
    let is_new = row.try_get::<_, i64>(0)? == 0;
    // Create the tables in a new database; never migrate existing tables.
    let policy = if is_new { SchemaPolicy::Migrate } else { SchemaPolicy::Refuse };
    migrate(&mut client, policy).await?;
    Ok(client)
}

async fn migrate(client: &mut Client, policy: SchemaPolicy) -> Result<(), StoreError> {
    // If there is nothing to migrate, no right to change the schema is required.
    if is_current(version(client).await?, policy)? {
        return Ok(());
    }
    create_version_table(client).await?;
    let open = client.transaction().await?;
    // Readers continue; other instances that want to migrate wait here.
    open.batch_execute("LOCK TABLE galley_schema IN SHARE ROW EXCLUSIVE MODE").await?;
    let found = count(&open).await?;
    if is_current(found, policy)? {
        return Ok(());
    }
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(found) {
        open.batch_execute(migration).await?;
        let number = i32::try_from(number + 1).unwrap_or(i32::MAX);
        open.execute("INSERT INTO galley_schema VALUES ($1, now())", &[&number]).await?;
    }
    if found > 0 {
        audit::append_migration(&open, found, latest_version()).await?;
    }
    open.commit().await?;
    Ok(())
}

/// Whether the schema is used as it is; if not, the missing migrations are applied.
fn is_current(found: usize, policy: SchemaPolicy) -> Result<bool, Refusal> {
    let known = latest_version();
    if found > known {
        return Err(Refusal::NewerSchema { found, known });
    }
    match policy.action(found, known) {
        SchemaAction::Refuse => Err(Refusal::OlderSchema { found, known }),
        SchemaAction::Keep => Ok(true),
        SchemaAction::Migrate => Ok(false),
    }
}

/// The number of applied migrations; 0 in a new database.
pub(super) async fn version(client: &Client) -> Result<usize, StoreError> {
    let exists = "SELECT to_regclass('galley_schema') IS NOT NULL";
    if client.query_one(exists, &[]).await?.try_get(0)? { count(client).await } else { Ok(0) }
}

async fn count(client: &(impl GenericClient + Sync)) -> Result<usize, StoreError> {
    let row = client.query_one("SELECT count(*) FROM galley_schema", &[]).await?;
    Ok(usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(usize::MAX))
}

/// Opens a connection outside the pools.
pub(super) async fn connect(config: &Config, tls: Tls) -> Result<Client, StoreError> {
    let connector = FailoverConnector::new(config, &tls);
    match timeout(CONNECT_TIMEOUT, connector.connect_any()).await {
        Ok(Ok((client, _))) => Ok(client),
        Ok(Err(error)) => Err(match StoreError::from(error) {
            StoreError::Failed(cause) => StoreError::Unavailable(cause),
            other => other,
        }),
        Err(_) => Err(StoreError::Unavailable(Arc::new(NoResponse))),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("no host of the address responded in time")]
struct NoResponse;

/// Checks the server; returns its `synchronous_commit` setting.
async fn check_server(client: &Client) -> Result<String, StoreError> {
    let row = client
        .query_one(
            "SELECT current_setting('server_version_num')::int, current_setting('server_version'), \
             current_setting('synchronous_commit'), current_setting('fsync'), \
             current_setting('server_encoding')",
            &[],
        )
        .await?;
    if row.try_get::<_, i32>(0)?.unsigned_abs() < MIN_SERVER_VERSION {
        return Err(Refusal::OldServer(row.try_get(1)?).into());
    }
    let synchronous: String = row.try_get(2)?;
    if synchronous == "off" {
        return Err(Refusal::AsynchronousCommit(synchronous).into());
    }
    let encoding: String = row.try_get(4)?;
    if encoding != "UTF8" {
        return Err(Refusal::Encoding(encoding).into());
    }
    if row.try_get::<_, String>(3)? == "off" {
        tracing::warn!("the database runs with fsync off: a crash of its host can lose data");
    }
    Ok(synchronous)
}

/// Creates the table of applied migrations. `IF NOT EXISTS` does not cover concurrent creation: the
/// second transaction fails because the table, its type or a catalog row already exists.
async fn create_version_table(client: &Client) -> Result<(), StoreError> {
    let create = "CREATE TABLE IF NOT EXISTS galley_schema \
                (version INTEGER PRIMARY KEY, at TIMESTAMPTZ NOT NULL)";
    let conflicts =
        [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_OBJECT];
    let mut attempts = 1..MAX_CREATE_ATTEMPTS;
    loop {
        match client.batch_execute(create).await {
            Err(error)
                if error.code().is_some_and(|code| conflicts.contains(code))
                    && attempts.next().is_some() => {}
            outcome => return Ok(outcome?),
        }
    }
}
