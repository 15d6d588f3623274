//! Files that are sent piece by piece, as SQL. Whoever changes one locks its account first: what
//! the files of an account take is written there.

use galley_domain::id::AccountId;
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::Row;

use super::{
    PostgresStore,
    columns::{at as moment_at, key, millis, number, plain, sought},
    pool::{Links, Values},
    transaction::{Transaction, transact},
};
use crate::{
    AppendOutcome, BeginUploadOutcome, MAX_OPEN_UPLOADS, MAX_UPLOAD_BYTES, NewUpload, StoreError,
    UPLOAD_CHUNK_BYTES, UPLOAD_LIFETIME_HOURS, Upload, encoding::charge, media_type,
};

/// A chunk that is shorter is made longer by the next piece, so that an upload in many small pieces
/// has few chunks nevertheless.
const SHORT_CHUNK: usize = 16 * 1_024;

/// Some bytes of an upload.
#[derive(Clone, Copy)]
pub(super) struct Piece<'b> {
    pub(super) account: AccountId,
    pub(super) id: &'b str,
    pub(super) offset: u64,
    pub(super) bytes: &'b [u8],
    /// How many will follow them.
    pub(super) later: u64,
    /// How many bytes all files of the account may take.
    pub(super) room: u64,
    pub(super) at: Timestamp,
}

impl PostgresStore {
    /// Each piece is a transaction of its own, so that others have their turn between them.
    pub(super) async fn append_piece_by_piece(
        &self,
        whole: Piece<'_>,
    ) -> Result<AppendOutcome, StoreError> {
        let (mut offset, mut bytes) = (whole.offset, whole.bytes);
        loop {
            let (now, rest) = bytes.split_at(bytes.len().min(UPLOAD_CHUNK_BYTES));
            let piece = Piece { offset, bytes: now, later: rest.len() as u64, ..whole };
            let done: Result<AppendOutcome, StoreError> = transact!(self, tx => append(tx, &piece));
            let done = done?;
            if let AppendOutcome::OtherType { .. } = done {
                self.forget_unwanted(whole.account, whole.id, whole.at).await?;
            }
            if rest.is_empty() || !matches!(done, AppendOutcome::Received(_)) {
                return Ok(done);
            }
            (offset, bytes) = (offset.saturating_add(now.len() as u64), rest);
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
async fn kept(transaction: &Transaction, account: AccountId) -> Result<u64, StoreError> {
    let statement = "SELECT media_bytes FROM account WHERE id = $1";
    let row = transaction.query_one(statement, &[&key(account.get())]).await?;
    row.map_or(Ok(0), |row| number(&row, 0))
}

/// An account's files take more of its room, or less.
pub(super) async fn recount(
    transaction: &Transaction,
    account: i64,
    before: u64,
    now: u64,
) -> Result<(), StoreError> {
    let update = "UPDATE account SET media_bytes = media_bytes - $2 + $3 WHERE id = $1";
    transaction.execute(update, &[&account, &key(before), &key(now)]).await.map(drop)
}

pub(super) async fn begin(
    transaction: &mut Transaction,
    new: &NewUpload,
) -> Result<BeginUploadOutcome, StoreError> {
    if !(1..=MAX_UPLOAD_BYTES).contains(&new.length) {
        return Ok(BeginUploadOutcome::WrongLength);
    }
    transaction.lock(new.account).await?;
    let account = key(new.account.get());
    let unfinished = "SELECT count(*) FROM upload WHERE account_id = $1 AND created_at > $2 AND \
                      received < length";
    let row = transaction.query_one(unfinished, &[&account, &over(new.at)]).await?;
    if row.map_or(Ok(0), |row| number(&row, 0))? >= u64::from(MAX_OPEN_UPLOADS) {
        return Ok(BeginUploadOutcome::TooMany);
    }
    let kept = kept(transaction, new.account).await?;
    if kept.saturating_add(charge(new.length, &new.file_name)) > new.room {
        return Ok(BeginUploadOutcome::NoRoom(kept));
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
        return Ok(BeginUploadOutcome::Taken);
    }
    recount(transaction, account, 0, charge(0, &new.file_name)).await?;
    Ok(BeginUploadOutcome::Begun)
}

/// An upload of an account whose time is not over.
const FIND: &str = "SELECT number, file_name, file_type, length, received, handle, sniffed, \
     created_at FROM upload WHERE id = $1 AND account_id = $2 AND \
     (received = length OR created_at > $3)";

pub(super) async fn one(
    links: &Links,
    account: AccountId,
    id: &str,
    at: Timestamp,
) -> Result<Option<Upload>, StoreError> {
    let row = links.read_one(FIND, &[&sought(id), &key(account.get()), &over(at)]).await?;
    row.as_ref().map(upload).transpose()
}

/// The upload, with the number that its chunks have.
pub(super) async fn find(
    transaction: &Transaction,
    account: AccountId,
    id: &str,
    at: Timestamp,
) -> Result<Option<(i64, Upload)>, StoreError> {
    let row = transaction.query_one(FIND, &[&sought(id), &key(account.get()), &over(at)]).await?;
    row.map(|row| Ok((plain(&row, "number")?, upload(&row)?))).transpose()
}

fn upload(row: &Row) -> Result<Upload, StoreError> {
    let (length, received) = (number(row, "length")?, number(row, "received")?);
    Ok(Upload {
        file_name: plain(row, "file_name")?,
        file_type: plain(row, "file_type")?,
        length,
        received,
        handle: Some(plain(row, "handle")?).filter(|_| received == length),
        sniffed: plain(row, "sniffed")?,
        created_at: moment_at(row, "created_at")?,
    })
}

/// Adds a piece; refuses it if those that follow would not fit.
async fn append(
    transaction: &mut Transaction,
    piece: &Piece<'_>,
) -> Result<AppendOutcome, StoreError> {
    transaction.lock(piece.account).await?;
    let found = find(transaction, piece.account, piece.id, piece.at).await?;
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
    let kept = kept(transaction, piece.account).await?;
    if kept.saturating_sub(held).saturating_add(holds) > piece.room && holds > held {
        return Ok(AppendOutcome::NoRoom(kept));
    }
    let whole = received == before.length;
    let sniffed = if whole {
        media_type::sniff(&head(transaction, upload, piece.bytes).await?)
    } else {
        None
    };
    if whole && media_type::contradicts(sniffed, &before.file_type) {
        let (announced, shown) = (before.file_type, sniffed.map(str::to_owned));
        return Ok(AppendOutcome::OtherType { announced, shown });
    }
    if piece.bytes.is_empty() {
        return Ok(AppendOutcome::Received(received));
    }
    write(transaction, upload, piece).await?;
    let update = "UPDATE upload SET received = $2, sniffed = $3, finished_at = $4 \
                  WHERE number = $1 RETURNING handle";
    let finished_at = whole.then_some(millis(piece.at));
    let values: Values<'_> = &[&upload, &key(received), &sniffed, &finished_at];
    let row = transaction.query_one(update, values).await?;
    recount(transaction, key(piece.account.get()), held, holds).await?;
    match row.filter(|_| whole) {
        Some(row) => Ok(AppendOutcome::Complete {
            handle: plain(&row, 0)?,
            sniffed: sniffed.map(str::to_owned),
        }),
        None => Ok(AppendOutcome::Received(received)),
    }
}

/// Writes the bytes into a chunk of their own, or behind the last one.
async fn write(
    transaction: &Transaction,
    upload: i64,
    piece: &Piece<'_>,
) -> Result<(), StoreError> {
    let last = "SELECT place, length(bytes) AS length FROM upload_chunk WHERE upload = $1 \
                ORDER BY place DESC LIMIT 1";
    if let Some(row) = transaction.query_one(last, &[&upload]).await? {
        let length = usize::try_from(plain::<i32>(&row, "length")?).unwrap_or(usize::MAX);
        if length < SHORT_CHUNK && length + piece.bytes.len() <= UPLOAD_CHUNK_BYTES {
            let place: i64 = plain(&row, "place")?;
            let update = "UPDATE upload_chunk SET bytes = bytes || $3 \
                          WHERE upload = $1 AND place = $2";
            let values: Values<'_> = &[&upload, &place, &piece.bytes];
            return transaction.execute(update, values).await.map(drop);
        }
    }
    let insert = "INSERT INTO upload_chunk (upload, place, bytes) VALUES ($1, $2, $3)";
    let values: Values<'_> = &[&upload, &key(piece.offset), &piece.bytes];
    transaction.execute(insert, values).await.map(drop)
}

/// As many of the first bytes as tell the type: those that are there, and then these.
async fn head(
    transaction: &Transaction,
    upload: i64,
    behind: &[u8],
) -> Result<Vec<u8>, StoreError> {
    let enough = i32::try_from(media_type::ENOUGH).unwrap_or(i32::MAX);
    let first = "SELECT substr(bytes, 1, $2) FROM upload_chunk WHERE upload = $1 ORDER BY place \
                 LIMIT 64";
    let mut head: Vec<u8> = Vec::new();
    for row in transaction.query(first, &[&upload, &enough]).await? {
        if head.len() >= media_type::ENOUGH {
            break;
        }
        head.extend(plain::<Vec<u8>>(&row, 0)?);
    }
    head.extend(behind.iter().take(media_type::ENOUGH));
    Ok(head)
}
