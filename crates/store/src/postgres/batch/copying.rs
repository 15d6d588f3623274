//! Rows on their way into a table, as `COPY … FROM STDIN BINARY` takes them. The driver's own writer
//! hands over every few rows by themselves; here it is large pieces, which wake the server less often.

use std::pin::pin;

use bytes::{BufMut as _, BytesMut};
use futures_util::SinkExt as _;
use tokio_postgres::Error;

use crate::postgres::pool::OpenTable;

/// So many bytes are handed over at once, and what the last row has beyond them.
const PIECE: usize = 32 * 1_024;

/// What a stream of rows begins with: the signature, no flags, nothing more to say.
const BEGINNING: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Where a number of columns would stand: there are no more rows.
const END: i16 = -1;

/// One value of a row.
pub(super) enum Value<'v> {
    Number(i64),
    Flag(bool),
    Text(&'v str),
    Bytes(&'v [u8]),
    Nothing,
}

impl<'v> Value<'v> {
    /// A value, or nothing.
    pub(super) fn of<T>(value: Option<T>, kind: impl FnOnce(T) -> Value<'v>) -> Value<'v> {
        value.map_or(Value::Nothing, kind)
    }
}

/// Writes all rows and ends the copying.
pub(super) async fn copy<'v, const COLUMNS: usize>(
    table: OpenTable,
    rows: impl Iterator<Item = [Value<'v>; COLUMNS]>,
) -> Result<(), Error> {
    let mut table = pin!(table);
    let mut piece = BytesMut::with_capacity(2 * PIECE);
    piece.put_slice(BEGINNING);
    for row in rows {
        piece.put_i16(i16::try_from(COLUMNS).expect("a table has few columns"));
        for value in row {
            put(&mut piece, &value);
        }
        if piece.len() >= PIECE {
            table.send(piece.split().freeze()).await?;
        }
    }
    piece.put_i16(END);
    table.send(piece.freeze()).await?;
    table.finish().await.map(drop)
}

fn put(piece: &mut BytesMut, value: &Value<'_>) {
    let mut put = |bytes: &[u8]| {
        let length = i32::try_from(bytes.len()).expect("a document is much smaller");
        piece.put_i32(length);
        piece.put_slice(bytes);
    };
    match value {
        Value::Number(number) => put(&number.to_be_bytes()),
        Value::Flag(flag) => put(&[u8::from(*flag)]),
        Value::Text(text) => put(text.as_bytes()),
        Value::Bytes(bytes) => put(bytes),
        Value::Nothing => piece.put_i32(-1),
    }
}
