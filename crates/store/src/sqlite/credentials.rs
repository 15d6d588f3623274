//! SQL for API keys and access tokens.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{
    SqliteStore, accounts, audit,
    columns::{key, millis},
    writer::Batch,
};
use crate::{
    Actor, AddCredentialOutcome, Author, Credential, CredentialId, CredentialKind, CredentialStore,
    IssueTokenOutcome, MAX_ACTIVE_TOKENS, NewCredential, RevokeTokenOutcome,
    RotateCredentialOutcome, SecretHash, StoreError,
    decisions::audit::AuditedChange,
    decisions::credentials::{
        COLUMNS, credential, issue_refusal, issued_since, plan_rotation, revoke_refusal,
    },
};

#[async_trait]
impl CredentialStore for SqliteStore {
    async fn add_credential(
        &self,
        account: AccountId,
        new: NewCredential,
        by: Author,
    ) -> Result<AddCredentialOutcome, StoreError> {
        self.writer.write(move |batch| add(batch, account, &new, by)).await
    }

    async fn issue_token(
        &self,
        account: AccountId,
        new: NewCredential,
        by: Author,
    ) -> Result<IssueTokenOutcome, StoreError> {
        // A refused request does not queue a write.
        let refusal = |connection: &Connection| issue_refused(connection, account, &new, by);
        if let Some(refusal) = self.point_readers.read(refusal)? {
            return Ok(refusal);
        }
        self.ensure_may_change(account, by).await?;
        self.writer
            .write(move |batch| match issue_refused(batch.connection(), account, &new, by)? {
                Some(refusal) => Ok(refusal),
                None => add(batch, account, &new, by).map(IssueTokenOutcome::from),
            })
            .await
    }

    async fn revoke_token(
        &self,
        account: AccountId,
        id: CredentialId,
        by: Author,
    ) -> Result<RevokeTokenOutcome, StoreError> {
        self.writer
            .write_for_operator(move |batch| {
                let found = by_id(batch.connection(), id)?;
                if let Some(refusal) = revoke_refusal(account, found.as_ref()) {
                    return Ok(refusal);
                }
                revoke(batch, id, by)?;
                Ok(RevokeTokenOutcome::Revoked)
            })
            .await
    }

    async fn active_tokens(
        &self,
        account: AccountId,
        at: Timestamp,
    ) -> Result<Vec<Credential>, StoreError> {
        self.readers.read(|connection| active_tokens(connection, account, at))
    }

    async fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        by: Author,
    ) -> Result<RotateCredentialOutcome, StoreError> {
        self.writer.write_for_operator(move |batch| rotate(batch, old, &new, old_ends_at, by)).await
    }

    async fn revoke_credential(&self, id: CredentialId, by: Author) -> Result<bool, StoreError> {
        self.writer.write_for_operator(move |batch| revoke(batch, id, by)).await
    }

    async fn credentials(&self, account: AccountId) -> Result<Vec<Credential>, StoreError> {
        self.readers.read(|connection| of_account(connection, account))
    }

    async fn credential(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
    ) -> Result<Option<Credential>, StoreError> {
        self.point_readers.read(|connection| by_hash(connection, kind, hash))
    }

    async fn record_credential_use(
        &self,
        uses: Vec<(CredentialId, Timestamp)>,
    ) -> Result<(), StoreError> {
        self.writer
            .write(move |batch| {
                let mut update = batch.connection().prepare_cached(
                    "UPDATE credential SET last_used_at = ?2 \
                     WHERE id = ?1 AND coalesce(last_used_at, 0) < ?2",
                )?;
                for (id, at) in &uses {
                    update.execute([key(id.0), millis(*at)])?;
                }
                Ok(())
            })
            .await
    }

    async fn credential_epoch(&self) -> Result<u64, StoreError> {
        self.point_readers.read(epoch)
    }
}

/// Adds a credential and records it in the audit feed.
pub(super) fn add(
    batch: &mut Batch,
    account: AccountId,
    new: &NewCredential,
    by: Author,
) -> Result<AddCredentialOutcome, StoreError> {
    let added = insert(batch, account, new, by.at)?;
    if let AddCredentialOutcome::Added(id) = added {
        let change = AuditedChange::CredentialCreated(id, new);
        audit::append(batch.connection(), account, change, by)?;
    }
    Ok(added)
}

fn insert(
    batch: &mut Batch,
    account: AccountId,
    new: &NewCredential,
    at: Timestamp,
) -> Result<AddCredentialOutcome, StoreError> {
    if accounts::one(batch.connection(), account)?.is_none() {
        return Ok(AddCredentialOutcome::NotFound);
    }
    let added = batch.connection().execute(
        "INSERT INTO credential (account_id, kind, hash, scopes, created_at, expires_at, name) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (kind, hash) DO NOTHING",
        params![
            key(account.get()),
            new.kind.as_str(),
            new.hash.0,
            new.scopes.to_string(),
            millis(at),
            new.expires_at.map(millis),
            new.name,
        ],
    )?;
    if added == 0 {
        return Ok(AddCredentialOutcome::SecretTaken);
    }
    let id = u64::try_from(batch.connection().last_insert_rowid()).unwrap_or_default();
    Ok(AddCredentialOutcome::Added(CredentialId(id)))
}

/// Why the author may not add a token to the account, if it may not.
fn issue_refused(
    connection: &Connection,
    account: AccountId,
    new: &NewCredential,
    by: Author,
) -> Result<Option<IssueTokenOutcome>, StoreError> {
    let owner = accounts::one(connection, account)?;
    let caller = match by.actor {
        Actor::Token(id) => by_id(connection, id)?,
        Actor::Operator | Actor::Service => None,
    };
    if let Some(refusal) = issue_refusal(owner.as_ref(), caller.as_ref(), new, by) {
        return Ok(Some(refusal));
    }
    let is_full = count_tokens(connection, account, by.at)? >= MAX_ACTIVE_TOKENS;
    Ok(is_full.then_some(IssueTokenOutcome::TooMany))
}

fn active_tokens(
    connection: &Connection,
    account: AccountId,
    at: Timestamp,
) -> Result<Vec<Credential>, StoreError> {
    let query = format!(
        "SELECT {COLUMNS} FROM credential WHERE account_id = ?1 AND kind = ?2 AND \
         revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?3) ORDER BY id"
    );
    let mut query = connection.prepare_cached(&query)?;
    let kind = CredentialKind::Token.as_str();
    let mut rows = query.query(params![key(account.get()), kind, millis(at)])?;
    let mut tokens = Vec::new();
    while let Some(row) = rows.next()? {
        tokens.push(credential(row)?);
    }
    Ok(tokens)
}

/// How many tokens of the account are active or were created recently.
fn count_tokens(
    connection: &Connection,
    account: AccountId,
    at: Timestamp,
) -> Result<usize, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT count(*) FROM credential WHERE account_id = ?1 AND kind = ?2 \
         AND (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?3) \
         OR created_at > ?4)",
    )?;
    let kind = CredentialKind::Token.as_str();
    let values = params![key(account.get()), kind, millis(at), issued_since(at)];
    let count: i64 = query.query_row(values, |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

fn rotate(
    batch: &mut Batch,
    old: CredentialId,
    new: &NewCredential,
    old_ends_at: Timestamp,
    by: Author,
) -> Result<RotateCredentialOutcome, StoreError> {
    let found = by_id(batch.connection(), old)?;
    let plan = match plan_rotation(found.as_ref(), new, old_ends_at, by.at) {
        Ok(plan) => plan,
        Err(refused) => return Ok(refused),
    };
    let outcome = plan.outcome(insert(batch, plan.account, &plan.replacement, by.at)?);
    if let RotateCredentialOutcome::Rotated { id, old_ends_at, .. } = outcome {
        batch.connection().execute(
            "UPDATE credential SET expires_at = ?2 WHERE id = ?1",
            params![key(old.0), millis(old_ends_at)],
        )?;
        audit::append(batch.connection(), plan.account, plan.audited(old, id), by)?;
        batch.credentials_changed();
    }
    Ok(outcome)
}

fn revoke(batch: &mut Batch, id: CredentialId, by: Author) -> Result<bool, StoreError> {
    let found = by_id(batch.connection(), id)?.filter(|found| found.revoked_at.is_none());
    let Some(found) = found else { return Ok(false) };
    batch.connection().execute(
        "UPDATE credential SET revoked_at = ?2 WHERE id = ?1",
        params![key(id.0), millis(by.at)],
    )?;
    let change = AuditedChange::CredentialRevoked(&found);
    audit::append(batch.connection(), found.account, change, by)?;
    batch.credentials_changed();
    Ok(true)
}

pub(super) fn of_account(
    connection: &Connection,
    account: AccountId,
) -> Result<Vec<Credential>, StoreError> {
    let query = format!("SELECT {COLUMNS} FROM credential WHERE account_id = ?1 ORDER BY id");
    let mut query = connection.prepare_cached(&query)?;
    let mut rows = query.query([key(account.get())])?;
    let mut credentials = Vec::new();
    while let Some(row) = rows.next()? {
        credentials.push(credential(row)?);
    }
    Ok(credentials)
}

pub(super) fn by_hash(
    connection: &Connection,
    kind: CredentialKind,
    hash: SecretHash,
) -> Result<Option<Credential>, StoreError> {
    let query = format!("SELECT {COLUMNS} FROM credential WHERE kind = ?1 AND hash = ?2");
    let mut query = connection.prepare_cached(&query)?;
    let mut rows = query.query(params![kind.as_str(), hash.0])?;
    rows.next()?.map(credential).transpose()
}

fn by_id(connection: &Connection, id: CredentialId) -> Result<Option<Credential>, StoreError> {
    let query = format!("SELECT {COLUMNS} FROM credential WHERE id = ?1");
    let mut query = connection.prepare_cached(&query)?;
    let mut rows = query.query([key(id.0)])?;
    rows.next()?.map(credential).transpose()
}

pub(super) fn epoch(connection: &Connection) -> Result<u64, StoreError> {
    let mut query = connection.prepare_cached("SELECT epoch FROM credential_epoch")?;
    let epoch: i64 = query.query_row([], |row| row.get(0))?;
    Ok(u64::try_from(epoch).unwrap_or_default())
}
