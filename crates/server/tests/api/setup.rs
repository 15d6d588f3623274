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
use galley_domain::webhook::delivery::Schedule;
use galley_server::delivery::{
    Admitted, Failure, FailureKind, Guard, Keyring, Outcome, Outgoing, Page, Post, Random, Resolve,
    Rules, Setup,
};

/// What receivers know.
pub(crate) const VERIFY_TOKEN: &str = "what-the-receiver-knows";

/// For an operator who allows private networks, or does not.
pub(crate) fn webhooks(allow_private: bool) -> Setup {
    Setup {
        guard: Guard::new(Rules { allow_private }, Arc::new(Names)),
        keyring: Keyring::new(Some("a key that is only for tests")).unwrap(),
        random: Arc::new(Counting::default()),
        outgoing: Arc::new(Answering),
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

/// Sends nothing, as these tests are about what is registered. When an address is asked, its path
/// says what it answers: `/silent`, `/403`, `/200` with something else, and all others the challenge
/// if they know the token.
struct Answering;

#[async_trait]
impl Outgoing for Answering {
    async fn post(&self, post: Post) -> Outcome {
        panic!("{post:?} was sent")
    }

    async fn get(&self, address: Admitted) -> Result<Page, Failure> {
        let url = address.url.as_str();
        let asked = |name: &str| {
            let pair =
                url.split(['?', '&']).find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
            pair.unwrap_or_default().to_owned()
        };
        assert_eq!(asked("hub.mode"), "subscribe");
        let (status, body) = match url.split(['/', '?']).nth(3) {
            Some("silent") => {
                let detail = "Nobody listens there.".to_owned();
                return Err(Failure { kind: FailureKind::Unreachable, detail });
            }
            Some("403") => (403, String::new()),
            Some("200") => (200, "<html>".to_owned()),
            _ if asked("hub.verify_token") != VERIFY_TOKEN => (403, String::new()),
            _ => (200, format!("{}\n", asked("hub.challenge"))),
        };
        Ok(Page { status, body: body.into_bytes() })
    }
}
