//! The audit feed: who changed what. Entries are appended in the transaction of the change that they
//! record ([`Tx::audit`]).

use std::time::Duration;

use galley_domain::id::AccountId;

use crate::{
    Actor, AuditEntry, Author, CredentialId, MAX_DAILY_CHANGES, Store, StoreError, StoreFuture,
    engine::{self, Engine, Read, ReadPath, Tx, Value, values},
    stored_row::{Row, StoredRow as _},
};

impl Store {
    /// Up to `limit` entries with higher numbers than `after`, oldest first: those of one account,
    /// or all of them. A reader that continues with the last number misses no entry.
    pub fn audit_entries(
        &self,
        account: Option<AccountId>,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'_, Vec<AuditEntry>> {
        Box::pin(async move {
            let filter = if account.is_some() { "a.account_id = $3" } else { "true" };
            let statement = format!(
                "SELECT a.seq, a.at, a.actor, coalesce(c.name, '') AS actor_name, a.account_id, a.kind, \
                 a.subject, a.details FROM audit a LEFT JOIN credential c ON c.id = a.actor \
                 WHERE a.seq > $1 AND {filter} ORDER BY a.seq LIMIT $2"
            );
            let values = [Value::bound(after), Value::size(limit)];
            let values = values.into_iter().chain(account.map(Value::from));
            self.read("audit_entries", ReadPath::Point, statement, values, entry).await
        })
    }
}

/// Refuses a change by a token of an account that has made as many as permitted within a day. Concurrent
/// changes may exceed the limit by their number; in return, a refused one queues no write and takes no
/// lock.
pub(crate) async fn ensure_may_change(
    engine: &dyn Engine,
    account: AccountId,
    by: Author,
) -> Result<(), StoreError> {
    let Actor::Token(_) = by.actor else { return Ok(()) };
    // Changes by tokens that could be repeated for ever; the oldest one of those that are permitted.
    let statement = "SELECT at FROM audit WHERE actor > 0 AND kind IN ('credential.created', \
                     'webhook.created', 'webhook.changed', 'webhook.secret_rotated') AND \
                     account_id = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2";
    let values = values![account, MAX_DAILY_CHANGES - 1];
    let read = Read::new(ReadPath::Point, statement, values, |row| row.value::<i64>("at"));
    let oldest = engine::fetch(engine, read).await?;
    let end = oldest.first().map_or(i64::MIN, |oldest| oldest.saturating_add(24 * 3_600_000));
    match u64::try_from(end.saturating_sub(by.at.as_millisecond())) {
        Ok(left) if left > 0 => {
            Err(StoreError::TooManyChanges { retry_after: Duration::from_millis(left) })
        }
        _ => Ok(()),
    }
}

/// The old and the new credential of each rotation of an account.
pub(crate) async fn rotations(
    tx: &mut Tx<'_>,
    account: AccountId,
) -> Result<Vec<(CredentialId, CredentialId)>, StoreError> {
    let statement = "SELECT subject, details FROM audit WHERE kind = 'credential.rotated' AND \
                     account_id = $1";
    tx.query(statement, &values![account], |row| {
        let id = |text: &str| text.parse().ok().map(CredentialId);
        let replacement = |details: &str| {
            let details: serde_json::Value = serde_json::from_str(details).ok()?;
            details["replacement"].as_str().and_then(id)
        };
        Ok((row.parsed("subject", id)?, row.parsed("details", replacement)?))
    })
    .await
}

/// The entry in a row.
fn entry(row: &Row<'_>) -> Result<AuditEntry, StoreError> {
    let actor = row.actor("actor")?;
    Ok(AuditEntry {
        seq: row.number("seq")?,
        at: row.timestamp("at")?,
        actor,
        actor_name: row.actor_name("actor_name", actor)?,
        account: row.optional("account_id", |id: i64| AccountId::new(u64::try_from(id).ok()?))?,
        kind: row.value("kind")?,
        subject: row.value("subject")?,
        details: row.decoded("details", |text: String| serde_json::from_str(&text).ok())?,
    })
}
