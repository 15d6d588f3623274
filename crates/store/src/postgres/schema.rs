//! Checks the server and migrates the schema. Concurrent instances wait for the first one.

use tokio::time::timeout;
use tokio_postgres::{Client, GenericClient, error::SqlState};

use super::{
    address::PostgresAddress,
    errors,
    failover::{CONNECT_TIMEOUT, FailoverConnector},
    pending_audit,
    tls::Tls,
};
use crate::{
    StoreError,
    error::{failed, unavailable},
    schema_policy::{Migrations, SchemaPolicy},
};

/// The migrations of this program.
pub(super) const MIGRATIONS: Migrations = Migrations {
    kind: "database",
    copy_advice: "",
    first: 12,
    statements: &[include_str!("../../migrations/postgres/0012_initial.sql")],
};

/// The oldest supported PostgreSQL, as `server_version_num`.
const MIN_SERVER_VERSION: u32 = 150_000;

/// How often creating the migration table is attempted. A conflict with another instance is over
/// once that has created it; only another object with that name fails every attempt.
const MAX_CREATE_ATTEMPTS: u32 = 10;

/// A table of a database without a store. Those of extensions do not count.
const OTHER_TABLES: &str = "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n \
     ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r' \
     AND c.relname <> 'galley_schema' AND NOT EXISTS (SELECT FROM galley_schema) \
     AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') \
     ORDER BY c.relname LIMIT 1";

/// Marks a store as the partial copy of another. The table has a row once the copy has begun.
pub(crate) const MARK_PARTIAL_COPY: &str =
    "CREATE TABLE galley_migration (fingerprint BYTEA NOT NULL)";

/// Whether a store has that mark. No service opens it.
pub(crate) const IS_PARTIAL_COPY: &str = "SELECT to_regclass('galley_migration') IS NOT NULL";

/// Checks the server and migrates the schema as the policy says. Returns the `synchronous_commit`
/// setting that was checked.
pub(super) async fn prepare(
    address: &PostgresAddress,
    policy: SchemaPolicy,
) -> Result<String, StoreError> {
    let mut client = connect(address).await?;
    let synchronous_commit = check_server(&client).await?;
    MIGRATIONS.check(version(&client).await?)?;
    let row = client.query_one(IS_PARTIAL_COPY, &[]).await?;
    if row.try_get(0)? {
        return Err(failed(
            "the database is being filled by `galley migrate`, which has not completed: \
             run the same command again to continue",
        ));
    }
    migrate(&mut client, &MIGRATIONS, policy, "").await?;
    Ok(synchronous_commit)
}

/// Connects to a database that `galley migrate` fills or has started to fill, with the latest
/// schema. A new store is marked as a partial copy in the transaction that creates its tables.
pub(crate) async fn prepare_to_fill(address: &PostgresAddress) -> Result<Client, StoreError> {
    let mut client = connect(address).await?;
    check_server(&client).await?;
    create_version_table(&client).await?;
    if let Some(row) = client.query_opt(OTHER_TABLES, &[]).await? {
        return Err(failed(format!(
            "the database has the table {}, which is not Galley's: use a database without other tables",
            row.try_get::<_, &str>(0)?
        )));
    }
    // Create the tables in a new database; never migrate existing tables.
    let policy = SchemaPolicy::RefuseUnlessEmpty;
    migrate(&mut client, &MIGRATIONS, policy, MARK_PARTIAL_COPY).await?;
    Ok(client)
}

/// Applies the missing migrations, if the policy allows it, and `on_create` to a new store.
async fn migrate(
    client: &mut Client,
    migrations: &Migrations,
    policy: SchemaPolicy,
    on_create: &str,
) -> Result<(), StoreError> {
    // If there is nothing to migrate, no right to change the schema is required.
    if !migrations.are_wanted(policy, version(client).await?)? {
        return Ok(());
    }
    create_version_table(client).await?;
    let open = client.transaction().await?;
    // Readers continue; other instances that want to migrate wait here.
    open.batch_execute("LOCK TABLE galley_schema IN SHARE ROW EXCLUSIVE MODE").await?;
    let found = last_migration(&open).await?;
    if !migrations.are_wanted(policy, found)? {
        return Ok(());
    }
    if found == 0 {
        // Builds before 0.1.0 take the number of rows for the version, and have to find a newer one.
        let earlier = "INSERT INTO galley_schema \
                       SELECT version, now() FROM generate_series(1, $1::int4 - 1) AS version";
        open.execute(earlier, &[&i32::try_from(migrations.first).unwrap_or(i32::MAX)]).await?;
        open.batch_execute(on_create).await?;
    }
    for (number, statements) in migrations.missing(found) {
        open.batch_execute(statements).await?;
        let number = i32::try_from(number).unwrap_or(i32::MAX);
        open.execute("INSERT INTO galley_schema VALUES ($1, now())", &[&number]).await?;
    }
    if found > 0 {
        pending_audit::append_migration(&open, migrations, found).await?;
    }
    open.commit().await?;
    Ok(())
}

/// The schema version of a database: the number of its last migration, 0 in a new database.
pub(super) async fn version(client: &Client) -> Result<usize, StoreError> {
    let exists = "SELECT to_regclass('galley_schema') IS NOT NULL";
    if client.query_one(exists, &[]).await?.try_get(0)? {
        last_migration(client).await
    } else {
        Ok(0)
    }
}

async fn last_migration(client: &(impl GenericClient + Sync)) -> Result<usize, StoreError> {
    let row = client.query_one("SELECT coalesce(max(version), 0) FROM galley_schema", &[]).await?;
    Ok(usize::try_from(row.try_get::<_, i32>(0)?).unwrap_or(usize::MAX))
}

/// Opens a connection outside the pools, without a deadline for its statements.
pub(super) async fn connect(address: &PostgresAddress) -> Result<Client, StoreError> {
    let connector = FailoverConnector::new(&address.config, &Tls::new(address)?);
    match timeout(CONNECT_TIMEOUT, connector.connect_any()).await {
        Ok(connected) => Ok(connected.map_err(errors::at_connect)?.0),
        Err(_) => Err(unavailable("no host of the address responded in time")),
    }
}

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
        return Err(failed(format!(
            "the database runs PostgreSQL {}; the oldest supported version is 15",
            row.try_get::<_, &str>(1)?
        )));
    }
    let synchronous: String = row.try_get(2)?;
    if synchronous == "off" {
        return Err(failed(format!(
            "the database commits without waiting for its disk (synchronous_commit = {synchronous}): \
             acknowledged writes could be lost"
        )));
    }
    let encoding: &str = row.try_get(4)?;
    if encoding != "UTF8" {
        return Err(failed(format!(
            "the database has the encoding {encoding}, which cannot store every text: \
             create it with ENCODING 'UTF8'"
        )));
    }
    if row.try_get::<_, &str>(3)? == "off" {
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

#[cfg(test)]
#[cfg(feature = "postgres-suite")]
mod tests {
    use super::*;
    use crate::postgres::test_database;

    /// The migrations of a later program.
    const LATER: Migrations = Migrations {
        statements: &[
            MIGRATIONS.statements[0],
            "ALTER TABLE account ADD COLUMN colour TEXT",
            "UPDATE account SET colour = 'red'",
        ],
        ..MIGRATIONS
    };

    /// Creates a store with one account.
    async fn create_store() -> (String, Client) {
        let address = test_database::create().await;
        let mut client = test_database::connect(&address).await;
        migrate(&mut client, &MIGRATIONS, SchemaPolicy::Migrate, "").await.unwrap();
        let account = "INSERT INTO account (id, name, rulebook, review, takes_any_phone, created_at) \
                       VALUES (1, 'a', 'v1', 'auto', true, 0)";
        client.batch_execute(account).await.unwrap();
        (address, client)
    }

    async fn texts(client: &Client, query: &str) -> Vec<String> {
        client.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    const AUDIT: &str = "SELECT concat_ws(' ', kind, actor, account_id, details) FROM audit";

    fn cause(error: StoreError) -> String {
        match error {
            StoreError::Failed(cause) => cause.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_later_program_migrates_a_store_once_and_records_it() {
        let (address, mut client) = create_store().await;
        assert_eq!(texts(&client, AUDIT).await, [""; 0], "a new store was not migrated");
        for _ in 0..2 {
            migrate(&mut client, &LATER, SchemaPolicy::Migrate, "").await.unwrap();
            assert_eq!(texts(&client, "SELECT colour FROM account").await, ["red"]);
            assert_eq!(version(&client).await.unwrap(), LATER.latest());
            let details = format!(r#"{{"from":{},"to":{}}}"#, MIGRATIONS.latest(), LATER.latest());
            assert_eq!(texts(&client, AUDIT).await, [format!("store.migrated -1 {details}")]);
        }
        let refused =
            cause(prepare(&address.parse().unwrap(), SchemaPolicy::Keep).await.unwrap_err());
        assert!(refused.contains(&format!("schema {}, newer", LATER.latest())), "{refused}");
    }

    #[tokio::test]
    async fn policies_without_migration_refuse_an_older_store_or_keep_it_unchanged() {
        let (_, mut client) = create_store().await;
        for policy in [SchemaPolicy::Refuse, SchemaPolicy::RefuseUnlessEmpty] {
            let refused = cause(migrate(&mut client, &LATER, policy, "").await.unwrap_err());
            assert!(
                refused.contains(&format!("schema {}, older", MIGRATIONS.latest())),
                "{refused}"
            );
        }
        migrate(&mut client, &LATER, SchemaPolicy::Keep, "").await.unwrap();
        assert_eq!(version(&client).await.unwrap(), MIGRATIONS.latest());
    }

    #[tokio::test]
    async fn builds_before_the_first_release_count_a_newer_schema() {
        let (_, client) = create_store().await;
        let rows: i64 =
            client.query_one("SELECT count(*) FROM galley_schema", &[]).await.unwrap().get(0);
        assert_eq!(usize::try_from(rows).unwrap(), MIGRATIONS.latest());
    }

    #[tokio::test]
    async fn a_database_with_other_tables_is_neither_filled_nor_changed() {
        let address = test_database::create().await;
        let client = test_database::connect(&address).await;
        client.batch_execute("CREATE TABLE theirs (x TEXT)").await.unwrap();
        let refused = cause(prepare_to_fill(&address.parse().unwrap()).await.unwrap_err());
        assert!(refused.contains("the table theirs, which is not Galley's"), "{refused}");
        let tables = "SELECT relname::text FROM pg_class WHERE relnamespace = \
                      current_schema()::regnamespace AND relkind = 'r' ORDER BY relname";
        assert_eq!(texts(&client, tables).await, ["galley_schema", "theirs"]);
    }

    #[tokio::test]
    async fn a_store_to_fill_is_created_with_its_mark_and_its_schema_is_checked_first() {
        let address = test_database::create().await;
        let client = test_database::connect(&address).await;
        let address = address.parse().unwrap();
        prepare_to_fill(&address).await.unwrap();
        let error = prepare(&address, SchemaPolicy::Migrate).await.unwrap_err();
        assert!(cause(error).contains("filled by `galley migrate`"));
        for (last, expected) in [(999, "schema 999, newer"), (11, "before 0.1.0")] {
            let versions = format!(
                "DELETE FROM galley_schema; INSERT INTO galley_schema VALUES ({last}, now())"
            );
            client.batch_execute(&versions).await.unwrap();
            for error in [
                prepare(&address, SchemaPolicy::Migrate).await.unwrap_err(),
                prepare_to_fill(&address).await.err().unwrap(),
            ] {
                let refused = cause(error);
                assert!(refused.contains(expected), "{refused}");
            }
        }
    }

    #[tokio::test]
    async fn stores_of_builds_before_the_first_release_are_refused_and_unchanged() {
        let (address, client) = create_store().await;
        // Such a build recorded every migration.
        client
            .batch_execute(
                "DELETE FROM galley_schema; \
                 INSERT INTO galley_schema SELECT n, now() FROM generate_series(1, 11) n",
            )
            .await
            .unwrap();
        let address = address.parse().unwrap();
        for policy in [SchemaPolicy::Migrate, SchemaPolicy::Refuse, SchemaPolicy::Keep] {
            let refused = cause(prepare(&address, policy).await.unwrap_err());
            let expected = "the database has schema 11, written by a build before 0.1.0";
            assert!(refused.contains(expected), "{policy:?}: {refused}");
        }
        assert!(cause(prepare_to_fill(&address).await.unwrap_err()).contains("before 0.1.0"));
        assert_eq!(version(&client).await.unwrap(), 11);
    }
}
