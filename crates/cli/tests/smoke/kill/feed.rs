//! Somebody who follows the feed of an account, from service to service: each is killed while he
//! waits for its next answer, and he goes on with the next one where he was.

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

pub(super) struct Follower {
    services: Sender<SocketAddr>,
    /// How many events he has seen so far.
    seen: Arc<AtomicU64>,
    thread: JoinHandle<Followed>,
}

/// What he saw.
pub(super) struct Followed {
    tenant: &'static Tenant,
    /// Behind which event he reads on.
    cursor: String,
    pub(super) events: Vec<Value>,
    /// How many connections were ended while he followed.
    pub(super) interrupted: usize,
    /// Answers that nobody should get.
    pub(super) faults: Vec<String>,
}

impl Follower {
    pub(super) fn start(tenant: &'static Tenant) -> Self {
        let (services, addresses) = channel();
        let seen = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            let cursor = "0".to_owned();
            let (events, faults) = (Vec::new(), Vec::new());
            let followed = Followed { tenant, cursor, events, interrupted: 0, faults };
            followed.through(&addresses, &told)
        });
        Self { services, seen, thread }
    }

    /// Tells him where the next service is.
    pub(super) fn go_on(&self, address: SocketAddr) {
        let _ = self.services.send(address);
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// What he has seen, when there are no more services.
    pub(super) fn end(self) -> Followed {
        drop(self.services);
        self.thread.join().unwrap()
    }
}

impl Followed {
    fn through(mut self, services: &Receiver<SocketAddr>, seen: &AtomicU64) -> Self {
        while let Ok(next) = services.recv() {
            // Some may have gone without having been noticed.
            let address = services.try_iter().last().unwrap_or(next);
            let Err(error) = self.follow(address, seen);
            if is_closed(&error) || error.kind() == ErrorKind::ConnectionRefused {
                self.interrupted += 1;
            } else {
                self.faults.push(format!("the feed cannot be followed: {error}"));
            }
        }
        self
    }

    fn follow(&mut self, address: SocketAddr, seen: &AtomicU64) -> io::Result<Infallible> {
        let mut calls = Connection::open(address)?;
        loop {
            let tail = format!("/events?after={}&limit=100&wait=10", self.cursor);
            calls.send(&self.tenant.ask("GET", &tail).bytes())?;
            let answer = calls.answer()?;
            let mut page = match answer.status {
                200 => answer.json(),
                _ => return Err(io::Error::other(format!("{answer:?}"))),
            };
            let cursor = page["paging"]["cursors"]["after"].as_str();
            cursor.unwrap_or("not told").clone_into(&mut self.cursor);
            if let Value::Array(events) = page["data"].take() {
                self.events.extend(events);
            }
            seen.store(self.events.len() as u64, Ordering::Relaxed);
        }
    }
}
