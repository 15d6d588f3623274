//! What endpoints need, as tests want it: names that lead to chosen addresses, secrets that can be
//! foreseen, and nobody who sends anything.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use galley_domain::delivery::Schedule;
use galley_server::webhooks::{
    Guard, Keyring, Outcome, Outgoing, Post, Random, Resolve, Rules, Setup,
};

/// For an operator who allows private networks, or does not.
pub(crate) fn webhooks(allow_private: bool) -> Setup {
    Setup {
        guard: Guard::new(Rules { allow_private }, Arc::new(Names)),
        keyring: Keyring::new(Some("a key that is only for tests")).unwrap(),
        random: Arc::new(Counting::default()),
        outgoing: Arc::new(Nothing),
        schedule: Schedule::default(),
        per_second: 50,
        timeout: Duration::from_secs(15),
        deliver: false,
    }
}

/// A name server that knows some names.
struct Names;

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let addresses: &[[u8; 4]] = match host {
            "shop.example" | "hooks.example" => &[[93, 184, 215, 14]],
            "private.example" => &[[10, 0, 0, 7]],
            "mixed.example" => &[[93, 184, 215, 14], [10, 0, 0, 7]],
            _ => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(addresses.iter().map(|address| SocketAddr::from((*address, port))).collect())
    }
}

/// Bytes that count up: no two secrets are alike, and each run has the same.
#[derive(Default)]
struct Counting(AtomicU8);

impl Random for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0.fetch_add(1, Ordering::Relaxed));
    }
}

/// Sends nothing: these tests are about what is registered.
struct Nothing;

#[async_trait]
impl Outgoing for Nothing {
    async fn post(&self, post: Post) -> Outcome {
        panic!("{post:?} was sent")
    }
}
