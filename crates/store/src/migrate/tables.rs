//! Which tables are copied, in the order of their references, and which are not.

use super::cell::Cell;

/// A table that both stores have.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Its columns, those of its key first. They mean the same in both stores; only the types of
    /// numbers differ, and the target knows its own.
    pub(super) columns: &'static [&'static str],
    /// How many of them are the key.
    pub(super) key: usize,
    /// Where SQLite reads them from, if not from the table alone.
    source: Option<&'static str>,
    /// The column that makes the numbers of new rows.
    pub(super) counts: Option<&'static str>,
}

impl Table {
    const fn new(name: &'static str, key: usize, columns: &'static [&'static str]) -> Self {
        Self { name, columns, key, source: None, counts: None }
    }

    const fn counting(self, column: &'static str) -> Self {
        Self { counts: Some(column), ..self }
    }

    const fn read_from(self, source: &'static str) -> Self {
        Self { source: Some(source), ..self }
    }

    pub(super) fn source(&self) -> &'static str {
        self.source.unwrap_or(self.name)
    }

    pub(super) fn column_list(&self) -> String {
        self.columns.join(", ")
    }

    /// A row by its key, for people.
    pub(super) fn row(&self, cells: &[Cell]) -> String {
        let key = self.columns[..self.key].iter().zip(cells);
        key.map(|(column, cell)| format!("{column} = {cell}")).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn key_list(&self) -> String {
        self.columns[..self.key].join(", ")
    }
}

/// SQLite has one newest template for all accounts, PostgreSQL one for each.
const ACCOUNTS: &str = "(SELECT account.*, coalesce(newest, 0) AS last_template FROM account \
     LEFT JOIN (SELECT account_id AS owner, max(id) AS newest FROM template GROUP BY account_id) \
     ON owner = account.id)";

/// All that is copied. What is referred to comes before what refers to it.
pub(super) static TABLES: [Table; 14] = [
    Table::new(
        "account",
        1,
        &[
            "id",
            "last_seq",
            "last_template",
            "created_at",
            "disabled_at",
            "media_bytes",
            "template_limit",
            "takes_any_phone",
            "name",
            "rulebook",
            "review",
        ],
    )
    .read_from(ACCOUNTS),
    Table::new("phone", 1, &["id", "account_id", "created_at"]),
    Table::new(
        "credential",
        1,
        &["id", "account_id", "created_at", "expires_at", "revoked_at", "kind", "scopes", "hash"],
    )
    .counting("id"),
    Table::new("credential_epoch", 1, &["only_row", "epoch"]),
    Table::new(
        "template",
        1,
        &[
            "id",
            "account_id",
            "version",
            "live_version",
            "revision",
            "created_at",
            "updated_at",
            "version_at",
            "actor",
            "decided_at",
            "decided_by",
            "allow_category_change",
            "claim",
            "family",
            "wording",
            "phone_id",
            "name",
            "language",
            "category",
            "previous_category",
            "status",
            "hold",
            "reason",
            "content",
        ],
    ),
    Table::new(
        "former_version",
        2,
        &[
            "template_id",
            "version",
            "created_at",
            "actor",
            "decided_at",
            "decided_by",
            "category",
            "previous_category",
            "status",
            "reason",
            "content",
        ],
    ),
    Table::new(
        "event",
        2,
        &[
            "account_id",
            "seq",
            "template_id",
            "version",
            "at",
            "actor",
            "webhook_id",
            "type",
            "category",
            "status",
            "reason",
            "origin",
        ],
    ),
    Table::new(
        "idempotency",
        1,
        &["key", "template_id", "created_at", "category", "status", "payload"],
    ),
    Table::new("counted", 3, &["account_id", "template_id", "seq", "at"]),
    Table::new(
        "webhook",
        1,
        &[
            "id",
            "account_id",
            "cursor",
            "former_until",
            "failing_since",
            "failed_at",
            "resting_until",
            "disabled_at",
            "created_at",
            "updated_at",
            "failures",
            "subscribed",
            "format",
            "url",
            "events",
            "disabled_because",
            "secret",
            "former_secret",
        ],
    )
    .counting("id"),
    Table::new("former_webhook", 1, &["id"]),
    Table::new(
        "delivery",
        2,
        &[
            "webhook_id",
            "seq",
            "template_id",
            "due_at",
            "leased_until",
            "attempted_at",
            "attempts",
            "answer",
            "status",
            "failure",
        ],
    ),
    Table::new(
        "upload",
        1,
        &[
            "number",
            "account_id",
            "length",
            "received",
            "created_at",
            "finished_at",
            "used_at",
            "id",
            "handle",
            "file_name",
            "file_type",
            "sniffed",
        ],
    )
    .counting("number"),
    Table::new("upload_chunk", 2, &["upload", "place", "bytes"]),
];

/// What stays behind, and why. The search is made anew by the service.
#[cfg(all(test, feature = "postgres-suite"))]
const NOT_COPIED: [(&str, &str); 3] = [
    ("found_by", "the search, which the service makes anew"),
    ("followed", "the search; told to look at every template"),
    ("galley_schema", "the target's own schema"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sqlite::{SchemaPolicy, connection::open_for_writing};

    type Schema = BTreeMap<String, Vec<String>>;

    fn known(except: &[(&str, &str)]) -> Schema {
        let tables = TABLES.iter().map(|table| {
            let here = |it: &&&str| !except.contains(&(table.name, **it));
            let mut columns: Vec<String> =
                table.columns.iter().filter(here).map(ToString::to_string).collect();
            columns.sort();
            (table.name.to_owned(), columns)
        });
        tables.collect()
    }

    #[test]
    fn every_table_and_column_of_a_sqlite_store_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        let store = open_for_writing(&path, SchemaPolicy::Renewed).unwrap();
        // What is generated (hidden 2 or 3) is kept nowhere.
        let mut columns = store
            .prepare(
                "SELECT s.name, c.name FROM sqlite_schema s, pragma_table_xinfo(s.name) c \
                 WHERE s.type = 'table' AND s.name <> 'sqlite_sequence' AND c.hidden = 0 \
                 ORDER BY 1, 2",
            )
            .unwrap();
        let mut found = Schema::new();
        let rows = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        for row in rows {
            let (table, column): (String, String) = row.unwrap();
            found.entry(table).or_default().push(column);
        }
        assert_eq!(found, known(&[("account", "last_template")]));
    }

    /// The address of a database of its own; whoever runs the server throws it away.
    #[cfg(feature = "postgres-suite")]
    async fn fresh_postgres() -> String {
        #[expect(clippy::disallowed_methods, reason = "a test is told where its server is")]
        let server =
            std::env::var("GALLEY_TEST_POSTGRES").expect("the address of a server for tests");
        let (client, connection) =
            tokio_postgres::connect(&server, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let name = format!("galley_migrate_{}", std::process::id());
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        let (before, _) = server.rsplit_once('/').unwrap();
        format!("{before}/{name}")
    }

    #[cfg(feature = "postgres-suite")]
    #[tokio::test]
    async fn every_table_and_column_of_a_postgresql_store_is_filled() {
        let address = fresh_postgres().await.parse().unwrap();
        let client = crate::postgres::schema::prepare_to_fill(&address).await.unwrap();
        let query = "SELECT table_name::text, column_name::text FROM information_schema.columns \
                     WHERE table_schema = current_schema() ORDER BY 1, 2";
        let mut found = Schema::new();
        for row in client.query(query, &[]).await.unwrap() {
            found.entry(row.get(0)).or_default().push(row.get(1));
        }
        for (table, reason) in NOT_COPIED {
            assert!(found.remove(table).is_some(), "there is no {table} ({reason})");
        }
        for columns in found.values_mut() {
            columns.sort();
        }
        assert_eq!(found, known(&[]));
    }
}
