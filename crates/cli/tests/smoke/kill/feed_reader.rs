//! A client that reads the event feed of an account across service restarts: each service is killed
//! while the reader waits for a response, and the reader continues at its cursor with the next one.

use std::{
    convert::Infallible,
    io::{self, ErrorKind},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread::JoinHandle,
};

use serde_json::Value;

use super::tenant::Tenant;
use crate::http::{Connection, is_closed};

pub(super) struct FeedReader {
    services: Sender<SocketAddr>,
    /// Number of events read so far.
    events_read: Arc<AtomicU64>,
    thread: JoinHandle<FeedLog>,
}

/// The events read, and how the connections ended.
pub(super) struct FeedLog {
    tenant: &'static Tenant,
    /// The position in the feed.
    cursor: String,
    pub(super) events: Vec<Value>,
    /// Number of connections that ended during a read.
    pub(super) interrupted: usize,
    /// Wrong responses, and unexpected errors.
    pub(super) violations: Vec<String>,
}

impl FeedReader {
    pub(super) fn start(tenant: &'static Tenant) -> Self {
        let (services, addresses) = channel();
        let events_read = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&events_read);
        let thread = std::thread::spawn(move || {
            let cursor = "0".to_owned();
            let (events, violations) = (Vec::new(), Vec::new());
            let log = FeedLog { tenant, cursor, events, interrupted: 0, violations };
            log.read_all(&addresses, &counter)
        });
        Self { services, events_read, thread }
    }

    /// Sends the address of the next service to the reader thread.
    pub(super) fn connect_to(&self, address: SocketAddr) {
        let _ = self.services.send(address);
    }

    pub(super) fn events_read(&self) -> u64 {
        self.events_read.load(Ordering::Relaxed)
    }

    /// Ends the reader thread; call it after the last service has ended.
    pub(super) fn finish(self) -> FeedLog {
        drop(self.services);
        self.thread.join().unwrap()
    }
}

impl FeedLog {
    fn read_all(mut self, services: &Receiver<SocketAddr>, counter: &AtomicU64) -> Self {
        while let Ok(next) = services.recv() {
            // Skip services that have ended in the meantime.
            let address = services.try_iter().last().unwrap_or(next);
            let Err(error) = self.read_from(address, counter);
            if is_closed(&error) || error.kind() == ErrorKind::ConnectionRefused {
                self.interrupted += 1;
            } else {
                self.violations.push(format!("reading the feed failed: {error}"));
            }
        }
        self
    }

    fn read_from(&mut self, address: SocketAddr, counter: &AtomicU64) -> io::Result<Infallible> {
        let mut connection = Connection::open(address)?;
        loop {
            let tail = format!("/events?after={}&limit=100&wait=10", self.cursor);
            connection.send(&self.tenant.request("GET", &tail).bytes())?;
            let response = connection.read_response()?;
            let mut page = match response.status {
                200 => response.json(),
                _ => return Err(io::Error::other(format!("{response:?}"))),
            };
            let cursor = page["paging"]["cursors"]["after"].as_str();
            cursor.unwrap_or("missing").clone_into(&mut self.cursor);
            if let Value::Array(events) = page["data"].take() {
                self.events.extend(events);
            }
            counter.store(self.events.len() as u64, Ordering::Relaxed);
        }
    }
}
