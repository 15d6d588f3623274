//! Files that are sent piece by piece, as SQL.

use galley_domain::id::AccountId;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{
    SqliteStore,
    columns::{column, key, millis, number},
    media,
    writer::Batch,
};
use crate::{
    AppendOutcome, BeginUploadOutcome, MAX_OPEN_UPLOADS, MAX_UPLOAD_BYTES, NewUpload, StoreError,
    UPLOAD_CHUNK_BYTES, UPLOAD_LIFETIME_HOURS, Upload, encoding::charge, media_type,
};

/// How many pieces may wait for the writer at once: all of them may stand in one transaction.
pub(super) const AT_ONCE: usize = 4;

/// A chunk that is shorter is made longer by the next piece, so that an upload in many small pieces
/// has few chunks nevertheless.
const SHORT_CHUNK: usize = 16 * 1_024;

/// Some bytes of an upload.
pub(super) struct Piece {
    pub(super) account: AccountId,
    pub(super) id: String,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    /// How many will follow them.
    pub(super) later: u64,
    /// How many bytes all files of the account may take.
    pub(super) room: u64,
    pub(super) at: Timestamp,
}

impl SqliteStore {
    /// Each piece is a write of its own, so that others have their turn between them.
    pub(super) async fn append_piece_by_piece(
        &self,
        mut piece: Piece,
        mut bytes: &[u8],
    ) -> Result<AppendOutcome, StoreError> {
        let (account, id, room, at) = (piece.account, piece.id.clone(), piece.room, piece.at);
        let mut offset = piece.offset;
        loop {
            let (now, later) = bytes.split_at(bytes.len().min(UPLOAD_CHUNK_BYTES));
            (piece.bytes, piece.later) = (now.to_vec(), later.len() as u64);
            let turn = self.turns.acquire().await;
            let done = self.writer.write(move |batch| append(batch, &piece)).await?;
            drop(turn);
            if let AppendOutcome::OtherType { .. } = done {
                self.forget_unwanted(account, &id, at).await?;
            }
            if later.is_empty() || !matches!(done, AppendOutcome::Received(_)) {
                return Ok(done);
            }
            (offset, bytes) = (offset.saturating_add(now.len() as u64), later);
            let id = id.clone();
            piece = Piece { account, id, offset, bytes: Vec::new(), later: 0, room, at };
        }
    }
}

/// Unfinished uploads of this moment or earlier are over.
pub(super) fn over(at: Timestamp) -> i64 {
    millis(
        at.saturating_sub(SignedDuration::from_hours(UPLOAD_LIFETIME_HOURS))
            .unwrap_or(Timestamp::MIN),
    )
}

/// What all files of an account take of its room.
fn kept(connection: &Connection, account: AccountId) -> Result<u64, StoreError> {
    let mut query = connection.prepare_cached("SELECT media_bytes FROM account WHERE id = ?1")?;
    let mut rows = query.query([key(account.get())])?;
    rows.next()?.map_or(Ok(0), |row| number(row, 0))
}

/// An account's files take more of its room, or less.
pub(super) fn recount(
    connection: &Connection,
    account: i64,
    before: u64,
    now: u64,
) -> Result<(), StoreError> {
    connection
        .prepare_cached("UPDATE account SET media_bytes = media_bytes - ?2 + ?3 WHERE id = ?1")?
        .execute([account, key(before), key(now)])?;
    Ok(())
}

pub(super) fn begin(
    batch: &mut Batch<'_>,
    new: &NewUpload,
) -> Result<BeginUploadOutcome, StoreError> {
    if !(1..=MAX_UPLOAD_BYTES).contains(&new.length) {
        return Ok(BeginUploadOutcome::WrongLength);
    }
    let connection = batch.connection();
    let mut unfinished = connection.prepare_cached(
        "SELECT count(*) FROM upload INDEXED BY upload_unfinished WHERE account_id = ?1 AND \
         created_at > ?2 AND received < length",
    )?;
    let values = [key(new.account.get()), over(new.at)];
    let unfinished: u32 = unfinished.query_row(values, |row| row.get(0))?;
    if unfinished >= MAX_OPEN_UPLOADS {
        return Ok(BeginUploadOutcome::TooMany);
    }
    let kept = kept(connection, new.account)?;
    if kept.saturating_add(charge(new.length, &new.file_name)) > new.room {
        return Ok(BeginUploadOutcome::NoRoom(kept));
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
    if begun == 0 {
        return Ok(BeginUploadOutcome::Taken);
    }
    recount(connection, key(new.account.get()), 0, charge(0, &new.file_name))?;
    Ok(BeginUploadOutcome::Begun)
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
pub(super) fn find(
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
fn append(batch: &mut Batch<'_>, piece: &Piece) -> Result<AppendOutcome, StoreError> {
    let connection = batch.connection();
    let found = find(connection, piece.account, &piece.id, piece.at)?;
    let Some((upload, before)) = found else { return Ok(AppendOutcome::NoUpload) };
    if piece.offset != before.received {
        return Ok(AppendOutcome::Misplaced(before.received));
    }
    let received = before.received + piece.bytes.len() as u64;
    if received + piece.later > before.length {
        return Ok(AppendOutcome::TooLong(before.length));
    }
    if let (true, Some(handle)) = (piece.bytes.is_empty(), before.handle) {
        return Ok(AppendOutcome::Complete { handle, sniffed: before.sniffed });
    }
    let (held, holds) =
        (charge(before.received, &before.file_name), charge(received, &before.file_name));
    let kept = kept(connection, piece.account)?;
    if kept.saturating_sub(held).saturating_add(holds) > piece.room && holds > held {
        return Ok(AppendOutcome::NoRoom(kept));
    }
    let whole = received == before.length;
    let sniffed =
        if whole { media_type::sniff(&head(connection, upload, &piece.bytes)?) } else { None };
    if whole && media_type::contradicts(sniffed, &before.file_type) {
        let (announced, shown) = (before.file_type, sniffed.map(str::to_owned));
        return Ok(AppendOutcome::OtherType { announced, shown });
    }
    if piece.bytes.is_empty() {
        return Ok(AppendOutcome::Received(received));
    }
    write(connection, upload, piece)?;
    connection
        .prepare_cached(
            "UPDATE upload SET received = ?2, sniffed = ?3, finished_at = ?4 WHERE number = ?1",
        )?
        .execute(params![upload, key(received), sniffed, whole.then_some(millis(piece.at)),])?;
    recount(connection, key(piece.account.get()), held, holds)?;
    if !whole {
        return Ok(AppendOutcome::Received(received));
    }
    let handle = media::handle(connection, upload)?;
    Ok(AppendOutcome::Complete { handle, sniffed: sniffed.map(str::to_owned) })
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
        length < SHORT_CHUNK && length + piece.bytes.len() <= UPLOAD_CHUNK_BYTES
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

/// As many of the first bytes as tell the type: those that are there, and then these.
fn head(connection: &Connection, upload: i64, behind: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT substr(bytes, 1, ?2) FROM upload_chunk WHERE upload = ?1 ORDER BY place",
    )?;
    let mut rows = query.query([upload, i64::try_from(media_type::ENOUGH).unwrap_or(i64::MAX)])?;
    let mut head = Vec::new();
    while head.len() < media_type::ENOUGH
        && let Some(row) = rows.next()?
    {
        head.extend(row.get::<_, Vec<u8>>(0)?);
    }
    head.extend(behind.iter().take(media_type::ENOUGH));
    Ok(head)
}
