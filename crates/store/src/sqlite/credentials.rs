//! SQL for API keys and access tokens.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{
    SqliteStore, accounts,
    columns::{key, millis},
    writer::Batch,
};
use crate::{
    AddCredentialOutcome, Credential, CredentialId, CredentialKind, CredentialStore, NewCredential,
    RotateCredentialOutcome, SecretHash, StoreError,
    decisions::credentials::{COLUMNS, credential, plan_rotation},
};

#[async_trait]
impl CredentialStore for SqliteStore {
    async fn add_credential(
        &self,
        account: AccountId,
        new: NewCredential,
        at: Timestamp,
    ) -> Result<AddCredentialOutcome, StoreError> {
        self.writer.write(move |batch| add(batch, account, &new, at)).await
    }

    async fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        at: Timestamp,
    ) -> Result<RotateCredentialOutcome, StoreError> {
        self.writer
            .write_for_operator(move |batch| {
                let found = by_id(batch.connection(), old)?;
                let plan = match plan_rotation(found.as_ref(), &new, old_ends_at, at) {
                    Ok(plan) => plan,
                    Err(refused) => return Ok(refused),
                };
                let outcome = plan.outcome(add(batch, plan.account, &plan.replacement, at)?);
                if let RotateCredentialOutcome::Rotated { old_ends_at, .. } = outcome {
                    batch.connection().execute(
                        "UPDATE credential SET expires_at = ?2 WHERE id = ?1",
                        params![key(old.0), millis(old_ends_at)],
                    )?;
                    batch.credentials_changed();
                }
                Ok(outcome)
            })
            .await
    }

    async fn revoke_credential(&self, id: CredentialId, at: Timestamp) -> Result<bool, StoreError> {
        self.writer
            .write_for_operator(move |batch| {
                let revoked = batch.connection().execute(
                    "UPDATE credential SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL",
                    params![key(id.0), millis(at)],
                )?;
                batch.credentials_changed();
                Ok(revoked > 0)
            })
            .await
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

    async fn credential_epoch(&self) -> Result<u64, StoreError> {
        self.point_readers.read(epoch)
    }
}

pub(super) fn add(
    batch: &mut Batch<'_>,
    account: AccountId,
    new: &NewCredential,
    at: Timestamp,
) -> Result<AddCredentialOutcome, StoreError> {
    if accounts::one(batch.connection(), account)?.is_none() {
        return Ok(AddCredentialOutcome::NotFound);
    }
    let added = batch.connection().execute(
        "INSERT INTO credential (account_id, kind, hash, scopes, created_at, expires_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (kind, hash) DO NOTHING",
        params![
            key(account.get()),
            new.kind.as_str(),
            new.hash.0,
            new.scopes.to_string(),
            millis(at),
            new.expires_at.map(millis),
        ],
    )?;
    if added == 0 {
        return Ok(AddCredentialOutcome::SecretTaken);
    }
    let id = u64::try_from(batch.connection().last_insert_rowid()).unwrap_or_default();
    Ok(AddCredentialOutcome::Added(CredentialId(id)))
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
