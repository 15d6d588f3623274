//! Pipelines: several statements that are sent together and take one round trip.

use futures_util::future::join_all;
use tokio_postgres::{Row, Statement, types::ToSql};

use super::pool::{PgConnection, Values};
use crate::{StoreError, engine::Value};

/// A statement with its parameters.
pub(super) type Query<'a> = (&'a str, Values<'a>);

/// A write that is sent later.
pub(super) type DeferredWrite = (&'static str, Vec<Value<'static>>);

/// The values as the driver takes them.
pub(super) fn bound<'v>(values: &'v [Value<'_>]) -> Vec<&'v (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

/// Maximum number of statements in a pipeline: up to this many futures, `join_all` polls each in
/// order, so the driver queues the statements in order and a `COMMIT` comes last.
pub(super) const MAX_STATEMENTS: usize = 30;

/// Statements that are prepared and can be sent together. Preparing waits for a response, so all
/// are prepared before the first is sent.
pub(super) struct PreparedPipeline<'a> {
    connection: &'a PgConnection,
    statements: Vec<(Statement, Values<'a>)>,
}

impl<'a> PreparedPipeline<'a> {
    pub(super) async fn prepare(
        connection: &'a PgConnection,
        queries: &[Query<'a>],
    ) -> Result<Self, StoreError> {
        assert!(queries.len() <= MAX_STATEMENTS, "join_all may poll longer lists out of order");
        let mut statements = Vec::with_capacity(queries.len());
        for (query, values) in queries {
            statements.push((connection.prepare(query).await?, *values));
        }
        Ok(Self { connection, statements })
    }

    /// Runs the statements in order; returns the rows of each, or the error of the first that
    /// failed. In a transaction, the server refuses the statements after that one.
    pub(super) async fn run(&self) -> Result<Vec<Vec<Row>>, StoreError> {
        let runs = self
            .statements
            .iter()
            .map(|(statement, values)| self.connection.query_prepared(statement, values));
        join_all(runs).await.into_iter().collect()
    }
}
