//! SQL for complete media files and for deleting files.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    SqliteStore,
    cancellation::Cancellation,
    checksum::{self, upload_chunk_checksum},
    columns::{key, millis},
    reader_pool::{self, ReaderPool},
    uploads::update_used_bytes,
    writer::Batch,
};
use crate::{
    MEDIA_READ_BYTES, Media, MediaStore, SampleLink, StoreError,
    decisions::uploads::{QuotaChange, RemovalReason, media, public_media, unused_cutoff},
    records::KeptSamples,
};

#[async_trait]
impl MediaStore for SqliteStore {
    async fn sample(
        &self,
        account: AccountId,
        handle: &str,
        at: Timestamp,
    ) -> Result<Option<Media>, StoreError> {
        self.point_readers.read(|connection| sample(connection, account, handle, at))
    }

    async fn media(&self, handle: &str) -> Result<Option<Media>, StoreError> {
        self.point_readers.read(|connection| public(connection, handle))
    }

    async fn media_chunk(&self, handle: &str, offset: u64) -> Result<Vec<u8>, StoreError> {
        let handle = handle.to_owned();
        let read = move |readers: &ReaderPool, cancellation: &Cancellation| {
            readers.cancellable_read(cancellation, |connection| chunk(connection, &handle, offset))
        };
        reader_pool::run_blocking_media(&self.readers, read).await
    }
}

/// Maximum number of writes in one run of [`SqliteStore::delete_expired_uploads`].
const MAX_DELETE_WRITES: usize = 256;

/// Number of chunks that one write deletes.
const DELETE_CHUNKS: i64 = 16;

impl SqliteStore {
    /// Deletes expired files, a few chunks per write. Returns the number of files deleted.
    pub(super) async fn delete_expired_uploads(&self, at: Timestamp) -> Result<usize, StoreError> {
        let mut deleted = 0;
        for _ in 0..MAX_DELETE_WRITES {
            let Some(upload) = self.readers.read(|connection| find_expired(connection, at))? else {
                break;
            };
            let reason = RemovalReason::Expired(at);
            let removal = self.writer.write(move |batch| remove_chunks(batch, upload, reason));
            deleted += usize::from(removal.await? == Removal::Complete);
        }
        Ok(deleted)
    }
}

/// A complete file that a template of the account may use as a sample.
pub(super) fn sample(
    connection: &Connection,
    account: AccountId,
    handle: &str,
    at: Timestamp,
) -> Result<Option<Media>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT sniffed, length, file_name, \
         CASE WHEN used_at IS NULL THEN emulated_at END AS emulated_at FROM upload \
         WHERE handle = ?1 AND account_id = ?2 AND received = length AND \
         (used_at IS NOT NULL OR finished_at > ?3)",
    )?;
    let mut rows = query.query(params![handle, key(account.get()), unused_cutoff(at)])?;
    rows.next()?.map(media).transpose()
}

/// A complete file of any account that is not disabled.
pub(super) fn public(connection: &Connection, handle: &str) -> Result<Option<Media>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT sniffed, length, file_name, emulated_at, account_id, emulator FROM upload \
         JOIN account ON account.id = account_id \
         WHERE handle = ?1 AND received = length AND disabled_at IS NULL",
    )?;
    let mut rows = query.query([handle])?;
    rows.next()?.map(public_media).transpose()
}

/// The rest of the chunk that contains the byte at `offset`.
pub(super) fn chunk(
    connection: &Connection,
    handle: &str,
    offset: u64,
) -> Result<Vec<u8>, StoreError> {
    let offset = i64::try_from(offset).unwrap_or(i64::MAX);
    let mut query = connection.prepare_cached(concat!(
        "SELECT upload, place, bytes, checksum IS ",
        upload_chunk_checksum!(),
        " FROM upload_chunk WHERE upload = \
         (SELECT number FROM upload WHERE handle = ?1 AND received = length) AND place <= ?2 \
         ORDER BY place DESC LIMIT 1",
    ))?;
    let mut rows = query.query(params![handle, offset])?;
    let Some(row) = rows.next()? else { return Ok(Vec::new()) };
    let start: i64 = row.get(1)?;
    if !row.get::<_, bool>(3)? {
        let upload: i64 = row.get(0)?;
        return Err(checksum::damaged("upload_chunk", format!("{upload} offset {start}")));
    }
    let bytes = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
    let skipped = usize::try_from(offset - start).unwrap_or(usize::MAX);
    let bytes = bytes.get(skipped..).unwrap_or_default();
    Ok(bytes[..bytes.len().min(MEDIA_READ_BYTES)].to_vec())
}

/// The complete files of the account that keep these samples.
pub(super) fn kept_samples(
    connection: &Connection,
    account: AccountId,
    links: &[SampleLink],
) -> Result<KeptSamples, StoreError> {
    let mut kept = KeptSamples::default();
    for SampleLink { upload, .. } in links {
        let name = connection
            .prepare_cached(
                "SELECT handle FROM upload WHERE id = ?1 AND account_id = ?2 AND received = length",
            )?
            .query_row(params![upload, key(account.get())], |row| row.get(0))
            .optional()?;
        kept.0.extend(name.map(|name| (upload.clone(), name)));
    }
    Ok(kept)
}

/// Marks the files as used by a template of the account, so that they do not expire.
pub(super) fn mark_used<'n>(
    connection: &Connection,
    account: AccountId,
    handles: impl Iterator<Item = &'n str>,
    at: Timestamp,
) -> Result<(), StoreError> {
    for handle in handles {
        connection
            .prepare_cached(
                "UPDATE upload SET used_at = ?3 WHERE handle = ?1 AND account_id = ?2 AND \
                 received = length AND used_at IS NULL",
            )?
            .execute(params![handle, key(account.get()), millis(at)])?;
    }
    Ok(())
}

/// An expired file: an unfinished upload, or a file that no template uses.
fn find_expired(connection: &Connection, at: Timestamp) -> Result<Option<i64>, StoreError> {
    let cutoffs = RemovalReason::Expired(at).cutoffs();
    let mut unfinished = connection.prepare_cached(
        "SELECT number FROM upload INDEXED BY upload_unfinished WHERE created_at <= ?1 AND \
         received < length LIMIT 1",
    )?;
    let found = unfinished.query_row([cutoffs.unfinished], |row| row.get(0)).optional()?;
    if found.is_some() {
        return Ok(found);
    }
    let mut unused = connection.prepare_cached(
        "SELECT number FROM upload INDEXED BY upload_unused WHERE used_at IS NULL AND \
         finished_at IS NOT NULL AND finished_at <= ?1 LIMIT 1",
    )?;
    Ok(unused.query_row([cutoffs.unused], |row| row.get(0)).optional()?)
}

/// How much of a file one write has deleted.
#[derive(PartialEq, Eq)]
pub(super) enum Removal {
    /// Some of its chunks.
    Partial,
    /// The rest of it.
    Complete,
    /// Nothing: the file must stay, or does not exist.
    None,
}

/// Deletes the last chunks of a file, so that the remaining ones stay contiguous. The first removal
/// makes the file unfinished.
pub(super) fn remove_chunks(
    batch: &mut Batch,
    upload: i64,
    reason: RemovalReason,
) -> Result<Removal, StoreError> {
    let connection = batch.connection();
    let cutoffs = reason.cutoffs();
    let found: Option<(i64, String, i64)> = connection
        .prepare_cached(
            "SELECT account_id, file_name, received FROM upload WHERE number = ?1 AND \
             CASE WHEN received < length THEN created_at <= ?2 \
             ELSE used_at IS NULL AND finished_at <= ?3 END",
        )?
        .query_row([upload, cutoffs.unfinished, cutoffs.unused], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .optional()?;
    let Some((account, name, received)) = found else { return Ok(Removal::None) };
    connection
        .prepare_cached(
            "DELETE FROM upload_chunk WHERE upload = ?1 AND place >= coalesce((SELECT place FROM \
             upload_chunk WHERE upload = ?1 ORDER BY place DESC LIMIT 1 OFFSET ?2), 0)",
        )?
        .execute([upload, DELETE_CHUNKS - 1])?;
    let remaining: i64 = connection
        .prepare_cached(
            "SELECT coalesce(max(place + length(bytes)), 0) FROM upload_chunk WHERE upload = ?1",
        )?
        .query_row([upload], |row| row.get(0))?;
    let rest = (remaining > 0).then_some(remaining.unsigned_abs());
    let quota = QuotaChange::new(&name, Some(received.unsigned_abs()), rest);
    update_used_bytes(connection, account, quota)?;
    if remaining > 0 {
        connection
            .prepare_cached(
                "UPDATE upload SET received = ?2, sniffed = NULL, finished_at = NULL \
                 WHERE number = ?1",
            )?
            .execute([upload, remaining])?;
        return Ok(Removal::Partial);
    }
    connection.prepare_cached("DELETE FROM upload WHERE number = ?1")?.execute([upload])?;
    Ok(Removal::Complete)
}
