//! Deletes expired records and checks integrity.

use std::path::Path;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::Connection;

use super::{
    SqliteStore, backup,
    cancellation::Cancellation,
    checksum,
    idempotency::Expired,
    reader_pool::{self, ReaderPool},
    retention, schema,
};
use crate::{
    Finding, MAX_VERSIONS, MaintenanceStore, PhaseObserver, RetentionCursor, StoreError,
    VERSION_OVERHEAD_BYTES, emulator, engine, sessions, uploads, upstream,
};

#[async_trait]
impl MaintenanceStore for SqliteStore {
    async fn delete_expired_records(
        &self,
        from: RetentionCursor,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError> {
        self.delete_next_expired_records(from, at).await
    }

    async fn delete_expired_events(&self, since: Timestamp) -> Result<usize, StoreError> {
        let find = move |readers: &ReaderPool, cancellation: &Cancellation| {
            readers
                .cancellable_read(cancellation, |store| retention::find_purge_target(store, since))
        };
        let target = reader_pool::run_blocking_in_background(&self.readers, find).await?;
        let Some(target) = target else { return Ok(0) };
        self.writer.write(move |batch| retention::purge(batch, &target, since)).await
    }

    async fn count_stored_bytes(&self, all: bool) -> Result<usize, StoreError> {
        self.count_bytes(all).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.check_ready().await
    }

    async fn check_integrity(&self) -> Result<Vec<Finding>, StoreError> {
        self.readers.read(check_integrity)
    }

    async fn backup(
        &self,
        path: &Path,
        allow_damaged: bool,
        observer: PhaseObserver<'_>,
    ) -> Result<(), StoreError> {
        self.readers.read(|connection| backup::backup(connection, path, allow_damaged, observer))
    }
}

impl SqliteStore {
    /// Deletes the next expired idempotency records and, at the start of a pass, expired uploads,
    /// messages, sessions and links.
    pub(super) async fn delete_next_expired_records(
        &self,
        from: RetentionCursor,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError> {
        let expired =
            self.readers.read(|connection| Expired::find(connection, from.last_key, at))?;
        let last_key = expired.last_key;
        let deleted_records = if expired.is_empty() {
            0
        } else {
            self.writer.write(move |batch| expired.delete(batch, at)).await?
        };
        if from.last_key.is_none() {
            if !engine::fetch(self, sessions::expired(at)).await?.is_empty() {
                engine::run(self, sessions::deletion(at)).await?;
            }
            emulator::delete_expired_messages(self, at).await?;
            while !engine::fetch(self, upstream::expired_operations(at)).await?.is_empty() {
                engine::run(self, upstream::operation_deletion(at)).await?;
            }
        }
        let deleted_uploads =
            if from.last_key.is_none() { uploads::delete_expired(self, at).await? } else { 0 };
        Ok(RetentionCursor { last_key, deleted_records, deleted_uploads })
    }
}

/// The checks of `galley doctor`. The writer checks its own settings whenever it opens the file.
pub(super) fn check_integrity(connection: &Connection) -> Result<Vec<Finding>, StoreError> {
    let schema_version = schema::version(connection)?;
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let integrity: String =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    let broken_references: i64 = connection.query_row(
        "SELECT (SELECT count(*) FROM pragma_foreign_key_check) + \
         (SELECT count(*) FROM template WHERE account_id NOT IN (SELECT id FROM account)) + \
         (SELECT count(*) FROM event WHERE webhook_id IS NULL AND type NOT LIKE 'upstream.%' AND template_id NOT IN (SELECT id FROM template))",
        [],
        |row| row.get(0),
    )?;
    let accounts_behind: i64 = connection.query_row(
        "SELECT count(*) FROM account a WHERE last_seq < (SELECT coalesce(max(seq), 0) FROM event e WHERE e.account_id = a.id)",
        [],
        |row| row.get(0),
    )?;
    let incomplete_templates: i64 = connection.query_row(
        "SELECT count(*) FROM template t WHERE unique_key IS NOT NULL AND (min(version, ?1) - 1 <> \
         (SELECT count(*) FROM former_version f WHERE f.template_id = t.id AND \
         f.version < t.version AND f.version > t.version - ?1) OR (live_version < version AND \
         NOT EXISTS (SELECT 1 FROM former_version f WHERE f.template_id = t.id AND \
         f.version = t.live_version)))",
        [i64::try_from(MAX_VERSIONS).unwrap_or(i64::MAX)],
        |row| row.get(0),
    )?;
    let templates: i64 =
        connection.query_row("SELECT count(*) FROM template", [], |row| row.get(0))?;
    let mut findings = vec![
        Finding::checked("SQLite", rusqlite::version(), true),
        Finding::checked(
            "schema",
            format!("version {schema_version} of {}", schema::newest()),
            schema_version == schema::newest(),
        ),
        Finding::checked("journal", &*journal, journal == "wal"),
        Finding::checked("integrity", &*integrity, integrity == "ok"),
        Finding::checked(
            "references",
            format!("{broken_references} broken"),
            broken_references == 0,
        ),
        count_finding("event numbers", accounts_behind, "account", "behind"),
        count_finding("versions", incomplete_templates, "template", "incomplete"),
        Finding::checked("templates", templates.to_string(), true),
    ];
    findings.extend(check_translations_and_media(connection)?);
    findings.push(check_stored_bytes(connection)?);
    findings.extend(check_indexes(connection)?);
    findings.push(check_checksums(connection)?);
    Ok(findings)
}

fn check_checksums(connection: &Connection) -> Result<Finding, StoreError> {
    let (damaged, rows) = checksum::damaged_rows(connection)?;
    let count = i64::try_from(damaged).unwrap_or(i64::MAX);
    let mut finding = count_finding("checksums", count, "row", "damaged");
    if damaged > 0 {
        finding.detail = format!("{}: {}; restore a backup", finding.detail, rows.join(", "));
    }
    Ok(finding)
}

/// Whether the totals of stored bytes agree with the rows, except those not counted yet.
fn check_stored_bytes(connection: &Connection) -> Result<Finding, StoreError> {
    let miscounted: i64 = connection.query_row(
        "WITH version AS (SELECT account_id, octet_length(content) + ?1 AS bytes FROM template \
         UNION ALL SELECT t.account_id, octet_length(f.content) + ?1 FROM former_version f \
         JOIN template t ON t.id = f.template_id), \
         stored AS (SELECT account_id, sum(bytes) AS bytes FROM version GROUP BY account_id) \
         SELECT count(*) FROM account LEFT JOIN stored ON stored.account_id = account.id \
         WHERE counting IS NULL AND template_bytes <> coalesce(stored.bytes, 0)",
        [i64::try_from(VERSION_OVERHEAD_BYTES).unwrap_or(i64::MAX)],
        |row| row.get(0),
    )?;
    let mut finding = count_finding("stored bytes", miscounted, "account", "miscounted");
    if miscounted > 0 {
        finding.detail.push_str(": correct them with --count-bytes");
    }
    Ok(finding)
}

/// Whether names are unique, and the indexes of names and idempotency keys contain the rows that were
/// merged into them. Keys of deleted records may be left.
fn check_indexes(connection: &Connection) -> Result<[Finding; 2], StoreError> {
    let repeated: i64 = connection.query_row(
        "SELECT count(*) FROM (SELECT 1 FROM template WHERE unique_key IS NOT NULL GROUP BY unique_key \
         HAVING count(*) > 1)",
        [],
        |row| row.get(0),
    )?;
    let wrong: i64 = connection.query_row(
        "WITH progress AS (SELECT name, merged_id, coalesce(merging_id, 0) AS merging_id, \
         coalesce(merged_hash, x'') AS merged_hash FROM buffered_index) SELECT \
         2 - (SELECT count(*) FROM progress) + \
         (SELECT count(*) FROM template t, progress p WHERE p.name = 'template_name' AND \
         unique_key IS NOT NULL AND (id <= merged_id OR id <= merging_id AND unique_key <= merged_hash) AND \
         id IS NOT (SELECT template_id FROM template_name n WHERE n.unique_key = t.unique_key)) + \
         (SELECT count(*) FROM template_name n WHERE \
         unique_key IS NOT (SELECT unique_key FROM template t WHERE t.id = n.template_id)) + \
         (SELECT count(*) FROM idempotency i, progress p WHERE p.name = 'idempotency_key' AND \
         (template_id <= merged_id OR template_id <= merging_id AND key <= merged_hash) AND \
         template_id IS NOT (SELECT template_id FROM idempotency_key k WHERE k.key = i.key))",
        [],
        |row| row.get(0),
    )?;
    let mut names = count_finding("names", repeated, "name", "used twice");
    if repeated > 0 {
        names.detail.push_str(": restore a backup");
    }
    let mut indexes = count_finding("indexes", wrong, "row", "wrong or missing");
    if wrong > 0 {
        indexes.detail.push_str(": rebuild them, see docs/operations/troubleshooting.md");
    }
    Ok([names, indexes])
}

/// A finding about rows of which there must be none.
fn count_finding(subject: &'static str, count: i64, noun: &str, problem: &str) -> Finding {
    let plural = if count == 1 { "" } else { "s" };
    Finding::checked(subject, format!("{count} {noun}{plural} {problem}"), count == 0)
}

/// Review scripts of emulator accounts and providers change the category of one language alone.
fn check_translations_and_media(connection: &Connection) -> Result<[Finding; 3], StoreError> {
    let mixed_names: i64 = connection.query_row(
        "SELECT count(*) FROM (SELECT translation_group FROM template \
         INDEXED BY template_of_translation_group WHERE translation_group IS NOT NULL AND unique_key IS NOT NULL AND account_id NOT IN \
         (SELECT id FROM account WHERE emulator IS NOT NULL) AND account_id NOT IN \
         (SELECT account_id FROM audit WHERE kind = 'upstream.connected') GROUP BY translation_group \
         HAVING count(DISTINCT category) > 1)",
        [],
        |row| row.get(0),
    )?;
    let incomplete_files: i64 = connection.query_row(
        "SELECT count(*) FROM upload u WHERE received <> (SELECT coalesce(sum(length(bytes)), 0) \
         FROM upload_chunk c WHERE c.upload = u.number)",
        [],
        |row| row.get(0),
    )?;
    let miscounted_accounts: i64 = connection.query_row(
        "SELECT count(*) FROM account LEFT JOIN (SELECT account_id, \
         sum((max(received, 1) + 4095) / 4096 * 4096 + octet_length(file_name)) AS bytes \
         FROM upload GROUP BY account_id) kept ON kept.account_id = account.id \
         WHERE media_bytes <> coalesce(kept.bytes, 0)",
        [],
        |row| row.get(0),
    )?;
    Ok([
        count_finding("categories", mixed_names, "name", "with several categories"),
        count_finding("media", incomplete_files, "file", "incomplete"),
        count_finding("media quota", miscounted_accounts, "account", "miscounted"),
    ])
}
