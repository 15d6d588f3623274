//! The write transaction that queued writes share, with the state they have in common.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use async_trait::async_trait;
use galley_domain::id::{AccountId, TemplateId};
use jiff::Timestamp;
use rusqlite::Connection;

use crate::{
    Author, StoreError,
    decisions::audit::AuditedChange,
    encoding::{actor_key, key, millis},
    engine::{AccountState, Dialect, EachRow, EngineTx, Value, values},
    error::failed,
    sqlite::{
        buffered_index::{BufferedIndexes, Changes, Hash},
        statements::{execute, rows},
    },
    stored_row::StoredRow as _,
};

/// One open write transaction. It owns its connection, so that a body that is written for both
/// engines can hold it.
pub(in crate::sqlite) struct Batch {
    connection: Connection,
    indexes: Arc<BufferedIndexes>,
    index_changes: IndexChanges,
    last_template: Option<u64>,
    /// Each is read once, regardless of the number of writes.
    accounts: HashMap<AccountId, AccountState>,
    credentials_changed: bool,
    savepoint: Option<Savepoint>,
}

/// What the transaction had in memory when a savepoint was set.
struct Savepoint {
    last_template: Option<u64>,
    credentials_changed: bool,
    /// The accounts that have been used since, as they were.
    accounts: Vec<(AccountId, Option<AccountState>)>,
    names: usize,
    idempotency_keys: usize,
    is_refused: bool,
}

/// What a transaction changes in the buffered indexes, which is applied once it is committed.
#[derive(Default)]
pub(super) struct IndexChanges {
    names: Changes,
    idempotency_keys: Changes,
}

impl IndexChanges {
    pub(super) fn apply(self, indexes: &BufferedIndexes) {
        indexes.names.apply(self.names);
        indexes.idempotency_keys.apply(self.idempotency_keys);
    }
}

/// The newest event of each account that has new ones.
pub(super) type NewestSeqs = Vec<(AccountId, u64)>;

impl Batch {
    /// The shared state of a transaction that was just begun on this connection.
    pub(super) fn new(connection: Connection, indexes: Arc<BufferedIndexes>) -> Self {
        Self {
            connection,
            indexes,
            index_changes: IndexChanges::default(),
            last_template: None,
            accounts: HashMap::new(),
            credentials_changed: false,
            savepoint: None,
        }
    }

    pub(in crate::sqlite) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs work that may refuse after it has changed something: [`EngineTx::undo`] makes it undo
    /// everything, the state in memory included, without an effect on the other writes.
    pub(in crate::sqlite) fn with_savepoint<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let IndexChanges { names, idempotency_keys } = &self.index_changes;
        self.savepoint = Some(Savepoint {
            last_template: self.last_template,
            credentials_changed: self.credentials_changed,
            accounts: Vec::new(),
            names: names.position(),
            idempotency_keys: idempotency_keys.position(),
            is_refused: false,
        });
        self.connection.prepare_cached("SAVEPOINT refusable")?.execute([])?;
        let outcome = work(self)?;
        if let Some(savepoint) = self.savepoint.take().filter(|it| it.is_refused) {
            self.connection.prepare_cached("ROLLBACK TO refusable")?.execute([])?;
            self.last_template = savepoint.last_template;
            self.credentials_changed = savepoint.credentials_changed;
            for (account, before) in savepoint.accounts {
                match before {
                    Some(before) => self.accounts.insert(account, before),
                    None => self.accounts.remove(&account),
                };
            }
            self.index_changes.names.undo_to(savepoint.names);
            self.index_changes.idempotency_keys.undo_to(savepoint.idempotency_keys);
        }
        self.connection.prepare_cached("RELEASE refusable")?.execute([])?;
        Ok(outcome)
    }

    fn find_account(
        &mut self,
        account: AccountId,
    ) -> Result<Option<&mut AccountState>, StoreError> {
        if let Some(savepoint) = &mut self.savepoint
            && savepoint.accounts.iter().all(|(known, _)| *known != account)
        {
            savepoint.accounts.push((account, self.accounts.get(&account).cloned()));
        }
        match self.accounts.entry(account) {
            Entry::Occupied(state) => Ok(Some(state.into_mut())),
            Entry::Vacant(entry) => {
                let state = read_account(&self.connection, account)?;
                Ok(state.map(|state| entry.insert(state)))
            }
        }
    }

    /// Writes the per-transaction state back, at the end of the transaction. Returns what is left to do
    /// when it is committed.
    pub(super) fn close(&mut self) -> Result<(NewestSeqs, IndexChanges), StoreError> {
        let Self { connection, indexes, index_changes, accounts, .. } = self;
        indexes.names.merge(&mut index_changes.names, connection)?;
        indexes.idempotency_keys.merge(&mut index_changes.idempotency_keys, connection)?;
        let mut newest_seqs = Vec::new();
        for (account, state) in accounts {
            if let Some(changes) = state.changes(*account) {
                execute(connection, AccountState::UPDATE, &changes)?;
            }
            newest_seqs.extend(state.new_event().map(|newest| (*account, newest)));
        }
        if self.credentials_changed {
            self.connection.execute("UPDATE credential_epoch SET epoch = epoch + 1", [])?;
        }
        Ok((newest_seqs, std::mem::take(&mut self.index_changes)))
    }

    /// The connection, whose transaction is still open.
    pub(super) fn into_connection(self) -> Connection {
        self.connection
    }
}

#[async_trait]
impl EngineTx for Batch {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn rows(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
        each: &mut EachRow<'_>,
    ) -> Result<(), StoreError> {
        rows(&self.connection, statement, values, each)
    }

    async fn execute(&mut self, statement: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        execute(&self.connection, statement, values)
    }

    fn defer(&mut self, statement: &'static str, values: &[Value<'_>]) -> Result<(), StoreError> {
        execute(&self.connection, statement, values).map(drop)
    }

    async fn credentials_changed(&mut self) -> Result<(), StoreError> {
        self.credentials_changed = true;
        Ok(())
    }

    fn name_parameter(&mut self, unique_key: Hash) -> Result<Value<'static>, StoreError> {
        let changes = &self.index_changes.names;
        Ok(self.indexes.names.find(changes, &self.connection, unique_key)?.into())
    }

    fn record_parameter(&mut self, key: Hash) -> Result<Value<'static>, StoreError> {
        let changes = &self.index_changes.idempotency_keys;
        Ok(self.indexes.idempotency_keys.find(changes, &self.connection, key)?.into())
    }

    /// Ids increase with time and with every template in the store.
    fn next_template(
        &mut self,
        _account: AccountId,
        at: Timestamp,
    ) -> Result<TemplateId, StoreError> {
        let last = if let Some(last) = self.last_template {
            last
        } else {
            // The row with the highest id may have been deleted. An id up to the last one that was
            // merged is not used again: the indexes are taken to contain all rows up to it.
            let select = "SELECT coalesce(max(id), 0) FROM template";
            let mut query = self.connection.prepare_cached(select)?;
            query.query_row([], |row| Ok(row.number(0)))??.max(self.indexes.highest_id())
        };
        let next = galley_domain::id::next(last, millis(at));
        self.last_template = Some(next);
        TemplateId::new(next).ok_or_else(|| failed("no ids are left"))
    }

    fn add_unique_key(&mut self, unique_key: Hash, template: TemplateId) {
        self.index_changes.names.add(unique_key, template);
    }

    fn add_idempotency_key(&mut self, key: Hash, template: TemplateId) {
        self.index_changes.idempotency_keys.add(key, template);
    }

    fn release_unique_key(&mut self, template: TemplateId) -> Result<(), StoreError> {
        let select = "SELECT unique_key FROM template WHERE id = ?1";
        let mut query = self.connection.prepare_cached(select)?;
        let held: Option<Hash> = query.query_row([key(template.get())], |row| row.get(0))?;
        // A deleted template holds none.
        let Some(unique_key) = held else { return Ok(()) };
        let changes = &mut self.index_changes.names;
        self.indexes.names.remove(changes, &self.connection, unique_key, template)
    }

    fn undo(&mut self) {
        self.savepoint.as_mut().expect("only work with a savepoint refuses").is_refused = true;
    }

    async fn lock(&mut self, account: AccountId) -> Result<bool, StoreError> {
        Ok(self.find_account(account)?.is_some_and(|it| !it.is_deleted))
    }

    /// Its row is updated once per transaction, in [`Batch::close`].
    fn account(&mut self, account: AccountId) -> Result<&mut AccountState, StoreError> {
        Ok(self.find_account(account)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
    }

    fn account_changed(&mut self, account: AccountId) -> Result<(), StoreError> {
        let changed = read_account(&self.connection, account)?;
        if let (Some(state), Some(changed)) = (self.find_account(account)?, changed) {
            state.set_settings_of(&changed);
        }
        Ok(())
    }

    fn newest_event(&mut self, account: AccountId) -> Result<Option<u64>, StoreError> {
        let state = self.account(account)?;
        if state.is_deleted {
            return Err(rusqlite::Error::QueryReturnedNoRows.into());
        }
        Ok(Some(state.newest_event()))
    }

    fn audit(
        &mut self,
        account: AccountId,
        change: AuditedChange,
        by: Author,
    ) -> Result<(), StoreError> {
        let AuditedChange { kind, subject, details } = change;
        let insert = "INSERT INTO audit (account_id, at, actor, kind, subject, details) \
                      VALUES ($1, $2, $3, $4, $5, $6)";
        let (actor, kind, details) = (actor_key(by.actor), kind.as_str(), details.to_string());
        let values = values![account, by.at, actor, kind, subject, details];
        execute(&self.connection, insert, &values).map(drop)
    }
}

fn read_account(
    connection: &Connection,
    account: AccountId,
) -> Result<Option<AccountState>, StoreError> {
    let mut query = connection.prepare_cached(AccountState::select(Dialect::Sqlite))?;
    let mut rows = query.query([key(account.get())])?;
    rows.next()?.map(AccountState::read).transpose()
}
