//! Writes rows as `COPY … FROM STDIN BINARY` expects them. The driver's own writer sends every few
//! rows separately; this one sends large chunks, which wake the server less often.

use std::pin::pin;

use bytes::{BufMut as _, BytesMut};
use futures_util::SinkExt as _;
use tokio_postgres::Error;

use crate::{engine::Value, postgres::pool::CopySink};

/// Chunk size. A chunk is sent once it reaches this size, so the last row can exceed it.
const CHUNK_BYTES: usize = 32 * 1_024;

/// File header: signature, no flags, no header extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// File trailer, in place of a row's column count.
const TRAILER: i16 = -1;

/// Writes all rows and finishes the `COPY`. Columns with numbers are `int8`.
pub(super) async fn copy<'v, const COLUMNS: usize>(
    sink: CopySink,
    rows: impl Iterator<Item = [Value<'v>; COLUMNS]>,
) -> Result<(), Error> {
    let mut sink = pin!(sink);
    let mut chunk = BytesMut::with_capacity(2 * CHUNK_BYTES);
    chunk.put_slice(HEADER);
    for row in rows {
        chunk.put_i16(i16::try_from(COLUMNS).expect("a table has few columns"));
        for value in row {
            put(&mut chunk, &value);
        }
        if chunk.len() >= CHUNK_BYTES {
            sink.send(chunk.split().freeze()).await?;
        }
    }
    chunk.put_i16(TRAILER);
    sink.send(chunk.freeze()).await?;
    sink.finish().await.map(drop)
}

fn put(chunk: &mut BytesMut, value: &Value<'_>) {
    let mut put = |bytes: &[u8]| {
        let length = i32::try_from(bytes.len()).expect("values are much smaller than 2 GiB");
        chunk.put_i32(length);
        chunk.put_slice(bytes);
    };
    match value {
        Value::Integer(number) => put(&number.to_be_bytes()),
        Value::Bool(value) => put(&[u8::from(*value)]),
        Value::Text(text) => put(text.as_bytes()),
        Value::Blob(bytes) => put(bytes),
        Value::Null => chunk.put_i32(-1),
        Value::Integers(_) | Value::Texts(_) | Value::Hashes(_) => {
            unreachable!("a column of these tables is no list")
        }
    }
}
