//! Deletes expired idempotency records, and checks the integrity of the database.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use async_trait::async_trait;
use jiff::Timestamp;

use super::{
    PostgresStore,
    address::PostgresAddress,
    columns::{get, hash, number},
    pool::PgPools,
    schema,
    stored_bytes::stored,
    tls::Tls,
};
use crate::{
    Finding, MAX_VERSIONS, MaintenanceStore, PhaseObserver, RetentionCursor, StoreError,
    VERSION_OVERHEAD_BYTES, emulator, encoding::idempotency_cutoff, engine, sessions, uploads,
    upstream,
};

#[derive(Debug, thiserror::Error)]
#[error("galley does not back up PostgreSQL: use pg_dump or pg_basebackup")]
struct BackupUnsupported;

#[async_trait]
impl MaintenanceStore for PostgresStore {
    async fn delete_expired_records(
        &self,
        from: RetentionCursor,
        at: Timestamp,
    ) -> Result<RetentionCursor, StoreError> {
        let (removed, next) = sweep_records(&self.pools, from.last_key, at).await?;
        if from.last_key.is_none() {
            if !engine::fetch(self, sessions::expired(at)).await?.is_empty() {
                engine::run(self, sessions::deletion(at)).await?;
            }
            emulator::delete_expired_messages(self, at).await?;
            while !engine::fetch(self, upstream::expired_operations(at)).await?.is_empty() {
                engine::run(self, upstream::operation_deletion(at)).await?;
            }
        }
        let uploads =
            if from.last_key.is_none() { uploads::delete_expired(self, at).await? } else { 0 };
        Ok(RetentionCursor { last_key: next, deleted_records: removed, deleted_uploads: uploads })
    }

    async fn delete_expired_events(&self, since: Timestamp) -> Result<usize, StoreError> {
        self.delete_some_expired_events(since).await
    }

    async fn count_stored_bytes(&self, all: bool) -> Result<usize, StoreError> {
        self.count_bytes(all).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.readiness.check(&self.pools).await
    }

    async fn check_integrity(&self) -> Result<Vec<Finding>, StoreError> {
        check_integrity(&self.address).await
    }

    async fn backup(&self, _: &Path, _: bool, _: PhaseObserver<'_>) -> Result<(), StoreError> {
        Err(StoreError::Failed(Arc::new(BackupUnsupported)))
    }
}

/// Number of idempotency records that one step of a sweep reads.
const STEP_RECORDS: i64 = 2_000;

/// Deletes the expired ones of the next records; returns how many, and where the next step
/// continues.
pub(super) async fn sweep_records(
    pools: &PgPools,
    from: Option<[u8; 16]>,
    at: Timestamp,
) -> Result<(usize, Option<[u8; 16]>), StoreError> {
    let start = from.unwrap_or_default();
    let select = "SELECT key, created_at FROM idempotency WHERE key > $1 ORDER BY key LIMIT $2";
    let connection = pools.acquire_slow().await?;
    let rows = connection.query(select, &[&&start[..], &STEP_RECORDS]).await?;
    let last = rows.last().map(|row| hash(row, "key")).transpose()?;
    let mut expired: Vec<Vec<u8>> = Vec::new();
    for row in &rows {
        if get::<i64>(row, "created_at")? <= idempotency_cutoff(at) {
            expired.push(get(row, "key")?);
        }
    }
    let removed = if expired.is_empty() {
        0
    } else {
        let delete = "DELETE FROM idempotency WHERE key = ANY($1) AND created_at <= $2";
        connection.execute(delete, &[&expired, &idempotency_cutoff(at)]).await?
    };
    let has_more = i64::try_from(rows.len()).is_ok_and(|read| read == STEP_RECORDS);
    Ok((usize::try_from(removed).unwrap_or(usize::MAX), last.filter(|_| has_more)))
}

/// How long a successful readiness check is valid.
const READY_FOR: Duration = Duration::from_secs(10);

/// The result of the last readiness check.
#[derive(Default)]
pub(super) struct Readiness(Mutex<Option<Instant>>);

#[derive(Debug, thiserror::Error)]
#[error("the server accepts no writes: it is read-only")]
struct ReadOnlyServer;

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
        let rows = pools.acquire().await?.query(message, &[]).await?;
        if rows
            .first()
            .map_or(Ok(false), |row| get::<String>(row, "read_only").map(|it| it == "on"))?
        {
            return Err(StoreError::Unavailable(Arc::new(ReadOnlyServer)));
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(())
    }
}

/// The subject of the check of the totals of stored bytes.
const STORED_BYTES: &str = "stored bytes";

/// Consistency checks: subject, description of the inconsistent rows, and a statement that counts
/// them.
const CHECKS: [(&str, &str, &str); 7] = [
    (
        "references",
        "broken",
        "SELECT (SELECT count(*) FROM template t WHERE NOT EXISTS (SELECT 1 FROM account a WHERE \
         a.id = t.account_id)) + (SELECT count(*) FROM event e WHERE webhook_id IS NULL AND \
         type NOT LIKE 'upstream.%' AND NOT EXISTS (SELECT 1 FROM template t WHERE t.id = e.template_id))",
    ),
    (
        "event numbers",
        "accounts behind",
        "SELECT count(*) FROM account a WHERE last_seq < (SELECT coalesce(max(seq), 0) \
         FROM event e WHERE e.account_id = a.id)",
    ),
    (
        "versions",
        "templates incomplete",
        "SELECT count(*) FROM template t WHERE unique_key IS NOT NULL AND version > 1 AND \
         (least(version, 100) - 1 <> (SELECT count(*) FROM former_version f WHERE f.template_id = t.id AND \
         f.version < t.version AND f.version > t.version - 100) OR (live_version < version AND \
         NOT EXISTS (SELECT 1 FROM former_version f WHERE f.template_id = t.id AND \
         f.version = t.live_version)))",
    ),
    (
        "media",
        "files incomplete",
        "SELECT count(*) FROM upload u WHERE received <> (SELECT coalesce(sum(length(bytes)), 0) \
         FROM upload_chunk c WHERE c.upload = u.number)",
    ),
    (
        "media quota",
        "accounts miscounted",
        "SELECT count(*) FROM account a WHERE media_bytes <> (SELECT coalesce(sum( \
         (greatest(received, 1) + 4095) / 4096 * 4096 + octet_length(file_name)), 0) \
         FROM upload u WHERE u.account_id = a.id)",
    ),
    // Review scripts of emulator accounts and providers change the category of one language alone.
    (
        "categories",
        "names with several categories",
        "SELECT count(*) FROM (SELECT translation_group FROM template \
         WHERE translation_group IS NOT NULL AND unique_key IS NOT NULL \
         AND account_id NOT IN (SELECT id FROM account WHERE emulator IS NOT NULL) \
         AND account_id NOT IN (SELECT account_id FROM audit WHERE kind = 'upstream.connected') \
         GROUP BY translation_group HAVING count(DISTINCT category) > 1) AS divided",
    ),
    // Except those that are being counted.
    (
        STORED_BYTES,
        "accounts miscounted",
        concat!(
            stored!("512"),
            "SELECT count(*) FROM account a WHERE counting IS NULL AND template_bytes <> \
             (SELECT coalesce(sum(s.bytes), 0) FROM stored s WHERE s.account_id = a.id)"
        ),
    ),
];

// The statements above contain these numbers.
const _: () = assert!(MAX_VERSIONS == 100 && VERSION_OVERHEAD_BYTES == 512);

/// The checks of `galley doctor`. They have no deadline.
pub(super) async fn check_integrity(address: &PostgresAddress) -> Result<Vec<Finding>, StoreError> {
    let client = schema::connect(&address.without_deadline(), Tls::new(address)?).await?;
    let settings = "SELECT current_setting('server_version') AS server, \
                    current_setting('synchronous_commit') AS synchronous, \
                    current_setting('fsync') AS fsync, \
                    current_setting('data_checksums') AS page_checksums, \
                    current_setting('synchronous_standby_names') AS standbys";
    let rows = client.query(settings, &[]).await?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let synchronous: String = get(row, "synchronous")?;
    let fsync: String = get(row, "fsync")?;
    let standbys: String = get(row, "standbys")?;
    let (known, found) = (schema::latest_version(), schema::version(&client).await?);
    let page_checksums: String = get(row, "page_checksums")?;
    let mut findings = vec![
        Finding::checked("PostgreSQL", get::<String>(row, "server")?, true),
        Finding::checked("schema", format!("version {found} of {known}"), found == known),
        commit_finding(&synchronous),
        Finding::checked("fsync", &*fsync, fsync == "on"),
        page_checksum_finding(&page_checksums),
        standby_finding(&standbys, &synchronous),
    ];
    if found == 0 {
        return Ok(findings);
    }
    for (subject, what, count) in CHECKS {
        let rows = client.query(count, &[]).await?;
        let count = rows.first().map_or(Ok(0), |row| number(row, 0))?;
        let mut detail = format!("{count} {what}");
        if count > 0 && subject == STORED_BYTES {
            detail.push_str(": correct them with --count-bytes");
        }
        findings.push(Finding::checked(subject, detail, count == 0));
    }
    let rows = client.query("SELECT count(*) FROM template", &[]).await?;
    let templates = rows.first().map_or(Ok(0), |row| number(row, 0))?;
    findings.push(Finding::checked("templates", templates.to_string(), true));
    Ok(findings)
}

fn page_checksum_finding(setting: &str) -> Finding {
    let off = "off: the server does not detect damage on its disk; enable them with pg_checksums";
    let is_on = setting == "on";
    Finding::noted("page checksums", if is_on { setting } else { off }, !is_on)
}

/// Whether a commit waits for the disks that are to have it.
fn commit_finding(setting: &str) -> Finding {
    match setting {
        "off" => Finding::checked("synchronous commit", setting, false),
        "local" | "remote_write" => Finding::noted("synchronous commit", setting, true),
        _ => Finding::checked("synchronous commit", setting, true),
    }
}

/// Whether each acknowledged write is on the disk of a second server.
fn standby_finding(names: &str, synchronous_commit: &str) -> Finding {
    let risk = match synchronous_commit {
        _ if names.is_empty() => Some("none"),
        "local" | "remote_write" => Some("commits do not wait until a standby has synced them"),
        _ => None,
    };
    let detail = match risk {
        Some(risk) => format!("{risk}: losing the primary can lose the last acknowledged writes"),
        None => names.to_owned(),
    };
    Finding::noted("synchronous standbys", detail, risk.is_some())
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
            let found = standby_finding(names, commit);
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
