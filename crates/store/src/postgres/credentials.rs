//! Keys and tokens, as SQL.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;

use super::{
    PostgresStore,
    columns::{key, millis, number},
    pool::{PgPools, Values},
    transaction::{Transaction, transact},
};
use crate::{
    AddCredentialOutcome, Credential, CredentialId, CredentialKind, CredentialStore, NewCredential,
    RotateCredentialOutcome, SecretHash, StoreError,
    decisions::credentials::{COLUMNS, credential, plan_rotation},
};

#[async_trait]
impl CredentialStore for PostgresStore {
    async fn add_credential(
        &self,
        account: AccountId,
        new: NewCredential,
        at: Timestamp,
    ) -> Result<AddCredentialOutcome, StoreError> {
        transact!(self, tx => async {
            lock_epoch(tx).await?;
            insert(tx, account, &new, at).await
        })
    }

    async fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        at: Timestamp,
    ) -> Result<RotateCredentialOutcome, StoreError> {
        transact!(self, tx => rotate(tx, old, &new, old_ends_at, at))
    }

    async fn revoke_credential(&self, id: CredentialId, at: Timestamp) -> Result<bool, StoreError> {
        transact!(self, tx => revoke(tx, id, at))
    }

    async fn credentials(&self, account: AccountId) -> Result<Vec<Credential>, StoreError> {
        let statement =
            format!("SELECT {COLUMNS} FROM credential WHERE account_id = $1 ORDER BY id");
        let rows = self.pools.read(&statement, &[&key(account.get())]).await?;
        rows.iter().map(credential).collect()
    }

    async fn credential(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
    ) -> Result<Option<Credential>, StoreError> {
        let statement = format!("SELECT {COLUMNS} FROM credential WHERE kind = $1 AND hash = $2");
        let row = self.pools.read_one(&statement, &[&kind.as_str(), &&hash.0[..]]).await?;
        row.as_ref().map(credential).transpose()
    }

    async fn credential_epoch(&self) -> Result<u64, StoreError> {
        epoch(&self.pools).await
    }
}

/// Locks the epoch row until the transaction ends, which serialises all changes of accounts and
/// credentials. Such a transaction locks it before any other row.
pub(super) async fn lock_epoch(transaction: &Transaction) -> Result<(), StoreError> {
    transaction.query("SELECT epoch FROM credential_epoch FOR UPDATE", &[]).await.map(drop)
}

/// Invalidates caches of credentials and accounts.
pub(super) async fn increment_epoch(transaction: &Transaction) -> Result<(), StoreError> {
    transaction.execute("UPDATE credential_epoch SET epoch = epoch + 1", &[]).await.map(drop)
}

pub(super) async fn epoch(pools: &PgPools) -> Result<u64, StoreError> {
    let row = pools.read_one("SELECT epoch FROM credential_epoch", &[]).await?;
    row.map_or(Ok(0), |row| number(&row, 0))
}

/// Adds a credential. The caller has locked the epoch row.
pub(super) async fn insert(
    transaction: &Transaction,
    account: AccountId,
    new: &NewCredential,
    at: Timestamp,
) -> Result<AddCredentialOutcome, StoreError> {
    let owner = "SELECT 1 FROM account WHERE id = $1";
    if transaction.query_one(owner, &[&key(account.get())]).await?.is_none() {
        return Ok(AddCredentialOutcome::NotFound);
    }
    let insert = "INSERT INTO credential (account_id, kind, hash, scopes, created_at, expires_at) \
                  VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (kind, hash) DO NOTHING RETURNING id";
    let values: Values<'_> = &[
        &key(account.get()),
        &new.kind.as_str(),
        &&new.hash.0[..],
        &new.scopes.to_string(),
        &millis(at),
        &new.expires_at.map(millis),
    ];
    Ok(match transaction.query_one(insert, values).await? {
        Some(row) => AddCredentialOutcome::Added(CredentialId(number(&row, 0)?)),
        None => AddCredentialOutcome::SecretTaken,
    })
}

pub(super) async fn is_in_use(
    transaction: &Transaction,
    new: &NewCredential,
) -> Result<bool, StoreError> {
    let existing = "SELECT 1 FROM credential WHERE kind = $1 AND hash = $2";
    let row = transaction.query_one(existing, &[&new.kind.as_str(), &&new.hash.0[..]]).await?;
    Ok(row.is_some())
}

pub(super) async fn rotate(
    transaction: &mut Transaction,
    old: CredentialId,
    new: &NewCredential,
    old_ends_at: Timestamp,
    at: Timestamp,
) -> Result<RotateCredentialOutcome, StoreError> {
    lock_epoch(transaction).await?;
    let statement = format!("SELECT {COLUMNS} FROM credential WHERE id = $1");
    let found = transaction.query_one(&statement, &[&key(old.0)]).await?;
    let found = found.as_ref().map(credential).transpose()?;
    let plan = match plan_rotation(found.as_ref(), new, old_ends_at, at) {
        Ok(plan) => plan,
        Err(refused) => return Ok(refused),
    };
    let added = insert(transaction, plan.account, &plan.replacement, at).await?;
    let outcome = plan.outcome(added);
    if let RotateCredentialOutcome::Rotated { old_ends_at, .. } = outcome {
        let expire = "UPDATE credential SET expires_at = $2 WHERE id = $1";
        transaction.execute(expire, &[&key(old.0), &millis(old_ends_at)]).await?;
        increment_epoch(transaction).await?;
    }
    Ok(outcome)
}

pub(super) async fn revoke(
    transaction: &mut Transaction,
    id: CredentialId,
    at: Timestamp,
) -> Result<bool, StoreError> {
    lock_epoch(transaction).await?;
    let revoke = "UPDATE credential SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
    let revoked = transaction.execute(revoke, &[&key(id.0), &millis(at)]).await?;
    increment_epoch(transaction).await?;
    Ok(revoked > 0)
}
