//! Sweeping and examining a store on PostgreSQL.

use jiff::Timestamp;

use super::{
    address::PostgresAddress,
    columns::{hash, number, plain},
    pool::Links,
    schema,
    tls::Tls,
};
use crate::{Finding, StoreError, encoding::oldest_record};

/// How many idempotency records one step of a sweep looks at.
const STEP: i64 = 2_000;

/// Forgets those of the next records that have run out; answers how many, and where the next step
/// goes on.
pub(super) async fn sweep_records(
    links: &Links,
    from: Option<[u8; 16]>,
    at: Timestamp,
) -> Result<(usize, Option<[u8; 16]>), StoreError> {
    let start = from.unwrap_or_default();
    let next = "SELECT key, created_at FROM idempotency WHERE key > $1 ORDER BY key LIMIT $2";
    let link = links.own_for_long().await?;
    let rows = link.query(next, &[&&start[..], &STEP]).await?;
    let last = rows.last().map(|row| hash(row, "key")).transpose()?;
    let mut old: Vec<Vec<u8>> = Vec::new();
    for row in &rows {
        if plain::<i64>(row, "created_at")? <= oldest_record(at) {
            old.push(plain(row, "key")?);
        }
    }
    let removed = if old.is_empty() {
        0
    } else {
        let delete = "DELETE FROM idempotency WHERE key = ANY($1) AND created_at <= $2";
        link.execute(delete, &[&old, &oldest_record(at)]).await?
    };
    let whole = i64::try_from(rows.len()).is_ok_and(|seen| seen == STEP);
    Ok((usize::try_from(removed).unwrap_or(usize::MAX), last.filter(|_| whole)))
}

/// What is counted and has to be none, and what is said of it.
const FAULTS: [(&str, &str, &str); 6] = [
    (
        "references",
        "broken",
        "SELECT (SELECT count(*) FROM template t WHERE NOT EXISTS (SELECT 1 FROM account a WHERE \
         a.id = t.account_id)) + (SELECT count(*) FROM event e WHERE webhook_id IS NULL AND \
         NOT EXISTS (SELECT 1 FROM template t WHERE t.id = e.template_id))",
    ),
    (
        "event numbers",
        "accounts behind",
        "SELECT count(*) FROM account a WHERE last_seq < (SELECT coalesce(max(seq), 0) \
         FROM event e WHERE e.account_id = a.id)",
    ),
    (
        "versions",
        "templates lack some",
        "SELECT count(*) FROM template t WHERE version > 1 AND version - 1 <> (SELECT count(*) \
         FROM former_version f WHERE f.template_id = t.id AND f.version < t.version)",
    ),
    (
        "categories",
        "names have several",
        "SELECT count(*) FROM (SELECT family FROM template WHERE family IS NOT NULL AND \
         claim IS NOT NULL GROUP BY family HAVING count(DISTINCT category) > 1) AS divided",
    ),
    (
        "media",
        "files lack some",
        "SELECT count(*) FROM upload u WHERE received <> (SELECT coalesce(sum(length(bytes)), 0) \
         FROM upload_chunk c WHERE c.upload = u.number)",
    ),
    (
        "media room",
        "accounts miscounted",
        "SELECT count(*) FROM account a WHERE media_bytes <> (SELECT coalesce(sum( \
         (greatest(received, 1) + 4095) / 4096 * 4096 + octet_length(file_name)), 0) \
         FROM upload u WHERE u.account_id = a.id)",
    ),
];

/// What `galley doctor` looks at; takes as long as it takes.
pub(super) async fn check_integrity(address: &PostgresAddress) -> Result<Vec<Finding>, StoreError> {
    let link = schema::connect(&address.patient(), Tls::of(address)?).await?;
    let settings = "SELECT current_setting('server_version') AS server, \
                    current_setting('synchronous_commit') AS synchronous, \
                    current_setting('fsync') AS fsync, \
                    current_setting('synchronous_standby_names') AS standbys";
    let rows = link.query(settings, &[]).await?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let synchronous: String = plain(row, "synchronous")?;
    let fsync: String = plain(row, "fsync")?;
    let standbys: String = plain(row, "standbys")?;
    let (known, found) = (schema::newest(), schema::found(&link).await?);
    let standbys = if standbys.is_empty() {
        "none: what a lost primary had acknowledged last may be lost with it".to_owned()
    } else {
        standbys
    };
    let mut findings = vec![
        Finding { subject: "PostgreSQL", seen: plain(row, "server")?, good: true },
        Finding {
            subject: "schema",
            seen: format!("version {found} of {known}"),
            good: found == known,
        },
        Finding { subject: "synchronous commit", good: synchronous != "off", seen: synchronous },
        Finding { subject: "fsync", good: fsync == "on", seen: fsync },
        Finding { subject: "synchronous standbys", seen: standbys, good: true },
    ];
    if found == 0 {
        return Ok(findings);
    }
    for (subject, what, count) in FAULTS {
        let rows = link.query(count, &[]).await?;
        let count = rows.first().map_or(Ok(0), |row| number(row, 0))?;
        findings.push(Finding { subject, seen: format!("{count} {what}"), good: count == 0 });
    }
    let rows = link.query("SELECT count(*) FROM template", &[]).await?;
    let templates = rows.first().map_or(Ok(0), |row| number(row, 0))?;
    findings.push(Finding { subject: "templates", seen: templates.to_string(), good: true });
    Ok(findings)
}
