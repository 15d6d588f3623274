//! Databases on the server that `scripts/suites/with-postgres` runs, one for each test.

use std::{
    path::Path,
    process::Output,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::Value;
use tempfile::TempDir;
use tokio_postgres::{Error, NoTls, SimpleQueryMessage};

use crate::service::{GALLEY, Launch, command, galley_at, json_of};

/// An empty database and a working directory. Both are deleted when this value is dropped.
pub(crate) struct Database {
    name: String,
    dir: TempDir,
}

impl Database {
    pub(crate) fn fresh() -> Self {
        Self::owned_by("galley")
    }

    /// A database owned by this user.
    pub(crate) fn owned_by(user: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{count}", std::process::id());
        run(&server(), &format!("CREATE DATABASE {name} OWNER {user}")).unwrap();
        Self { name, dir: tempfile::tempdir().unwrap() }
    }

    /// The URL of this database for the user without a password.
    pub(crate) fn address(&self) -> String {
        self.in_place_of_postgres(&server())
    }

    /// The URL of the server, changed to select this database.
    pub(crate) fn in_place_of_postgres(&self, server: &str) -> String {
        let (before, after) = server.rsplit_once("/postgres").unwrap();
        format!("{before}/{}{after}", self.name)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A service on this database, whose first account has random credentials.
    pub(crate) fn launch(&self) -> Launch {
        Launch::at(&self.address(), command(GALLEY), self.dir())
    }

    /// Runs `galley` with these arguments on this database and waits for it to exit.
    pub(crate) fn galley(&self, arguments: &[&str]) -> Output {
        galley_at(&self.address(), self.dir(), arguments)
    }

    /// Runs `galley --json`, asserts success and returns the parsed output.
    #[track_caller]
    pub(crate) fn galley_json(&self, arguments: &[&str]) -> Value {
        json_of(&self.galley(&[arguments, &["--json"]].concat()))
    }

    /// Runs SQL. Returns the first column of all rows, as text.
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

/// The numbers of all migrations, as text: those before the first one are recorded, too.
pub(crate) fn migrations() -> Vec<String> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/migrations/postgres");
    let names = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name());
    let names = names.map(|it| it.into_string().unwrap());
    let numbers = names.map(|it| it.split('_').next().unwrap().parse::<u32>().unwrap());
    (1..=numbers.max().unwrap()).map(|it| it.to_string()).collect()
}

fn server() -> String {
    told("GALLEY_TEST_POSTGRES")
}

/// An environment variable that `scripts/suites/with-postgres` sets.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment says where the server of the suites is"
)]
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
