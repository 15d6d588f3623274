//! Files that have been sent whole, and forgetting files, as SQL.

use galley_domain::id::AccountId;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{
    SqliteStore,
    columns::{key, millis, number},
    uploads::{find, over, recount},
    writer::Batch,
};
use crate::{Media, StoreError, UNUSED_MEDIA_DAYS, encoding::charge};

/// How many steps one sweep takes at most.
const MOST_STEPS: usize = 256;

/// How many chunks one step forgets.
const CHUNKS: i64 = 16;

/// How much longer than it can be named a file is kept: whoever has just looked at it may still be
/// about to name it.
const GRACE: SignedDuration = SignedDuration::from_hours(1);

impl SqliteStore {
    /// Forgets files whose time is over, a bit at a time. Answers how many.
    pub(super) async fn forget_uploads(&self, at: Timestamp) -> Result<usize, StoreError> {
        let mut forgotten = 0;
        for _ in 0..MOST_STEPS {
            let Some(old) = self.readers.read(|connection| old(connection, at))? else { break };
            let step = self.writer.write(move |batch| forget(batch, old, Ground::Over(at)));
            forgotten += usize::from(step.await? == Step::Gone);
        }
        Ok(forgotten)
    }

    /// Forgets an upload that no template has named, a bit at a time. Answers whether there was one.
    pub(super) async fn forget_unwanted(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let found = self.snapshots.read(|connection| find(connection, account, id, at))?;
        let Some((upload, _)) = found else { return Ok(false) };
        loop {
            let step = self.writer.write(move |batch| forget(batch, upload, Ground::Unwanted));
            match step.await? {
                Step::Some => {}
                Step::Gone => return Ok(true),
                Step::Nothing => return Ok(false),
            }
        }
    }
}

/// Files that no template named until this moment are not to be named any more.
fn unused(at: Timestamp) -> Timestamp {
    at.saturating_sub(SignedDuration::from_hours(24 * UNUSED_MEDIA_DAYS)).unwrap_or(Timestamp::MIN)
}

/// And those of this moment can be forgotten.
fn long_unused(at: Timestamp) -> i64 {
    millis(unused(at).saturating_sub(GRACE).unwrap_or(Timestamp::MIN))
}

/// A whole file that a template of the account may name.
pub(super) fn sample(
    connection: &Connection,
    account: AccountId,
    handle: &str,
    at: Timestamp,
) -> Result<Option<Media>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT sniffed, length, file_name FROM upload WHERE handle = ?1 AND account_id = ?2 AND \
         received = length AND (used_at IS NOT NULL OR finished_at > ?3)",
    )?;
    let mut rows = query.query(params![handle, key(account.get()), millis(unused(at))])?;
    rows.next()?.map(media).transpose()
}

/// A whole file, for anybody.
pub(super) fn public(connection: &Connection, handle: &str) -> Result<Option<Media>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT sniffed, length, file_name FROM upload JOIN account ON account.id = account_id \
         WHERE handle = ?1 AND received = length AND disabled_at IS NULL",
    )?;
    let mut rows = query.query([handle])?;
    rows.next()?.map(media).transpose()
}

fn media(row: &Row<'_>) -> Result<Media, StoreError> {
    let sniffed: Option<String> = row.get(0)?;
    let file_type = sniffed.unwrap_or_else(|| "application/octet-stream".to_owned());
    Ok(Media { file_type, file_name: row.get(2)?, length: number(row, 1)? })
}

/// What is left of the chunk that holds the byte at that place.
pub(super) fn chunk(
    connection: &Connection,
    handle: &str,
    place: u64,
) -> Result<Vec<u8>, StoreError> {
    let place = i64::try_from(place).unwrap_or(i64::MAX);
    let bytes: Option<Vec<u8>> = connection
        .prepare_cached(
            "SELECT substr(bytes, ?2 - place + 1) FROM upload_chunk WHERE upload = \
             (SELECT number FROM upload WHERE handle = ?1 AND received = length) AND place <= ?2 \
             ORDER BY place DESC LIMIT 1",
        )?
        .query_row(params![handle, place], |row| row.get(0))
        .optional()?;
    Ok(bytes.unwrap_or_default())
}

/// What an upload is found by, for its sender when all of it is there.
pub(super) fn handle(connection: &Connection, upload: i64) -> Result<String, StoreError> {
    let mut query = connection.prepare_cached("SELECT handle FROM upload WHERE number = ?1")?;
    Ok(query.query_row([upload], |row| row.get(0))?)
}

/// A template of the account names these files: from now on they are kept.
pub(super) fn note_use<'n>(
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

/// A file whose time is over: it was not finished, or no template has named it.
fn old(connection: &Connection, at: Timestamp) -> Result<Option<i64>, StoreError> {
    let mut unfinished = connection.prepare_cached(
        "SELECT number FROM upload INDEXED BY upload_unfinished WHERE created_at <= ?1 AND \
         received < length LIMIT 1",
    )?;
    let found = unfinished.query_row([over(at)], |row| row.get(0)).optional()?;
    if found.is_some() {
        return Ok(found);
    }
    let mut unused = connection.prepare_cached(
        "SELECT number FROM upload INDEXED BY upload_unused WHERE used_at IS NULL AND \
         finished_at IS NOT NULL AND finished_at <= ?1 LIMIT 1",
    )?;
    Ok(unused.query_row([long_unused(at)], |row| row.get(0)).optional()?)
}

/// Why a file is to be forgotten.
#[derive(Clone, Copy)]
enum Ground {
    /// Its time is over.
    Over(Timestamp),
    /// No template has named it, and nobody wants it.
    Unwanted,
}

/// What a step has forgotten.
#[derive(PartialEq, Eq)]
enum Step {
    /// Some of the file.
    Some,
    /// The rest of it.
    Gone,
    /// The file is to stay, or is not there.
    Nothing,
}

/// Forgets some of a file, from its end, so that what is there stays one whole. From the first step
/// on it is unfinished.
fn forget(batch: &mut Batch<'_>, upload: i64, ground: Ground) -> Result<Step, StoreError> {
    let connection = batch.connection();
    let (over, unused) = match ground {
        Ground::Over(at) => (over(at), long_unused(at)),
        Ground::Unwanted => (i64::MAX, i64::MAX),
    };
    let found: Option<(i64, String, i64)> = connection
        .prepare_cached(
            "SELECT account_id, file_name, received FROM upload WHERE number = ?1 AND \
             CASE WHEN received < length THEN created_at <= ?2 \
             ELSE used_at IS NULL AND finished_at <= ?3 END",
        )?
        .query_row([upload, over, unused], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((account, name, received)) = found else { return Ok(Step::Nothing) };
    connection
        .prepare_cached(
            "DELETE FROM upload_chunk WHERE upload = ?1 AND place >= coalesce((SELECT place FROM \
             upload_chunk WHERE upload = ?1 ORDER BY place DESC LIMIT 1 OFFSET ?2), 0)",
        )?
        .execute([upload, CHUNKS - 1])?;
    let left: i64 = connection
        .prepare_cached(
            "SELECT coalesce(max(place + length(bytes)), 0) FROM upload_chunk WHERE upload = ?1",
        )?
        .query_row([upload], |row| row.get(0))?;
    let held = charge(received.unsigned_abs(), &name);
    if left > 0 {
        connection
            .prepare_cached(
                "UPDATE upload SET received = ?2, sniffed = NULL, finished_at = NULL \
                 WHERE number = ?1",
            )?
            .execute([upload, left])?;
        recount(connection, account, held, charge(left.unsigned_abs(), &name))?;
        return Ok(Step::Some);
    }
    connection.prepare_cached("DELETE FROM upload WHERE number = ?1")?.execute([upload])?;
    recount(connection, account, held, 0)?;
    Ok(Step::Gone)
}
