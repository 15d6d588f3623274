//! Databases of their own on the server that `GALLEY_TEST_POSTGRES` names, and a way to them that
//! breaks when it is told to.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU32, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
};

use tokio_postgres::{Client, NoTls};

/// A database that nobody else uses; whoever runs the server throws it away.
pub(crate) struct Database {
    pub(crate) url: String,
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Database {
    #[expect(clippy::disallowed_methods, reason = "a test is told where its server is")]
    pub(crate) fn fresh() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var("GALLEY_TEST_POSTGRES").unwrap_or_else(|_| {
            panic!(
                "GALLEY_TEST_POSTGRES has to name a server: scripts/suites/with-postgres has one"
            )
        });
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("galley_moved_{}_{count}", std::process::id());
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let make = format!("CREATE DATABASE {name}");
        runtime.block_on(async { connect(&server).await.batch_execute(&make).await.unwrap() });
        let (before, _) = server.rsplit_once('/').unwrap();
        let url = format!("{before}/{name}");
        let client = runtime.block_on(connect(&url));
        Self { url, runtime, client }
    }

    #[track_caller]
    pub(crate) fn run(&self, statements: &str) {
        self.runtime.block_on(self.client.batch_execute(statements)).unwrap();
    }

    #[track_caller]
    pub(crate) fn number(&self, query: &str) -> i64 {
        self.runtime.block_on(self.client.query_one(query, &[])).unwrap().get(0)
    }

    /// How many rows a move has brought here, if one is under way.
    pub(crate) fn moved(&self) -> Option<i64> {
        let under_way = "SELECT count(to_regclass('galley_migration_table'))";
        let rows = "SELECT coalesce(sum(rows), 0)::bigint FROM galley_migration_table";
        (self.number(under_way) == 1).then(|| self.number(rows))
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// What becomes of a connection that has carried enough.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    /// It breaks.
    Breaks,
    /// Nothing gets through any more.
    Stalls,
}

/// A way to a database that carries so many bytes to it, and no more.
pub(crate) struct Way {
    pub(crate) url: String,
    /// Hears when it has carried enough.
    pub(crate) spent: Receiver<()>,
}

impl Way {
    pub(crate) fn to(database: &Database, bytes: i64, then: Then) -> Self {
        let (before, name) = database.url.rsplit_once('/').unwrap();
        let (user, server) = before.rsplit_once('@').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{user}@{}/{name}", listener.local_addr().unwrap());
        let (tell, spent) = channel();
        let (server, left) = (server.to_owned(), Arc::new(AtomicI64::new(bytes)));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(&server).unwrap();
                let (back, forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || carry(back, forth, None));
                let limit = (Arc::clone(&left), then, tell.clone());
                std::thread::spawn(move || carry(client, server, Some(&limit)));
            }
        });
        Self { url, spent }
    }
}

fn carry(
    mut from: TcpStream,
    mut to: TcpStream,
    limit: Option<&(Arc<AtomicI64>, Then, Sender<()>)>,
) {
    let mut chunk = [0; 16_384];
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        if let Some((left, then, tell)) = limit {
            let length = i64::try_from(length).unwrap();
            if left.fetch_sub(length, Ordering::Relaxed) < length {
                let _ = tell.send(());
                match then {
                    Then::Breaks => break,
                    // Whoever sends is kept waiting until he gives up or is gone.
                    Then::Stalls => continue,
                }
            }
        }
        if to.write_all(&chunk[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
