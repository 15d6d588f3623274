//! Complete files, and the deletion of files, as SQL.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;

use super::{
    PostgresStore,
    columns::{account_id, get, key, millis, number, without_nul},
    pool::{PgConnection, PgPools, Values},
    transaction::{Transaction, transact},
    uploads::update_used_bytes,
};
use crate::{
    MEDIA_READ_BYTES, Media, MediaStore, SampleLink, StoreError,
    decisions::uploads::{
        QuotaChange, RemovalCutoffs, RemovalReason, media, public_media, unused_cutoff,
    },
    records::KeptSamples,
};

#[async_trait]
impl MediaStore for PostgresStore {
    async fn sample(
        &self,
        account: AccountId,
        handle: &str,
        at: Timestamp,
    ) -> Result<Option<Media>, StoreError> {
        let statement = "SELECT sniffed, length, file_name, \
                         CASE WHEN used_at IS NULL THEN emulated_at END AS emulated_at \
                         FROM upload WHERE handle = $1 AND \
                         account_id = $2 AND received = length AND \
                         (used_at IS NOT NULL OR finished_at > $3)";
        let values: Values<'_> = &[&without_nul(handle), &key(account.get()), &unused_cutoff(at)];
        let row = self.pools.read_one(statement, values).await?;
        row.as_ref().map(media).transpose()
    }

    async fn media(&self, handle: &str) -> Result<Option<Media>, StoreError> {
        let statement = "SELECT sniffed, length, file_name, emulated_at, account_id, emulator \
                         FROM upload JOIN account ON account.id = account_id \
                         WHERE handle = $1 AND received = length AND disabled_at IS NULL";
        let row = self.pools.read_one(statement, &[&without_nul(handle)]).await?;
        row.as_ref().map(public_media).transpose()
    }

    async fn media_chunk(&self, handle: &str, offset: u64) -> Result<Vec<u8>, StoreError> {
        let offset = i64::try_from(offset).unwrap_or(i64::MAX);
        let length = i32::try_from(MEDIA_READ_BYTES).unwrap_or(i32::MAX);
        let statement = "SELECT substr(bytes, ($2 - place + 1)::int, $3) FROM upload_chunk WHERE \
                         upload = (SELECT number FROM upload WHERE handle = $1 AND \
                         received = length) AND place <= $2 AND place + length(bytes) > $2 \
                         ORDER BY place DESC LIMIT 1";
        let slot = self.read_slots.acquire_media().await?;
        let connection = self.pools.acquire_slow_with(slot).await?;
        let rows = connection.query(statement, &[&without_nul(handle), &offset, &length]).await?;
        rows.first().map_or(Ok(Vec::new()), |row| get(row, 0))
    }
}

/// Maximum number of files deleted in one sweep.
const MAX_SWEEP_FILES: usize = 256;

impl PostgresStore {
    /// Deletes expired files; returns how many.
    pub(super) async fn delete_expired_uploads(&self, at: Timestamp) -> Result<usize, StoreError> {
        let (mut deleted, reason) = (0, RemovalReason::Expired(at));
        for (upload, account) in expired(&self.pools, at).await? {
            let is_deleted: Result<bool, StoreError> =
                transact!(self, tx => delete(tx, account, upload, reason));
            deleted += usize::from(is_deleted?);
        }
        Ok(deleted)
    }
}

/// The complete files of the account that keep these samples.
pub(super) async fn kept_samples(
    transaction: &Transaction,
    account: AccountId,
    links: &[SampleLink],
) -> Result<KeptSamples, StoreError> {
    if links.is_empty() {
        return Ok(KeptSamples::default());
    }
    let uploads: Vec<&str> = links.iter().map(|link| &*link.upload).collect();
    let statement = "SELECT id, handle FROM upload WHERE id = ANY($1) AND account_id = $2 AND \
                     received = length";
    let rows = transaction.query(statement, &[&uploads, &key(account.get())]).await?;
    let kept: Result<_, StoreError> =
        rows.iter().map(|row| Ok((get(row, 0)?, get(row, 1)?))).collect();
    kept.map(KeptSamples)
}

/// Marks files as used by a template of the account, which keeps them from expiring.
pub(super) async fn mark_used<'n>(
    connection: &PgConnection,
    account: AccountId,
    handles: impl Iterator<Item = &'n str>,
    at: Timestamp,
) -> Result<(), StoreError> {
    let handles: Vec<&str> = handles.collect();
    if handles.is_empty() {
        return Ok(());
    }
    let update = "UPDATE upload SET used_at = $3 WHERE handle = ANY($1) AND account_id = $2 AND \
                  received = length AND used_at IS NULL";
    connection.execute(update, &[&handles, &key(account.get()), &millis(at)]).await.map(drop)
}

/// Expired files: uploads that were not completed, and files that no template uses.
async fn expired(pools: &PgPools, at: Timestamp) -> Result<Vec<(i64, AccountId)>, StoreError> {
    let statement = "SELECT number, account_id FROM upload WHERE received < length AND \
                     created_at <= $1 UNION ALL SELECT number, account_id FROM upload WHERE \
                     used_at IS NULL AND finished_at IS NOT NULL AND finished_at <= $2 LIMIT $3";
    let limit = i64::try_from(MAX_SWEEP_FILES).unwrap_or(i64::MAX);
    let RemovalCutoffs { unfinished, unused } = RemovalReason::Expired(at).cutoffs();
    let connection = pools.acquire_slow().await?;
    let rows = connection.query(statement, &[&unfinished, &unused, &limit]).await?;
    rows.iter().map(|row| Ok((get(row, "number")?, account_id(row, "account_id")?))).collect()
}

/// Deletes a file, if the reason still applies.
pub(super) async fn delete(
    transaction: &mut Transaction,
    account: AccountId,
    upload: i64,
    reason: RemovalReason,
) -> Result<bool, StoreError> {
    transaction.lock_any(account).await?;
    let RemovalCutoffs { unfinished, unused } = reason.cutoffs();
    let find = "SELECT file_name, received FROM upload WHERE number = $1 AND \
                CASE WHEN received < length THEN created_at <= $2 \
                ELSE used_at IS NULL AND finished_at <= $3 END";
    let Some(row) = transaction.query_one(find, &[&upload, &unfinished, &unused]).await? else {
        return Ok(false);
    };
    let (name, received): (String, u64) = (get(&row, "file_name")?, number(&row, "received")?);
    transaction.execute("DELETE FROM upload_chunk WHERE upload = $1", &[&upload]).await?;
    transaction.execute("DELETE FROM upload WHERE number = $1", &[&upload]).await?;
    let quota = QuotaChange::new(&name, Some(received), None);
    update_used_bytes(transaction, key(account.get()), quota).await?;
    Ok(true)
}
