//! The values of a row, which are the same in both stores, and their canonical encoding for comparisons.

use std::error::Error;

use rusqlite::types::ValueRef;
use tokio_postgres::{Row, types::Type};

use crate::engine::Value;

type BoxError = Box<dyn Error + Sync + Send>;

/// Reads a SQLite value for a column of this type in PostgreSQL, or says why PostgreSQL cannot store it.
pub(super) fn read(value: ValueRef<'_>, ty: &Type) -> Result<Value<'static>, BoxError> {
    let value = match value {
        ValueRef::Null => return Ok(Value::Null),
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(_) => {
            return Err("it is a floating-point number, which no version of galley writes".into());
        }
        ValueRef::Text(text) if text.contains(&0) => {
            return Err("it contains U+0000, which PostgreSQL cannot store in a text".into());
        }
        ValueRef::Text(text) => {
            std::str::from_utf8(text).map_err(|_| "it is not UTF-8")?.to_owned().into()
        }
        ValueRef::Blob(bytes) => bytes.to_vec().into(),
    };
    match (&value, ty) {
        (Value::Integer(bit @ 0..=1), &Type::BOOL) => return Ok(Value::Bool(*bit == 1)),
        (Value::Integer(number), &Type::INT4) => i32::try_from(*number).map(drop)?,
        (Value::Integer(number), &Type::INT2) => i16::try_from(*number).map(drop)?,
        (Value::Integer(_), &Type::INT8)
        | (Value::Text(_), &Type::TEXT)
        | (Value::Blob(_), &Type::BYTEA) => {}
        _ => return Err(format!("{} does not fit a column of type {ty}", literal(&value)).into()),
    }
    Ok(value)
}

/// Reads a column of a row in PostgreSQL.
pub(super) fn read_column(
    row: &Row,
    index: usize,
) -> Result<Value<'static>, tokio_postgres::Error> {
    Ok(match *row.columns()[index].type_() {
        Type::INT4 => row.try_get::<_, Option<i32>>(index)?.map(i64::from).into(),
        Type::INT2 => row.try_get::<_, Option<i16>>(index)?.map(i64::from).into(),
        Type::BOOL => row.try_get::<_, Option<bool>>(index)?.into(),
        Type::TEXT => row.try_get::<_, Option<String>>(index)?.into(),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(index)?.into(),
        _ => row.try_get::<_, Option<i64>>(index)?.into(),
    })
}

/// Approximate size in memory, in bytes.
pub(super) fn size(value: &Value<'_>) -> usize {
    let heap = match value {
        Value::Text(text) => text.len(),
        Value::Blob(bytes) => bytes.len(),
        _ => 0,
    };
    size_of::<Value<'_>>() + heap
}

/// Appends the canonical encoding. Different rows always have different encodings.
pub(super) fn encode(value: &Value<'_>, out: &mut Vec<u8>) {
    let mut put = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        out.extend_from_slice(bytes);
    };
    match value {
        Value::Null => put(0, &[]),
        Value::Bool(value) => put(1, &i64::from(*value).to_be_bytes()),
        Value::Integer(number) => put(1, &number.to_be_bytes()),
        Value::Text(text) => put(2, text.as_bytes()),
        Value::Blob(bytes) => put(3, bytes),
        Value::Integers(_) | Value::Texts(_) | Value::Hashes(_) => {
            unreachable!("no column is a list")
        }
    }
}

/// Decodes a sequence of encoded values; `None` if the encoding is invalid.
pub(super) fn decode_all(mut encoded: &[u8]) -> Option<Vec<Value<'static>>> {
    let mut values = Vec::new();
    while let Some((tag, rest)) = encoded.split_first() {
        let (length, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
        let (bytes, rest) = rest.split_at_checked(length)?;
        values.push(match tag {
            0 => Value::Null,
            1 => i64::from_be_bytes(bytes.try_into().ok()?).into(),
            2 => String::from_utf8(bytes.to_vec()).ok()?.into(),
            3 => bytes.to_vec().into(),
            _ => return None,
        });
        encoded = rest;
    }
    Some(values)
}

/// A value as a SQL literal, for error messages.
pub(super) fn literal(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Bool(value) => i64::from(*value).to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => format!("{text:?}"),
        Value::Blob(bytes) => {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("x'{}'", digits.concat())
        }
        Value::Integers(_) | Value::Texts(_) | Value::Hashes(_) => {
            unreachable!("no column is a list")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(row: &[Value<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        for value in row {
            encode(value, &mut out);
        }
        out
    }

    #[test]
    fn encoded_rows_are_distinct_and_decode_to_themselves() {
        let rows = [
            vec![],
            vec![Value::Null],
            vec!["".into()],
            vec![Vec::<u8>::new().into()],
            vec!["ab".into(), "c".into()],
            vec!["a".into(), "bc".into()],
            vec![i64::MIN.into(), vec![0_u8, 255].into()],
            vec![1_i64.into()],
            vec!["1".into()],
        ];
        for row in &rows {
            assert_eq!(decode_all(&encoded(row)).as_ref(), Some(row));
            assert_eq!(rows.iter().filter(|other| encoded(other) == encoded(row)).count(), 1);
        }
        for invalid in [&[1][..], &[4, 0, 0, 0, 0, 0, 0, 0, 0], &[2, 0, 0, 0, 0, 0, 0, 0, 9, 1]] {
            assert_eq!(decode_all(invalid), None);
        }
    }

    #[test]
    fn a_value_that_does_not_fit_its_column_is_refused() {
        let large = ValueRef::Integer(i64::from(i32::MAX) + 1);
        assert!(read(large, &Type::INT8).is_ok());
        assert!(read(large, &Type::INT4).is_err());
        assert_eq!(read(ValueRef::Integer(1), &Type::BOOL).unwrap(), Value::Bool(true));
        let refusal = read(ValueRef::Integer(2), &Type::BOOL).unwrap_err();
        assert_eq!(refusal.to_string(), "2 does not fit a column of type bool");
        assert!(read(ValueRef::Text(b"a\0b"), &Type::TEXT).is_err());
        assert!(read(ValueRef::Text(b"\xff"), &Type::TEXT).is_err());
    }
}
