//! The deletion of an account, with everything that could still be used.

use galley_domain::id::AccountId;
use serde_json::json;

use crate::{
    AuditKind, Author, DeleteAccountOutcome, Store, StoreError, StoreFuture, accounts,
    decisions::audit::AuditedChange,
    emulator,
    engine::{Tx, values},
    upstream, webhooks,
};

impl Store {
    /// Deletes a disabled account that has no templates: revokes its credentials, deletes its
    /// endpoints, and frees its phone numbers and its name. Its media samples count as unused. Its
    /// events, and the versions of its deleted templates, expire like those of other accounts.
    pub fn delete_account(
        &self,
        id: AccountId,
        by: Author,
    ) -> StoreFuture<'_, DeleteAccountOutcome> {
        self.write_for_operator("delete_account", (id, by), |&(id, by), tx| {
            Box::pin(delete(tx, id, by))
        })
    }
}

async fn delete(
    tx: &mut Tx<'_>,
    id: AccountId,
    by: Author,
) -> Result<DeleteAccountOutcome, StoreError> {
    tx.lock_credentials().await?;
    // Endpoints before their account, as everywhere.
    let endpoints = format!(
        "SELECT 1 FROM webhook WHERE account_id = $1 ORDER BY id{}",
        tx.dialect().for_update()
    );
    tx.exists(&endpoints, &values![id]).await?;
    tx.lock(id).await?;
    let templates =
        "SELECT 1 FROM template WHERE account_id = $1 AND unique_key IS NOT NULL LIMIT 1";
    let has_templates = tx.exists(templates, &values![id]).await?;
    let Some(account) = accounts::one(tx, id).await? else {
        return Ok(DeleteAccountOutcome::NotFound);
    };
    if account.disabled_at.is_none() {
        return Ok(DeleteAccountOutcome::NotDisabled);
    }
    if has_templates {
        return Ok(DeleteAccountOutcome::HasTemplates);
    }
    for revoked in accounts::unrevoked(tx, id).await? {
        tx.audit(id, AuditedChange::credential_revoked(&revoked), by)?;
    }
    webhooks::delete_all(tx, id, by).await?;
    for phone in accounts::delete_phones(tx, id).await? {
        tx.audit(id, AuditedChange::new(AuditKind::PhoneRemoved, &*phone, json!({})), by)?;
    }
    let unuse = "UPDATE upload SET used_at = NULL WHERE account_id = $1 AND used_at IS NOT NULL";
    tx.defer(unuse, &values![id])?;
    if account.emulator.is_some() {
        emulator::delete_account(tx, id)?;
    }
    upstream::delete_account(tx, id).await?;
    let revoke =
        "UPDATE credential SET revoked_at = $2 WHERE account_id = $1 AND revoked_at IS NULL";
    tx.defer(revoke, &values![id, by.at])?;
    let update = "UPDATE account SET deleted_at = $2, name = $3 WHERE id = $1";
    tx.defer(update, &values![id, by.at, deleted_name(id)])?;
    tx.account_changed(id)?;
    let details = json!({"name": account.name});
    tx.audit(id, AuditedChange::new(AuditKind::AccountDeleted, id, details), by)?;
    tx.credentials_changed().await?;
    Ok(DeleteAccountOutcome::Deleted)
}

/// The name that the row of a deleted account has. No account can be created with it, because it
/// contains a control character.
fn deleted_name(id: AccountId) -> String {
    format!("deleted\u{1f}{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_deleted_accounts_are_unique_and_free_for_no_other() {
        let [one, two] = [1, 2].map(|id| deleted_name(AccountId::new(id).unwrap()));
        assert_ne!(one, two);
        assert!(one.contains(char::is_control), "{one:?}");
    }
}
