//! A write transaction: what the body of an operation runs its statements on.

use std::ops::{ControlFlow, Deref, DerefMut};

use async_trait::async_trait;
use galley_domain::id::{AccountId, TemplateId};
use jiff::Timestamp;

use super::{AccountState, Value};
use crate::{Author, StoreError, decisions::audit::AuditedChange, stored_row::Row};

/// An open transaction. A body can run more than once, because engines repeat work after a conflict or
/// a failure, but at most one run is committed.
///
/// A body locks in this order: the credentials, endpoints by id, each with its status cursor, accounts by
/// id, the clock of an emulator or the connection to a provider. The audit feed is locked last, with the
/// commit. On SQLite a lock is nothing, because one thread executes all writes.
pub(crate) struct Tx<'t>(&'t mut (dyn EngineTx + 'static));

/// Takes the rows of a statement, until it needs no more of them.
pub(crate) type EachRow<'r> =
    dyn FnMut(&Row<'_>) -> Result<ControlFlow<()>, StoreError> + Send + 'r;

/// A read that a body will run.
#[derive(Clone, Copy)]
pub(crate) struct AnnouncedRead<'r> {
    pub(crate) statement: &'r str,
    pub(crate) values: &'r [Value<'r>],
}

impl<'r> AnnouncedRead<'r> {
    pub(crate) const fn new(statement: &'r str, values: &'r [Value<'r>]) -> Self {
        Self { statement, values }
    }
}

/// The transaction of an engine.
#[async_trait]
pub(crate) trait EngineTx: Send {
    fn dialect(&self) -> Dialect;

    /// Runs a statement that returns rows.
    async fn rows(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
        each: &mut EachRow<'_>,
    ) -> Result<(), StoreError>;

    /// Announces reads, which PostgreSQL sends in one round trip. The body runs those that it needs,
    /// each once with these values, before it writes what they read. SQLite runs only these.
    async fn read_ahead(&mut self, _reads: &[AnnouncedRead<'_>]) -> Result<(), StoreError> {
        Ok(())
    }

    /// Runs a statement that returns no rows; returns the number of affected rows.
    async fn execute(&mut self, statement: &str, values: &[Value<'_>]) -> Result<u64, StoreError>;

    /// Runs a statement whose result the body does not need, and whose rows it does not read again:
    /// PostgreSQL gets it with the commit, in the same round trip.
    fn defer(&mut self, statement: &'static str, values: &[Value<'_>]) -> Result<(), StoreError>;

    /// Assigns the id of a new template of a locked account.
    fn next_template(
        &mut self,
        account: AccountId,
        at: Timestamp,
    ) -> Result<TemplateId, StoreError>;

    /// What finds the record of a request with this hash of its Idempotency-Key: on SQLite the id of its
    /// template, from an index that is partly in memory, or NULL; on PostgreSQL the hash.
    fn record_parameter(&mut self, key: [u8; 16]) -> Result<Value<'static>, StoreError>;

    /// Adds a new template to the index of names that SQLite has in memory.
    fn add_unique_key(&mut self, _unique_key: [u8; 16], _template: TemplateId) {}

    /// Adds a new template to the index of idempotency records that SQLite has in memory.
    fn add_idempotency_key(&mut self, _key: [u8; 16], _template: TemplateId) {}

    /// Frees the unique key of a template, before a statement clears its column. SQLite has the keys of
    /// new templates in memory.
    fn release_unique_key(&mut self, _template: TemplateId) -> Result<(), StoreError> {
        Ok(())
    }

    /// Locks all credentials and accounts until the transaction ends. A body locks them before
    /// anything else. On SQLite a lock is nothing.
    async fn lock_credentials(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Invalidates cached credentials and accounts when the transaction commits. The credentials are
    /// locked.
    async fn credentials_changed(&mut self) -> Result<(), StoreError>;

    /// What finds the template with a unique key: on SQLite its id, from an index of names that is partly
    /// in memory, or NULL if no template has it; on PostgreSQL the key.
    fn name_parameter(&mut self, unique_key: [u8; 16]) -> Result<Value<'static>, StoreError>;

    /// Undoes what the body changes, when it ends.
    fn undo(&mut self);

    /// Locks an account until the transaction ends; `false` if it does not exist or is deleted.
    async fn lock(&mut self, account: AccountId) -> Result<bool, StoreError>;

    /// A locked account with the changes of this transaction.
    fn account(&mut self, account: AccountId) -> Result<&mut AccountState, StoreError>;

    /// Lets the rest of the transaction see the settings and the deletion of an account that the body
    /// has written. PostgreSQL reads them again in each transaction.
    fn account_changed(&mut self, _account: AccountId) -> Result<(), StoreError> {
        Ok(())
    }

    /// The number of an account's newest event, if the transaction knows it without a read: on SQLite
    /// always, on PostgreSQL once the account is locked.
    fn newest_event(&mut self, account: AccountId) -> Result<Option<u64>, StoreError>;

    /// Records a change in the audit feed.
    fn audit(
        &mut self,
        account: AccountId,
        change: AuditedChange,
        by: Author,
    ) -> Result<(), StoreError>;
}

/// The differences between the SQL of the engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// What a statement ends with that locks the rows that it reads.
    pub(crate) const fn for_update(self) -> &'static str {
        self.either("", " FOR UPDATE")
    }

    /// One of two texts.
    pub(crate) const fn either<'s>(self, sqlite: &'s str, postgres: &'s str) -> &'s str {
        match self {
            Self::Sqlite => sqlite,
            Self::Postgres => postgres,
        }
    }

    /// A condition: the column is one of a list of values, which is one parameter.
    pub(crate) fn is_any(self, column: &str, parameter: &str) -> String {
        match self {
            Self::Sqlite => format!("{column} IN (SELECT value FROM json_each({parameter}))"),
            Self::Postgres => format!("{column} = ANY({parameter})"),
        }
    }

    /// The same for a list of hashes.
    pub(crate) fn is_any_hash(self, column: &str, parameter: &str) -> String {
        match self {
            Self::Sqlite => {
                format!("{column} IN (SELECT unhex(value) FROM json_each({parameter}))")
            }
            Self::Postgres => self.is_any(column, parameter),
        }
    }
}

impl<'t> Tx<'t> {
    pub(crate) fn new(transaction: &'t mut (dyn EngineTx + 'static)) -> Self {
        Self(transaction)
    }

    /// Runs a statement and decodes the rows that it returns.
    pub(crate) async fn query<T: Send>(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
        decode: fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        let mut each = |row: &Row<'_>| {
            found.push(decode(row)?);
            Ok(ControlFlow::Continue(()))
        };
        self.0.rows(statement, values, &mut each).await?;
        Ok(found)
    }

    /// Runs a statement that returns at most one row.
    pub(crate) async fn query_one<T: Send>(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
        decode: fn(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.query(statement, values, decode).await?.into_iter().next())
    }

    /// Whether a statement returns a row.
    pub(crate) async fn exists(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
    ) -> Result<bool, StoreError> {
        Ok(self.query_one(statement, values, |_| Ok(())).await?.is_some())
    }

    /// Returns a refusal, and undoes what the body has changed before.
    pub(crate) fn refuse<T>(&mut self, refusal: T) -> T {
        self.undo();
        refusal
    }
}

impl Deref for Tx<'_> {
    type Target = dyn EngineTx;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl DerefMut for Tx<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0
    }
}
