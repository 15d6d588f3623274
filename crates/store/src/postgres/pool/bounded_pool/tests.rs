//! The pool, with a server that only completes the handshake, once the test allows it.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    time,
};

use super::*;
use crate::postgres::{address::PostgresAddress, pool::ACQUIRE_TIMEOUT};

/// `AuthenticationOk` and `ReadyForQuery`.
const READY: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

struct Server {
    pool: Arc<PgPool>,
    accepted: Arc<AtomicUsize>,
    responds: watch::Sender<bool>,
}

impl Server {
    /// A server, and a pool with this many connections to it.
    async fn start(responds: bool, max_size: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = format!("postgres://galley@127.0.0.1:{port}/galley?sslmode=disable");
        let tls = Tls::new(&address.parse::<PostgresAddress>().unwrap()).unwrap();
        let deadline = Duration::from_secs(5);
        let pool = Arc::new(PgPool::new(
            &address.parse().unwrap(),
            &tls,
            deadline,
            max_size,
            &PostgresOptions::default(),
            &Arc::default(),
        ));
        let (responds, may_respond) = watch::channel(responds);
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(respond(client, may_respond.clone()));
            }
        });
        Self { pool, accepted, responds }
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    /// The error of a call that gets no connection, and how long the call takes.
    async fn refused(&self) -> (StoreError, Duration) {
        time::pause();
        let started = Instant::now();
        let Err(error) = self.pool.get().await else { panic!("got a connection") };
        let waited = started.elapsed();
        time::resume();
        (error, waited)
    }
}

async fn respond(mut client: TcpStream, mut may_respond: watch::Receiver<bool>) {
    let mut buffer = [0; 1_024];
    assert!(client.read(&mut buffer).await.unwrap() > 0);
    may_respond.wait_for(|it| *it).await.unwrap();
    client.write_all(READY).await.unwrap();
    while client.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
}

#[tokio::test]
async fn a_returned_connection_is_used_again_and_a_discarded_one_is_not() {
    let server = Server::start(true, 2).await;
    drop(server.pool.get().await.unwrap());
    let connection = server.pool.get().await.unwrap();
    assert_eq!(server.accepted(), 1);
    connection.discard();
    drop(connection);
    drop(server.pool.get().await.unwrap());
    assert_eq!(server.accepted(), 2);
    server.pool.close_idle();
    drop(server.pool.get().await.unwrap());
    assert_eq!(server.accepted(), 3);
}

#[tokio::test]
async fn a_call_beyond_the_maximum_waits_for_a_connection_and_then_fails_as_busy() {
    let server = Server::start(true, 1).await;
    let connection = server.pool.get().await.unwrap();
    let (error, waited) = server.refused().await;
    assert!(matches!(error, StoreError::Busy), "{error:?}");
    assert!(waited >= ACQUIRE_TIMEOUT, "{waited:?}");
    let (waiting, ()) = tokio::join!(server.pool.get(), async { drop(connection) });
    assert!(waiting.is_ok());
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn calls_during_the_pause_after_a_failed_connect_report_its_cause() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("postgresql://u@{}/d?sslmode=disable", listener.local_addr().unwrap());
    drop(listener);
    let tls = Tls::new(&address.parse::<PostgresAddress>().unwrap()).unwrap();
    let deadline = Duration::from_secs(5);
    let pool = Arc::new(PgPool::new(
        &address.parse().unwrap(),
        &tls,
        deadline,
        1,
        &PostgresOptions::default(),
        &Arc::default(),
    ));
    for _ in 0..2 {
        let Err(StoreError::Unavailable(cause)) = pool.get().await else { panic!("connected") };
        let cause = format!("{cause:?}");
        assert!(cause.contains("Connect") && cause.contains("refused"), "{cause}");
    }
}

#[tokio::test]
async fn a_connection_that_opens_after_its_caller_gave_up_serves_the_next_call() {
    let server = Server::start(false, 1).await;
    let (error, waited) = server.refused().await;
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!((ACQUIRE_TIMEOUT..CONNECT_TIMEOUT).contains(&waited), "{waited:?}");
    let (error, waited) = server.refused().await;
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(waited < ACQUIRE_TIMEOUT, "{waited:?} after a failed connect");
    server.responds.send_replace(true);
    while server.pool.state().idle.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(server.pool.get().await.is_ok());
    assert_eq!(server.accepted(), 1);
}

/// Reports how many connections its pool can lend when it is dropped.
struct Slot(Arc<PgPool>, mpsc::UnboundedSender<usize>);

impl Drop for Slot {
    fn drop(&mut self) {
        let PoolActivity { size, in_use, .. } = self.0.activity("test");
        self.1.send(size - in_use).unwrap();
    }
}

#[tokio::test]
async fn the_slot_of_a_read_is_released_after_its_connection() {
    let server = Server::start(true, 1).await;
    let (sender, mut free_connections) = mpsc::unbounded_channel();
    let slot = || Slot(Arc::clone(&server.pool), sender.clone());
    drop(server.pool.get().await.unwrap().with_slot(slot()));
    assert_eq!(free_connections.recv().await, Some(1), "a complete read");
    let connection = server.pool.get().await.unwrap().with_slot(slot());
    assert!(connection.query("SELECT 1", &[]).now_or_never().is_none());
    drop(connection);
    assert!(free_connections.try_recv().is_err(), "the statement is being cancelled");
    assert_eq!(free_connections.recv().await, Some(1), "a read that was dropped");
}
