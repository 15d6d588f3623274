//! Uploads of media files, which are received in parts, and the files that they become. A write that
//! changes one locks its account first: the account's row has what its files use of the quota.

mod chunks;
mod decisions;
mod media;
mod removal;

use galley_domain::id::AccountId;
use jiff::Timestamp;

use self::{
    decisions::{
        AppendPlan, Part, QuotaChange, RemovalCutoffs, StoredUpload, Uploaded, parts, plan_upload,
        unfinished_cutoff,
    },
    removal::{Removal, UnwantedFile, remove},
};
pub(crate) use self::{
    media::{kept_samples, mark_used, use_files},
    removal::delete_expired,
};
use crate::{
    AppendOutcome, BeginUploadOutcome, NewUpload, Store, StoreError, StoreFuture, Upload,
    encoding::without_nul,
    engine::{ReadPath, Tx, WriteKind, values},
    error::no_account,
    media_type,
    stored_row::StoredRow as _,
};

impl Store {
    /// Begins a resumable upload.
    pub fn begin_upload(&self, new: NewUpload) -> StoreFuture<'_, BeginUploadOutcome> {
        self.write("begin_upload", new, |new, tx| Box::pin(begin(tx, new)))
    }

    /// An upload of an account; `None` if it does not exist or has expired.
    pub fn upload<'s>(
        &'s self,
        account: AccountId,
        id: &'s str,
        at: Timestamp,
    ) -> StoreFuture<'s, Option<Upload>> {
        Box::pin(async move {
            let found = self.find_upload("upload", account, id, at).await?;
            Ok(found.map(|found| found.upload))
        })
    }

    fn find_upload(
        &self,
        method: &'static str,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> StoreFuture<'_, Option<StoredUpload>> {
        let id = without_nul(id);
        let values = values![&*id, account, unfinished_cutoff(at)];
        self.read_one(method, ReadPath::Point, FIND, values, StoredUpload::read)
    }

    /// Appends bytes to an upload. They must start at its current end and fit into the account's
    /// `quota` for all its files. Not a single transaction: each chunk of
    /// [`UPLOAD_CHUNK_BYTES`](crate::UPLOAD_CHUNK_BYTES) is one, so that other writes run in between.
    /// After an error, some chunks may have been stored; [`Store::upload`] returns how many bytes.
    pub fn append_upload<'s>(
        &'s self,
        account: AccountId,
        id: &'s str,
        offset: u64,
        bytes: &'s [u8],
        quota: u64,
        at: Timestamp,
    ) -> StoreFuture<'s, AppendOutcome> {
        Box::pin(async move {
            let mut outcome = AppendOutcome::NoUpload;
            for part in parts(offset, bytes, quota) {
                let appended = Append { account, id: without_nul(id).into_owned(), part, at };
                let (kind, method) = (WriteKind::Large, "append_upload");
                let append = self.write_as(kind, method, appended, |appended, tx| {
                    Box::pin(append(tx, appended))
                });
                outcome = append.await?;
                if !matches!(outcome, AppendOutcome::Received(_)) {
                    break;
                }
            }
            if let AppendOutcome::TypeMismatch { .. } = outcome {
                self.cancel_upload(account, id, at).await?;
            }
            Ok(outcome)
        })
    }

    /// Deletes an upload that is unfinished or that no template references; `false` if there is no
    /// such upload.
    pub fn cancel_upload<'s>(
        &'s self,
        account: AccountId,
        id: &'s str,
        at: Timestamp,
    ) -> StoreFuture<'s, bool> {
        Box::pin(async move {
            let found = self.find_upload("find_cancelled_upload", account, id, at).await?;
            let Some(found) = found else { return Ok(false) };
            let file =
                UnwantedFile { account, upload: found.number, cutoffs: RemovalCutoffs::UNUSED };
            loop {
                let removal =
                    self.write("cancel_upload", file, |file, tx| Box::pin(remove(tx, *file)));
                match removal.await? {
                    Removal::Partial => {}
                    Removal::Complete => return Ok(true),
                    Removal::None => return Ok(false),
                }
            }
        })
    }
}

/// An upload of an account that has not expired, with the quota bytes that all files of the account
/// use.
const FIND: &str = "SELECT number, file_name, file_type, length, received, handle, sniffed, \
     created_at, emulated_at, (SELECT media_bytes FROM account WHERE account.id = account_id) \
     AS media_bytes FROM upload \
     WHERE id = $1 AND account_id = $2 AND (received = length OR created_at > $3)";

/// Updates what the files of an account use of the quota, after one of them has grown or shrunk.
fn update_quota(
    tx: &mut Tx<'_>,
    account: AccountId,
    change: QuotaChange,
) -> Result<(), StoreError> {
    let update = "UPDATE account SET media_bytes = media_bytes - $2 + $3 WHERE id = $1";
    tx.defer(update, &values![account, change.before, change.after])
}

async fn begin(tx: &mut Tx<'_>, new: &NewUpload) -> Result<BeginUploadOutcome, StoreError> {
    if !tx.lock(new.account).await? {
        return Err(no_account());
    }
    let usage = format!(
        "SELECT media_bytes, (SELECT count(*) FROM upload{} WHERE account_id = $1 AND \
         created_at > $2 AND received < length) AS unfinished FROM account WHERE id = $1",
        tx.dialect().either(" INDEXED BY upload_unfinished", "")
    );
    let usage = tx
        .query_one(&usage, &values![new.account, unfinished_cutoff(new.at)], |row| {
            let used = row.number("media_bytes")?;
            Ok(Uploaded { unfinished: row.number("unfinished")?, used })
        })
        .await?;
    let quota = match plan_upload(new, usage.unwrap_or_default()) {
        Ok(quota) => quota,
        Err(refusal) => return Ok(refusal),
    };
    let insert = "INSERT INTO upload (account_id, id, handle, file_name, file_type, length, \
                  created_at, emulated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
                  ON CONFLICT DO NOTHING";
    let values = values![
        new.account,
        &new.id,
        &new.handle,
        &new.file_name,
        &new.file_type,
        new.length,
        new.at,
        new.emulated_at,
    ];
    if tx.execute(insert, &values).await? == 0 {
        return Ok(BeginUploadOutcome::DuplicateId);
    }
    update_quota(tx, new.account, quota)?;
    Ok(BeginUploadOutcome::Begun)
}

/// A part to append to an upload.
struct Append {
    account: AccountId,
    id: String,
    part: Part,
    at: Timestamp,
}

/// Appends a part. Refuses it if the remaining bytes would exceed the announced length.
async fn append(tx: &mut Tx<'_>, appended: &Append) -> Result<AppendOutcome, StoreError> {
    let Append { account, ref id, ref part, at } = *appended;
    if !tx.lock(account).await? {
        return Ok(AppendOutcome::NoUpload);
    }
    let found = tx
        .query_one(FIND, &values![id, account, unfinished_cutoff(at)], |row| {
            Ok((StoredUpload::read(row)?, row.number("media_bytes")?))
        })
        .await?;
    let Some((stored, used)) = found else { return Ok(AppendOutcome::NoUpload) };
    let AppendPlan { received, is_complete, quota } = match AppendPlan::new(&stored, part, used) {
        Ok(plan) => plan,
        Err(outcome) => return Ok(outcome),
    };
    let mut sniffed = None;
    if is_complete {
        sniffed = media_type::sniff(&chunks::head(tx, stored.number, &part.bytes).await?);
        let declared = &stored.upload.file_type;
        if media_type::contradicts(sniffed, declared) {
            let (declared, sniffed) = (declared.clone(), sniffed.map(str::to_owned));
            return Ok(AppendOutcome::TypeMismatch { declared, sniffed });
        }
    }
    chunks::write(tx, stored.number, part).await?;
    let update =
        "UPDATE upload SET received = $2, sniffed = $3, finished_at = $4 WHERE number = $1";
    let finished_at = is_complete.then_some(at);
    tx.defer(update, &values![stored.number, received, sniffed, finished_at])?;
    update_quota(tx, account, quota)?;
    Ok(if is_complete {
        stored.complete(sniffed.map(str::to_owned))
    } else {
        AppendOutcome::Received(received)
    })
}
