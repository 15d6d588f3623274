//! The tables to copy, in the order of their references.

use super::cell::Cell;

/// A table that both stores have.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Its columns, key columns first. They are the same in both stores, except for number types,
    /// which are read from the target.
    pub(super) columns: &'static [&'static str],
    /// Number of key columns.
    pub(super) key_len: usize,
    /// Subquery that SQLite reads instead of the table.
    source: Option<&'static str>,
    /// The column with generated row ids.
    pub(super) generated_id: Option<&'static str>,
}

impl Table {
    const fn new(name: &'static str, key_len: usize, columns: &'static [&'static str]) -> Self {
        Self { name, columns, key_len, source: None, generated_id: None }
    }

    const fn with_generated_id(self, column: &'static str) -> Self {
        Self { generated_id: Some(column), ..self }
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

    /// The key of a row, for error messages.
    pub(super) fn display_key(&self, cells: &[Cell]) -> String {
        let key = self.columns[..self.key_len].iter().zip(cells);
        key.map(|(column, cell)| format!("{column} = {cell}")).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn key_list(&self) -> String {
        self.columns[..self.key_len].join(", ")
    }
}

/// PostgreSQL stores the newest template id of each account; SQLite only one for all accounts.
const ACCOUNTS: &str = "(SELECT account.*, coalesce(newest, 0) AS last_template FROM account \
     LEFT JOIN (SELECT account_id AS owner, max(id) AS newest FROM template GROUP BY account_id) \
     ON owner = account.id)";

/// The tables to copy. Referenced tables come before those that reference them.
pub(super) static TABLES: [Table; 27] = [
    Table::new(
        "account",
        1,
        &[
            "id",
            "last_seq",
            "last_template",
            "created_at",
            "disabled_at",
            "deleted_at",
            "media_bytes",
            "template_limit",
            "requests_per_second",
            "stored_bytes_limit",
            "phone_limit",
            "template_bytes",
            "counting",
            "four_eyes",
            "takes_any_phone",
            "name",
            "rulebook",
            "review",
            "emulator",
        ],
    )
    .read_from(ACCOUNTS),
    Table::new("phone", 1, &["id", "account_id", "created_at"]),
    Table::new(
        "credential",
        1,
        &[
            "id",
            "account_id",
            "created_at",
            "last_used_at",
            "expires_at",
            "revoked_at",
            "kind",
            "name",
            "scopes",
            "hash",
        ],
    )
    .with_generated_id("id"),
    Table::new("credential_epoch", 1, &["only_row", "epoch"]),
    Table::new("audit", 1, &["seq", "account_id", "at", "actor", "kind", "subject", "details"]),
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
            "unique_key",
            "translation_group",
            "message_text",
            "phone_id",
            "name",
            "language",
            "category",
            "previous_category",
            "status",
            "hold",
            "reason",
            "announced_category",
            "quality",
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
            "emulated_at",
            "type",
            "category",
            "status",
            "reason",
            "origin",
            "trace",
        ],
    ),
    Table::new(
        "idempotency",
        1,
        &["key", "template_id", "created_at", "category", "status", "payload"],
    ),
    Table::new("rate_counter", 3, &["account_id", "template_id", "seq", "at"]),
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
    .with_generated_id("id"),
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
            "response_status",
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
            "emulated_at",
            "id",
            "handle",
            "file_name",
            "file_type",
            "sniffed",
        ],
    )
    .with_generated_id("number"),
    Table::new("upload_chunk", 2, &["upload", "place", "bytes"]),
    Table::new("clock_guard", 1, &["position", "at", "observed_ms"]),
    Table::new(
        "emulator_clock",
        1,
        &["account_id", "at", "since", "last_message", "last_sent_at", "last_fault"],
    ),
    Table::new("review_rules", 1, &["account_id", "document"]),
    Table::new("emulated_app", 1, &["account_id", "secret", "callback_override"]),
    Table::new(
        "script_step",
        1,
        &["id", "account_id", "template_id", "due_at", "action", "argument"],
    )
    .with_generated_id("id"),
    Table::new("name_lock", 3, &["account_id", "name", "language", "until"]),
    Table::new(
        "fault",
        2,
        &["account_id", "number", "matched", "created_at", "spent", "call", "document"],
    ),
    Table::new(
        "message",
        2,
        &[
            "account_id",
            "number",
            "sent_at",
            "created_at",
            "template_id",
            "version",
            "failure",
            "phone_id",
            "recipient",
            "category",
            "callback_data",
            "texts",
        ],
    ),
    Table::new("status_cursor", 1, &["webhook_id", "sent", "delivered", "read", "leased_until"]),
    Table::new(
        "upstream",
        1,
        &[
            "account_id",
            "base_url",
            "waba",
            "app_id",
            "token",
            "token_expires_at",
            "app_secret",
            "hook_hash",
            "connected_at",
            "paused_at",
            "suspicious_at",
            "degraded",
            "degraded_since",
            "degraded_until",
            "error",
            "calls",
            "sweep_calls",
            "creates",
            "rest_until",
            "sweep",
            "sweep_began_at",
            "sweep_full",
            "sweep_cursor",
            "sweep_seen",
            "sweep_changed",
            "sweep_total",
            "sweep_restarted",
            "sweep_generated",
            "sweep_idle",
            "complete_sweep",
            "sweep_wanted",
            "sweep_ended_at",
            "swept_at",
            "read_all_at",
            "template_limit",
            "fence",
            "leased_until",
        ],
    ),
    Table::new(
        "upstream_template",
        2,
        &[
            "account_id",
            "remote_id",
            "template_id",
            "name",
            "language",
            "status",
            "category",
            "correct_category",
            "quality",
            "reason",
            "remote_updated_at",
            "document",
            "content_key",
            "version",
            "sent_version",
            "drifted",
            "observed_at",
            "changed_at",
            "sweep",
            "missing",
            "gone_at",
            "dirty_at",
            "info",
            "source",
        ],
    ),
    Table::new(
        "upstream_operation",
        1,
        &[
            "id",
            "account_id",
            "template_id",
            "version",
            "kind",
            "state",
            "held_reason",
            "held_until",
            "attempts",
            "error",
            "replaces",
            "unknown_calls",
            "created_at",
            "sent_at",
            "updated_at",
        ],
    )
    .with_generated_id("id"),
];

/// The tables that are not copied, and why.
#[cfg(all(test, feature = "postgres-suite"))]
const NOT_COPIED: [(&str, &str); 5] = [
    ("search_index", "the search index, which the service rebuilds"),
    ("search_progress", "the progress of the search index, set to rebuild it"),
    ("galley_schema", "the target's own schema version"),
    ("console_session", "sessions of the console, which end within hours"),
    ("console_link", "links to the console, which end within a minute"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        SchemaPolicy,
        sqlite::connection::{create_if_missing, open_for_writing},
    };

    type Schema = BTreeMap<String, Vec<String>>;

    fn copied_columns(except: &[(&str, &str)]) -> Schema {
        let tables = TABLES.iter().map(|table| {
            let is_copied = |it: &&&str| !except.contains(&(table.name, **it));
            let mut columns: Vec<String> =
                table.columns.iter().filter(is_copied).map(ToString::to_string).collect();
            columns.sort();
            (table.name.to_owned(), columns)
        });
        tables.collect()
    }

    #[test]
    fn every_table_and_column_of_a_sqlite_store_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("galley.db");
        create_if_missing(&path, false).unwrap();
        let store = open_for_writing(&path, SchemaPolicy::Migrate).unwrap();
        // Leave out generated columns (hidden is 2 or 3), which are not stored, and what is
        // not worth copying: sessions and links of the console, which end within hours. Also what
        // only SQLite has: checksums of rows, the value that readiness checks write, and indexes in tables.
        let mut columns = store
            .prepare(
                "SELECT s.name, c.name FROM sqlite_schema s, pragma_table_xinfo(s.name) c \
                 WHERE s.type = 'table' AND s.name NOT IN ('sqlite_sequence', 'write_probe', \
                 'buffered_index', 'template_name', 'idempotency_key', 'console_session', \
                 'console_link') AND c.name <> 'checksum' AND c.hidden = 0 ORDER BY 1, 2",
            )
            .unwrap();
        let mut found = Schema::new();
        let rows = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        for row in rows {
            let (table, column): (String, String) = row.unwrap();
            found.entry(table).or_default().push(column);
        }
        assert_eq!(found, copied_columns(&[("account", "last_template")]));
    }

    /// The address of a new database. The test server is deleted as a whole.
    #[cfg(feature = "postgres-suite")]
    async fn fresh_postgres() -> String {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test server's address is an environment variable"
        )]
        let server = std::env::var("GALLEY_TEST_POSTGRES").expect("GALLEY_TEST_POSTGRES is set");
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
    async fn every_table_and_column_of_a_postgresql_store_is_written() {
        let address = fresh_postgres().await.parse().unwrap();
        let client = crate::postgres::schema::prepare_to_fill(&address).await.unwrap();
        let query = "SELECT table_name::text, column_name::text FROM information_schema.columns \
                     WHERE table_schema = current_schema() ORDER BY 1, 2";
        let mut found = Schema::new();
        for row in client.query(query, &[]).await.unwrap() {
            found.entry(row.get(0)).or_default().push(row.get(1));
        }
        for (table, reason) in NOT_COPIED {
            assert!(found.remove(table).is_some(), "{table} does not exist ({reason})");
        }
        for columns in found.values_mut() {
            columns.sort();
        }
        assert_eq!(found, copied_columns(&[]));
    }
}
