//! Databases of the server that `scripts/suites/with-postgres` runs, one for each test.

use std::{
    path::Path,
    process::Output,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;
use tempfile::TempDir;
use tokio_postgres::{Error, NoTls, SimpleQueryMessage};

use crate::service::{GALLEY, Launch, command, galley_at, json_of};

/// An empty database, and a directory for those who work on it. It is dropped with this.
pub(crate) struct Database {
    name: String,
    dir: TempDir,
}

impl Database {
    pub(crate) fn fresh() -> Self {
        Self::owned_by("galley")
    }

    /// One that belongs to this user.
    pub(crate) fn owned_by(user: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("of_a_test_{}_{count}", std::process::id());
        run(&server(), &format!("CREATE DATABASE {name} OWNER {user}")).unwrap();
        Self { name, dir: tempfile::tempdir().unwrap() }
    }

    /// Where it is for whoever needs no password.
    pub(crate) fn address(&self) -> String {
        self.in_place_of_postgres(&server())
    }

    /// An address of the server, as an address of this database.
    pub(crate) fn in_place_of_postgres(&self, server: &str) -> String {
        let (before, after) = server.rsplit_once("/postgres").unwrap();
        format!("{before}/{}{after}", self.name)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A service on it, whose first account has what chance gives it.
    pub(crate) fn launch(&self) -> Launch {
        Launch::at(&self.address(), command(GALLEY), self.dir())
    }

    /// Runs `galley` with these arguments on it, to its end.
    pub(crate) fn galley(&self, arguments: &[&str]) -> Output {
        galley_at(&self.address(), self.dir(), arguments)
    }

    /// The same, where it has to succeed and answers in JSON.
    #[track_caller]
    pub(crate) fn galley_json(&self, arguments: &[&str]) -> Value {
        json_of(&self.galley(&[arguments, &["--json"]].concat()))
    }

    /// Runs SQL; answers the first column of all rows, as text.
    #[track_caller]
    pub(crate) fn sql(&self, statements: &str) -> Vec<String> {
        run(&self.address(), statements).unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let dropped = run(&server(), &format!("DROP DATABASE {} WITH (FORCE)", self.name));
        assert!(dropped.is_ok() || std::thread::panicking(), "{dropped:?}");
    }
}

/// The numbers of all migrations.
pub(crate) fn migrations() -> Vec<String> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/migrations/postgres");
    (1..=std::fs::read_dir(dir).unwrap().count()).map(|it| it.to_string()).collect()
}

fn server() -> String {
    told("GALLEY_TEST_POSTGRES")
}

/// What `scripts/suites/with-postgres` tells.
#[expect(clippy::disallowed_methods, reason = "whoever runs the suites says where their server is")]
pub(crate) fn told(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is missing: scripts/suites/with-postgres sets it"))
}

fn run(address: &str, statements: &str) -> Result<Vec<String>, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
        tokio::spawn(connection);
        let messages = client.simple_query(statements).await?.into_iter();
        Ok(messages.filter_map(first_column).collect())
    })
}

fn first_column(message: SimpleQueryMessage) -> Option<String> {
    match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
        _ => None,
    }
}
