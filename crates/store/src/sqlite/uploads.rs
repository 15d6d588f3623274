//! Files that are sent piece by piece, as SQL.

use galley_domain::id::AccountId;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{
    SqliteStore,
    columns::{column, key, millis, number},
    writer::Batch,
};
use crate::{
    Appended, LARGEST_UPLOAD, MOST_UPLOADS, Media, NewUpload, StoreError, UPLOAD_HOURS,
    UPLOAD_PIECE, Upload, UploadCreation, sniff,
};

/// How many pieces may wait for the writer at once: all of them may stand in one transaction.
pub(super) const AT_ONCE: usize = 4;

/// How many steps one sweep takes at most.
const MOST_STEPS: usize = 256;

/// How many chunks one step forgets.
const CHUNKS: i64 = 16;

/// A chunk that is shorter is made longer by the next piece, so that an upload in many small pieces
/// has few chunks nevertheless.
const SHORT_CHUNK: usize = 16 * 1_024;

/// Some bytes of an upload.
struct Piece {
    account: AccountId,
    id: String,
    offset: u64,
    bytes: Vec<u8>,
    /// How many will follow them.
    later: u64,
    at: Timestamp,
}

impl SqliteStore {
    /// Each piece is a write of its own, so that others have their turn between them.
    pub(super) async fn append_piece_by_piece(
        &self,
        account: AccountId,
        id: &str,
        mut offset: u64,
        mut bytes: &[u8],
        at: Timestamp,
    ) -> Result<Appended, StoreError> {
        loop {
            let (now, later) = bytes.split_at(bytes.len().min(UPLOAD_PIECE));
            let piece = Piece {
                account,
                id: id.to_owned(),
                offset,
                bytes: now.to_vec(),
                later: later.len() as u64,
                at,
            };
            let turn = self.turns.acquire().await;
            let done = self.writer.write(move |batch| append(batch, &piece)).await?;
            drop(turn);
            if later.is_empty() || !matches!(done, Appended::Received(_)) {
                return Ok(done);
            }
            (offset, bytes) = (offset.saturating_add(now.len() as u64), later);
        }
    }

    /// Forgets uploads that were not finished in time, a bit at a time. Answers how many.
    pub(super) async fn forget_uploads(&self, at: Timestamp) -> Result<usize, StoreError> {
        let mut forgotten = 0;
        for _ in 0..MOST_STEPS {
            let Some(old) = self.readers.read(|connection| old(connection, at))? else { break };
            let gone = self.writer.write(move |batch| forget(batch, old, at)).await?;
            forgotten += usize::from(gone);
        }
        Ok(forgotten)
    }
}

/// Unfinished uploads of this moment or earlier are over.
fn over(at: Timestamp) -> i64 {
    millis(at.saturating_sub(SignedDuration::from_hours(UPLOAD_HOURS)).unwrap_or(Timestamp::MIN))
}

pub(super) fn begin(batch: &mut Batch<'_>, new: &NewUpload) -> Result<UploadCreation, StoreError> {
    if !(1..=LARGEST_UPLOAD).contains(&new.length) {
        return Ok(UploadCreation::WrongLength);
    }
    let connection = batch.connection();
    let mut unfinished = connection.prepare_cached(
        "SELECT count(*) FROM upload INDEXED BY upload_unfinished WHERE account_id = ?1 AND \
         created_at > ?2 AND received < length",
    )?;
    let values = [key(new.account.get()), over(new.at)];
    let unfinished: u32 = unfinished.query_row(values, |row| row.get(0))?;
    if unfinished >= MOST_UPLOADS {
        return Ok(UploadCreation::TooMany);
    }
    let mut kept = connection.prepare_cached(
        "SELECT coalesce(sum(length), 0) FROM upload INDEXED BY upload_of_account \
         WHERE account_id = ?1",
    )?;
    let kept = kept.query_row([key(new.account.get())], |row| row.get::<_, i64>(0))?.unsigned_abs();
    if kept + new.length > new.room {
        return Ok(UploadCreation::NoRoom(kept));
    }
    let begun = connection
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
    Ok(if begun == 0 { UploadCreation::Taken } else { UploadCreation::Begun })
}

/// An upload of an account whose time is not over.
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

/// The upload, with the number that its chunks have.
fn find(
    connection: &Connection,
    account: AccountId,
    id: &str,
    at: Timestamp,
) -> Result<Option<(i64, Upload)>, StoreError> {
    let mut query = connection.prepare_cached(FIND)?;
    let mut rows = query.query(params![id, key(account.get()), over(at)])?;
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
        created_at: column(row, "created_at", |at: i64| Timestamp::from_millisecond(at).ok())?,
    })
}

/// Adds a piece; refuses it if those that follow would not fit.
fn append(batch: &mut Batch<'_>, piece: &Piece) -> Result<Appended, StoreError> {
    let connection = batch.connection();
    let found = find(connection, piece.account, &piece.id, piece.at)?;
    let Some((upload, before)) = found else { return Ok(Appended::NoUpload) };
    if piece.offset != before.received {
        return Ok(Appended::Misplaced(before.received));
    }
    let received = before.received + piece.bytes.len() as u64;
    if received + piece.later > before.length {
        return Ok(Appended::TooLong(before.length));
    }
    if !piece.bytes.is_empty() {
        write(connection, upload, piece)?;
        connection
            .prepare_cached("UPDATE upload SET received = ?2 WHERE number = ?1")?
            .execute([upload, key(received)])?;
        if received == before.length {
            connection
                .prepare_cached("UPDATE upload SET sniffed = ?2 WHERE number = ?1")?
                .execute(params![upload, sniff::sniff(&head(connection, upload)?)])?;
        }
    }
    let after = find(connection, piece.account, &piece.id, piece.at)?.map(|(_, upload)| upload);
    Ok(match after {
        Some(Upload { handle: Some(handle), sniffed, .. }) => {
            Appended::Complete { handle, sniffed }
        }
        _ => Appended::Received(received),
    })
}

/// Writes the bytes into a chunk of their own, or behind the last one.
fn write(connection: &Connection, upload: i64, piece: &Piece) -> Result<(), StoreError> {
    let last: Option<(i64, u32)> = connection
        .prepare_cached(
            "SELECT place, length(bytes) FROM upload_chunk WHERE upload = ?1 \
             ORDER BY place DESC LIMIT 1",
        )?
        .query_row([upload], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let short = last.filter(|(_, length)| {
        let length = usize::try_from(*length).unwrap_or(usize::MAX);
        length < SHORT_CHUNK && length + piece.bytes.len() <= UPLOAD_PIECE
    });
    let Some((place, _)) = short else {
        connection
            .prepare_cached("INSERT INTO upload_chunk VALUES (?1, ?2, ?3)")?
            .execute(params![upload, key(piece.offset), piece.bytes])?;
        return Ok(());
    };
    let mut bytes: Vec<u8> = connection
        .prepare_cached("SELECT bytes FROM upload_chunk WHERE upload = ?1 AND place = ?2")?
        .query_row([upload, place], |row| row.get(0))?;
    bytes.extend_from_slice(&piece.bytes);
    connection
        .prepare_cached("UPDATE upload_chunk SET bytes = ?3 WHERE upload = ?1 AND place = ?2")?
        .execute(params![upload, place, bytes])?;
    Ok(())
}

/// As many of the first bytes as tell the type.
fn head(connection: &Connection, upload: i64) -> Result<Vec<u8>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT substr(bytes, 1, ?2) FROM upload_chunk WHERE upload = ?1 ORDER BY place",
    )?;
    let mut rows = query.query([upload, i64::try_from(sniff::ENOUGH).unwrap_or(i64::MAX)])?;
    let mut head = Vec::new();
    while head.len() < sniff::ENOUGH
        && let Some(row) = rows.next()?
    {
        head.extend(row.get::<_, Vec<u8>>(0)?);
    }
    Ok(head)
}

/// The whole file that has the handle.
pub(super) fn media(connection: &Connection, handle: &str) -> Result<Option<Media>, StoreError> {
    let moment = connection.unchecked_transaction()?;
    let mut query = moment.prepare_cached(
        "SELECT number, length, sniffed FROM upload WHERE handle = ?1 AND received = length",
    )?;
    let mut rows = query.query([handle])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let sniffed: Option<String> = row.get("sniffed")?;
    let length = usize::try_from(number(row, "length")?).unwrap_or(0);
    let mut bytes = Vec::with_capacity(length);
    let mut chunks =
        moment.prepare_cached("SELECT bytes FROM upload_chunk WHERE upload = ?1 ORDER BY place")?;
    let mut rows = chunks.query([row.get::<_, i64>("number")?])?;
    while let Some(row) = rows.next()? {
        bytes.extend_from_slice(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?);
    }
    let file_type = sniffed.unwrap_or_else(|| "application/octet-stream".to_owned());
    Ok(Some(Media { file_type, bytes }))
}

/// An upload whose time is over and that is not finished.
fn old(connection: &Connection, at: Timestamp) -> Result<Option<i64>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT number FROM upload INDEXED BY upload_unfinished WHERE created_at <= ?1 AND \
         received < length LIMIT 1",
    )?;
    Ok(query.query_row([over(at)], |row| row.get(0)).optional()?)
}

/// Forgets some of an upload, from its end, so that what is there stays one whole; answers whether
/// nothing is left of it.
fn forget(batch: &mut Batch<'_>, upload: i64, at: Timestamp) -> Result<bool, StoreError> {
    let connection = batch.connection();
    let still = "SELECT 1 FROM upload WHERE number = ?1 AND created_at <= ?2 AND received < length";
    if !connection.prepare_cached(still)?.exists([upload, over(at)])? {
        return Ok(false);
    }
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
    if left > 0 {
        connection
            .prepare_cached("UPDATE upload SET received = ?2 WHERE number = ?1")?
            .execute([upload, left])?;
        return Ok(false);
    }
    connection.prepare_cached("DELETE FROM upload WHERE number = ?1")?.execute([upload])?;
    Ok(true)
}
