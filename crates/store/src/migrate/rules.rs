//! What the schemas of the two databases do not say: the tables and columns that only one of them
//! needs, and those that are treated in another way than the others.

/// Tables that are not copied, and why. All others must be in both databases.
pub(super) const NOT_COPIED: [(&str, &str); 11] = [
    ("console_session", "sessions of the console, which end within hours"),
    ("console_link", "links to the console, which end within a minute"),
    ("template_name", "an index of SQLite"),
    ("idempotency_key", "an index of SQLite"),
    ("buffered_index", "the progress of these indexes"),
    ("write_probe", "the value that readiness checks of a SQLite store change"),
    ("search_index", "the index of PostgreSQL, which the service rebuilds"),
    ("search_progress", "its progress, set to rebuild it"),
    ("galley_schema", "the target's own schema version"),
    ("galley_migration", "the mark of an incomplete copy"),
    ("galley_migration_table", "the progress of the copy"),
];

/// Columns of the source that are not copied, each with its table: PostgreSQL has checksums of pages.
pub(super) const NOT_COPIED_COLUMNS: [(&str, &str); 4] = [
    ("template", "checksum"),
    ("former_version", "checksum"),
    ("event", "checksum"),
    ("upload_chunk", "checksum"),
];

/// The column of the target that the source computes, with its table: PostgreSQL stores the newest
/// template id of each account; SQLite only one for all accounts.
pub(super) const COMPUTED_COLUMN: (&str, &str) = ("account", "last_template");

/// The subquery that SQLite reads instead of this table.
pub(super) const COMPUTED_SOURCE: &str = "(SELECT account.*, coalesce(newest, 0) AS last_template \
     FROM account LEFT JOIN (SELECT account_id AS owner, max(id) AS newest FROM template \
     GROUP BY account_id) ON owner = account.id)";

/// The table that a new store has rows in, which the copy replaces.
pub(super) const INITIAL_ROWS: &str = "credential_epoch";

/// Small tables that change with every relevant write. The fingerprint covers all their rows; of
/// the other tables it covers the number of rows.
pub(super) const FINGERPRINTED_TABLES: [&str; 10] = [
    "account",
    "credential",
    "credential_epoch",
    "webhook",
    "emulator_clock",
    "review_rules",
    "emulated_app",
    "fault",
    "status_cursor",
    "upstream",
];

/// Texts that are only displayed. `_` replaces U+0000 in them, which PostgreSQL cannot store; the
/// length stays the same.
pub(super) const DISPLAY_TEXTS: [(&str, &str); 1] = [("upload", "file_name")];

/// The table whose rows are too large to read many at a time.
pub(super) const LARGE_ROWS: &str = "upload_chunk";
