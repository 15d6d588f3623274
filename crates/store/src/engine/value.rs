//! Parameters of statements, as both drivers bind them.

use std::{borrow::Cow, error::Error};

use bytes::BytesMut;
use galley_domain::id::{AccountId, TemplateId, WebhookId};
use jiff::Timestamp;
use rusqlite::types::{ToSqlOutput, Value as SqliteValue, ValueRef};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::{
    SecretHash, StoredSecret,
    encoding::{key, millis},
};

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'v> {
    Null,
    Bool(bool),
    /// PostgreSQL gets it with the width of the column.
    Integer(i64),
    Text(Cow<'v, str>),
    Blob(Cow<'v, [u8]>),
    /// A list of numbers: JSON on SQLite, an array on PostgreSQL.
    Integers(Vec<i64>),
    /// A list of texts: JSON on SQLite, an array on PostgreSQL.
    Texts(Vec<Cow<'v, str>>),
    /// A list of hashes: JSON of their hexadecimal digits on SQLite, an array on PostgreSQL.
    Hashes(Vec<[u8; 16]>),
}

impl Value<'_> {
    /// The same value, which borrows nothing.
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Integer(value) => Value::Integer(value),
            Self::Text(value) => Value::Text(Cow::Owned(value.into_owned())),
            Self::Blob(value) => Value::Blob(Cow::Owned(value.into_owned())),
            Self::Integers(values) => Value::Integers(values),
            Self::Texts(values) => {
                Value::Texts(values.into_iter().map(|it| Cow::Owned(it.into_owned())).collect())
            }
            Self::Hashes(values) => Value::Hashes(values),
        }
    }

    /// A limit or an offset.
    pub(crate) fn size(size: usize) -> Self {
        Self::Integer(i64::try_from(size).unwrap_or(i64::MAX))
    }

    /// A number of a client, which may be larger than any that is stored.
    pub(crate) fn bound(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// The parameters of a statement, in order.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        [$($crate::engine::Value::from($value)),*]
    };
}
pub(crate) use values;

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let json = |json: String| ToSqlOutput::Owned(SqliteValue::Text(json));
        Ok(match self {
            Self::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Self::Bool(value) => ToSqlOutput::Borrowed(ValueRef::Integer(i64::from(*value))),
            Self::Integer(value) => ToSqlOutput::Borrowed(ValueRef::Integer(*value)),
            Self::Text(value) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
            Self::Blob(value) => ToSqlOutput::Borrowed(ValueRef::Blob(value)),
            Self::Integers(values) => json(serde_json::json!(values).to_string()),
            Self::Texts(values) => json(serde_json::json!(values).to_string()),
            Self::Hashes(values) => {
                let digits = values.iter().map(|it| format!("{:032x}", u128::from_be_bytes(*it)));
                json(serde_json::json!(digits.collect::<Vec<_>>()).to_string())
            }
        })
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        column: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Bool(value) => value.to_sql_checked(column, out),
            Self::Integer(value) => match *column {
                Type::INT2 => i16::try_from(*value)?.to_sql(column, out),
                Type::INT4 => i32::try_from(*value)?.to_sql(column, out),
                _ => value.to_sql_checked(column, out),
            },
            Self::Text(value) => value.to_sql_checked(column, out),
            Self::Blob(value) => value.to_sql_checked(column, out),
            Self::Integers(values) => values.to_sql_checked(column, out),
            Self::Texts(values) => values.to_sql_checked(column, out),
            Self::Hashes(values) => {
                let values: Vec<&[u8]> = values.iter().map(|it| &it[..]).collect();
                values.to_sql_checked(column, out)
            }
        }
    }

    /// The conversion of a value tells whether it fits the column.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'v, T: Into<Value<'v>>> From<Option<T>> for Value<'v> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Conversions into a variant, each with its expression.
macro_rules! conversions {
    ($($kind:ty => $value:ident $variant:ident $converted:expr;)*) => {$(
        impl<'v> From<$kind> for Value<'v> {
            fn from($value: $kind) -> Self {
                Self::$variant($converted)
            }
        }
    )*};
}

conversions! {
    bool => value Bool value;
    i64 => value Integer value;
    u32 => value Integer i64::from(value);
    u64 => value Integer key(value);
    Timestamp => at Integer millis(at);
    AccountId => id Integer key(id.get());
    TemplateId => id Integer key(id.get());
    WebhookId => id Integer key(id.get());
    &'v str => text Text Cow::Borrowed(text);
    &'v String => text Text Cow::Borrowed(text);
    String => text Text Cow::Owned(text);
    &'v [u8] => bytes Blob Cow::Borrowed(bytes);
    Vec<u8> => bytes Blob Cow::Owned(bytes);
    [u8; 32] => bytes Blob Cow::Owned(bytes.to_vec());
    [u8; 16] => hash Blob Cow::Owned(hash.to_vec());
    SecretHash => hash Blob Cow::Owned(hash.0.to_vec());
    &'v StoredSecret => secret Blob Cow::Borrowed(secret.0.as_ref());
    Vec<i64> => values Integers values;
    Vec<String> => values Texts values.into_iter().map(Cow::Owned).collect();
    Vec<[u8; 16]> => hashes Hashes hashes;
    Vec<&'v str> => values Texts values.into_iter().map(Cow::Borrowed).collect();
}
