//! Resumable uploads, as SQL. A transaction that changes one locks its account first, because the
//! account's row has the media usage.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::Row;

use super::{
    PostgresStore,
    columns::{get, key, millis, number, timestamp, without_nul},
    pool::{PgPools, Values},
    transaction::{Transaction, transact},
};
use crate::{
    AppendOutcome, BeginUploadOutcome, MAX_OPEN_UPLOADS, MAX_UPLOAD_BYTES, NewUpload, StoreError,
    UPLOAD_CHUNK_BYTES, UPLOAD_LIFETIME_HOURS, Upload, UploadStore, encoding::quota_bytes,
    media_type,
};

#[async_trait]
impl UploadStore for PostgresStore {
    async fn begin_upload(&self, new: NewUpload) -> Result<BeginUploadOutcome, StoreError> {
        transact!(self, tx => begin(tx, &new))
    }

    async fn upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<Option<Upload>, StoreError> {
        one(&self.pools, account, id, at).await
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
        let request = UploadChunk { account, id, offset, bytes, remaining: 0, quota, at };
        self.append_in_chunks(request).await
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

/// The next bytes are appended to a chunk shorter than this, so that an upload in many small
/// requests still has few chunks.
const SMALL_CHUNK_BYTES: usize = 16 * 1_024;

/// Bytes that are appended to an upload.
#[derive(Clone, Copy)]
pub(super) struct UploadChunk<'b> {
    pub(super) account: AccountId,
    pub(super) id: &'b str,
    pub(super) offset: u64,
    pub(super) bytes: &'b [u8],
    /// Number of bytes that follow them in the same request.
    pub(super) remaining: u64,
    /// Media quota of the account, in bytes.
    pub(super) quota: u64,
    pub(super) at: Timestamp,
}

impl PostgresStore {
    /// Appends bytes, one transaction for each chunk, so that other writes can run in between.
    pub(super) async fn append_in_chunks(
        &self,
        request: UploadChunk<'_>,
    ) -> Result<AppendOutcome, StoreError> {
        let (mut offset, mut bytes) = (request.offset, request.bytes);
        loop {
            let (now, rest) = bytes.split_at(bytes.len().min(UPLOAD_CHUNK_BYTES));
            let chunk = UploadChunk { offset, bytes: now, remaining: rest.len() as u64, ..request };
            let done: Result<AppendOutcome, StoreError> = transact!(self, tx => append(tx, &chunk));
            let done = done?;
            if let AppendOutcome::TypeMismatch { .. } = done {
                self.delete_unused_upload(request.account, request.id, request.at).await?;
            }
            if rest.is_empty() || !matches!(done, AppendOutcome::Received(_)) {
                return Ok(done);
            }
            (offset, bytes) = (offset.saturating_add(now.len() as u64), rest);
        }
    }
}

/// Incomplete uploads created at or before this time have expired.
pub(super) fn expired_since(at: Timestamp) -> i64 {
    millis(
        at.saturating_sub(SignedDuration::from_hours(UPLOAD_LIFETIME_HOURS))
            .unwrap_or(Timestamp::MIN),
    )
}

/// Media usage of an account, in bytes.
async fn usage(transaction: &Transaction, account: AccountId) -> Result<u64, StoreError> {
    let statement = "SELECT media_bytes FROM account WHERE id = $1";
    let row = transaction.query_one(statement, &[&key(account.get())]).await?;
    row.map_or(Ok(0), |row| number(&row, 0))
}

/// Updates the media usage of an account after one file changed its share.
pub(super) async fn update_usage(
    transaction: &Transaction,
    account: i64,
    before: u64,
    after: u64,
) -> Result<(), StoreError> {
    let update = "UPDATE account SET media_bytes = media_bytes - $2 + $3 WHERE id = $1";
    transaction.execute(update, &[&account, &key(before), &key(after)]).await.map(drop)
}

pub(super) async fn begin(
    transaction: &mut Transaction,
    new: &NewUpload,
) -> Result<BeginUploadOutcome, StoreError> {
    if !(1..=MAX_UPLOAD_BYTES).contains(&new.length) {
        return Ok(BeginUploadOutcome::InvalidLength);
    }
    transaction.lock(new.account).await?;
    let account = key(new.account.get());
    let unfinished = "SELECT count(*) FROM upload WHERE account_id = $1 AND created_at > $2 AND \
                      received < length";
    let row = transaction.query_one(unfinished, &[&account, &expired_since(new.at)]).await?;
    if row.map_or(Ok(0), |row| number(&row, 0))? >= u64::from(MAX_OPEN_UPLOADS) {
        return Ok(BeginUploadOutcome::TooMany);
    }
    let used = usage(transaction, new.account).await?;
    if used.saturating_add(quota_bytes(new.length, &new.file_name)) > new.quota {
        return Ok(BeginUploadOutcome::QuotaExceeded(used));
    }
    let insert = "INSERT INTO upload (account_id, id, handle, file_name, file_type, length, \
                  created_at) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
    let values: Values<'_> = &[
        &account,
        &new.id,
        &new.handle,
        &new.file_name,
        &new.file_type,
        &key(new.length),
        &millis(new.at),
    ];
    if transaction.execute(insert, values).await? == 0 {
        return Ok(BeginUploadOutcome::DuplicateId);
    }
    update_usage(transaction, account, 0, quota_bytes(0, &new.file_name)).await?;
    Ok(BeginUploadOutcome::Begun)
}

/// An unexpired upload of an account.
const FIND: &str = "SELECT number, file_name, file_type, length, received, handle, sniffed, \
     created_at FROM upload WHERE id = $1 AND account_id = $2 AND \
     (received = length OR created_at > $3)";

pub(super) async fn one(
    pools: &PgPools,
    account: AccountId,
    id: &str,
    at: Timestamp,
) -> Result<Option<Upload>, StoreError> {
    let row =
        pools.read_one(FIND, &[&without_nul(id), &key(account.get()), &expired_since(at)]).await?;
    row.as_ref().map(upload).transpose()
}

/// The upload and its row number, to which its chunks refer.
pub(super) async fn find(
    transaction: &Transaction,
    account: AccountId,
    id: &str,
    at: Timestamp,
) -> Result<Option<(i64, Upload)>, StoreError> {
    let row = transaction
        .query_one(FIND, &[&without_nul(id), &key(account.get()), &expired_since(at)])
        .await?;
    row.map(|row| Ok((get(&row, "number")?, upload(&row)?))).transpose()
}

fn upload(row: &Row) -> Result<Upload, StoreError> {
    let (length, received) = (number(row, "length")?, number(row, "received")?);
    Ok(Upload {
        file_name: get(row, "file_name")?,
        file_type: get(row, "file_type")?,
        length,
        received,
        handle: Some(get(row, "handle")?).filter(|_| received == length),
        sniffed: get(row, "sniffed")?,
        created_at: timestamp(row, "created_at")?,
    })
}

/// Appends a chunk; refuses it if the rest of the request would not fit.
async fn append(
    transaction: &mut Transaction,
    chunk: &UploadChunk<'_>,
) -> Result<AppendOutcome, StoreError> {
    transaction.lock(chunk.account).await?;
    let found = find(transaction, chunk.account, chunk.id, chunk.at).await?;
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
    let (charged, charge_now) =
        (quota_bytes(before.received, &before.file_name), quota_bytes(received, &before.file_name));
    let used = usage(transaction, chunk.account).await?;
    if used.saturating_sub(charged).saturating_add(charge_now) > chunk.quota && charge_now > charged
    {
        return Ok(AppendOutcome::QuotaExceeded(used));
    }
    let is_complete = received == before.length;
    let sniffed = if is_complete {
        media_type::sniff(&head(transaction, upload, chunk.bytes).await?)
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
    write(transaction, upload, chunk).await?;
    let update = "UPDATE upload SET received = $2, sniffed = $3, finished_at = $4 \
                  WHERE number = $1 RETURNING handle";
    let finished_at = is_complete.then_some(millis(chunk.at));
    let values: Values<'_> = &[&upload, &key(received), &sniffed, &finished_at];
    let row = transaction.query_one(update, values).await?;
    update_usage(transaction, key(chunk.account.get()), charged, charge_now).await?;
    match row.filter(|_| is_complete) {
        Some(row) => Ok(AppendOutcome::Complete {
            handle: get(&row, 0)?,
            sniffed: sniffed.map(str::to_owned),
        }),
        None => Ok(AppendOutcome::Received(received)),
    }
}

/// Writes the bytes as a new chunk, or appends them to a small last chunk.
async fn write(
    transaction: &Transaction,
    upload: i64,
    chunk: &UploadChunk<'_>,
) -> Result<(), StoreError> {
    let last = "SELECT place, length(bytes) AS length FROM upload_chunk WHERE upload = $1 \
                ORDER BY place DESC LIMIT 1";
    if let Some(row) = transaction.query_one(last, &[&upload]).await? {
        let length = usize::try_from(get::<i32>(&row, "length")?).unwrap_or(usize::MAX);
        if length < SMALL_CHUNK_BYTES && length + chunk.bytes.len() <= UPLOAD_CHUNK_BYTES {
            let place: i64 = get(&row, "place")?;
            let update = "UPDATE upload_chunk SET bytes = bytes || $3 \
                          WHERE upload = $1 AND place = $2";
            let values: Values<'_> = &[&upload, &place, &chunk.bytes];
            return transaction.execute(update, values).await.map(drop);
        }
    }
    let insert = "INSERT INTO upload_chunk (upload, place, bytes) VALUES ($1, $2, $3)";
    let values: Values<'_> = &[&upload, &key(chunk.offset), &chunk.bytes];
    transaction.execute(insert, values).await.map(drop)
}

/// The first bytes of the file, enough to detect its type: from stored chunks, then from `next`.
async fn head(transaction: &Transaction, upload: i64, next: &[u8]) -> Result<Vec<u8>, StoreError> {
    let enough = i32::try_from(media_type::SNIFF_BYTES).unwrap_or(i32::MAX);
    let first = "SELECT substr(bytes, 1, $2) FROM upload_chunk WHERE upload = $1 ORDER BY place \
                 LIMIT 64";
    let mut head: Vec<u8> = Vec::new();
    for row in transaction.query(first, &[&upload, &enough]).await? {
        if head.len() >= media_type::SNIFF_BYTES {
            break;
        }
        head.extend(get::<Vec<u8>>(&row, 0)?);
    }
    head.extend(next.iter().take(media_type::SNIFF_BYTES));
    Ok(head)
}
