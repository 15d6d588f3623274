//! The bytes of uploads. They are stored in chunks, each with its place in the file.

use super::decisions::{Part, extended_below};
use crate::{
    StoreError,
    engine::{Dialect, Tx, Value, values},
    media_type::SNIFF_BYTES,
    row_checksum::{damaged, upload_chunk_checksum},
    stored_row::{Row, StoredRow as _},
};

/// Whether a chunk matches its checksum.
pub(super) const fn is_intact(dialect: Dialect) -> &'static str {
    dialect.either(concat!("checksum IS ", upload_chunk_checksum!()), "true")
}

/// The place and the bytes of a chunk: columns `upload`, `place`, `bytes` and `is_intact`.
pub(super) fn chunk(row: &Row<'_>) -> Result<(u64, Vec<u8>), StoreError> {
    let place = row.number("place")?;
    if !row.value("is_intact")? {
        let upload: i64 = row.value("upload")?;
        return Err(damaged("upload_chunk", format!("{upload} offset {place}")));
    }
    Ok((place, row.value("bytes")?))
}

/// Writes the bytes of a part as a new chunk, or appends them to a short last chunk.
pub(super) async fn write(tx: &mut Tx<'_>, upload: i64, part: &Part) -> Result<(), StoreError> {
    let short = format!(
        "SELECT upload, place, bytes, {} AS is_intact FROM upload_chunk WHERE upload = $1 AND \
         place = (SELECT max(place) FROM upload_chunk WHERE upload = $1) AND length(bytes) < $2",
        is_intact(tx.dialect())
    );
    let values = values![upload, Value::size(extended_below(part.bytes.len()))];
    if let Some((place, mut bytes)) = tx.query_one(&short, &values, chunk).await? {
        bytes.extend(&part.bytes);
        let update = tx.dialect().either(
            "UPDATE upload_chunk SET bytes = $3, checksum = row_checksum($1, $2, $3) \
             WHERE upload = $1 AND place = $2",
            "UPDATE upload_chunk SET bytes = $3 WHERE upload = $1 AND place = $2",
        );
        return tx.defer(update, &values![upload, place, bytes]);
    }
    let insert = tx.dialect().either(
        "INSERT INTO upload_chunk (upload, place, bytes, checksum) \
         VALUES ($1, $2, $3, row_checksum($1, $2, $3))",
        "INSERT INTO upload_chunk (upload, place, bytes) VALUES ($1, $2, $3)",
    );
    tx.defer(insert, &values![upload, part.offset, &*part.bytes])
}

/// The first bytes of an upload, as many as its type is detected from: those stored, then these.
pub(super) async fn head(tx: &mut Tx<'_>, upload: i64, next: &[u8]) -> Result<Vec<u8>, StoreError> {
    let first = format!(
        "SELECT substr(bytes, 1, {SNIFF_BYTES}) AS head FROM upload_chunk WHERE upload = $1 AND \
         place < {SNIFF_BYTES} ORDER BY place"
    );
    let stored: Vec<Vec<u8>> = tx.query(&first, &values![upload], |row| row.value("head")).await?;
    let mut head = stored.concat();
    head.extend(next.iter().take(SNIFF_BYTES));
    Ok(head)
}
