//! A row as both databases return it, so that each record is decoded in one place.

use std::fmt::{self, Debug, Display, Formatter};

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    rulebook::Category,
    template::Status,
};
use jiff::Timestamp;
use rusqlite::RowIndex as _;

use crate::{
    AccountLimits, Actor, StoreError, encoding::actor_from_key, error::cause,
    row_checksum::is_intact,
};

/// A type that both drivers read from a column.
pub(crate) trait StoredValue:
    rusqlite::types::FromSql + tokio_postgres::types::FromSqlOwned
{
}

impl<T: rusqlite::types::FromSql + tokio_postgres::types::FromSqlOwned> StoredValue for T {}

/// A column of a row, as each driver finds it.
pub(crate) trait Column: Copy + Debug {
    fn in_sqlite(&self) -> impl rusqlite::RowIndex;

    fn in_postgres(&self) -> impl tokio_postgres::row::RowIndex + Display;
}

impl<T> Column for T
where
    T: rusqlite::RowIndex + tokio_postgres::row::RowIndex + Copy + Debug + Display,
{
    fn in_sqlite(&self) -> impl rusqlite::RowIndex {
        *self
    }

    fn in_postgres(&self) -> impl tokio_postgres::row::RowIndex + Display {
        *self
    }
}

/// A column of the list with which a statement for SQLite begins, which finds it faster by the index than
/// by the name.
#[derive(Clone, Copy)]
pub(crate) struct ListedColumn {
    name: &'static str,
    index: usize,
}

impl ListedColumn {
    /// The column with this name in a list. Evaluated by the compiler: a name that is not in the list
    /// is an error.
    pub(crate) const fn of(list: &str, name: &'static str) -> Self {
        let (mut rest, mut index) = (list.as_bytes(), 0);
        loop {
            let mut end = 0;
            while end < rest.len() && rest[end] != b',' {
                end += 1;
            }
            let (column, following) = rest.split_at(end);
            if are_equal(column, name.as_bytes()) {
                return Self { name, index };
            }
            // The next name follows a comma and a space.
            rest = following.split_at(2).1;
            index += 1;
        }
    }
}

impl Column for ListedColumn {
    fn in_sqlite(&self) -> impl rusqlite::RowIndex {
        self.index
    }

    fn in_postgres(&self) -> impl tokio_postgres::row::RowIndex + Display {
        self.name
    }
}

impl Debug for ListedColumn {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(self.name, out)
    }
}

const fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let mut same = 0;
    while same < one.len() && same < other.len() && one[same] == other[same] {
        same += 1;
    }
    same == one.len() && same == other.len()
}

/// A row, as the driver of an engine returns it.
#[derive(Clone, Copy)]
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r tokio_postgres::Row),
}

/// A row, read by the names of its columns.
pub(crate) trait StoredRow {
    fn row(&self) -> Row<'_>;

    /// Whether the columns before the one with their checksum match it. PostgreSQL has no such column:
    /// it has checksums of its pages.
    fn matches_checksum(&self, checksum: impl Column) -> Result<bool, StoreError> {
        match self.row() {
            Row::Sqlite(row) => Ok(is_intact(row, checksum.in_sqlite().idx(row.as_ref())?)?),
            Row::Postgres(_) => Ok(true),
        }
    }

    /// Reads a column without decoding it.
    fn value<V: StoredValue>(&self, column: impl Column) -> Result<V, StoreError> {
        Ok(match self.row() {
            Row::Sqlite(row) => row.get(column.in_sqlite())?,
            Row::Postgres(row) => row.try_get(column.in_postgres())?,
        })
    }

    /// Reads a text column without copying it; `None` if it is no text.
    fn text(&self, column: impl Column) -> Result<Option<&str>, StoreError> {
        Ok(match self.row() {
            Row::Sqlite(row) => row.get_ref(column.in_sqlite())?.as_str().ok(),
            Row::Postgres(row) => Some(row.try_get(column.in_postgres())?),
        })
    }

    /// The error for a value that no version of this program writes.
    fn corrupt(&self, column: impl Column) -> StoreError {
        let text = match self.row() {
            Row::Sqlite(_) => format!("the column {column:?} contains an invalid value"),
            Row::Postgres(_) => format!("column {} has an invalid value", column.in_postgres()),
        };
        StoreError::Damaged(cause(text))
    }

    /// Reads a column and decodes it.
    fn decoded<T, V: StoredValue>(
        &self,
        column: impl Column,
        decode: impl FnOnce(V) -> Option<T>,
    ) -> Result<T, StoreError> {
        decode(self.value(column)?).ok_or_else(|| self.corrupt(column))
    }

    /// Decodes a text column without copying it.
    fn parsed<T>(
        &self,
        column: impl Column,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, StoreError> {
        self.text(column)?.and_then(parse).ok_or_else(|| self.corrupt(column))
    }

    /// Decodes a column that may be NULL.
    fn optional<T, V: StoredValue>(
        &self,
        column: impl Column,
        decode: impl FnOnce(V) -> Option<T>,
    ) -> Result<Option<T>, StoreError>
    where
        Option<V>: StoredValue,
    {
        self.decoded(column, |stored: Option<V>| match stored {
            Some(stored) => decode(stored).map(Some),
            None => Some(None),
        })
    }

    fn timestamp(&self, column: impl Column) -> Result<Timestamp, StoreError> {
        self.decoded(column, |millis: i64| Timestamp::from_millisecond(millis).ok())
    }

    fn optional_timestamp(&self, column: impl Column) -> Result<Option<Timestamp>, StoreError> {
        self.optional(column, |millis: i64| Timestamp::from_millisecond(millis).ok())
    }

    /// A count, a version or a sequence number.
    fn number(&self, column: impl Column) -> Result<u64, StoreError> {
        self.decoded(column, |stored: i64| u64::try_from(stored).ok())
    }

    fn template_id(&self, column: impl Column) -> Result<TemplateId, StoreError> {
        self.decoded(column, |id: i64| TemplateId::new(u64::try_from(id).ok()?))
    }

    fn account_id(&self, column: impl Column) -> Result<AccountId, StoreError> {
        self.decoded(column, |id: i64| AccountId::new(u64::try_from(id).ok()?))
    }

    fn webhook_id(&self, column: impl Column) -> Result<WebhookId, StoreError> {
        self.decoded(column, |id: i64| WebhookId::new(u64::try_from(id).ok()?))
    }

    /// The first 16 bytes of a hash.
    fn hash(&self, column: impl Column) -> Result<[u8; 16], StoreError> {
        self.decoded(column, |bytes: Vec<u8>| bytes.try_into().ok())
    }

    fn category(&self, column: impl Column) -> Result<Category, StoreError> {
        self.parsed(column, Category::parse)
    }

    fn status(&self, column: impl Column) -> Result<Status, StoreError> {
        self.parsed(column, Status::parse)
    }

    /// The limits of an account, if it has any, from the column `template_limit` as `BIGINT`.
    fn account_limits(&self) -> Result<Option<AccountLimits>, StoreError> {
        self.optional("template_limit", |templates: i64| {
            Some(AccountLimits { templates: u32::try_from(templates).ok()? })
        })
    }

    fn actor(&self, column: impl Column) -> Result<Actor, StoreError> {
        self.decoded(column, actor_from_key)
    }

    /// The name of an actor. A token without a name is shown with its id, and other actors have none.
    fn actor_name(&self, column: impl Column, actor: Actor) -> Result<String, StoreError> {
        let name: String = self.value(column)?;
        Ok(match actor {
            Actor::Token(id) if name.is_empty() => format!("token {id}"),
            _ => name,
        })
    }
}

impl StoredRow for Row<'_> {
    fn row(&self) -> Row<'_> {
        *self
    }
}

impl StoredRow for rusqlite::Row<'_> {
    fn row(&self) -> Row<'_> {
        Row::Sqlite(self)
    }
}

impl StoredRow for tokio_postgres::Row {
    fn row(&self) -> Row<'_> {
        Row::Postgres(self)
    }
}
