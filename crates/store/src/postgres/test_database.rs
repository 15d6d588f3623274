//! New databases on the server of the suites, which is deleted as a whole.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_postgres::{Client, NoTls};

/// Creates an empty database and returns its address.
pub(crate) async fn create() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    #[expect(
        clippy::disallowed_methods,
        reason = "the test server's address is an environment variable"
    )]
    let server = std::env::var("GALLEY_TEST_POSTGRES").expect("GALLEY_TEST_POSTGRES is set");
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("galley_unit_{}_{number}", std::process::id());
    connect(&server).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let (host, database) = server.rsplit_once('/').unwrap();
    let options = database.split_once('?').map_or("", |(_, options)| options);
    format!("{host}/{name}?{options}")
}

/// Connects to a database.
pub(crate) async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
