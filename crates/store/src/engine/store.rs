//! The store: hands its reads and writes to its engine.

use std::{borrow::Cow, sync::Arc};

use futures_util::future::BoxFuture;

use super::{Body, Dialect, Engine, Read, ReadPath, Value, Write, WriteKind, faults::FaultPoints};
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
    pub(crate) fn write<I: Send + Sync + 'static, T: Send + 'static>(
        &self,
        method: &'static str,
        input: I,
        body: Body<I, T>,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        self.write_as(WriteKind::Ordinary, method, input, body)
    }

    /// Like [`Store::write`], for small changes that an operator must be able to make on a full disk.
    pub(crate) fn write_for_operator<I: Send + Sync + 'static, T: Send + 'static>(
        &self,
        method: &'static str,
        input: I,
        body: Body<I, T>,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        self.write_as(WriteKind::ForOperator, method, input, body)
    }

    /// Like [`Store::write`], for a write of any kind.
    pub(crate) fn write_as<I: Send + Sync + 'static, T: Send + 'static>(
        &self,
        kind: WriteKind,
        method: &'static str,
        input: I,
        body: Body<I, T>,
    ) -> BoxFuture<'_, Result<T, StoreError>> {
        let at_commit = self.faults.at_commit(method);
        let write = Write { input, body, kind, at_commit };
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
        let read = Read::new(path, statement, values, decode);
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

    /// Whether a statement that only reads returns a row.
    pub(crate) async fn exists<'v>(
        &self,
        method: &'static str,
        path: ReadPath,
        statement: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value<'v>>,
    ) -> Result<bool, StoreError> {
        Ok(self.read_one(method, path, statement, values, |_| Ok(())).await?.is_some())
    }
}
