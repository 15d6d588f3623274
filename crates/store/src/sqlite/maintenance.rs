//! Deletes expired records and checks integrity.

use std::path::Path;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{SqliteStore, backup, checksum, schema, writer::Batch};
use crate::{
    Finding, MAX_VERSIONS, MaintenanceStore, RetentionCursor, StoreError, VERSION_OVERHEAD_BYTES,
    encoding::idempotency_cutoff,
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

    async fn count_stored_bytes(&self, all: bool) -> Result<usize, StoreError> {
        self.count_bytes(all).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.check_ready().await
    }

    async fn check_integrity(&self) -> Result<Vec<Finding>, StoreError> {
        self.readers.read(check_integrity)
    }

    async fn backup(&self, path: &Path, allow_damaged: bool) -> Result<(), StoreError> {
        self.readers.read(|connection| backup::backup(connection, path, allow_damaged))
    }
}

/// Number of idempotency records that one scan reads.
const SCAN_ROWS: i64 = 2_000;

type RecordKey = [u8; 16];

impl SqliteStore {
    /// Deletes the expired idempotency records among the next ones and, at the start of a pass,
    /// expired uploads.
    pub(super) async fn delete_next_expired_records(
        &self,
        from: RetentionCursor,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError> {
        let (expired, next) =
            self.readers.read(|connection| find_expired_records(connection, from, at))?;
        let removed = if expired.is_empty() {
            0
        } else {
            self.writer.write(move |batch| delete_records(batch, &expired, at)).await?
        };
        let uploads =
            if from.last_key.is_none() { self.delete_expired_uploads(at).await? } else { 0 };
        Ok(RetentionCursor { last_key: next, deleted_records: removed, deleted_uploads: uploads })
    }
}

/// Scans the next records. Returns the expired ones and where the next scan continues. Records have
/// no index by age, because every create would pay for it; a slow scan suffices.
fn find_expired_records(
    connection: &Connection,
    from: RetentionCursor,
    at: Timestamp,
) -> Result<(Vec<RecordKey>, Option<RecordKey>), StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT key, created_at FROM idempotency WHERE key > ?1 ORDER BY key LIMIT ?2",
    )?;
    let mut rows = query.query(params![from.last_key.unwrap_or_default(), SCAN_ROWS])?;
    let (mut expired, mut last, mut scanned) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        let key: RecordKey = row.get(0)?;
        if row.get::<_, i64>(1)? <= idempotency_cutoff(at) {
            expired.push(key);
        }
        last = Some(key);
        scanned += 1;
    }
    Ok((expired, last.filter(|_| scanned == SCAN_ROWS)))
}

/// Deletes the records, except those replaced since they were found.
fn delete_records(
    batch: &mut Batch<'_>,
    expired: &[RecordKey],
    at: Timestamp,
) -> Result<usize, StoreError> {
    let mut delete = batch
        .connection()
        .prepare_cached("DELETE FROM idempotency WHERE key = ?1 AND created_at <= ?2")?;
    let mut removed = 0;
    for record in expired {
        removed += delete.execute(params![record, idempotency_cutoff(at)])?;
    }
    Ok(removed)
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
         (SELECT count(*) FROM event WHERE webhook_id IS NULL AND template_id NOT IN (SELECT id FROM template))",
        [],
        |row| row.get(0),
    )?;
    let accounts_behind: i64 = connection.query_row(
        "SELECT count(*) FROM account a WHERE last_seq < (SELECT coalesce(max(seq), 0) FROM event e WHERE e.account_id = a.id)",
        [],
        |row| row.get(0),
    )?;
    let incomplete_templates: i64 = connection.query_row(
        "SELECT count(*) FROM template t WHERE claim IS NOT NULL AND (min(version, ?1) - 1 <> \
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
        Finding { subject: "SQLite", detail: rusqlite::version().to_owned(), ok: true },
        Finding {
            subject: "schema",
            detail: format!("version {schema_version} of {}", schema::newest()),
            ok: schema_version == schema::newest(),
        },
        Finding { subject: "journal", ok: journal == "wal", detail: journal },
        Finding { subject: "integrity", ok: integrity == "ok", detail: integrity },
        Finding {
            subject: "references",
            detail: format!("{broken_references} broken"),
            ok: broken_references == 0,
        },
        count_finding("event numbers", accounts_behind, "account", "behind"),
        count_finding("versions", incomplete_templates, "template", "incomplete"),
        Finding { subject: "templates", detail: templates.to_string(), ok: true },
    ];
    // An older schema has no such tables and columns.
    if schema_version == schema::newest() {
        findings.extend(check_translations_and_media(connection)?);
        findings.push(check_stored_bytes(connection)?);
    }
    if schema_version >= checksum::FIRST_SCHEMA {
        let (damaged, rows) = checksum::damaged_rows(connection)?;
        let mut finding = count_finding(
            "checksums",
            i64::try_from(damaged).unwrap_or(i64::MAX),
            "row",
            "damaged",
        );
        if damaged > 0 {
            finding.detail = format!("{}: {}; restore a backup", finding.detail, rows.join(", "));
        }
        findings.push(finding);
    }
    Ok(findings)
}

/// Whether the totals of stored bytes agree with the rows, except those not counted yet.
fn check_stored_bytes(connection: &Connection) -> Result<Finding, StoreError> {
    let miscounted: i64 = connection.query_row(
        "WITH version AS (SELECT account_id, octet_length(content) + ?1 AS bytes FROM template \
         UNION ALL SELECT t.account_id, octet_length(f.content) + ?1 FROM former_version f \
         JOIN template t ON t.id = f.template_id), \
         stored AS (SELECT account_id, sum(bytes) AS bytes FROM version GROUP BY account_id) \
         SELECT count(*) FROM account LEFT JOIN stored ON stored.account_id = account.id \
         WHERE counting IS NULL AND counted_seq = last_seq AND \
         template_bytes <> coalesce(stored.bytes, 0)",
        [i64::try_from(VERSION_OVERHEAD_BYTES).unwrap_or(i64::MAX)],
        |row| row.get(0),
    )?;
    let mut finding = count_finding("stored bytes", miscounted, "account", "miscounted");
    if miscounted > 0 {
        finding.detail.push_str(": correct them with --count-bytes");
    }
    Ok(finding)
}

/// A finding about rows of which there must be none.
fn count_finding(subject: &'static str, count: i64, noun: &str, problem: &str) -> Finding {
    let plural = if count == 1 { "" } else { "s" };
    Finding { subject, detail: format!("{count} {noun}{plural} {problem}"), ok: count == 0 }
}

fn check_translations_and_media(connection: &Connection) -> Result<[Finding; 3], StoreError> {
    let mixed_names: i64 = connection.query_row(
        "SELECT count(*) FROM (SELECT family FROM template INDEXED BY template_of_family \
         WHERE family IS NOT NULL AND claim IS NOT NULL GROUP BY family \
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
