//! One value of a row, as both stores have it, and its canonical encoding for comparisons.

use std::{error::Error, fmt};

use bytes::BytesMut;
use rusqlite::types::ValueRef;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type BoxError = Box<dyn Error + Sync + Send>;

/// A value. Booleans are 1 and 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// Why PostgreSQL cannot store a value.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidCell {
    #[error("it contains U+0000, which PostgreSQL cannot store in a text")]
    Nul,
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("it is a floating-point number, which no version of galley writes")]
    Float,
}

impl Cell {
    /// Reads a SQLite value.
    pub(super) fn read(value: ValueRef<'_>) -> Result<Self, InvalidCell> {
        Ok(match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Number(number),
            ValueRef::Real(_) => return Err(InvalidCell::Float),
            ValueRef::Text(text) if text.contains(&0) => return Err(InvalidCell::Nul),
            ValueRef::Text(text) => {
                Self::Text(std::str::from_utf8(text).map_err(|_| InvalidCell::NotUtf8)?.to_owned())
            }
            ValueRef::Blob(bytes) => Self::Bytes(bytes.to_vec()),
        })
    }

    /// Approximate size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        let heap = match self {
            Self::Null | Self::Number(_) => 0,
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        };
        size_of::<Self>() + heap
    }

    /// Checks whether a column of this type can store it.
    pub(super) fn check_fits(&self, ty: &Type) -> Result<(), BoxError> {
        match self {
            Self::Null => Ok(()),
            Self::Number(_) if *ty == Type::INT8 => Ok(()),
            Self::Number(number) if *ty == Type::INT4 => Ok(i32::try_from(*number).map(drop)?),
            Self::Number(number) if *ty == Type::INT2 => Ok(i16::try_from(*number).map(drop)?),
            Self::Number(0..=1) if *ty == Type::BOOL => Ok(()),
            Self::Text(_) if *ty == Type::TEXT => Ok(()),
            Self::Bytes(_) if *ty == Type::BYTEA => Ok(()),
            other => Err(format!("{other} does not fit a column of type {ty}").into()),
        }
    }

    /// Appends the canonical encoding. Different rows always have different encodings.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut put = |tag: u8, bytes: &[u8]| {
            out.push(tag);
            out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            out.extend_from_slice(bytes);
        };
        match self {
            Self::Null => put(0, &[]),
            Self::Number(number) => put(1, &number.to_be_bytes()),
            Self::Text(text) => put(2, text.as_bytes()),
            Self::Bytes(bytes) => put(3, bytes),
        }
    }

    /// Decodes a sequence of encoded values; `None` if the encoding is invalid.
    pub(super) fn decode_all(mut encoded: &[u8]) -> Option<Vec<Self>> {
        let mut cells = Vec::new();
        while let Some((tag, rest)) = encoded.split_first() {
            let (length, rest) = rest.split_first_chunk()?;
            let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
            let (bytes, rest) = rest.split_at_checked(length)?;
            cells.push(match tag {
                0 => Self::Null,
                1 => Self::Number(i64::from_be_bytes(bytes.try_into().ok()?)),
                2 => Self::Text(String::from_utf8(bytes.to_vec()).ok()?),
                3 => Self::Bytes(bytes.to_vec()),
                _ => return None,
            });
            encoded = rest;
        }
        Some(cells)
    }
}

/// As a SQL literal, for error messages.
impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("NULL"),
            Self::Number(number) => write!(out, "{number}"),
            Self::Text(text) => write!(out, "{text:?}"),
            Self::Bytes(bytes) => {
                out.write_str("x'")?;
                bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
                out.write_str("'")
            }
        }
    }
}

/// As a SQLite parameter.
impl rusqlite::ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        let value = match self {
            Self::Null => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        };
        Ok(rusqlite::types::ToSqlOutput::Borrowed(value))
    }
}

/// As a PostgreSQL parameter, for the type of its column.
impl ToSql for Cell {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, BoxError> {
        self.check_fits(ty)?;
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Number(number) => match *ty {
                Type::INT4 => i32::try_from(*number)?.to_sql(ty, out),
                Type::INT2 => i16::try_from(*number)?.to_sql(ty, out),
                Type::BOOL => (*number == 1).to_sql(ty, out),
                _ => number.to_sql(ty, out),
            },
            Self::Text(text) => text.to_sql(ty, out),
            Self::Bytes(bytes) => bytes.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// From a PostgreSQL column.
impl<'a> FromSql<'a> for Cell {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, BoxError> {
        Ok(match *ty {
            Type::INT8 => Self::Number(i64::from_sql(ty, raw)?),
            Type::INT4 => Self::Number(i32::from_sql(ty, raw)?.into()),
            Type::INT2 => Self::Number(i16::from_sql(ty, raw)?.into()),
            Type::BOOL => Self::Number(bool::from_sql(ty, raw)?.into()),
            Type::TEXT => Self::Text(String::from_sql(ty, raw)?),
            Type::BYTEA => Self::Bytes(raw.to_vec()),
            _ => return Err(format!("columns of type {ty} are not supported").into()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, BoxError> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(cells: &[Cell]) -> Vec<u8> {
        let mut out = Vec::new();
        for cell in cells {
            cell.encode(&mut out);
        }
        out
    }

    #[test]
    fn encoded_rows_are_distinct_and_decode_to_themselves() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let rows = [
            vec![],
            vec![Cell::Null],
            vec![text("")],
            vec![Cell::Bytes(Vec::new())],
            vec![text("ab"), text("c")],
            vec![text("a"), text("bc")],
            vec![Cell::Number(i64::MIN), Cell::Bytes(vec![0, 255])],
            vec![Cell::Number(1)],
            vec![text("1")],
        ];
        for row in &rows {
            assert_eq!(Cell::decode_all(&encoded(row)).as_ref(), Some(row));
            assert_eq!(rows.iter().filter(|other| encoded(other) == encoded(row)).count(), 1);
        }
        for invalid in [&[1][..], &[4, 0, 0, 0, 0, 0, 0, 0, 0], &[2, 0, 0, 0, 0, 0, 0, 0, 9, 1]] {
            assert_eq!(Cell::decode_all(invalid), None);
        }
    }

    #[test]
    fn a_value_that_does_not_fit_its_column_is_refused() {
        let mut out = BytesMut::new();
        let large = Cell::Number(i64::from(i32::MAX) + 1);
        assert!(large.to_sql(&Type::INT8, &mut out).is_ok());
        assert!(large.to_sql(&Type::INT4, &mut out).is_err());
        let refusal = Cell::Number(2).check_fits(&Type::BOOL).unwrap_err();
        assert_eq!(refusal.to_string(), "2 does not fit a column of type bool");
        assert!(Cell::read(ValueRef::Text(b"a\0b")).is_err());
        assert!(Cell::read(ValueRef::Text(b"\xff")).is_err());
    }
}
