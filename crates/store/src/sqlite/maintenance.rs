//! Checks of integrity that only a SQLite store has: its file, its indexes, and the checksums of its rows.

use rusqlite::Connection;

use super::{checksum, schema};
use crate::{Finding, StoreError, records::IntegrityCheck};

/// Names that several templates have.
const REPEATED_NAMES: &str = "SELECT count(*) FROM (SELECT 1 FROM template \
     WHERE unique_key IS NOT NULL GROUP BY unique_key HAVING count(*) > 1)";

/// Rows that the indexes of names and idempotency keys lack, although they were merged into them, and
/// names of other templates. Keys of deleted records may be left.
const WRONG_INDEX_ROWS: &str = "WITH progress AS (SELECT name, merged_id, coalesce(merging_id, 0) AS merging_id, \
     coalesce(merged_hash, x'') AS merged_hash FROM buffered_index) SELECT \
     2 - (SELECT count(*) FROM progress) + \
     (SELECT count(*) FROM template t, progress p WHERE p.name = 'template_name' AND \
     unique_key IS NOT NULL AND (id <= merged_id OR id <= merging_id AND unique_key <= merged_hash) AND \
     id IS NOT (SELECT template_id FROM template_name n WHERE n.unique_key = t.unique_key)) + \
     (SELECT count(*) FROM template_name n WHERE \
     unique_key IS NOT (SELECT unique_key FROM template t WHERE t.id = n.template_id)) + \
     (SELECT count(*) FROM idempotency i, progress p WHERE p.name = 'idempotency_key' AND \
     (template_id <= merged_id OR template_id <= merging_id AND key <= merged_hash) AND \
     template_id IS NOT (SELECT template_id FROM idempotency_key k WHERE k.key = i.key))";

/// Runs these checks and those that only SQLite has. The writer checks its own settings whenever it
/// opens the file.
pub(super) fn check_integrity(
    connection: &Connection,
    checks: &[IntegrityCheck],
) -> Result<Vec<Finding>, StoreError> {
    let schema_version = schema::version(connection)?;
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let integrity: String =
        connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    let count = |statement: &str| -> Result<u64, StoreError> {
        let count: i64 = connection.query_row(statement, [], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    };
    let mut findings = vec![
        Finding::checked("SQLite", rusqlite::version(), true),
        Finding::checked(
            "schema",
            format!("version {schema_version} of {}", schema::newest()),
            schema_version == schema::newest(),
        ),
        Finding::checked("journal", &*journal, journal == "wal"),
        Finding::checked("integrity", &*integrity, integrity == "ok"),
    ];
    for check in checks {
        findings.push((check.finding)(count(&check.statement)?));
    }
    let names = Finding::counted("names", count(REPEATED_NAMES)?, "name", "used twice");
    findings.push(names.with_advice("restore a backup"));
    let indexes = Finding::counted("indexes", count(WRONG_INDEX_ROWS)?, "row", "wrong or missing");
    findings.push(indexes.with_advice("rebuild them, see docs/operations/troubleshooting.md"));
    let (damaged, rows) = checksum::damaged_rows(connection)?;
    let checksums = Finding::counted("checksums", damaged as u64, "row", "damaged");
    findings.push(checksums.with_advice(&format!("{}; restore a backup", rows.join(", "))));
    Ok(findings)
}
