//! The schema, brought up to date by whoever comes first: all others wait, and find it done.

use std::sync::Arc;

use tokio::time::timeout;
use tokio_postgres::{Client, Config, GenericClient, error::SqlState};

use super::{
    address::PostgresAddress,
    failover::{CREATE, HostByHost},
    tls::Tls,
};
use crate::{
    StoreError,
    sqlite::{SchemaPolicy, options::Step},
};

/// Every migration, oldest first; the schema's version is how many have run.
const MIGRATIONS: &[&str] = &[include_str!("../../migrations/postgres/0001_all.sql")];

/// The oldest PostgreSQL that is known to be good.
const OLDEST: u32 = 150_000;

/// How often the table of migrations is tried to be made. The first failure is over when somebody
/// else has made it, unless something else has its name.
const TRIES: u32 = 10;

/// Why a database is not used.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("the database is PostgreSQL {0}; 15 is the oldest that this program knows")]
    OldServer(String),
    #[error(
        "the database has schema {found}, newer than the {known} this program knows: use a newer galley"
    )]
    NewerSchema { found: usize, known: usize },
    #[error(
        "the database has schema {found}, older than the {known} of this program: `galley serve` brings it up to date"
    )]
    SchemaPolicy { found: usize, known: usize },
    #[error(
        "the database commits without waiting for its disk (synchronous_commit = {0}): what is acknowledged could be lost"
    )]
    Hasty(String),
    #[error("the database is in {0}, which cannot keep every text: make one with ENCODING 'UTF8'")]
    Encoding(String),
    #[error(
        "the database is being filled by `galley migrate` and is not whole yet: give the same command again, and it goes on where it was"
    )]
    Unfinished,
}

impl From<Refusal> for StoreError {
    fn from(refusal: Refusal) -> Self {
        Self::Failed(Arc::new(refusal))
    }
}

/// How many migrations this program knows.
pub(super) fn newest() -> usize {
    MIGRATIONS.len()
}

/// Looks whether the database can be trusted, and at its schema. Answers the `synchronous_commit` that
/// it is trusted with.
pub(super) async fn prepare(
    address: &PostgresAddress,
    older: SchemaPolicy,
) -> Result<String, StoreError> {
    let mut client = connect(&address.patient(), Tls::of(address)?).await?;
    let synchronous_commit = check_server(&client).await?;
    let row = client.query_one("SELECT to_regclass('galley_migration') IS NOT NULL", &[]).await?;
    if row.try_get(0)? {
        return Err(Refusal::Unfinished.into());
    }
    bring_up_to_date(&mut client, older).await?;
    Ok(synchronous_commit)
}

/// A connection to a database that `galley migrate` fills, or has begun to fill, with the newest
/// schema.
pub(crate) async fn prepare_to_fill(address: &PostgresAddress) -> Result<Client, StoreError> {
    let mut client = connect(&address.patient(), Tls::of(address)?).await?;
    check_server(&client).await?;
    make_table(&client).await?;
    let row = client.query_one("SELECT count(*) FROM galley_schema", &[]).await?;
    let is_new = row.try_get::<_, i64>(0)? == 0;
    // Tables are made where there are none; those of somebody else are only looked at.
    let older = if is_new { SchemaPolicy::Renewed } else { SchemaPolicy::Refused };
    bring_up_to_date(&mut client, older).await?;
    Ok(client)
}

async fn bring_up_to_date(client: &mut Client, older: SchemaPolicy) -> Result<(), StoreError> {
    // Whoever finds all as it should be needs no right to change it, and leaves nothing behind.
    if is_settled(found(client).await?, older)? {
        return Ok(());
    }
    make_table(client).await?;
    let open = client.transaction().await?;
    // Readers may go on; whoever else wants to migrate waits here.
    open.batch_execute("LOCK TABLE galley_schema IN SHARE ROW EXCLUSIVE MODE").await?;
    let found = count(&open).await?;
    if is_settled(found, older)? {
        return Ok(());
    }
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(found) {
        open.batch_execute(migration).await?;
        let number = i32::try_from(number + 1).unwrap_or(i32::MAX);
        open.execute("INSERT INTO galley_schema VALUES ($1, now())", &[&number]).await?;
    }
    open.commit().await?;
    Ok(())
}

/// Whether a database with so many migrations is used as it is; if not, the others are to run.
fn is_settled(found: usize, older: SchemaPolicy) -> Result<bool, Refusal> {
    let known = newest();
    if found > known {
        return Err(Refusal::NewerSchema { found, known });
    }
    match older.step(found, known) {
        Step::Refuse => Err(Refusal::SchemaPolicy { found, known }),
        Step::Leave => Ok(true),
        Step::Renew => Ok(false),
    }
}

/// How many migrations have run; none if nothing was ever kept here.
pub(super) async fn found(client: &Client) -> Result<usize, StoreError> {
    let there = "SELECT to_regclass('galley_schema') IS NOT NULL";
    if client.query_one(there, &[]).await?.try_get(0)? { count(client).await } else { Ok(0) }
}

async fn count(client: &(impl GenericClient + Sync)) -> Result<usize, StoreError> {
    let row = client.query_one("SELECT count(*) FROM galley_schema", &[]).await?;
    Ok(usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(usize::MAX))
}

/// A connection of its own, beside those that are kept.
pub(super) async fn connect(config: &Config, tls: Tls) -> Result<Client, StoreError> {
    let hosts = HostByHost::of(config, &tls);
    match timeout(CREATE, hosts.any()).await {
        Ok(Ok((client, _))) => Ok(client),
        Ok(Err(error)) => Err(match StoreError::from(error) {
            StoreError::Failed(cause) => StoreError::Unavailable(cause),
            other => other,
        }),
        Err(_) => Err(StoreError::Unavailable(Arc::new(Silent))),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("no host of the address has answered in time")]
struct Silent;

/// Answers the `synchronous_commit` of a server that is good.
async fn check_server(client: &Client) -> Result<String, StoreError> {
    let row = client
        .query_one(
            "SELECT current_setting('server_version_num')::int, current_setting('server_version'), \
             current_setting('synchronous_commit'), current_setting('fsync'), \
             current_setting('server_encoding')",
            &[],
        )
        .await?;
    if row.try_get::<_, i32>(0)?.unsigned_abs() < OLDEST {
        return Err(Refusal::OldServer(row.try_get(1)?).into());
    }
    let synchronous: String = row.try_get(2)?;
    if synchronous == "off" {
        return Err(Refusal::Hasty(synchronous).into());
    }
    let encoding: String = row.try_get(4)?;
    if encoding != "UTF8" {
        return Err(Refusal::Encoding(encoding).into());
    }
    if row.try_get::<_, String>(3)? == "off" {
        tracing::warn!("the database runs with fsync off: a crash of its machine loses data");
    }
    Ok(synchronous)
}

/// Two that make the same table at the same moment can stumble over one another, even so: whoever
/// comes second is told that the table, its type or a row about it is there already.
async fn make_table(client: &Client) -> Result<(), StoreError> {
    let make = "CREATE TABLE IF NOT EXISTS galley_schema \
                (version INTEGER PRIMARY KEY, at TIMESTAMPTZ NOT NULL)";
    let stumbles =
        [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_OBJECT];
    let mut tries = 1..TRIES;
    loop {
        match client.batch_execute(make).await {
            Err(error)
                if error.code().is_some_and(|code| stumbles.contains(code))
                    && tries.next().is_some() => {}
            outcome => return Ok(outcome?),
        }
    }
}
