//! The deletion of an account, with everything that could still be used.

use galley_domain::id::AccountId;

use super::one;
use crate::{
    Author, DeleteAccountOutcome, StoreError,
    decisions::audit::AuditedChange,
    decisions::{
        self,
        accounts::{deleted_name, deletion_refusal},
    },
    engine::Tx,
    postgres::{
        columns::{get, key, millis},
        credentials, emulator,
        transaction::Transaction,
    },
    upstream, webhooks,
};

pub(super) async fn delete(
    transaction: &mut Transaction,
    id: AccountId,
    by: Author,
) -> Result<DeleteAccountOutcome, StoreError> {
    credentials::lock_epoch(transaction).await?;
    let own = key(id.get());
    // Endpoints before their account, as everywhere.
    let endpoints = "SELECT 1 FROM webhook WHERE account_id = $1 ORDER BY id FOR UPDATE";
    transaction.query(endpoints, &[&own]).await?;
    transaction.lock(id).await?;
    let found = one(transaction, id).await?;
    let templates =
        "SELECT 1 FROM template WHERE account_id = $1 AND unique_key IS NOT NULL LIMIT 1";
    let has_templates = transaction.query_one(templates, &[&own]).await?.is_some();
    if let Some(refusal) = deletion_refusal(found.as_ref(), has_templates) {
        return Ok(refusal);
    }
    let revoke =
        "UPDATE credential SET revoked_at = $2 WHERE account_id = $1 AND revoked_at IS NULL";
    let revoke = format!("{revoke} RETURNING {}", decisions::credentials::COLUMNS);
    for row in transaction.query(&revoke, &[&own, &millis(by.at)]).await? {
        let revoked = decisions::credentials::credential(&row)?;
        transaction.audit(id, AuditedChange::CredentialRevoked(&revoked), by);
    }
    webhooks::delete_all(&mut Tx::new(transaction), id, by).await?;
    if found.as_ref().is_some_and(|account| account.emulator.is_some()) {
        emulator::delete_account(transaction, id).await?;
    }
    upstream::delete_account(&mut Tx::new(transaction), id).await?;
    let phones = "DELETE FROM phone WHERE account_id = $1 RETURNING id";
    for row in transaction.query(phones, &[&own]).await? {
        transaction.audit(id, AuditedChange::PhoneRemoved(&get::<String>(&row, "id")?), by);
    }
    let media = "UPDATE upload SET used_at = NULL WHERE account_id = $1 AND used_at IS NOT NULL";
    transaction.execute(media, &[&own]).await?;
    let update = "UPDATE account SET deleted_at = $2, name = $3 WHERE id = $1";
    transaction.execute(update, &[&own, &millis(by.at), &deleted_name(id)]).await?;
    let name = found.map(|account| account.name).unwrap_or_default();
    transaction.audit(id, AuditedChange::AccountDeleted { name: &name }, by);
    credentials::increment_epoch(transaction).await?;
    Ok(DeleteAccountOutcome::Deleted)
}
