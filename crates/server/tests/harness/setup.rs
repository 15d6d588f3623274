//! The webhook context of tests: a resolver with fixed names, predictable secrets, and no network.

use std::{
    future::pending,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use galley_domain::webhook::delivery::RetrySchedule;
use galley_server::delivery::{
    Failure, FailureKind, Keyring, PostReport, PostRequest, Random, Resolve, ResolvedTarget,
    ResponseStart, SsrfGuard, SsrfPolicy, WebhookClient, WebhookContext,
};
use tokio::sync::Semaphore;

/// The verify token of all receivers, which the examples of the API description use, too.
pub(crate) const VERIFY_TOKEN: &str = "what-the-receiver-knows";

/// For an operator who allows private networks, or does not.
pub(crate) fn webhooks(allow_private: bool) -> WebhookContext {
    WebhookContext {
        guard: SsrfGuard::new(SsrfPolicy { allow_private }, Arc::new(Names)),
        keyring: Keyring::new(Some("a key that is only for tests")).unwrap(),
        random: Arc::new(Counting::default()),
        client: Arc::new(Answering),
        schedule: RetrySchedule::default(),
        per_second: 50,
        timeout: Duration::from_secs(15),
        deliver: false,
    }
}

/// A resolver with fixed names.
struct Names;

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let addresses: &[[u8; 4]] = match host.trim_end_matches('.') {
            "shop.example" | "hooks.example" => &[[93, 184, 215, 14]],
            "private.example" => &[[10, 0, 0, 7]],
            "mixed.example" => &[[93, 184, 215, 14], [10, 0, 0, 7]],
            _ => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(addresses.iter().map(|address| SocketAddr::from((*address, port))).collect())
    }
}

/// Bytes from a counter: all secrets differ, and every run has the same ones.
#[derive(Default)]
pub(crate) struct Counting(AtomicU8);

impl Counting {
    /// Other bytes than those of a counter from 0.
    pub(crate) fn starting_at(first: u8) -> Self {
        Self(AtomicU8::new(first))
    }
}

impl Random for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0.fetch_add(1, Ordering::Relaxed));
    }
}

/// The number of verifications that hang.
pub(crate) static HANGING: Semaphore = Semaphore::const_new(0);

/// Sends nothing. For a verification, the path of the URL selects the response: `/silent` none,
/// `/hangs` one that never comes, `/403` that status, `/200` another body, and any other path the challenge if the token is right.
struct Answering;

#[async_trait]
impl WebhookClient for Answering {
    async fn post(&self, post: PostRequest) -> PostReport {
        panic!("{post:?} was sent")
    }

    async fn get(&self, address: ResolvedTarget) -> Result<ResponseStart, Failure> {
        let url = address.url.as_str();
        let parameter = |name: &str| {
            let pair =
                url.split(['?', '&']).find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
            pair.unwrap_or_default().to_owned()
        };
        assert_eq!(parameter("hub.mode"), "subscribe");
        let (status, body) = match url.split(['/', '?']).nth(3) {
            Some("silent") => {
                let detail = "Connection refused.".to_owned();
                return Err(Failure { kind: FailureKind::Unreachable, detail, hidden_cause: None });
            }
            Some("hangs") => {
                HANGING.add_permits(1);
                return pending().await;
            }
            Some("403") => (403, String::new()),
            Some("200") => (200, "<html>".to_owned()),
            _ if parameter("hub.verify_token") != VERIFY_TOKEN => (403, String::new()),
            _ => (200, format!("{}\n", parameter("hub.challenge"))),
        };
        Ok(ResponseStart { status, body: body.into_bytes() })
    }
}
