//! Keys and tokens, as SQL.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;
use tokio_postgres::Row;

use super::{
    PostgresStore, accounts,
    columns::{key, millis, number},
    pool::{PgPools, Values},
    transaction::{Transaction, transact},
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
    ) -> Result<IssueTokenOutcome, StoreError> {
        // A request beyond a limit does not wait for the lock of all credentials.
        let since = issued_since(by.at);
        let values: Values<'_> = &[&key(account.get()), &TOKEN, &millis(by.at), &since];
        if is_full(self.pools.read_one(COUNT_TOKENS, values).await?)? {
            return Ok(IssueTokenOutcome::TooMany);
        }
        self.ensure_may_change(account, by).await?;
        transact!(self, tx => issue(tx, account, &new, by))
    }

    async fn revoke_token(
        &self,
        account: AccountId,
        id: CredentialId,
        by: Author,
    ) -> Result<RevokeTokenOutcome, StoreError> {
        transact!(self, tx => async {
            lock_epoch(tx).await?;
            let found = by_id(tx, id).await?;
            if let Some(refusal) = revoke_refusal(account, found.as_ref()) {
                tx.set_rollback_only();
                return Ok(refusal);
            }
            revoke(tx, id, by).await?;
            Ok(RevokeTokenOutcome::Revoked)
        })
    }

    async fn active_tokens(
        &self,
        account: AccountId,
        at: Timestamp,
    ) -> Result<Vec<Credential>, StoreError> {
        let statement = format!(
            "SELECT {COLUMNS} FROM credential WHERE account_id = $1 AND kind = $2 AND \
             revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3) ORDER BY id"
        );
        let values: Values<'_> = &[&key(account.get()), &TOKEN, &millis(at)];
        let rows = self.pools.read(&statement, values).await?;
        rows.iter().map(credential).collect()
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
            // Another instance may have recorded a use of the same minute.
            let update = "UPDATE credential SET last_used_at = used.at \
                          FROM unnest($1::int8[], $2::int8[]) AS used (id, at) \
                          WHERE credential.id = used.id AND \
                          coalesce(credential.last_used_at, 0) < used.at";
            tx.execute(update, &[&ids, &times]).await.map(drop)
        })
    }

    async fn credential_epoch(&self) -> Result<u64, StoreError> {
        epoch(&self.pools).await
    }
}

/// Locks the epoch row until the transaction ends, which serialises all changes of accounts and
/// credentials. Such a transaction locks it before any other row.
pub(super) async fn lock_epoch(transaction: &mut Transaction) -> Result<(), StoreError> {
    transaction.run("SELECT epoch FROM credential_epoch FOR UPDATE", &[]).await.map(drop)
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

/// Adds a token if its author still may.
async fn issue(
    transaction: &mut Transaction,
    account: AccountId,
    new: &NewCredential,
    by: Author,
) -> Result<IssueTokenOutcome, StoreError> {
    lock_epoch(transaction).await?;
    let outcome = match issue_refused(transaction, account, new, by).await? {
        Some(refusal) => refusal,
        None => add(transaction, account, new, by).await?.into(),
    };
    if !matches!(outcome, IssueTokenOutcome::Issued(_)) {
        transaction.set_rollback_only();
    }
    Ok(outcome)
}

async fn issue_refused(
    transaction: &Transaction,
    account: AccountId,
    new: &NewCredential,
    by: Author,
) -> Result<Option<IssueTokenOutcome>, StoreError> {
    let owner = accounts::one(transaction, account).await?;
    let caller = match by.actor {
        Actor::Token(id) => by_id(transaction, id).await?,
        Actor::Operator | Actor::Service => None,
    };
    if let Some(refusal) = issue_refusal(owner.as_ref(), caller.as_ref(), new, by) {
        return Ok(Some(refusal));
    }
    let since = issued_since(by.at);
    let values: Values<'_> = &[&key(account.get()), &TOKEN, &millis(by.at), &since];
    let is_full = is_full(transaction.query_one(COUNT_TOKENS, values).await?)?;
    Ok(is_full.then_some(IssueTokenOutcome::TooMany))
}

const TOKEN: &str = CredentialKind::Token.as_str();

/// How many tokens of an account are active or were created recently.
const COUNT_TOKENS: &str = "SELECT count(*) FROM credential WHERE account_id = $1 AND kind = $2 \
     AND (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3) OR created_at > $4)";

/// Whether an account has the maximum number of tokens, from a row of [`COUNT_TOKENS`].
fn is_full(row: Option<Row>) -> Result<bool, StoreError> {
    let count = row.map_or(Ok(0), |row| number(&row, 0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX) >= MAX_ACTIVE_TOKENS)
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
