//! Sweeping, examining and copying a SQLite store.

use std::{path::Path, sync::Arc};

use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{SqliteStore, connection, writer::Batch};
use crate::{Finding, RetentionCursor, StoreError, encoding::oldest_record};

/// How many idempotency records one step of a sweep looks at.
const STEP: i64 = 2_000;

type RecordKey = [u8; 16];

impl SqliteStore {
    /// One step of a sweep.
    pub(super) async fn sweep_on(
        &self,
        from: RetentionCursor,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError> {
        let (old, next) = self.readers.read(|connection| old_records(connection, from, at))?;
        let removed = if old.is_empty() {
            0
        } else {
            self.writer.write(move |batch| forget_records(batch, &old, at)).await?
        };
        let uploads = if from.at.is_none() { self.forget_uploads(at).await? } else { 0 };
        Ok(RetentionCursor { at: next, removed, uploads })
    }
}

/// Looks at the next records: which have run out, and where the next step goes on. Records have
/// no index by age, because every create would pay for it; a slow walk over all finds them too.
fn old_records(
    connection: &Connection,
    from: RetentionCursor,
    at: Timestamp,
) -> Result<(Vec<RecordKey>, Option<RecordKey>), StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT key, created_at FROM idempotency WHERE key > ?1 ORDER BY key LIMIT ?2",
    )?;
    let mut rows = query.query(params![from.at.unwrap_or_default(), STEP])?;
    let (mut old, mut last, mut seen) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        let place: RecordKey = row.get(0)?;
        if row.get::<_, i64>(1)? <= oldest_record(at) {
            old.push(place);
        }
        last = Some(place);
        seen += 1;
    }
    Ok((old, last.filter(|_| seen == STEP)))
}

/// Removes the records, unless they were renewed meanwhile.
fn forget_records(
    batch: &mut Batch<'_>,
    old: &[RecordKey],
    at: Timestamp,
) -> Result<usize, StoreError> {
    let mut delete = batch
        .connection()
        .prepare_cached("DELETE FROM idempotency WHERE key = ?1 AND created_at <= ?2")?;
    let mut removed = 0;
    for record in old {
        removed += delete.execute(params![record, oldest_record(at)])?;
    }
    Ok(removed)
}

/// What `galley doctor` looks at. The settings of the writer are checked whenever it opens.
pub(super) fn check_integrity(connection: &Connection) -> Result<Vec<Finding>, StoreError> {
    let schema = connection::schema_version(connection)?;
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let integrity: String =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    let strays: i64 = connection.query_row(
        "SELECT (SELECT count(*) FROM pragma_foreign_key_check) + \
         (SELECT count(*) FROM template WHERE account_id NOT IN (SELECT id FROM account)) + \
         (SELECT count(*) FROM event WHERE webhook_id IS NULL AND template_id NOT IN (SELECT id FROM template))",
        [],
        |row| row.get(0),
    )?;
    let uncounted: i64 = connection.query_row(
        "SELECT count(*) FROM account a WHERE last_seq < (SELECT coalesce(max(seq), 0) FROM event e WHERE e.account_id = a.id)",
        [],
        |row| row.get(0),
    )?;
    let torn: i64 = connection.query_row(
        "SELECT count(*) FROM template t WHERE version - 1 <> \
         (SELECT count(*) FROM former_version f WHERE f.template_id = t.id AND f.version < t.version)",
        [],
        |row| row.get(0),
    )?;
    let templates: i64 =
        connection.query_row("SELECT count(*) FROM template", [], |row| row.get(0))?;
    let mut findings = vec![
        Finding { subject: "SQLite", seen: rusqlite::version().to_owned(), good: true },
        Finding {
            subject: "schema",
            seen: format!("version {schema} of {}", connection::newest_schema()),
            good: schema == connection::newest_schema(),
        },
        Finding { subject: "journal", good: journal == "wal", seen: journal },
        Finding { subject: "integrity", good: integrity == "ok", seen: integrity },
        Finding { subject: "references", seen: format!("{strays} broken"), good: strays == 0 },
        Finding {
            subject: "event numbers",
            seen: format!("{uncounted} accounts behind"),
            good: uncounted == 0,
        },
        Finding {
            subject: "versions",
            seen: format!("{torn} templates lack some"),
            good: torn == 0,
        },
        Finding { subject: "templates", seen: templates.to_string(), good: true },
    ];
    // An older schema has neither, and is told apart above.
    if schema == connection::newest_schema() {
        findings.extend(shared_names_and_media(connection)?);
    }
    Ok(findings)
}

fn shared_names_and_media(connection: &Connection) -> Result<[Finding; 3], StoreError> {
    let divided: i64 = connection.query_row(
        "SELECT count(*) FROM (SELECT family FROM template INDEXED BY template_of_family \
         WHERE family IS NOT NULL AND claim IS NOT NULL GROUP BY family \
         HAVING count(DISTINCT category) > 1)",
        [],
        |row| row.get(0),
    )?;
    let patchy: i64 = connection.query_row(
        "SELECT count(*) FROM upload u WHERE received <> (SELECT coalesce(sum(length(bytes)), 0) \
         FROM upload_chunk c WHERE c.upload = u.number)",
        [],
        |row| row.get(0),
    )?;
    let miscounted: i64 = connection.query_row(
        "SELECT count(*) FROM account LEFT JOIN (SELECT account_id, \
         sum((max(received, 1) + 4095) / 4096 * 4096 + octet_length(file_name)) AS bytes \
         FROM upload GROUP BY account_id) kept ON kept.account_id = account.id \
         WHERE media_bytes <> coalesce(kept.bytes, 0)",
        [],
        |row| row.get(0),
    )?;
    Ok([
        Finding {
            subject: "categories",
            seen: format!("{divided} names have several"),
            good: divided == 0,
        },
        Finding { subject: "media", seen: format!("{patchy} files lack some"), good: patchy == 0 },
        Finding {
            subject: "media room",
            seen: format!("{miscounted} accounts miscounted"),
            good: miscounted == 0,
        },
    ])
}

/// Copies everything that is committed into a new file, in one read transaction.
pub(super) fn backup(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::Unavailable(Arc::new(error));
    let Some(name) = path.to_str() else {
        return Err(failed(std::io::Error::other("the path of a copy has to be UTF-8")));
    };
    if path.exists() {
        return Err(failed(std::io::ErrorKind::AlreadyExists.into()));
    }
    connection::make_private(path)?;
    // VACUUM INTO takes an empty file and never stops a writer; it leaves syncing to us.
    if let Err(error) = connection.execute("VACUUM INTO ?1", [name]) {
        // Half a copy looks too much like a whole one.
        let _ = std::fs::remove_file(path);
        return Err(error.into());
    }
    std::fs::File::open(path).and_then(|copy| copy.sync_all()).map_err(failed)
}
