//! A receiver that does exactly what it is told, and the names that lead to it.

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
use galley_server::delivery::{
    Failure, Guard, HttpOutgoing, Outcome, Outgoing as _, Post, Resolve, RetryAfter, Rules,
};
use hyper::{body::Bytes, header::HeaderValue};
use rustls::RootCertStore;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

/// Long enough for every receiver that answers.
pub(crate) const PATIENT: Duration = Duration::from_secs(30);

/// Short enough for every receiver that does not.
pub(crate) const HASTY: Duration = Duration::from_millis(50);

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// What a receiver does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Sends this and waits for the next request.
    Say(String),
    /// Sends this and closes.
    SayAndClose(&'static str),
    /// Closes in such a way that the other side gets an error.
    Reset,
    /// Sends the first and then the second for ever.
    Endless(&'static str, &'static str),
}

/// What a good receiver does.
pub(crate) fn ok() -> Reply {
    Reply::Say(OK.to_owned())
}

/// A receiver, and what it has seen.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
    server_names: Arc<Mutex<Vec<Option<String>>>>,
}

impl Receiver {
    /// Listens. The first list is for the first connection, and so on; at the end of its list a
    /// connection is held open.
    pub(crate) async fn start(connections: Vec<Vec<Reply>>) -> Self {
        Self::listen(None, connections).await
    }

    /// The same behind TLS.
    pub(crate) async fn start_tls(tls: TlsAcceptor, connections: Vec<Vec<Reply>>) -> Self {
        Self::listen(Some(tls), connections).await
    }

    async fn listen(tls: Option<TlsAcceptor>, scripts: Vec<Vec<Reply>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connections, requests) = (Arc::<AtomicUsize>::default(), Arc::default());
        let server_names = Arc::<Mutex<Vec<_>>>::default();
        let seen = Self {
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
                    let Some(tls) = tls else { return follow(stream, script, &requests).await };
                    if let Ok(stream) = tls.accept(stream).await {
                        let name = stream.get_ref().1.server_name().map(str::to_owned);
                        server_names.lock().unwrap().push(name);
                        follow(stream, script, &requests).await;
                    }
                });
            }
        });
        seen
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

async fn follow(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    script: Vec<Reply>,
    requests: &Mutex<Vec<String>>,
) {
    for reply in script {
        let Some(request) = request(&mut stream).await else { return };
        requests.lock().unwrap().push(request);
        match reply {
            Reply::Say(text) => stream.write_all(text.as_bytes()).await.unwrap(),
            Reply::SayAndClose(text) => {
                stream.write_all(text.as_bytes()).await.unwrap();
                stream.shutdown().await.ok();
                return;
            }
            Reply::Reset => return,
            Reply::Endless(first, again) => {
                let again = again.repeat(1_024);
                let mut open = stream.write_all(first.as_bytes()).await.is_ok();
                while open {
                    open = stream.write_all(again.as_bytes()).await.is_ok();
                }
                return;
            }
        }
    }
    while stream.read(&mut [0; 1_024]).await.is_ok_and(|read| read > 0) {}
}

/// One request, header and body, or nothing if the connection ends before.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
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

/// Every name has these addresses.
pub(crate) struct Names(pub(crate) Vec<IpAddr>);

impl Names {
    pub(crate) fn here() -> Arc<Self> {
        Self::at(&["127.0.0.1"])
    }

    pub(crate) fn at(addresses: &[&str]) -> Arc<Self> {
        Arc::new(Self(addresses.iter().map(|it| it.parse().unwrap()).collect()))
    }
}

#[async_trait]
impl Resolve for Names {
    async fn resolve(&self, _: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(self.0.iter().map(|it| SocketAddr::new(*it, port)).collect())
    }
}

/// The guard that is there by default.
pub(crate) fn strict(resolver: Arc<dyn Resolve>) -> Guard {
    Guard::new(Rules::default(), resolver)
}

/// The guard of an operator with receivers nearby.
pub(crate) fn lenient() -> Guard {
    Guard::new(Rules { allow_private: true }, Names::here())
}

/// Sends to receivers nearby.
pub(crate) fn nearby(timeout: Duration) -> HttpOutgoing {
    HttpOutgoing::new(lenient(), timeout, RootCertStore::empty())
}

pub(crate) fn post(url: &str) -> Post {
    let header = ("webhook-id".parse().unwrap(), HeaderValue::from_static("msg_1"));
    Post { url: url.to_owned(), headers: vec![header], body: Bytes::from_static(b"{\"seq\":1}") }
}

/// Sends one message and tells the status.
pub(crate) async fn status(outgoing: &HttpOutgoing, url: &str) -> u16 {
    answer(outgoing, url).await.0
}

pub(crate) async fn answer(outgoing: &HttpOutgoing, url: &str) -> (u16, Option<RetryAfter>) {
    match outgoing.post(post(url)).await {
        Outcome::Answered { status, retry_after } => (status, retry_after),
        Outcome::Failed(failure) => panic!("{url}: {failure:?}"),
    }
}

/// Sends one message and tells why there was no answer.
pub(crate) async fn failure(outgoing: &HttpOutgoing, url: &str) -> Failure {
    match outgoing.post(post(url)).await {
        Outcome::Failed(failure) => failure,
        answered @ Outcome::Answered { .. } => panic!("{url}: {answered:?}"),
    }
}
