//! The store on SQLite: one file, one writer thread that commits many writes with one sync, and
//! readers that run where they are called.

mod accounts;
mod connection;
mod credentials;
mod fold;
mod templates;
mod upkeep;
mod writer;

use std::{
    fmt::Debug,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use galley_domain::id::{AccountId, TemplateId};
use jiff::Timestamp;
use rusqlite::{Connection, Row, RowIndex, types::FromSql};

use crate::{
    Account, AccountCreation, Creation, Credential, CredentialAddition, CredentialId,
    CredentialKind, Event, Finding, NewAccount, NewCredential, NewTemplate, PhoneAddition, Record,
    SecretHash, Store, StoreError, StoredTemplate, Sweep,
};
use writer::Writer;

/// When a write is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledge {
    /// After its transaction is on disk.
    #[default]
    AfterCommit,
    /// Before. Wrong on purpose: the kill harness uses it to show that it would notice.
    #[cfg(debug_assertions)]
    BeforeCommit,
}

/// How a SQLite store is opened.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    /// How many writes may wait; one more is answered [`StoreError::Busy`].
    pub queue: usize,
    /// When a write is answered.
    pub acknowledge: Acknowledge,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { queue: 1_024, acknowledge: Acknowledge::default() }
    }
}

/// A store in one SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    // Dropped before the writer, so that its connection is the last one and folds the log into
    // the file when it closes.
    readers: Mutex<Vec<Connection>>,
    writer: Writer,
}

impl SqliteStore {
    /// Opens the file, making it and bringing its schema up to date where needed. Refuses a
    /// SQLite that can corrupt a database, and a schema newer than this program.
    pub fn open(path: &Path, options: &SqliteOptions) -> Result<Self, StoreError> {
        let connection = connection::open_for_writing(path)?;
        let writer = Writer::start(path.to_owned(), connection, options)?;
        Ok(Self { path: path.to_owned(), readers: Mutex::default(), writer })
    }

    /// Runs a read on a connection of its own, right here: a point read takes microseconds.
    fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let idle = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connection::open_for_reading(&self.path)?,
        };
        let outcome = work(&connection);
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        outcome
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create_template(&self, new: NewTemplate) -> Result<Creation, StoreError> {
        // Hashing is done here, where many threads can do it, and not by the one writer.
        let hashes = templates::Hashes::of(&new);
        self.writer.write(move |batch| templates::create(batch, &new, &hashes)).await
    }

    async fn template(
        &self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<StoredTemplate>, StoreError> {
        self.read(|connection| templates::template(connection, account, id))
    }

    async fn record(
        &self,
        account: AccountId,
        key: [u8; 16],
        at: Timestamp,
    ) -> Result<Option<Record>, StoreError> {
        self.read(|connection| templates::record(connection, account, key, at))
    }

    async fn events(
        &self,
        account: AccountId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.read(|connection| templates::events(connection, account, after, limit))
    }

    async fn create_account(&self, new: NewAccount) -> Result<AccountCreation, StoreError> {
        self.writer.write(move |batch| accounts::create(batch, &new)).await
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.read(accounts::all)
    }

    async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        self.read(|connection| accounts::one(connection, id))
    }

    async fn set_account_disabled(
        &self,
        id: AccountId,
        disabled_at: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        self.writer.write(move |batch| accounts::set_disabled(batch, id, disabled_at)).await
    }

    async fn add_phone(
        &self,
        account: AccountId,
        phone: &str,
        at: Timestamp,
    ) -> Result<PhoneAddition, StoreError> {
        let phone = phone.to_owned();
        self.writer.write(move |batch| accounts::add_phone(batch, account, &phone, at)).await
    }

    async fn phones(&self, account: AccountId) -> Result<Vec<String>, StoreError> {
        self.read(|connection| accounts::phones(connection, account))
    }

    async fn phone_owner(&self, phone: &str) -> Result<Option<AccountId>, StoreError> {
        self.read(|connection| accounts::phone_owner(connection, phone))
    }

    async fn add_credential(
        &self,
        account: AccountId,
        new: NewCredential,
        at: Timestamp,
    ) -> Result<CredentialAddition, StoreError> {
        self.writer.write(move |batch| credentials::add(batch, account, &new, at)).await
    }

    async fn rotate_credential(
        &self,
        old: CredentialId,
        new: NewCredential,
        old_ends_at: Timestamp,
        at: Timestamp,
    ) -> Result<CredentialAddition, StoreError> {
        self.writer.write(move |batch| credentials::rotate(batch, old, &new, old_ends_at, at)).await
    }

    async fn revoke_credential(&self, id: CredentialId, at: Timestamp) -> Result<bool, StoreError> {
        self.writer.write(move |batch| credentials::revoke(batch, id, at)).await
    }

    async fn credentials(&self, account: AccountId) -> Result<Vec<Credential>, StoreError> {
        self.read(|connection| credentials::of_account(connection, account))
    }

    async fn credential(
        &self,
        kind: CredentialKind,
        hash: SecretHash,
    ) -> Result<Option<Credential>, StoreError> {
        self.read(|connection| credentials::by_hash(connection, kind, hash))
    }

    async fn credential_epoch(&self) -> Result<u64, StoreError> {
        self.read(credentials::epoch)
    }

    async fn sweep(&self, from: Sweep, at: Timestamp) -> Result<Sweep, StoreError> {
        let (old, next) = self.read(|connection| upkeep::old_records(connection, from, at))?;
        let removed = if old.is_empty() {
            0
        } else {
            self.writer.write(move |batch| upkeep::forget_records(batch, &old, at)).await?
        };
        Ok(Sweep { at: next, removed })
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.read(|connection| credentials::epoch(connection).map(|_| ()))
    }

    async fn examine(&self) -> Result<Vec<Finding>, StoreError> {
        self.read(upkeep::examine)
    }

    async fn backup(&self, path: &Path) -> Result<(), StoreError> {
        self.read(|connection| upkeep::backup(connection, path))
    }
}

/// A moment as it is kept: whole milliseconds.
fn millis(at: Timestamp) -> i64 {
    at.as_millisecond()
}

/// Reads a column, by name or (quicker) by place, and turns it into what it means; a row that
/// makes no sense is damage.
fn column<T, K: FromSql>(
    row: &Row<'_>,
    column: impl RowIndex + Debug,
    meaning: impl FnOnce(K) -> Option<T>,
) -> Result<T, StoreError> {
    let kept: K = row.get(column)?;
    let damaged = || StoreError::Failed(Arc::new(Damaged { column: format!("{column:?}") }));
    meaning(kept).ok_or_else(damaged)
}

/// A moment that may be missing.
fn moment(row: &Row<'_>, name: impl RowIndex + Debug) -> Result<Option<Timestamp>, StoreError> {
    column(row, name, |kept: Option<i64>| match kept {
        Some(millis) => Timestamp::from_millisecond(millis).ok().map(Some),
        None => Some(None),
    })
}

/// A count, a version or a sequence number.
fn number(row: &Row<'_>, name: impl RowIndex + Debug) -> Result<u64, StoreError> {
    column(row, name, |kept: i64| u64::try_from(kept).ok())
}

/// An id for a statement.
fn key(id: u64) -> i64 {
    i64::try_from(id).expect("ids are below 2^53")
}

/// A row holds what no version of this program writes.
#[derive(Debug, thiserror::Error)]
#[error("the column {column} holds something that makes no sense")]
struct Damaged {
    column: String,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full(Arc::new(error)),
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly,
            ) => Self::Unavailable(Arc::new(error)),
            _ => Self::Failed(Arc::new(error)),
        }
    }
}
