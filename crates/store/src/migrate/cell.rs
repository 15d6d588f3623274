//! One value of a row, as both stores keep it, and the one way in which values are written to be
//! compared.

use std::{error::Error, fmt};

use bytes::BytesMut;
use rusqlite::types::ValueRef;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type Failure = Box<dyn Error + Sync + Send>;

/// A value. Yes and no are 1 and 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Nothing,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// Why a value cannot be copied.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error("it holds U+0000, which PostgreSQL cannot keep in a text")]
    Zero,
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("it is a fraction, which no version of galley writes")]
    Fraction,
}

impl Cell {
    /// A value of SQLite.
    pub(super) fn read(value: ValueRef<'_>) -> Result<Self, Unfit> {
        Ok(match value {
            ValueRef::Null => Self::Nothing,
            ValueRef::Integer(number) => Self::Number(number),
            ValueRef::Real(_) => return Err(Unfit::Fraction),
            ValueRef::Text(text) if text.contains(&0) => return Err(Unfit::Zero),
            ValueRef::Text(text) => {
                Self::Text(std::str::from_utf8(text).map_err(|_| Unfit::NotUtf8)?.to_owned())
            }
            ValueRef::Blob(bytes) => Self::Bytes(bytes.to_vec()),
        })
    }

    /// How much memory it takes, roughly.
    pub(super) fn size(&self) -> usize {
        let held = match self {
            Self::Nothing | Self::Number(_) => 0,
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        };
        size_of::<Self>() + held
    }

    /// Whether a column of this type can hold it.
    pub(super) fn fits(&self, ty: &Type) -> Result<(), Failure> {
        match self {
            Self::Nothing => Ok(()),
            Self::Number(_) if *ty == Type::INT8 => Ok(()),
            Self::Number(number) if *ty == Type::INT4 => Ok(i32::try_from(*number).map(drop)?),
            Self::Number(number) if *ty == Type::INT2 => Ok(i16::try_from(*number).map(drop)?),
            Self::Number(0..=1) if *ty == Type::BOOL => Ok(()),
            Self::Text(_) if *ty == Type::TEXT => Ok(()),
            Self::Bytes(_) if *ty == Type::BYTEA => Ok(()),
            other => Err(format!("{other} does not fit a column of type {ty}").into()),
        }
    }

    /// Writes it so that no two different rows give the same bytes.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut sized = |mark: u8, bytes: &[u8]| {
            out.push(mark);
            out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            out.extend_from_slice(bytes);
        };
        match self {
            Self::Nothing => sized(0, &[]),
            Self::Number(number) => sized(1, &number.to_be_bytes()),
            Self::Text(text) => sized(2, text.as_bytes()),
            Self::Bytes(bytes) => sized(3, bytes),
        }
    }

    /// Reads all that was written; nothing if it was not written like that.
    pub(super) fn read_all(mut written: &[u8]) -> Option<Vec<Self>> {
        let mut cells = Vec::new();
        while let Some((mark, rest)) = written.split_first() {
            let (length, rest) = rest.split_first_chunk()?;
            let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
            let (bytes, rest) = rest.split_at_checked(length)?;
            cells.push(match mark {
                0 => Self::Nothing,
                1 => Self::Number(i64::from_be_bytes(bytes.try_into().ok()?)),
                2 => Self::Text(String::from_utf8(bytes.to_vec()).ok()?),
                3 => Self::Bytes(bytes.to_vec()),
                _ => return None,
            });
            written = rest;
        }
        Some(cells)
    }
}

/// For people.
impl fmt::Display for Cell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => out.write_str("NULL"),
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

/// A value of SQLite for a statement.
impl rusqlite::ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        let value = match self {
            Self::Nothing => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        };
        Ok(rusqlite::types::ToSqlOutput::Borrowed(value))
    }
}

/// A value for whichever column of PostgreSQL it belongs to.
impl ToSql for Cell {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        self.fits(ty)?;
        match self {
            Self::Nothing => Ok(IsNull::Yes),
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

/// A value of PostgreSQL.
impl<'a> FromSql<'a> for Cell {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Failure> {
        Ok(match *ty {
            Type::INT8 => Self::Number(i64::from_sql(ty, raw)?),
            Type::INT4 => Self::Number(i32::from_sql(ty, raw)?.into()),
            Type::INT2 => Self::Number(i16::from_sql(ty, raw)?.into()),
            Type::BOOL => Self::Number(bool::from_sql(ty, raw)?.into()),
            Type::TEXT => Self::Text(String::from_sql(ty, raw)?),
            Type::BYTEA => Self::Bytes(raw.to_vec()),
            _ => return Err(format!("a column of type {ty} is not known").into()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Failure> {
        Ok(Self::Nothing)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(cells: &[Cell]) -> Vec<u8> {
        let mut out = Vec::new();
        for cell in cells {
            cell.write(&mut out);
        }
        out
    }

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let rows = [
            vec![],
            vec![Cell::Nothing],
            vec![text("")],
            vec![Cell::Bytes(Vec::new())],
            vec![text("ab"), text("c")],
            vec![text("a"), text("bc")],
            vec![Cell::Number(i64::MIN), Cell::Bytes(vec![0, 255])],
            vec![Cell::Number(1)],
            vec![text("1")],
        ];
        for row in &rows {
            assert_eq!(Cell::read_all(&written(row)).as_ref(), Some(row));
            assert_eq!(rows.iter().filter(|other| written(other) == written(row)).count(), 1);
        }
        for torn in [&[1][..], &[4, 0, 0, 0, 0, 0, 0, 0, 0], &[2, 0, 0, 0, 0, 0, 0, 0, 9, 1]] {
            assert_eq!(Cell::read_all(torn), None);
        }
    }

    #[test]
    fn what_a_column_cannot_hold_is_refused() {
        let mut out = BytesMut::new();
        let large = Cell::Number(i64::from(i32::MAX) + 1);
        assert!(large.to_sql(&Type::INT8, &mut out).is_ok());
        assert!(large.to_sql(&Type::INT4, &mut out).is_err());
        let refusal = Cell::Number(2).fits(&Type::BOOL).unwrap_err();
        assert_eq!(refusal.to_string(), "2 does not fit a column of type bool");
        assert!(Cell::read(ValueRef::Text(b"a\0b")).is_err());
        assert!(Cell::read(ValueRef::Text(b"\xff")).is_err());
    }
}
