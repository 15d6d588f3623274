//! The store: hands its reads and writes to its engine.

use std::{borrow::Cow, sync::Arc};

use futures_util::future::BoxFuture;

use super::{Body, Dialect, Engine, Read, ReadPath, Select, Value, Write, faults::FaultPoints};
use crate::{StoreError, stored_row::Row};

/// A database that holds everything the service stores.
///
/// Every method is one transaction, unless it says otherwise: it is applied completely, with its
/// events and records, or not at all. Once a method has returned `Ok`, its changes are durable. A
/// missing object is part of the outcome, not an error.
pub struct Store {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) faults: FaultPoints,
}

impl Store {
    pub(crate) fn of(engine: impl Engine + 'static) -> Self {
        Self { engine: Arc::new(engine), faults: FaultPoints::default() }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.engine.dialect()
    }

    /// Runs a body in a transaction, and returns when its changes are durable. `method` names the
    /// operation for the faults of tests.
    pub(crate) fn write<I, T>(
        &self,
        method: &'static str,
        input: I,
        body: Body<I, T>,
    ) -> BoxFuture<'_, Result<T, StoreError>>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(method, Write::new(input, body))
    }

    /// Like [`Store::write`], for small changes that an operator must be able to make on a full disk.
    pub(crate) fn write_for_operator<I, T>(
        &self,
        method: &'static str,
        input: I,
        body: Body<I, T>,
    ) -> BoxFuture<'_, Result<T, StoreError>>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(method, Write { is_for_operator: true, ..Write::new(input, body) })
    }

    /// Like [`Store::write`], for writes that carry many bytes.
    pub(crate) fn write_large<I, T>(
        &self,
        method: &'static str,
        input: I,
        body: Body<I, T>,
    ) -> BoxFuture<'_, Result<T, StoreError>>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(method, Write { is_large: true, ..Write::new(input, body) })
    }

    /// Like [`Store::write`], for a body that on SQLite refuses only before its first write: it needs no
    /// savepoint, which would copy each page that the body changes.
    pub(crate) fn write_after_checks<I, T>(
        &self,
        method: &'static str,
        input: I,
        body: Body<I, T>,
    ) -> BoxFuture<'_, Result<T, StoreError>>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.run(method, Write { can_undo: false, ..Write::new(input, body) })
    }

    fn run<I, T>(
        &self,
        method: &'static str,
        write: Write<I, T>,
    ) -> BoxFuture<'_, Result<T, StoreError>>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        let write = Write { at_commit: self.faults.at_commit(method), ..write };
        Box::pin(self.with_faults_of(method, super::run(&*self.engine, write)))
    }

    /// Runs a statement that only reads.
    pub(crate) fn read<'v, T: Send + 'static>(
        &self,
        method: &'static str,
        path: ReadPath,
        statement: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value<'v>>,
        decode: impl Fn(&Row<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> BoxFuture<'_, Result<Vec<T>, StoreError>> {
        let values = values.into_iter().map(Value::into_owned).collect();
        let select = Select { path, statement: statement.into(), values };
        let read = Read::new(select, decode);
        Box::pin(self.with_faults_of(method, super::fetch(&*self.engine, read)))
    }

    /// Runs a statement that reads at most one row.
    pub(crate) async fn read_one<'v, T: Send + 'static>(
        &self,
        method: &'static str,
        path: ReadPath,
        statement: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value<'v>>,
        decode: impl Fn(&Row<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.read(method, path, statement, values, decode).await?.into_iter().next())
    }
}
