//! The write transaction that queued writes share, with the state they have in common.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use galley_domain::id::{AccountId, TemplateId};
use jiff::Timestamp;
use rusqlite::Connection;

use super::out_of_ids;
use crate::{
    StoreError,
    engine::{AccountState, Dialect},
    sqlite::{
        buffered_index::{BufferedIndexes, Changes, Hash},
        columns::{key, millis},
        statements::execute,
    },
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

/// What is left to do when a transaction is committed.
pub(super) struct ClosedBatch {
    /// The newest event of each account that has new ones.
    pub(super) newest_seqs: Vec<(AccountId, u64)>,
    pub(super) index_changes: IndexChanges,
}

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

    /// The template that has the unique key.
    pub(in crate::sqlite) fn template_with_key(
        &self,
        unique_key: Hash,
    ) -> Result<Option<TemplateId>, StoreError> {
        self.indexes.names.find(&self.index_changes.names, &self.connection, unique_key)
    }

    /// Adds the unique key of a template that this transaction inserts.
    pub(in crate::sqlite) fn add_unique_key(&mut self, unique_key: Hash, id: TemplateId) {
        self.index_changes.names.add(unique_key, id);
    }

    /// Frees the unique key of a template.
    pub(in crate::sqlite) fn remove_unique_key(
        &mut self,
        unique_key: Hash,
        id: TemplateId,
    ) -> Result<(), StoreError> {
        let changes = &mut self.index_changes.names;
        self.indexes.names.remove(changes, &self.connection, unique_key, id)
    }

    /// The template that was created with the idempotency key.
    pub(in crate::sqlite) fn template_created_with(
        &self,
        idempotency_key: Hash,
    ) -> Result<Option<TemplateId>, StoreError> {
        let (keys, changes) = (&self.indexes.idempotency_keys, &self.index_changes);
        keys.find(&changes.idempotency_keys, &self.connection, idempotency_key)
    }

    /// Adds the key of an idempotency record that this transaction inserts.
    pub(in crate::sqlite) fn add_idempotency_key(&mut self, key: Hash, id: TemplateId) {
        self.index_changes.idempotency_keys.add(key, id);
    }

    /// Allocates a template id. Ids increase with time and with every template in the store.
    pub(in crate::sqlite) fn next_template(
        &mut self,
        at: Timestamp,
    ) -> Result<TemplateId, StoreError> {
        let last = match self.last_template {
            Some(last) => last,
            // The row with the highest id may have been deleted. An id up to the last one that was
            // merged is not used again: the indexes are taken to contain all rows up to it.
            None => last_id(&self.connection, "SELECT coalesce(max(id), 0) FROM template")?
                .max(self.indexes.highest_id()),
        };
        let next = galley_domain::id::next(last, millis(at));
        self.last_template = Some(next);
        TemplateId::new(next).ok_or_else(out_of_ids)
    }

    /// Runs work that may refuse after it has changed something: [`Batch::refuse`] makes it undo
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
            self.restore(savepoint);
        }
        self.connection.prepare_cached("RELEASE refusable")?.execute([])?;
        Ok(outcome)
    }

    /// Undoes the work of [`Batch::with_savepoint`] when it ends.
    pub(crate) fn refuse(&mut self) {
        self.savepoint.as_mut().expect("only work with a savepoint refuses").is_refused = true;
    }

    fn restore(&mut self, savepoint: Savepoint) {
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

    /// The sequence number of the account's newest event, including those of this transaction.
    pub(in crate::sqlite) fn newest_seq(&mut self, account: AccountId) -> Result<u64, StoreError> {
        Ok(self.existing_account(account)?.newest_event())
    }

    /// Whether the account exists and is not deleted.
    pub(crate) fn has_account(&mut self, account: AccountId) -> Result<bool, StoreError> {
        Ok(self.find_account(account)?.is_some_and(|it| !it.is_deleted))
    }

    /// Applies changed settings of the account, or its deletion, to the later writes of this transaction.
    pub(in crate::sqlite) fn reread_account(
        &mut self,
        account: AccountId,
    ) -> Result<(), StoreError> {
        let changed = read_account(&self.connection, account)?;
        if let (Some(state), Some(changed)) = (self.find_account(account)?, changed) {
            state.set_settings_of(&changed);
        }
        Ok(())
    }

    /// An account that must not be deleted.
    fn existing_account(&mut self, account: AccountId) -> Result<&mut AccountState, StoreError> {
        let state = self.account(account)?;
        if state.is_deleted {
            return Err(rusqlite::Error::QueryReturnedNoRows.into());
        }
        Ok(state)
    }

    /// The account with the changes of this transaction. Its row is updated once per transaction,
    /// in [`Batch::close`].
    pub(in crate::sqlite) fn account(
        &mut self,
        account: AccountId,
    ) -> Result<&mut AccountState, StoreError> {
        Ok(self.find_account(account)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
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

    /// Invalidates cached credentials and accounts when this transaction commits.
    pub(in crate::sqlite) fn credentials_changed(&mut self) {
        self.credentials_changed = true;
    }

    /// Writes the per-transaction state back, at the end of the transaction.
    pub(super) fn close(&mut self) -> Result<ClosedBatch, StoreError> {
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
        Ok(ClosedBatch { newest_seqs, index_changes: std::mem::take(&mut self.index_changes) })
    }

    /// The connection, whose transaction is still open.
    pub(super) fn into_connection(self) -> Connection {
        self.connection
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

fn last_id(connection: &Connection, query: &'static str) -> Result<u64, StoreError> {
    let last: i64 = connection.prepare_cached(query)?.query_row([], |row| row.get(0))?;
    Ok(u64::try_from(last).unwrap_or(0))
}
