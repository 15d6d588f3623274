//! Resumable uploads, as SQL. A transaction that changes one locks its account first, because the
//! account's row has the media usage.

use async_trait::async_trait;
use galley_domain::id::AccountId;
use jiff::Timestamp;

use super::{
    PostgresStore,
    batch::no_account,
    columns::{get, key, millis, number, without_nul},
    media,
    pool::Values,
    transaction::{Transaction, transact},
};
use crate::{
    AppendOutcome, BeginUploadOutcome, NewUpload, StoreError, Upload, UploadStore,
    decisions::uploads::{self, AppendPlan, Part, QuotaChange, RemovalReason, StoredUpload},
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
        Ok(self.find_upload(account, id, at).await?.map(StoredUpload::into_upload))
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
        // Each part is a separate transaction, so that other writes can run in between.
        for part in uploads::parts(offset, bytes, quota) {
            let appended: Result<AppendOutcome, StoreError> =
                transact!(self, tx => append(tx, account, id, &part, at));
            outcome = appended?;
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
        let Some(upload) = self.find_upload(account, id, at).await? else { return Ok(false) };
        let upload = upload.number;
        transact!(self, tx => media::delete(tx, account, upload, RemovalReason::Unused))
    }
}

impl PostgresStore {
    async fn find_upload(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<Option<StoredUpload>, StoreError> {
        let (id, cutoff) = (without_nul(id), uploads::unfinished_cutoff(at));
        let values: Values<'_> = &[&id, &key(account.get()), &cutoff];
        let row = self.pools.read_one(&find_statement(), values).await?;
        row.as_ref().map(StoredUpload::read).transpose()
    }
}

/// Media usage of an account, in bytes.
async fn used_bytes(transaction: &Transaction, account: AccountId) -> Result<u64, StoreError> {
    let statement = "SELECT media_bytes FROM account WHERE id = $1";
    let row = transaction.query_one(statement, &[&key(account.get())]).await?;
    row.map_or(Ok(0), |row| number(&row, 0))
}

/// Updates the media usage of an account after one file changed its share.
pub(super) async fn update_used_bytes(
    transaction: &Transaction,
    account: i64,
    change: QuotaChange,
) -> Result<(), StoreError> {
    let update = "UPDATE account SET media_bytes = media_bytes - $2 + $3 WHERE id = $1";
    transaction
        .execute(update, &[&account, &key(change.before), &key(change.after)])
        .await
        .map(drop)
}

async fn begin(
    transaction: &mut Transaction,
    new: &NewUpload,
) -> Result<BeginUploadOutcome, StoreError> {
    if !transaction.lock(new.account).await? {
        return Err(no_account());
    }
    let account = key(new.account.get());
    let unfinished = "SELECT count(*) FROM upload WHERE account_id = $1 AND created_at > $2 AND \
                      received < length";
    let cutoff = uploads::unfinished_cutoff(new.at);
    let row = transaction.query_one(unfinished, &[&account, &cutoff]).await?;
    let unfinished = row.map_or(Ok(0), |row| number(&row, 0))?;
    let used = used_bytes(transaction, new.account).await?;
    let quota = match uploads::begin(new, unfinished, used) {
        Ok(quota) => quota,
        Err(refusal) => return Ok(refusal),
    };
    let insert = "INSERT INTO upload (account_id, id, handle, file_name, file_type, length, \
                  created_at, emulated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";
    let values: Values<'_> = &[
        &account,
        &new.id,
        &new.handle,
        &new.file_name,
        &new.file_type,
        &key(new.length),
        &millis(new.at),
        &new.emulated_at.map(millis),
    ];
    if transaction.execute(insert, values).await? == 0 {
        return Ok(BeginUploadOutcome::DuplicateId);
    }
    update_used_bytes(transaction, account, quota).await?;
    Ok(BeginUploadOutcome::Begun)
}

/// The statement that finds an unexpired upload of an account.
fn find_statement() -> String {
    let select = StoredUpload::SELECT;
    format!("{select} WHERE id = $1 AND account_id = $2 AND (received = length OR created_at > $3)")
}

/// Appends a part; refuses it if the rest of the request would not fit.
async fn append(
    transaction: &mut Transaction,
    account: AccountId,
    id: &str,
    part: &Part<'_>,
    at: Timestamp,
) -> Result<AppendOutcome, StoreError> {
    transaction.lock(account).await?;
    let (id, cutoff) = (without_nul(id), uploads::unfinished_cutoff(at));
    let values: Values<'_> = &[&id, &key(account.get()), &cutoff];
    let found = transaction.query_one(&find_statement(), values).await?;
    let Some(row) = found else { return Ok(AppendOutcome::NoUpload) };
    let stored = StoredUpload::read(&row)?;
    let mut plan = match AppendPlan::new(&stored, part, used_bytes(transaction, account).await?) {
        Ok(plan) => plan,
        Err(outcome) => return Ok(outcome),
    };
    if plan.is_complete {
        let head = head(transaction, stored.number, &part.bytes).await?;
        if let Err(mismatch) = plan.check_type(&stored, &head) {
            return Ok(mismatch);
        }
    }
    write(transaction, stored.number, part).await?;
    let update =
        "UPDATE upload SET received = $2, sniffed = $3, finished_at = $4 WHERE number = $1";
    let finished_at = plan.is_complete.then_some(millis(at));
    let values: Values<'_> = &[&stored.number, &key(plan.received), &plan.sniffed, &finished_at];
    transaction.execute(update, values).await?;
    update_used_bytes(transaction, key(account.get()), plan.quota).await?;
    Ok(plan.outcome(&stored))
}

/// Writes the bytes as a new chunk, or appends them to a small last chunk.
async fn write(transaction: &Transaction, upload: i64, part: &Part<'_>) -> Result<(), StoreError> {
    let last = "SELECT place, length(bytes) AS length FROM upload_chunk WHERE upload = $1 \
                ORDER BY place DESC LIMIT 1";
    if let Some(row) = transaction.query_one(last, &[&upload]).await? {
        let length = usize::try_from(get::<i32>(&row, "length")?).unwrap_or(usize::MAX);
        if uploads::extends_last_chunk(length, part.bytes.len()) {
            let place: i64 = get(&row, "place")?;
            let update = "UPDATE upload_chunk SET bytes = bytes || $3 \
                          WHERE upload = $1 AND place = $2";
            let values: Values<'_> = &[&upload, &place, &&*part.bytes];
            return transaction.execute(update, values).await.map(drop);
        }
    }
    let insert = "INSERT INTO upload_chunk (upload, place, bytes) VALUES ($1, $2, $3)";
    let values: Values<'_> = &[&upload, &key(part.offset), &&*part.bytes];
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
