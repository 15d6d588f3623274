//! SQL for uploads, which are received in chunks.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{
    SqliteStore,
    checksum::{self, upload_chunk_checksum},
    columns::{key, millis, number, timestamp},
    media,
    writer::Batch,
};
use crate::{
    AppendOutcome, BeginUploadOutcome, MAX_OPEN_UPLOADS, MAX_UPLOAD_BYTES, NewUpload, StoreError,
    UPLOAD_CHUNK_BYTES, UPLOAD_LIFETIME_HOURS, Upload, UploadStore, encoding::quota_bytes,
    media_type,
};

#[async_trait]
impl UploadStore for SqliteStore {
    async fn begin_upload(&self, new: NewUpload) -> Result<BeginUploadOutcome, StoreError> {
        self.writer.write(move |batch| begin(batch, &new)).await
    }

    async fn upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<Option<Upload>, StoreError> {
        self.point_readers.read(|connection| one(connection, account, id, at))
    }

    async fn append_upload(
        &self,
        account: AccountId,
        id: &str,
        offset: u64,
        bytes: &[u8],
        quota: u64,
        at: Timestamp,
    ) -> Result<AppendOutcome, StoreError> {
        let first = Chunk::empty(account, id.to_owned(), offset, quota, at);
        self.append_in_chunks(first, bytes).await
    }

    async fn cancel_upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        self.delete_unused_upload(account, id, at).await
    }
}

/// Maximum number of chunks queued for the writer; all of them can be in one transaction.
pub(super) const MAX_QUEUED_CHUNKS: usize = 4;

/// A stored chunk shorter than this is extended by the next one, so that an upload in many small
/// appends still has few chunks.
const MIN_CHUNK_BYTES: usize = 16 * 1_024;

/// Bytes to append to an upload.
pub(super) struct Chunk {
    account: AccountId,
    id: String,
    offset: u64,
    bytes: Vec<u8>,
    /// Number of bytes that follow in the same append.
    remaining: u64,
    /// Maximum number of bytes for all files of the account.
    quota: u64,
    at: Timestamp,
}

impl Chunk {
    /// A chunk without bytes at this offset.
    pub(super) fn empty(
        account: AccountId,
        id: String,
        offset: u64,
        quota: u64,
        at: Timestamp,
    ) -> Self {
        Self { account, id, offset, bytes: Vec::new(), remaining: 0, quota, at }
    }
}

impl SqliteStore {
    /// Appends the bytes, beginning with `chunk`. Each chunk is a separate write, so that other
    /// writes can run in between.
    pub(super) async fn append_in_chunks(
        &self,
        mut chunk: Chunk,
        mut bytes: &[u8],
    ) -> Result<AppendOutcome, StoreError> {
        let (account, id, quota, at) = (chunk.account, chunk.id.clone(), chunk.quota, chunk.at);
        let mut offset = chunk.offset;
        loop {
            let (current, remaining) = bytes.split_at(bytes.len().min(UPLOAD_CHUNK_BYTES));
            (chunk.bytes, chunk.remaining) = (current.to_vec(), remaining.len() as u64);
            let permit = self.upload_permits.acquire().await;
            let outcome = self.writer.write(move |batch| append(batch, &chunk)).await?;
            drop(permit);
            if let AppendOutcome::TypeMismatch { .. } = outcome {
                self.delete_unused_upload(account, &id, at).await?;
            }
            if remaining.is_empty() || !matches!(outcome, AppendOutcome::Received(_)) {
                return Ok(outcome);
            }
            (offset, bytes) = (offset.saturating_add(current.len() as u64), remaining);
            chunk = Chunk::empty(account, id.clone(), offset, quota, at);
        }
    }
}

/// Unfinished uploads created at or before this timestamp have expired.
pub(super) fn expired_before(at: Timestamp) -> i64 {
    millis(
        at.saturating_sub(SignedDuration::from_hours(UPLOAD_LIFETIME_HOURS))
            .unwrap_or(Timestamp::MIN),
    )
}

/// The quota bytes that all files of an account use.
fn used_bytes(connection: &Connection, account: AccountId) -> Result<u64, StoreError> {
    let mut query = connection.prepare_cached("SELECT media_bytes FROM account WHERE id = ?1")?;
    let mut rows = query.query([key(account.get())])?;
    rows.next()?.map_or(Ok(0), |row| number(row, 0))
}

/// Updates the quota bytes of an account after one of its files has grown or shrunk.
pub(super) fn update_used_bytes(
    connection: &Connection,
    account: i64,
    before: u64,
    after: u64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE account SET media_bytes = media_bytes - ?2 + ?3 WHERE id = ?1")?
        .execute([account, key(before), key(after)])?;
    Ok(())
}

pub(super) fn begin(
    batch: &mut Batch<'_>,
    new: &NewUpload,
) -> Result<BeginUploadOutcome, StoreError> {
    if !(1..=MAX_UPLOAD_BYTES).contains(&new.length) {
        return Ok(BeginUploadOutcome::InvalidLength);
    }
    let connection = batch.connection();
    let mut unfinished = connection.prepare_cached(
        "SELECT count(*) FROM upload INDEXED BY upload_unfinished WHERE account_id = ?1 AND \
         created_at > ?2 AND received < length",
    )?;
    let values = [key(new.account.get()), expired_before(new.at)];
    let unfinished: u32 = unfinished.query_row(values, |row| row.get(0))?;
    if unfinished >= MAX_OPEN_UPLOADS {
        return Ok(BeginUploadOutcome::TooMany);
    }
    let used = used_bytes(connection, new.account)?;
    if used.saturating_add(quota_bytes(new.length, &new.file_name)) > new.quota {
        return Ok(BeginUploadOutcome::QuotaExceeded(used));
    }
    let inserted = connection
        .prepare_cached(
            "INSERT INTO upload (account_id, id, handle, file_name, file_type, length, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            key(new.account.get()),
            new.id,
            new.handle,
            new.file_name,
            new.file_type,
            key(new.length),
            millis(new.at),
        ])?;
    if inserted == 0 {
        return Ok(BeginUploadOutcome::DuplicateId);
    }
    update_used_bytes(connection, key(new.account.get()), 0, quota_bytes(0, &new.file_name))?;
    Ok(BeginUploadOutcome::Begun)
}

/// An upload of an account that has not expired.
const FIND: &str = "SELECT number, file_name, file_type, length, received, handle, sniffed, \
     created_at FROM upload WHERE id = ?1 AND account_id = ?2 AND \
     (received = length OR created_at > ?3)";

pub(super) fn one(
    connection: &Connection,
    account: AccountId,
    id: &str,
    at: Timestamp,
) -> Result<Option<Upload>, StoreError> {
    let found = find(connection, account, id, at)?;
    Ok(found.map(|(_, upload)| upload))
}

/// The upload with its row number, which its chunks refer to.
pub(super) fn find(
    connection: &Connection,
    account: AccountId,
    id: &str,
    at: Timestamp,
) -> Result<Option<(i64, Upload)>, StoreError> {
    let mut query = connection.prepare_cached(FIND)?;
    let mut rows = query.query(params![id, key(account.get()), expired_before(at)])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some((row.get("number")?, upload(row)?)))
}

fn upload(row: &Row<'_>) -> Result<Upload, StoreError> {
    let (length, received) = (number(row, "length")?, number(row, "received")?);
    Ok(Upload {
        file_name: row.get("file_name")?,
        file_type: row.get("file_type")?,
        length,
        received,
        handle: Some(row.get("handle")?).filter(|_| received == length),
        sniffed: row.get("sniffed")?,
        created_at: timestamp(row, "created_at")?,
    })
}

/// Appends a chunk. Refuses it if the remaining bytes would exceed the announced length.
fn append(batch: &mut Batch<'_>, chunk: &Chunk) -> Result<AppendOutcome, StoreError> {
    let connection = batch.connection();
    let found = find(connection, chunk.account, &chunk.id, chunk.at)?;
    let Some((upload, before)) = found else { return Ok(AppendOutcome::NoUpload) };
    if chunk.offset != before.received {
        return Ok(AppendOutcome::OffsetMismatch(before.received));
    }
    let received = before.received + chunk.bytes.len() as u64;
    if received + chunk.remaining > before.length {
        return Ok(AppendOutcome::TooLong(before.length));
    }
    if let (true, Some(handle)) = (chunk.bytes.is_empty(), before.handle) {
        return Ok(AppendOutcome::Complete { handle, sniffed: before.sniffed });
    }
    let (old_bytes, new_bytes) =
        (quota_bytes(before.received, &before.file_name), quota_bytes(received, &before.file_name));
    let used = used_bytes(connection, chunk.account)?;
    let exceeds_quota = used.saturating_sub(old_bytes).saturating_add(new_bytes) > chunk.quota;
    if exceeds_quota && new_bytes > old_bytes {
        return Ok(AppendOutcome::QuotaExceeded(used));
    }
    let is_complete = received == before.length;
    let sniffed = if is_complete {
        media_type::sniff(&head(connection, upload, &chunk.bytes)?)
    } else {
        None
    };
    if is_complete && media_type::contradicts(sniffed, &before.file_type) {
        let (announced, shown) = (before.file_type, sniffed.map(str::to_owned));
        return Ok(AppendOutcome::TypeMismatch { declared: announced, sniffed: shown });
    }
    if chunk.bytes.is_empty() {
        return Ok(AppendOutcome::Received(received));
    }
    write(connection, upload, chunk)?;
    connection
        .prepare_cached(
            "UPDATE upload SET received = ?2, sniffed = ?3, finished_at = ?4 WHERE number = ?1",
        )?
        .execute(params![
            upload,
            key(received),
            sniffed,
            is_complete.then_some(millis(chunk.at)),
        ])?;
    update_used_bytes(connection, key(chunk.account.get()), old_bytes, new_bytes)?;
    if !is_complete {
        return Ok(AppendOutcome::Received(received));
    }
    let handle = media::handle(connection, upload)?;
    Ok(AppendOutcome::Complete { handle, sniffed: sniffed.map(str::to_owned) })
}

/// Writes the bytes as a new chunk, or appends them to a short last chunk.
fn write(connection: &Connection, upload: i64, chunk: &Chunk) -> Result<(), StoreError> {
    let last: Option<(i64, u32)> = connection
        .prepare_cached(
            "SELECT place, length(bytes) FROM upload_chunk WHERE upload = ?1 \
             ORDER BY place DESC LIMIT 1",
        )?
        .query_row([upload], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let short = last.filter(|(_, length)| {
        let length = usize::try_from(*length).unwrap_or(usize::MAX);
        length < MIN_CHUNK_BYTES && length + chunk.bytes.len() <= UPLOAD_CHUNK_BYTES
    });
    let Some((place, _)) = short else {
        connection
            .prepare_cached(
                "INSERT INTO upload_chunk VALUES (?1, ?2, ?3, row_checksum(?1, ?2, ?3))",
            )?
            .execute(params![upload, key(chunk.offset), chunk.bytes])?;
        return Ok(());
    };
    let (mut bytes, is_intact): (Vec<u8>, bool) = connection
        .prepare_cached(concat!(
            "SELECT bytes, checksum IS ",
            upload_chunk_checksum!(),
            " FROM upload_chunk WHERE upload = ?1 AND place = ?2"
        ))?
        .query_row([upload, place], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if !is_intact {
        return Err(checksum::damaged("upload_chunk", format!("{upload} offset {place}")));
    }
    bytes.extend_from_slice(&chunk.bytes);
    connection
        .prepare_cached(
            "UPDATE upload_chunk SET bytes = ?3, checksum = row_checksum(?1, ?2, ?3) \
             WHERE upload = ?1 AND place = ?2",
        )?
        .execute(params![upload, place, bytes])?;
    Ok(())
}

/// The first bytes of an upload, as many as its type is detected from: those stored, then these.
fn head(connection: &Connection, upload: i64, new: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT substr(bytes, 1, ?2) FROM upload_chunk WHERE upload = ?1 ORDER BY place",
    )?;
    let mut rows =
        query.query([upload, i64::try_from(media_type::SNIFF_BYTES).unwrap_or(i64::MAX)])?;
    let mut head = Vec::new();
    while head.len() < media_type::SNIFF_BYTES
        && let Some(row) = rows.next()?
    {
        head.extend(row.get::<_, Vec<u8>>(0)?);
    }
    head.extend(new.iter().take(media_type::SNIFF_BYTES));
    Ok(head)
}
