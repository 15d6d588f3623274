//! Complete files, and their use as samples of templates.

use galley_domain::id::AccountId;
use jiff::Timestamp;

use super::{
    chunks::{chunk, is_intact},
    decisions::{media, public_media, unused_cutoff},
};
use crate::{
    MAX_UPLOAD_BYTES, MEDIA_READ_BYTES, Media, SampleLink, Store, StoreError, StoreFuture,
    encoding::without_nul,
    engine::{Dialect, ReadPath, Tx, Value, values},
    records::KeptSamples,
    stored_row::StoredRow as _,
};

impl Store {
    /// A complete file that a template of the account may reference by its handle. Creating or
    /// editing a template that references the file exempts it from expiry.
    pub fn sample(
        &self,
        account: AccountId,
        handle: &str,
        at: Timestamp,
    ) -> StoreFuture<'_, Option<Media>> {
        let statement = "SELECT sniffed, length, file_name, \
                         CASE WHEN used_at IS NULL THEN emulated_at END AS emulated_at FROM upload \
                         WHERE handle = $1 AND account_id = $2 AND received = length AND \
                         (used_at IS NOT NULL OR finished_at > $3)";
        let handle = without_nul(handle);
        let values = values![&*handle, account, unused_cutoff(at)];
        self.read_one("sample", ReadPath::Point, statement, values, media)
    }

    /// A complete file by its handle, which is the only authorisation needed; `None` while its
    /// account is disabled.
    pub fn media(&self, handle: &str) -> StoreFuture<'_, Option<Media>> {
        let statement = "SELECT sniffed, length, file_name, emulated_at, account_id, emulator \
                         FROM upload JOIN account ON account.id = account_id \
                         WHERE handle = $1 AND received = length AND disabled_at IS NULL";
        let handle = without_nul(handle);
        let values = values![&*handle];
        self.read_one("media", ReadPath::Point, statement, values, public_media)
    }

    /// A part of a complete file from `offset` on: 1 to [`MEDIA_READ_BYTES`] bytes, or none at the
    /// end of the file.
    pub fn media_chunk<'s>(&'s self, handle: &'s str, offset: u64) -> StoreFuture<'s, Vec<u8>> {
        Box::pin(async move {
            let statement = format!(
                "SELECT upload, place, substr(bytes, CAST($2 - place AS integer) + 1, $3) AS bytes, \
             {} AS is_intact FROM upload_chunk WHERE upload = \
             (SELECT number FROM upload WHERE handle = $1 AND received = length) AND place <= $2 \
             ORDER BY place DESC LIMIT 1",
                is_intact(self.dialect())
            );
            // No file is longer, and places in a chunk have 32 bits.
            let (handle, offset) = (without_nul(handle), offset.min(MAX_UPLOAD_BYTES));
            let values = values![&*handle, offset, Value::size(MEDIA_READ_BYTES)];
            let found =
                self.read_one("media_chunk", ReadPath::Media, statement, values, chunk).await?;
            Ok(found.map(|(_, bytes)| bytes).unwrap_or_default())
        })
    }
}

/// The complete files of the account that keep these samples.
pub(crate) async fn kept_samples(
    tx: &mut Tx<'_>,
    account: AccountId,
    links: &[SampleLink],
) -> Result<KeptSamples, StoreError> {
    if links.is_empty() {
        return Ok(KeptSamples::default());
    }
    let uploads: Vec<&str> = links.iter().map(|link| &*link.upload).collect();
    let statement = format!(
        "SELECT id, handle FROM upload WHERE {} AND account_id = $2 AND received = length",
        tx.dialect().is_any("id", "$1")
    );
    let kept = tx
        .query(&statement, &values![uploads, account], |row| {
            Ok((row.value("id")?, row.value("handle")?))
        })
        .await?;
    Ok(KeptSamples(kept.into_iter().collect()))
}

/// Marks files as used by a template of the account, which keeps them from expiring.
pub(crate) async fn mark_used<'n>(
    tx: &mut Tx<'_>,
    account: AccountId,
    handles: impl Iterator<Item = &'n str>,
    at: Timestamp,
) -> Result<(), StoreError> {
    let handles: Vec<&str> = handles.collect();
    if handles.is_empty() {
        return Ok(());
    }
    let statement = use_files(tx.dialect());
    tx.execute(&statement, &values![handles, account, at]).await.map(drop)
}

/// The statement of [`mark_used`]. The batches of creates on PostgreSQL run it on their own connection.
pub(crate) fn use_files(dialect: Dialect) -> String {
    format!(
        "UPDATE upload SET used_at = $3 WHERE {} AND account_id = $2 AND received = length AND \
         used_at IS NULL",
        dialect.is_any("handle", "$1")
    )
}
