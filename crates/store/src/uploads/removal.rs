//! Deletes files: uploads that are cancelled, refused or expired, and files that no template uses.

use galley_domain::id::AccountId;
use jiff::Timestamp;

use super::{
    decisions::{QuotaChange, RemovalCutoffs},
    update_quota,
};
use crate::{
    StoreError,
    encoding::quota_bytes,
    engine::{self, Dialect, Engine, Read, ReadPath, Tx, Write, values},
    stored_row::StoredRow as _,
};

/// A file to delete, if it may still be deleted.
#[derive(Clone, Copy)]
pub(super) struct UnwantedFile {
    pub(super) account: AccountId,
    pub(super) upload: i64,
    pub(super) cutoffs: RemovalCutoffs,
}

/// How much of a file one write has deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    /// Some of its chunks.
    Partial,
    /// The rest of it.
    Complete,
    /// Nothing: the file must stay, or does not exist.
    None,
}

/// Number of chunks that one write deletes on SQLite, where other writes wait for it.
const DELETE_CHUNKS: i64 = 16;

/// Deletes a file or, on SQLite, its last chunks, so that the remaining ones stay contiguous. The first
/// removal makes the file unfinished.
pub(super) async fn remove(tx: &mut Tx<'_>, file: UnwantedFile) -> Result<Removal, StoreError> {
    let UnwantedFile { account, upload, cutoffs: RemovalCutoffs { unfinished, unused } } = file;
    // An account that is deleted keeps its files until they expire.
    tx.lock(account).await?;
    let max_chunks = match tx.dialect() {
        Dialect::Sqlite => DELETE_CHUNKS,
        Dialect::Postgres => i64::MAX,
    };
    let find = "SELECT file_name, received, coalesce((SELECT place FROM upload_chunk \
                WHERE upload = $1 ORDER BY place DESC LIMIT 1 OFFSET $4), 0) AS rest FROM upload \
                WHERE number = $1 AND CASE WHEN received < length THEN created_at <= $2 \
                ELSE used_at IS NULL AND finished_at <= $3 END";
    let found = tx
        .query_one(find, &values![upload, unfinished, unused, max_chunks - 1], |row| {
            let name: String = row.value("file_name")?;
            Ok((name, row.number("received")?, row.number("rest")?))
        })
        .await?;
    let Some((name, received, rest)) = found else { return Ok(Removal::None) };
    let delete = "DELETE FROM upload_chunk WHERE upload = $1 AND place >= $2";
    tx.defer(delete, &values![upload, rest])?;
    let rest = (rest > 0).then_some(rest);
    match rest {
        Some(rest) => {
            let shorten = "UPDATE upload SET received = $2, sniffed = NULL, finished_at = NULL \
                           WHERE number = $1";
            tx.defer(shorten, &values![upload, rest])?;
        }
        None => tx.defer("DELETE FROM upload WHERE number = $1", &values![upload])?,
    }
    let before = quota_bytes(received, &name);
    let after = rest.map_or(0, |rest| quota_bytes(rest, &name));
    update_quota(tx, account, QuotaChange { before, after })?;
    Ok(if rest.is_some() { Removal::Partial } else { Removal::Complete })
}

/// Maximum number of writes in one run of [`delete_expired`].
const MAX_WRITES: usize = 256;

/// Deletes expired files; returns how many.
pub(crate) async fn delete_expired(
    engine: &dyn Engine,
    at: Timestamp,
) -> Result<usize, StoreError> {
    let cutoffs = RemovalCutoffs::expired(at);
    let mut files = engine::fetch(engine, expired(engine.dialect(), cutoffs)).await?;
    let mut deleted = 0;
    for _ in 0..MAX_WRITES {
        let Some((account, upload)) = files.pop() else { break };
        let file = UnwantedFile { account, upload, cutoffs };
        let write = Write::new(file, |file, tx| Box::pin(remove(tx, *file)));
        match engine::run(engine, write).await {
            Ok(Removal::Partial) => files.push((account, upload)),
            Ok(Removal::Complete) => deleted += 1,
            Ok(Removal::None) => {}
            // A damaged file must not keep the others from expiring.
            Err(StoreError::Damaged(cause)) => {
                tracing::error!(%account, upload, %cause, "an expired file cannot be deleted");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(deleted)
}

/// Unfinished uploads that have expired, and files that no template uses.
fn expired(dialect: Dialect, cutoffs: RemovalCutoffs) -> Read<(AccountId, i64)> {
    let unfinished = dialect.either(" INDEXED BY upload_unfinished", "");
    let unused = dialect.either(" INDEXED BY upload_unused", "");
    let statement = format!(
        "SELECT account_id, number FROM upload{unfinished} WHERE received < length AND \
         created_at <= $1 UNION ALL SELECT account_id, number FROM upload{unused} WHERE \
         used_at IS NULL AND finished_at IS NOT NULL AND finished_at <= $2 LIMIT {MAX_WRITES}"
    );
    let values = values![cutoffs.unfinished, cutoffs.unused];
    Read::new(ReadPath::Background, statement, values, |row| {
        Ok((row.account_id("account_id")?, row.value("number")?))
    })
}
