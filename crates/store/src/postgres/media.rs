//! Files that have been sent whole, and forgetting files, as SQL.

use galley_domain::id::AccountId;
use jiff::{SignedDuration, Timestamp};
use tokio_postgres::Row;

use super::{
    PostgresStore,
    columns::{account_id, key, millis, number, plain, sought},
    pool::{Link, Links, Values},
    transaction::{Transaction, transact},
    uploads::{find, over, recount},
};
use crate::{Media, StoreError, UNUSED_MEDIA_DAYS, encoding::charge};

/// How many files one sweep forgets at most.
const MOST_FORGOTTEN: usize = 256;

/// How much longer than it can be named a file is kept: whoever has just looked at it may still be
/// about to name it.
const GRACE: SignedDuration = SignedDuration::from_hours(1);

impl PostgresStore {
    /// Forgets files whose time is over. Answers how many.
    pub(super) async fn forget_uploads(&self, at: Timestamp) -> Result<usize, StoreError> {
        let (mut forgotten, ground) = (0, Ground::Over(at));
        for (upload, account) in old(&self.links, at).await? {
            let gone: Result<bool, StoreError> =
                transact!(self, tx => forget(tx, account, upload, ground));
            forgotten += usize::from(gone?);
        }
        Ok(forgotten)
    }

    /// Forgets an upload that no template has named. Answers whether there was one.
    pub(super) async fn forget_unwanted(
        &self,
        account: AccountId,
        id: &str,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let found: Result<_, StoreError> = transact!(self, tx => find(tx, account, id, at));
        let Some((upload, _)) = found? else { return Ok(false) };
        transact!(self, tx => forget(tx, account, upload, Ground::Unwanted))
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
pub(super) async fn sample(
    links: &Links,
    account: AccountId,
    handle: &str,
    at: Timestamp,
) -> Result<Option<Media>, StoreError> {
    let statement = "SELECT sniffed, length, file_name FROM upload WHERE handle = $1 AND \
                     account_id = $2 AND received = length AND (used_at IS NOT NULL OR finished_at > $3)";
    let values: Values<'_> = &[&sought(handle), &key(account.get()), &millis(unused(at))];
    let row = links.read_one(statement, values).await?;
    row.as_ref().map(media).transpose()
}

/// A whole file, for anybody.
pub(super) async fn public(links: &Links, handle: &str) -> Result<Option<Media>, StoreError> {
    let statement = "SELECT sniffed, length, file_name FROM upload JOIN account ON \
                     account.id = account_id WHERE handle = $1 AND received = length AND disabled_at IS NULL";
    let row = links.read_one(statement, &[&sought(handle)]).await?;
    row.as_ref().map(media).transpose()
}

fn media(row: &Row) -> Result<Media, StoreError> {
    let sniffed: Option<String> = plain(row, "sniffed")?;
    let file_type = sniffed.unwrap_or_else(|| "application/octet-stream".to_owned());
    let (file_name, length) = (plain(row, "file_name")?, number(row, "length")?);
    Ok(Media { file_type, file_name, length })
}

/// What is left of the chunk that holds the byte at that place.
pub(super) async fn chunk(links: &Links, handle: &str, place: u64) -> Result<Vec<u8>, StoreError> {
    let place = i64::try_from(place).unwrap_or(i64::MAX);
    let statement = "SELECT substr(bytes, ($2 - place + 1)::int) FROM upload_chunk WHERE upload = \
                     (SELECT number FROM upload WHERE handle = $1 AND received = length) AND \
                     place <= $2 AND place + length(bytes) > $2 ORDER BY place DESC LIMIT 1";
    let link = links.own_for_long().await?;
    let rows = link.query(statement, &[&sought(handle), &place]).await?;
    rows.first().map_or(Ok(Vec::new()), |row| plain(row, 0))
}

/// A template of the account names these files: from now on they are kept.
pub(super) async fn note_use<'n>(
    link: &Link,
    account: AccountId,
    handles: impl Iterator<Item = &'n str>,
    at: Timestamp,
) -> Result<(), StoreError> {
    let handles: Vec<&str> = handles.collect();
    if handles.is_empty() {
        return Ok(());
    }
    let update = "UPDATE upload SET used_at = $3 WHERE handle = ANY($1) AND account_id = $2 AND \
                  received = length AND used_at IS NULL";
    link.execute(update, &[&handles, &key(account.get()), &millis(at)]).await.map(drop)
}

/// Files whose time is over: they were not finished, or no template has named them.
async fn old(links: &Links, at: Timestamp) -> Result<Vec<(i64, AccountId)>, StoreError> {
    let statement = "SELECT number, account_id FROM upload WHERE received < length AND \
                     created_at <= $1 UNION ALL SELECT number, account_id FROM upload WHERE \
                     used_at IS NULL AND finished_at IS NOT NULL AND finished_at <= $2 LIMIT $3";
    let most = i64::try_from(MOST_FORGOTTEN).unwrap_or(i64::MAX);
    let link = links.own_for_long().await?;
    let rows = link.query(statement, &[&over(at), &long_unused(at), &most]).await?;
    rows.iter().map(|row| Ok((plain(row, "number")?, account_id(row, "account_id")?))).collect()
}

/// Why a file is to be forgotten.
#[derive(Clone, Copy)]
enum Ground {
    /// Its time is over.
    Over(Timestamp),
    /// No template has named it, and nobody wants it.
    Unwanted,
}

/// Forgets a file, if it still is to be forgotten.
async fn forget(
    transaction: &mut Transaction,
    account: AccountId,
    upload: i64,
    ground: Ground,
) -> Result<bool, StoreError> {
    transaction.lock(account).await?;
    let (over, unused) = match ground {
        Ground::Over(at) => (over(at), long_unused(at)),
        Ground::Unwanted => (i64::MAX, i64::MAX),
    };
    let find = "SELECT file_name, received FROM upload WHERE number = $1 AND \
                CASE WHEN received < length THEN created_at <= $2 \
                ELSE used_at IS NULL AND finished_at <= $3 END";
    let Some(row) = transaction.query_one(find, &[&upload, &over, &unused]).await? else {
        return Ok(false);
    };
    let (name, received): (String, u64) = (plain(&row, "file_name")?, number(&row, "received")?);
    transaction.execute("DELETE FROM upload_chunk WHERE upload = $1", &[&upload]).await?;
    transaction.execute("DELETE FROM upload WHERE number = $1", &[&upload]).await?;
    recount(transaction, key(account.get()), charge(received, &name), 0).await?;
    Ok(true)
}
