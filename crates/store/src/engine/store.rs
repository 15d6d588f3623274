//! The store: hands its reads and writes to its engine.

use std::{borrow::Cow, sync::Arc};

use futures_util::future::BoxFuture;

use super::{
    Body, Dialect, Engine, Read, ReadPath, Value, Write, WriteKind, faults::FaultPoints, fetch, run,
};
use crate::{StoreError, stored_row::Row};

/// What a method of a [`Store`] returns. It is boxed, so that the method is compiled once, with the
/// store: the body of an `async fn` is compiled again wherever it is awaited.
pub type StoreFuture<'s, T> = BoxFuture<'s, Result<T, StoreError>>;

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
    ) -> StoreFuture<'_, T> {
        self.write_as(WriteKind::Ordinary, method, input, body)
    }

    /// Like [`Store::write`], for small changes that an operator must be able to make on a full disk.
    pub(crate) fn write_for_operator<I: Send + Sync + 'static, T: Send + 'static>(
        &self,
        method: &'static str,
        input: I,
        body: Body<I, T>,
    ) -> StoreFuture<'_, T> {
        self.write_as(WriteKind::ForOperator, method, input, body)
    }

    /// Like [`Store::write`], for a write of any kind.
    pub(crate) fn write_as<I: Send + Sync + 'static, T: Send + 'static>(
        &self,
        kind: WriteKind,
        method: &'static str,
        input: I,
        body: Body<I, T>,
    ) -> StoreFuture<'_, T> {
        let at_commit = self.faults.at_commit(method);
        let write = Write { input, body, kind, at_commit };
        self.with_faults_of(method, Box::pin(run(&*self.engine, write)))
    }

    /// Runs a statement that only reads.
    pub(crate) fn read<'v, T: Send + 'static>(
        &self,
        method: &'static str,
        path: ReadPath,
        statement: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value<'v>>,
        decode: impl Fn(&Row<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, Vec<T>> {
        let read = Read::new(path, statement, values, decode);
        self.with_faults_of(method, Box::pin(fetch(&*self.engine, read)))
    }

    /// Runs a statement that reads at most one row.
    pub(crate) fn read_one<'v, T: Send + 'static>(
        &self,
        method: &'static str,
        path: ReadPath,
        statement: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value<'v>>,
        decode: impl Fn(&Row<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'_, Option<T>> {
        let rows = self.read(method, path, statement, values, decode);
        Box::pin(async { Ok(rows.await?.into_iter().next()) })
    }

    /// Whether a statement that only reads returns a row.
    pub(crate) fn exists<'v>(
        &self,
        method: &'static str,
        path: ReadPath,
        statement: impl Into<Cow<'static, str>>,
        values: impl IntoIterator<Item = Value<'v>>,
    ) -> StoreFuture<'_, bool> {
        let rows = self.read(method, path, statement, values, |_| Ok(()));
        Box::pin(async { Ok(!rows.await?.is_empty()) })
    }
}
