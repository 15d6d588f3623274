//! Keys and tokens, as SQL.

use galley_domain::{account::Scopes, id::AccountId};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::{
    columns::{account_id, at as moment_at, column, key, millis, moment, number},
    pool::{Links, Values},
    transaction::Transaction,
};
use crate::{
    AddCredentialOutcome, Credential, CredentialId, CredentialKind, NewCredential, SecretHash,
    StoreError,
};

const COLUMNS: &str = "id, account_id, kind, scopes, created_at, expires_at, revoked_at";

/// Waits until nobody else makes or changes accounts and credentials, until the end. Whoever does
/// holds this before any other row.
pub(super) async fn hold(transaction: &Transaction) -> Result<(), StoreError> {
    transaction.query("SELECT epoch FROM credential_epoch FOR UPDATE", &[]).await.map(drop)
}

/// What others remember of credentials and accounts is out of date.
pub(super) async fn raise_epoch(transaction: &Transaction) -> Result<(), StoreError> {
    transaction.execute("UPDATE credential_epoch SET epoch = epoch + 1", &[]).await.map(drop)
}

pub(super) async fn epoch(links: &Links) -> Result<u64, StoreError> {
    let row = links.read_one("SELECT epoch FROM credential_epoch", &[]).await?;
    row.map_or(Ok(0), |row| number(&row, 0))
}

pub(super) async fn add(
    transaction: &mut Transaction,
    account: AccountId,
    new: &NewCredential,
    at: Timestamp,
) -> Result<AddCredentialOutcome, StoreError> {
    hold(transaction).await?;
    insert(transaction, account, new, at).await
}

/// The same for whoever holds on already.
pub(super) async fn insert(
    transaction: &Transaction,
    account: AccountId,
    new: &NewCredential,
    at: Timestamp,
) -> Result<AddCredentialOutcome, StoreError> {
    let known = "SELECT 1 FROM account WHERE id = $1";
    if transaction.query_one(known, &[&key(account.get())]).await?.is_none() {
        return Ok(AddCredentialOutcome::NoOwner);
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

pub(super) async fn is_taken(
    transaction: &Transaction,
    new: &NewCredential,
) -> Result<bool, StoreError> {
    let taken = "SELECT 1 FROM credential WHERE kind = $1 AND hash = $2";
    let row = transaction.query_one(taken, &[&new.kind.as_str(), &&new.hash.0[..]]).await?;
    Ok(row.is_some())
}

pub(super) async fn rotate(
    transaction: &mut Transaction,
    old: CredentialId,
    new: &NewCredential,
    old_ends_at: Timestamp,
    at: Timestamp,
) -> Result<AddCredentialOutcome, StoreError> {
    hold(transaction).await?;
    let owner = "SELECT account_id FROM credential WHERE id = $1";
    let Some(row) = transaction.query_one(owner, &[&key(old.0)]).await? else {
        return Ok(AddCredentialOutcome::NoOwner);
    };
    let addition = insert(transaction, account_id(&row, 0)?, new, at).await?;
    if matches!(addition, AddCredentialOutcome::Added(_)) {
        let end = "UPDATE credential SET expires_at = least(coalesce(expires_at, $2), $2) \
                   WHERE id = $1";
        transaction.execute(end, &[&key(old.0), &millis(old_ends_at)]).await?;
        raise_epoch(transaction).await?;
    }
    Ok(addition)
}

pub(super) async fn revoke(
    transaction: &mut Transaction,
    id: CredentialId,
    at: Timestamp,
) -> Result<bool, StoreError> {
    hold(transaction).await?;
    let revoke = "UPDATE credential SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
    let revoked = transaction.execute(revoke, &[&key(id.0), &millis(at)]).await?;
    raise_epoch(transaction).await?;
    Ok(revoked > 0)
}

pub(super) async fn of_account(
    links: &Links,
    account: AccountId,
) -> Result<Vec<Credential>, StoreError> {
    let statement = format!("SELECT {COLUMNS} FROM credential WHERE account_id = $1 ORDER BY id");
    let rows = links.read(&statement, &[&key(account.get())]).await?;
    rows.iter().map(credential).collect()
}

pub(super) async fn by_hash(
    links: &Links,
    kind: CredentialKind,
    hash: SecretHash,
) -> Result<Option<Credential>, StoreError> {
    let statement = format!("SELECT {COLUMNS} FROM credential WHERE kind = $1 AND hash = $2");
    let row = links.read_one(&statement, &[&kind.as_str(), &&hash.0[..]]).await?;
    row.as_ref().map(credential).transpose()
}

fn credential(row: &Row) -> Result<Credential, StoreError> {
    Ok(Credential {
        id: CredentialId(number(row, "id")?),
        account: account_id(row, "account_id")?,
        kind: column(row, "kind", |word: String| CredentialKind::parse(&word))?,
        scopes: column(row, "scopes", |words: String| Scopes::parse(&words).ok())?,
        created_at: moment_at(row, "created_at")?,
        expires_at: moment(row, "expires_at")?,
        revoked_at: moment(row, "revoked_at")?,
    })
}
