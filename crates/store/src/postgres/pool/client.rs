//! An open connection with its prepared statements.

use std::{
    collections::HashMap,
    ops::Deref,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error, Statement};

/// An open connection. Dropping it closes the connection at once.
pub(super) struct PgClient {
    client: Client,
    /// The task that drives the connection.
    driver: JoinHandle<()>,
    /// Prepared statements by their text. The store has a fixed set of statements.
    statements: Mutex<HashMap<String, Statement>>,
}

impl PgClient {
    pub(super) fn new(client: Client, driver: JoinHandle<()>) -> Self {
        Self { client, driver, statements: Mutex::default() }
    }

    /// Prepares a statement, unless it is already prepared.
    pub(super) async fn prepare_cached(&self, text: &str) -> Result<Statement, Error> {
        let known = self.statements().get(text).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(text).await?;
        self.statements().insert(text.to_owned(), statement.clone());
        Ok(statement)
    }

    fn statements(&self) -> MutexGuard<'_, HashMap<String, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for PgClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for PgClient {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
