//! A TCP proxy to a database that stops after a number of bytes.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
};

use crate::postgres::Database;

/// How the proxy treats its connections after the byte limit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AtLimit {
    /// It closes them.
    Close,
    /// It keeps them open, and drops all further bytes.
    Stall,
}

/// A proxy that forwards a limited number of bytes to a database.
pub(crate) struct LimitedProxy {
    pub(crate) url: String,
    /// Receives a message at the byte limit.
    pub(crate) limit_reached: Receiver<()>,
}

impl LimitedProxy {
    pub(crate) fn to(database: &Database, bytes: i64, at_limit: AtLimit) -> Self {
        let address = database.address();
        let (before, name) = address.rsplit_once('/').unwrap();
        let (user, server) = before.rsplit_once('@').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{user}@{}/{name}", listener.local_addr().unwrap());
        let (notify, limit_reached) = channel();
        let (server, remaining) = (server.to_owned(), Arc::new(AtomicI64::new(bytes)));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(&server).unwrap();
                let from_server = server.try_clone().unwrap();
                let to_client = client.try_clone().unwrap();
                std::thread::spawn(move || forward(from_server, to_client, None));
                let limit = (Arc::clone(&remaining), at_limit, notify.clone());
                std::thread::spawn(move || forward(client, server, Some(&limit)));
            }
        });
        Self { url, limit_reached }
    }
}

fn forward(
    mut from: TcpStream,
    mut to: TcpStream,
    limit: Option<&(Arc<AtomicI64>, AtLimit, Sender<()>)>,
) {
    let mut chunk = [0; 16_384];
    while let Ok(length @ 1..) = from.read(&mut chunk) {
        if let Some((remaining, at_limit, notify)) = limit {
            let length = i64::try_from(length).unwrap();
            if remaining.fetch_sub(length, Ordering::Relaxed) < length {
                let _ = notify.send(());
                match at_limit {
                    AtLimit::Close => break,
                    // The client waits for a response until it times out or is killed.
                    AtLimit::Stall => continue,
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
