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
    AddCredentialOutcome, Author, Credential, CredentialId, CredentialKind, CredentialStore,
    MAX_ACTIVE_TOKENS, NewCredential, RotateCredentialOutcome, SecretHash, StoreError,
    decisions::{
        audit::AuditedChange,
        credentials::{COLUMNS, credential, issued_since, plan_rotation},
    },
};

#[async_trait]
impl CredentialStore for PostgresStore {
    async fn add_credential(
        &self,
        account: AccountId,
        new: NewCredential,
        by: Author,
    ) -> Result<AddCredentialOutcome, StoreError> {
        transact!(self, tx => async {
            lock_epoch(tx).await?;
            add(tx, account, &new, by).await
        })
    }

    async fn issue_token(
        &self,
        account: AccountId,
        new: NewCredential,
        by: Author,
    ) -> Result<AddCredentialOutcome, StoreError> {
        transact!(self, tx => async {
            lock_epoch(tx).await?;
            if count_tokens(tx, account, by.at).await? >= MAX_ACTIVE_TOKENS {
                return Ok(AddCredentialOutcome::TooMany);
            }
            add(tx, account, &new, by).await
        })
    }

    async fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        by: Author,
    ) -> Result<RotateCredentialOutcome, StoreError> {
        transact!(self, tx => rotate(tx, old, &new, old_ends_at, by))
    }

    async fn revoke_credential(&self, id: CredentialId, by: Author) -> Result<bool, StoreError> {
        transact!(self, tx => revoke(tx, id, by))
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

    async fn record_credential_use(
        &self,
        uses: Vec<(CredentialId, Timestamp)>,
    ) -> Result<(), StoreError> {
        let (ids, times): (Vec<i64>, Vec<i64>) =
            uses.into_iter().map(|(id, at)| (key(id.0), millis(at))).unzip();
        // The epoch row is locked, so that two instances never wait for each other in a circle.
        transact!(self, tx => async {
            lock_epoch(tx).await?;
            let update = "UPDATE credential SET last_used_at = greatest(last_used_at, used.at) \
                          FROM unnest($1::int8[], $2::int8[]) AS used (id, at) \
                          WHERE credential.id = used.id";
            tx.execute(update, &[&ids, &times]).await.map(drop)
        })
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

/// Adds a credential and records it in the audit feed. The caller has locked the epoch row.
pub(super) async fn add(
    transaction: &mut Transaction,
    account: AccountId,
    new: &NewCredential,
    by: Author,
) -> Result<AddCredentialOutcome, StoreError> {
    let added = insert(transaction, account, new, by.at).await?;
    if let AddCredentialOutcome::Added(id) = added {
        transaction.audit(account, AuditedChange::CredentialCreated(id, new), by);
    }
    Ok(added)
}

/// How many tokens of the account are active or were created recently.
async fn count_tokens(
    transaction: &Transaction,
    account: AccountId,
    at: Timestamp,
) -> Result<usize, StoreError> {
    let statement = "SELECT count(*) FROM credential WHERE account_id = $1 AND kind = $2 \
                     AND (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3) \
                     OR created_at > $4)";
    let kind = CredentialKind::Token.as_str();
    let values: Values<'_> = &[&key(account.get()), &kind, &millis(at), &issued_since(at)];
    let row = transaction.query_one(statement, values).await?;
    let count = row.map_or(Ok(0), |row| number(&row, 0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Adds a credential. The caller has locked the epoch row.
async fn insert(
    transaction: &Transaction,
    account: AccountId,
    new: &NewCredential,
    at: Timestamp,
) -> Result<AddCredentialOutcome, StoreError> {
    let owner = "SELECT 1 FROM account WHERE id = $1 AND deleted_at IS NULL";
    if transaction.query_one(owner, &[&key(account.get())]).await?.is_none() {
        return Ok(AddCredentialOutcome::NotFound);
    }
    let insert = "INSERT INTO credential (account_id, kind, hash, scopes, created_at, expires_at, \
                  name) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (kind, hash) DO NOTHING \
                  RETURNING id";
    let values: Values<'_> = &[
        &key(account.get()),
        &new.kind.as_str(),
        &&new.hash.0[..],
        &new.scopes.to_string(),
        &millis(at),
        &new.expires_at.map(millis),
        &new.name,
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
    by: Author,
) -> Result<RotateCredentialOutcome, StoreError> {
    lock_epoch(transaction).await?;
    let found = by_id(transaction, old).await?;
    let plan = match plan_rotation(found.as_ref(), new, old_ends_at, by.at) {
        Ok(plan) => plan,
        Err(refused) => return Ok(refused),
    };
    let added = insert(transaction, plan.account, &plan.replacement, by.at).await?;
    let outcome = plan.outcome(added);
    if let RotateCredentialOutcome::Rotated { id, old_ends_at, .. } = outcome {
        let expire = "UPDATE credential SET expires_at = $2 WHERE id = $1";
        transaction.execute(expire, &[&key(old.0), &millis(old_ends_at)]).await?;
        transaction.audit(plan.account, plan.audited(old, id), by);
        increment_epoch(transaction).await?;
    }
    Ok(outcome)
}

pub(super) async fn revoke(
    transaction: &mut Transaction,
    id: CredentialId,
    by: Author,
) -> Result<bool, StoreError> {
    lock_epoch(transaction).await?;
    let Some(found) = by_id(transaction, id).await?.filter(|it| it.revoked_at.is_none()) else {
        transaction.set_rollback_only();
        return Ok(false);
    };
    let revoke = "UPDATE credential SET revoked_at = $2 WHERE id = $1";
    transaction.execute(revoke, &[&key(id.0), &millis(by.at)]).await?;
    transaction.audit(found.account, AuditedChange::CredentialRevoked(&found), by);
    increment_epoch(transaction).await?;
    Ok(true)
}

async fn by_id(
    transaction: &Transaction,
    id: CredentialId,
) -> Result<Option<Credential>, StoreError> {
    let statement = format!("SELECT {COLUMNS} FROM credential WHERE id = $1");
    let row = transaction.query_one(&statement, &[&key(id.0)]).await?;
    row.as_ref().map(credential).transpose()
}
