//! Appends entries to the audit feed, all those of a transaction with its commit.

use galley_domain::id::AccountId;
use tokio_postgres::GenericClient;

use super::transaction::DeferredWrite;
use crate::{
    Actor, AuditKind, Author, StoreError,
    decisions::audit::{AuditedChange, migration},
    encoding::{actor_key, key, millis},
    engine::values,
    schema_policy::Migrations,
};

/// The advisory lock of a transaction that appends: "GALLEYAU".
const LOCK_KEY: i64 = 0x4741_4C4C_4559_4155;

const LOCK: &str = "SELECT pg_advisory_xact_lock($1)";

/// Numbers the entries after the newest one. The lock keeps that the newest one.
const APPEND: &str = "INSERT INTO audit (seq, account_id, at, actor, kind, subject, details) \
     SELECT (SELECT coalesce(max(seq), 0) FROM audit) + position, account_id, at, actor, kind, \
     subject, details FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::text[], $5::text[], \
     $6::text[]) WITH ORDINALITY AS entry (account_id, at, actor, kind, subject, details, position)";

/// The entries that a transaction appends when it commits, column by column.
#[derive(Default)]
pub(super) struct PendingEntries {
    accounts: Vec<i64>,
    times: Vec<i64>,
    actors: Vec<i64>,
    kinds: Vec<&'static str>,
    subjects: Vec<String>,
    details: Vec<String>,
}

impl PendingEntries {
    /// Adds the entry of a change.
    pub(super) fn add(&mut self, account: AccountId, change: AuditedChange, by: Author) {
        self.accounts.push(key(account.get()));
        self.times.push(millis(by.at));
        self.actors.push(actor_key(by.actor));
        self.kinds.push(change.kind.as_str());
        self.subjects.push(change.subject);
        self.details.push(change.details.to_string());
    }

    /// The statements that append them; none if there are none. The lock is the last one that a
    /// transaction takes, and held only while it commits.
    pub(super) fn into_writes(self) -> Vec<DeferredWrite> {
        if self.accounts.is_empty() {
            return Vec::new();
        }
        let Self { accounts, times, actors, kinds, subjects, details } = self;
        let entries = values![accounts, times, actors, kinds, subjects, details];
        vec![(LOCK, values![LOCK_KEY].into()), (APPEND, entries.into())]
    }
}

/// Appends the entry of a migration of the schema, at the time of the database.
pub(super) async fn append_migration(
    client: &(impl GenericClient + Sync),
    migrations: &Migrations,
    from: usize,
) -> Result<(), StoreError> {
    client.execute(LOCK, &[&LOCK_KEY]).await?;
    let append = "INSERT INTO audit (seq, at, actor, kind, subject, details) \
                  SELECT coalesce(max(seq), 0) + 1, (extract(epoch FROM now()) * 1000)::int8, $1, \
                  $2, '', $3 FROM audit";
    let (kind, details) = (AuditKind::StoreMigrated.as_str(), migration(migrations, from));
    client.execute(append, &[&actor_key(Actor::Service), &kind, &details]).await?;
    Ok(())
}
