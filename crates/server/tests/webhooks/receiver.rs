//! A receiver that follows a script, and the resolver and client that reach it.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use galley_domain::id::AccountId;
use galley_server::delivery::{
    Failure, HttpWebhookClient, PostOutcome, PostRequest, Resolve, RetryAfter, SsrfGuard,
    SsrfPolicy, WebhookClient as _,
};
use hyper::{body::Bytes, header::HeaderValue};
use rustls::RootCertStore;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

/// Long enough for every receiver that responds.
pub(crate) const LONG_TIMEOUT: Duration = Duration::from_secs(30);

/// Short enough for every receiver that does not.
pub(crate) const SHORT_TIMEOUT: Duration = Duration::from_millis(50);

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// What a receiver does after a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Sends this and waits for the next request.
    Send(String),
    /// Sends the first text, and the second one when the client has read it.
    SendInTwo(&'static str, String),
    /// Sends this and closes.
    SendAndClose(&'static str),
    /// Closes with a TCP reset.
    Reset,
    /// Sends the first text once and then the second one repeatedly.
    Endless(&'static str, &'static str),
}

/// A response with status 200.
pub(crate) fn ok() -> Reply {
    Reply::Send(OK.to_owned())
}

/// A receiver that records the requests it gets.
pub(crate) struct ScriptedReceiver {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    server_names: Arc<Mutex<Vec<Option<String>>>>,
}

impl ScriptedReceiver {
    /// Starts a receiver. Each list is the script of one connection, in order; at the end of its
    /// script a connection stays open.
    pub(crate) async fn start(connections: Vec<Vec<Reply>>) -> Self {
        Self::listen(None, connections).await
    }

    /// Starts a receiver with TLS.
    pub(crate) async fn start_tls(tls: TlsAcceptor, connections: Vec<Vec<Reply>>) -> Self {
        Self::listen(Some(tls), connections).await
    }

    async fn listen(tls: Option<TlsAcceptor>, scripts: Vec<Vec<Reply>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, requests) = (Arc::<AtomicUsize>::default(), Arc::default());
        let server_names = Arc::<Mutex<Vec<_>>>::default();
        let receiver = Self {
            address,
            connections: Arc::clone(&connections),
            requests: Arc::clone(&requests),
            server_names: Arc::clone(&server_names),
        };
        tokio::spawn(async move {
            let mut scripts = scripts.into_iter();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.fetch_add(1, Ordering::SeqCst);
                let script = scripts.next().unwrap_or_default();
                if script.iter().any(|it| matches!(it, Reply::Reset)) {
                    stream.set_zero_linger().unwrap();
                }
                let (tls, requests) = (tls.clone(), Arc::clone(&requests));
                let server_names = Arc::clone(&server_names);
                tokio::spawn(async move {
                    let Some(tls) = tls else { return play(stream, script, &requests).await };
                    if let Ok(stream) = tls.accept(stream).await {
                        let name = stream.get_ref().1.server_name().map(str::to_owned);
                        server_names.lock().unwrap().push(name);
                        play(stream, script, &requests).await;
                    }
                });
            }
        });
        receiver
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn server_names(&self) -> Vec<Option<String>> {
        self.server_names.lock().unwrap().clone()
    }
}

/// Plays the script of one connection.
async fn play(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    script: Vec<Reply>,
    requests: &Mutex<Vec<String>>,
) {
    for reply in script {
        let Some(request) = read_request(&mut stream).await else { return };
        requests.lock().unwrap().push(request);
        match reply {
            Reply::Send(text) => stream.write_all(text.as_bytes()).await.unwrap(),
            Reply::SendInTwo(first, second) => {
                stream.write_all(first.as_bytes()).await.unwrap();
                // The runtime has one thread: meanwhile, the client reads it.
                for _ in 0..1_000 {
                    tokio::task::yield_now().await;
                }
                if stream.write_all(second.as_bytes()).await.is_err() {
                    return;
                }
            }
            Reply::SendAndClose(text) => {
                stream.write_all(text.as_bytes()).await.unwrap();
                stream.shutdown().await.ok();
                return;
            }
            Reply::Reset => return,
            Reply::Endless(first, repeated) => {
                let repeated = repeated.repeat(1_024);
                let mut open = stream.write_all(first.as_bytes()).await.is_ok();
                while open {
                    open = stream.write_all(repeated.as_bytes()).await.is_ok();
                }
                return;
            }
        }
    }
    while stream.read(&mut [0; 1_024]).await.is_ok_and(|read| read > 0) {}
}

/// Reads one request with header and body; `None` if the connection ends before.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut text = String::new();
    loop {
        if let Some((header, body)) = text.split_once("\r\n\r\n") {
            let length = header.lines().find_map(|it| it.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |it| it.parse().unwrap()) {
                return Some(text);
            }
        }
        let mut buffer = [0; 4_096];
        let read = stream.read(&mut buffer).await.ok().filter(|it| *it > 0)?;
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
}

/// Resolves every name to the same addresses.
pub(crate) struct FixedResolver(pub(crate) Vec<IpAddr>);

impl FixedResolver {
    pub(crate) fn loopback() -> Arc<Self> {
        Self::at(&["127.0.0.1"])
    }

    pub(crate) fn at(addresses: &[&str]) -> Arc<Self> {
        Arc::new(Self(addresses.iter().map(|it| it.parse().unwrap()).collect()))
    }
}

#[async_trait]
impl Resolve for FixedResolver {
    async fn resolve(&self, _: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(self.0.iter().map(|it| SocketAddr::new(*it, port)).collect())
    }
}

/// A guard with the default policy.
pub(crate) fn strict_guard(resolver: Arc<dyn Resolve>) -> SsrfGuard {
    SsrfGuard::new(SsrfPolicy::default(), resolver)
}

/// A guard that allows private networks and resolves every name to loopback.
pub(crate) fn private_guard() -> SsrfGuard {
    SsrfGuard::new(SsrfPolicy { allow_private: true }, FixedResolver::loopback())
}

/// A client that allows private networks.
pub(crate) fn private_client(timeout: Duration) -> HttpWebhookClient {
    HttpWebhookClient::new(private_guard(), timeout, RootCertStore::empty())
}

/// The account that owns the endpoints.
pub(crate) fn account() -> AccountId {
    AccountId::new(1).unwrap()
}

pub(crate) fn request(url: &str) -> PostRequest {
    let header = ("webhook-id".parse().unwrap(), HeaderValue::from_static("msg_1"));
    PostRequest {
        account: account(),
        url: url.to_owned(),
        headers: vec![header],
        body: Bytes::from_static(b"{\"seq\":1}"),
    }
}

/// Sends a request and returns the status.
pub(crate) async fn status(client: &HttpWebhookClient, url: &str) -> u16 {
    response(client, url).await.0
}

/// Sends a request and returns the status and `Retry-After`.
pub(crate) async fn response(client: &HttpWebhookClient, url: &str) -> (u16, Option<RetryAfter>) {
    match client.post(request(url)).await.outcome {
        PostOutcome::Responded { status, retry_after } => (status, retry_after),
        other => panic!("{url}: {other:?}"),
    }
}

/// Sends a request and returns the failure.
pub(crate) async fn failure(client: &HttpWebhookClient, url: &str) -> Failure {
    match client.post(request(url)).await.outcome {
        PostOutcome::Failed(failure) => failure,
        other => panic!("{url}: {other:?}"),
    }
}
