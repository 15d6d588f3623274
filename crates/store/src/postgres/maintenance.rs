//! Deletes expired idempotency records, and checks the integrity of the database.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;

use super::{address::PostgresAddress, pool::PgPools, schema};
use crate::{
    Finding, RetentionCursor, StoreError, encoding::idempotency_cutoff, error::unavailable,
    records::IntegrityCheck, stored_row::StoredRow as _,
};

/// Number of idempotency records that one step of a sweep reads.
const STEP_RECORDS: i64 = 2_000;

/// Deletes the expired ones of the next records; returns how many, and where the next step
/// continues.
pub(super) async fn sweep_records(
    pools: &PgPools,
    from: Option<[u8; 16]>,
    at: Timestamp,
) -> Result<RetentionCursor, StoreError> {
    let start = from.unwrap_or_default();
    let select = "SELECT key, created_at FROM idempotency WHERE key > $1 ORDER BY key LIMIT $2";
    let connection = pools.slow.get().await?;
    let rows = connection.query(select, &[&&start[..], &STEP_RECORDS]).await?;
    let last = rows.last().map(|row| row.hash("key")).transpose()?;
    let mut expired: Vec<Vec<u8>> = Vec::new();
    for row in &rows {
        if row.value::<i64>("created_at")? <= idempotency_cutoff(at) {
            expired.push(row.value("key")?);
        }
    }
    let removed = if expired.is_empty() {
        0
    } else {
        let delete = "DELETE FROM idempotency WHERE key = ANY($1) AND created_at <= $2";
        connection.execute(delete, &[&expired, &idempotency_cutoff(at)]).await?
    };
    let has_more = i64::try_from(rows.len()).is_ok_and(|read| read == STEP_RECORDS);
    Ok(RetentionCursor {
        last_key: last.filter(|_| has_more),
        deleted_records: usize::try_from(removed).unwrap_or(usize::MAX),
        deleted_uploads: 0,
    })
}

/// How long a successful readiness check is valid.
const READY_FOR: Duration = Duration::from_secs(10);

/// The result of the last readiness check.
#[derive(Default)]
pub(super) struct Readiness(Mutex<Option<Instant>>);

impl Readiness {
    /// Checks that the server accepts writes and syncs them: adds a message to its WAL, which changes
    /// no table and which no subscriber reads. Reads only, if such a write succeeded recently.
    pub(super) async fn check(&self, pools: &PgPools) -> Result<(), StoreError> {
        let succeeded_at = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if succeeded_at.is_some_and(|at| at.elapsed() < READY_FOR) {
            return pools.read("SELECT epoch FROM credential_epoch", &[]).await.map(drop);
        }
        let message = "SELECT pg_logical_emit_message(true, 'galley', 'ready')::text, \
                       current_setting('transaction_read_only') AS read_only";
        let rows = pools.fast.get().await?.query(message, &[]).await?;
        if rows
            .first()
            .map_or(Ok(false), |row| row.value::<String>("read_only").map(|it| it == "on"))?
        {
            return Err(unavailable("the server accepts no writes: it is read-only"));
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(())
    }
}

/// Runs these checks and those that only PostgreSQL has. They have no deadline.
pub(super) async fn check_integrity(
    address: &PostgresAddress,
    checks: &[IntegrityCheck],
) -> Result<Vec<Finding>, StoreError> {
    let client = schema::connect(address).await?;
    let settings = "SELECT current_setting('server_version') AS server, \
                    current_setting('synchronous_commit') AS synchronous, \
                    current_setting('fsync') AS fsync, \
                    current_setting('data_checksums') AS page_checksums, \
                    current_setting('synchronous_standby_names') AS standbys";
    let row = client.query_one(settings, &[]).await?;
    let synchronous: String = row.value("synchronous")?;
    let fsync: String = row.value("fsync")?;
    let standbys: String = row.value("standbys")?;
    let (known, found) = (schema::MIGRATIONS.latest(), schema::version(&client).await?);
    let page_checksums: String = row.value("page_checksums")?;
    let mut findings = vec![
        Finding::checked("PostgreSQL", row.value::<String>("server")?, true),
        Finding::checked("schema", format!("version {found} of {known}"), found == known),
        commit_finding(&synchronous),
        Finding::checked("fsync", &*fsync, fsync == "on"),
        page_checksum_finding(&page_checksums),
        standby_finding(&standbys, is_ahead_of_disks(&synchronous)),
    ];
    if found == 0 {
        return Ok(findings);
    }
    for check in checks {
        let count = client.query_one(&check.statement, &[]).await?.number(0)?;
        findings.push((check.finding)(count));
    }
    Ok(findings)
}

fn page_checksum_finding(setting: &str) -> Finding {
    let off = "off: the server does not detect damage on its disk; enable them with pg_checksums";
    let is_on = setting == "on";
    Finding::noted("page checksums", if is_on { setting } else { off }, !is_on)
}

/// Whether commits with this setting return before the disks of the standbys have them.
fn is_ahead_of_disks(synchronous_commit: &str) -> bool {
    matches!(synchronous_commit, "local" | "remote_write")
}

/// Whether a commit waits for the disks that are to have it.
fn commit_finding(setting: &str) -> Finding {
    if is_ahead_of_disks(setting) {
        Finding::noted("synchronous commit", setting, true)
    } else {
        Finding::checked("synchronous commit", setting, setting != "off")
    }
}

/// Whether each acknowledged write is on the disk of a second server.
fn standby_finding(names: &str, is_ahead_of_disks: bool) -> Finding {
    let risk = match names {
        "" => "none",
        _ if is_ahead_of_disks => "commits do not wait until a standby has synced them",
        _ => return Finding::noted("synchronous standbys", names, false),
    };
    let detail = format!("{risk}: losing the primary can lose the last acknowledged writes");
    Finding::noted("synchronous standbys", detail, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_can_lose_writes_or_hide_damage_are_notes() {
        for (names, commit, is_note) in [
            ("", "on", true),
            ("ANY 1 (a, b)", "on", false),
            ("*", "remote_apply", false),
            ("*", "remote_write", true),
            ("*", "local", true),
        ] {
            let found = standby_finding(names, is_ahead_of_disks(commit));
            assert_eq!((found.ok, found.is_note), (true, is_note), "{names:?} {commit}");
            assert_eq!(found.detail.contains("can lose"), is_note, "{found:?}");
        }
        for (commit, ok, is_note) in [
            ("on", true, false),
            ("local", true, true),
            ("remote_write", true, true),
            ("off", false, false),
        ] {
            let found = commit_finding(commit);
            assert_eq!((found.ok, found.is_note), (ok, is_note), "{commit}");
        }
        assert!(page_checksum_finding("off").is_note && !page_checksum_finding("on").is_note);
    }
}
