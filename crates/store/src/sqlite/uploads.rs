//! SQL for uploads, which are received in chunks.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::{
    SqliteStore,
    checksum::{self, upload_chunk_checksum},
    columns::{key, millis, number},
    media::{Removal, remove_chunks},
    writer::Batch,
};
use crate::{
    AppendOutcome, BeginUploadOutcome, NewUpload, StoreError, Upload, UploadStore,
    decisions::uploads::{self, AppendPlan, Part, QuotaChange, RemovalReason, StoredUpload},
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
        let found = self.point_readers.read(|connection| find(connection, account, id, at))?;
        Ok(found.map(StoredUpload::into_upload))
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
        let mut outcome = AppendOutcome::NoUpload;
        // Each part is a separate write, so that other writes can run in between.
        for part in uploads::parts(offset, bytes, quota) {
            let (id, part) = (id.to_owned(), part.into_owned());
            let permit = self.upload_permits.acquire().await;
            outcome =
                self.writer.write(move |batch| append(batch, account, &id, &part, at)).await?;
            drop(permit);
            if !matches!(outcome, AppendOutcome::Received(_)) {
                break;
            }
        }
        if let AppendOutcome::TypeMismatch { .. } = outcome {
            self.cancel_upload(account, id, at).await?;
        }
        Ok(outcome)
    }

    async fn cancel_upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let found = self.point_readers.read(|connection| find(connection, account, id, at))?;
        let Some(upload) = found.map(|stored| stored.number) else { return Ok(false) };
        loop {
            let reason = RemovalReason::Unused;
            let removal = self.writer.write(move |batch| remove_chunks(batch, upload, reason));
            match removal.await? {
                Removal::Partial => {}
                Removal::Complete => return Ok(true),
                Removal::None => return Ok(false),
            }
        }
    }
}

/// Maximum number of chunks queued for the writer; all of them can be in one transaction.
pub(super) const MAX_QUEUED_CHUNKS: usize = 4;

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
    change: QuotaChange,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE account SET media_bytes = media_bytes - ?2 + ?3 WHERE id = ?1")?
        .execute([account, key(change.before), key(change.after)])?;
    Ok(())
}

fn begin(batch: &mut Batch, new: &NewUpload) -> Result<BeginUploadOutcome, StoreError> {
    // Fails for an account that is deleted.
    batch.stored_bytes(new.account)?;
    let connection = batch.connection();
    let mut unfinished = connection.prepare_cached(
        "SELECT count(*) FROM upload INDEXED BY upload_unfinished WHERE account_id = ?1 AND \
         created_at > ?2 AND received < length",
    )?;
    let values = [key(new.account.get()), uploads::unfinished_cutoff(new.at)];
    let unfinished: u32 = unfinished.query_row(values, |row| row.get(0))?;
    let used = used_bytes(connection, new.account)?;
    let quota = match uploads::begin(new, unfinished.into(), used) {
        Ok(quota) => quota,
        Err(refusal) => return Ok(refusal),
    };
    let inserted = connection
        .prepare_cached(
            "INSERT INTO upload (account_id, id, handle, file_name, file_type, length, created_at, \
             emulated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            key(new.account.get()),
            new.id,
            new.handle,
            new.file_name,
            new.file_type,
            key(new.length),
            millis(new.at),
            new.emulated_at.map(millis),
        ])?;
    if inserted == 0 {
        return Ok(BeginUploadOutcome::DuplicateId);
    }
    update_used_bytes(connection, key(new.account.get()), quota)?;
    Ok(BeginUploadOutcome::Begun)
}

/// An upload of an account that has not expired.
fn find(
    connection: &Connection,
    account: AccountId,
    id: &str,
    at: Timestamp,
) -> Result<Option<StoredUpload>, StoreError> {
    let mut query = connection.prepare_cached(&format!(
        "{} WHERE id = ?1 AND account_id = ?2 AND (received = length OR created_at > ?3)",
        StoredUpload::SELECT
    ))?;
    let mut rows = query.query(params![id, key(account.get()), uploads::unfinished_cutoff(at)])?;
    rows.next()?.map(StoredUpload::read).transpose()
}

/// Appends a part. Refuses it if the remaining bytes would exceed the announced length.
fn append(
    batch: &mut Batch,
    account: AccountId,
    id: &str,
    part: &Part<'_>,
    at: Timestamp,
) -> Result<AppendOutcome, StoreError> {
    let connection = batch.connection();
    let Some(stored) = find(connection, account, id, at)? else {
        return Ok(AppendOutcome::NoUpload);
    };
    let mut plan = match AppendPlan::new(&stored, part, used_bytes(connection, account)?) {
        Ok(plan) => plan,
        Err(outcome) => return Ok(outcome),
    };
    if plan.is_complete {
        let head = head(connection, stored.number, &part.bytes)?;
        if let Err(mismatch) = plan.check_type(&stored, &head) {
            return Ok(mismatch);
        }
    }
    write(connection, stored.number, part)?;
    let finished_at = plan.is_complete.then_some(millis(at));
    connection
        .prepare_cached(
            "UPDATE upload SET received = ?2, sniffed = ?3, finished_at = ?4 WHERE number = ?1",
        )?
        .execute(params![stored.number, key(plan.received), plan.sniffed, finished_at])?;
    update_used_bytes(connection, key(account.get()), plan.quota)?;
    Ok(plan.outcome(&stored))
}

/// Writes the bytes as a new chunk, or appends them to a short last chunk.
fn write(connection: &Connection, upload: i64, part: &Part<'_>) -> Result<(), StoreError> {
    let last: Option<(i64, u32)> = connection
        .prepare_cached(
            "SELECT place, length(bytes) FROM upload_chunk WHERE upload = ?1 \
             ORDER BY place DESC LIMIT 1",
        )?
        .query_row([upload], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let short = last.filter(|(_, length)| {
        let length = usize::try_from(*length).unwrap_or(usize::MAX);
        uploads::extends_last_chunk(length, part.bytes.len())
    });
    let Some((place, _)) = short else {
        connection
            .prepare_cached(
                "INSERT INTO upload_chunk VALUES (?1, ?2, ?3, row_checksum(?1, ?2, ?3))",
            )?
            .execute(params![upload, key(part.offset), part.bytes])?;
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
    bytes.extend_from_slice(&part.bytes);
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
