//! A way to a database that breaks when it is told to.

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
        let address = database.address();
        let (before, name) = address.rsplit_once('/').unwrap();
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
