//! Connections over real sockets: clients that do not read, downloads that wait, and pipelined
//! requests. The tests control the time of the connections.

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::http::Method;
use galley_domain::rulebook::WHATSAPP;
use galley_server::Limits;
use galley_store::{
    AppendOutcome, BeginUploadOutcome, NewUpload,
    testing::{Fault, Faults},
};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpSocket, TcpStream},
    task::yield_now,
};

use crate::{
    api::app::request,
    harness::{TestAccount, TestService},
};

/// The largest static document.
const SCRIPT: &str = "/docs/swagger-ui-bundle.js";

/// A handle, which is also the name in the URL of the file.
const MEDIA: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz";

/// Maximum real time that a test waits for bytes.
const MAX_READ_TIME: Duration = Duration::from_secs(20);

/// A client whose system buffers little.
struct Client(TcpStream);

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        Self::with_buffer(address, 16 * 1_024).await
    }

    async fn with_buffer(address: SocketAddr, bytes: u32) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(bytes).unwrap();
        Self(socket.connect(address).await.unwrap())
    }

    async fn get(address: SocketAddr, path: &str) -> Self {
        let mut client = Self::connect(address).await;
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: galley.test\r\n\r\n")).await;
        client
    }

    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads up to `max` bytes. Waits without letting the time of the connections pass.
    async fn read(&self, max: usize) -> io::Result<Vec<u8>> {
        let (mut bytes, started) = (vec![0; max], Instant::now());
        loop {
            match self.0.try_read(&mut bytes) {
                Ok(length) => {
                    bytes.truncate(length);
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => yield_now().await,
                Err(error) => return Err(error),
            }
            assert!(started.elapsed() < MAX_READ_TIME, "no bytes arrive");
        }
    }

    /// Reads a response, in reads of at most `step` bytes. `after_read` runs after each of them.
    /// Returns the body.
    async fn response(&self, step: usize, after_read: impl AsyncFn()) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (body, length) = loop {
            bytes.extend(self.read(1).await.unwrap());
            if bytes.ends_with(b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
                assert!(head.starts_with("http/1.1 200 "), "{head}");
                let length = head.split_once("content-length: ").unwrap().1;
                break (
                    bytes.len(),
                    length.split("\r\n").next().unwrap().parse::<usize>().unwrap(),
                );
            }
        };
        while bytes.len() < body + length {
            let read = self.read(step.min(body + length - bytes.len())).await.unwrap();
            assert!(!read.is_empty(), "closed after {} of {length} bytes", bytes.len() - body);
            bytes.extend(read);
            after_read().await;
        }
        bytes.split_off(body)
    }
}

/// Lets the time of the connections pass, second by second.
async fn pass(seconds: u64) {
    for _ in 0..seconds {
        tokio::time::advance(Duration::from_secs(1)).await;
        yield_now().await;
    }
}

/// How many connections the service has closed for this reason.
async fn closed(service: &TestService, reason: &str) -> u32 {
    let metrics = service.send(request(Method::GET, "/metrics", "", "")).await;
    let line = format!("galley_http_connections_closed_total{{reason=\"{reason}\"}} ");
    let value = metrics.text().lines().find_map(|it| it.strip_prefix(&line)).map(str::to_owned);
    value.map_or(0, |value| value.parse().unwrap())
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected_and_counted() {
    let service = TestService::builder().start();
    let client = Client::get(service.listen().await, SCRIPT).await;
    let mut received = client.read(12).await.unwrap();
    assert_eq!(received, b"HTTP/1.1 200");
    tokio::time::pause();
    pass(25).await;
    assert_eq!(closed(&service, "send_timeout").await, 0);
    pass(10).await;
    assert_eq!(closed(&service, "send_timeout").await, 1);
    // What the kernels have buffered still arrives; the rest does not.
    while let Ok(bytes) = client.read(64 * 1_024).await {
        if bytes.is_empty() {
            break;
        }
        received.extend(bytes);
    }
    assert!(received.len() < 400_000, "{} bytes were buffered", received.len());
}

#[tokio::test]
async fn a_client_that_reads_slowly_gets_the_whole_response() {
    let service = TestService::builder().start();
    let expected = service.send(request(Method::GET, SCRIPT, "", "")).await.bytes;
    let client = Client::get(service.listen().await, SCRIPT).await;
    tokio::time::pause();
    let started = tokio::time::Instant::now();
    let body = client.response(8 * 1_024, async || pass(1).await).await;
    assert!(body == expected, "{} of {} bytes", body.len(), expected.len());
    let took = started.elapsed();
    assert!(took > Limits::default().send * 5, "{took:?}");
}

#[tokio::test]
async fn pipelined_responses_of_any_size_arrive_completely_and_in_order() {
    let service = TestService::builder().start();
    let mut client = Client::connect(service.listen().await).await;
    let paths = [SCRIPT, "/healthz", "/openapi.json", "/openapi.json", "/docs", SCRIPT];
    for path in paths {
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: galley.test\r\n\r\n")).await;
    }
    for path in paths {
        let expected = service.send(request(Method::GET, path, "", "")).await.bytes;
        let body = client.response(1_000_000, async || {}).await;
        assert!(body == expected, "{path}: {} of {} bytes", body.len(), expected.len());
    }
}

#[tokio::test]
async fn a_refused_request_whose_body_arrives_later_leaves_the_connection_usable() {
    let service = TestService::builder().start();
    let mut client = Client::connect(service.listen().await).await;
    for _ in 0..3 {
        client
            .send(
                "POST /v23.0/1/message_templates HTTP/1.1\r\nHost: galley.test\r\n\
                 Authorization: Bearer wrong\r\nContent-Length: 2\r\n\r\n",
            )
            .await;
        // The service refuses the call before it has the body.
        for _ in 0..1_000 {
            yield_now().await;
        }
        client.send("{}").await;
        let mut refusal = String::new();
        while !refusal.ends_with("}}") {
            let bytes = client.read(1_000).await.unwrap();
            assert!(!bytes.is_empty(), "the connection is closed after {refusal}");
            refusal.push_str(&String::from_utf8_lossy(&bytes));
        }
        assert!(
            refusal.starts_with("HTTP/1.1 401") && refusal.contains("\"code\":190"),
            "{refusal}"
        );
    }
    client.send("GET /healthz HTTP/1.1\r\nHost: galley.test\r\n\r\n").await;
    assert!(!client.response(1_000, async || {}).await.is_empty());
}

#[tokio::test]
async fn a_new_connection_waits_for_no_incomplete_headers_of_others() {
    let limits = Limits { connections: 4, ..Limits::default() };
    let service = TestService::builder().limits(limits).start();
    let address = service.listen().await;
    let mut slow = Vec::new();
    for number in 0..9 {
        let mut client = Client::connect(address).await;
        // On some connections, another request comes before.
        if number % 2 == 0 {
            client.send("GET /healthz HTTP/1.1\r\nHost: galley.test\r\n\r\n").await;
        }
        client.send("GET /healthz HTTP/1.1\r\nHost: ").await;
        slow.push(client);
    }
    tokio::time::pause();
    let client = Client::get(address, "/healthz").await;
    for _ in 0..16 {
        tokio::time::advance(Duration::from_millis(25)).await;
        for _ in 0..1_000 {
            yield_now().await;
        }
    }
    assert_eq!(client.read(12).await.unwrap(), b"HTTP/1.1 200");
    assert!(closed(&service, "evicted").await > 0);
    assert_eq!(closed(&service, "header_timeout").await, 0);
}

#[tokio::test]
async fn a_new_connection_waits_for_no_bodies_of_others() {
    let limits = Limits { connections: 4, ..Limits::default() };
    let service = TestService::builder().limits(limits).start();
    let address = service.listen().await;
    let mut slow = Vec::new();
    for _ in 0..4 {
        let mut client = Client::connect(address).await;
        let head = "POST /console/session HTTP/1.1\r\nHost: galley.test\r\n\
                    Sec-Fetch-Site: same-origin\r\nContent-Length: 10\r\n\r\n{";
        client.send(head).await;
        slow.push(client);
    }
    tokio::time::pause();
    let client = Client::get(address, "/healthz").await;
    for _ in 0..16 {
        tokio::time::advance(Duration::from_millis(25)).await;
        for _ in 0..1_000 {
            yield_now().await;
        }
    }
    assert_eq!(client.read(12).await.unwrap(), b"HTTP/1.1 200");
    assert!(closed(&service, "evicted").await > 0);
}

#[tokio::test]
async fn a_new_connection_waits_for_no_responses_that_others_do_not_read() {
    let limits = Limits { connections: 4, ..Limits::default() };
    let service = TestService::builder().limits(limits).start();
    let address = service.listen().await;
    let mut slow = Vec::new();
    for _ in 0..4 {
        let client = Client::get(address, SCRIPT).await;
        assert_eq!(client.read(12).await.unwrap(), b"HTTP/1.1 200");
        slow.push(client);
    }
    tokio::time::pause();
    let client = Client::get(address, "/healthz").await;
    for _ in 0..8 {
        // Reading a little is no progress.
        for other in &slow {
            drop(other.read(128).await);
        }
        tokio::time::advance(Duration::from_millis(250)).await;
        for _ in 0..1_000 {
            yield_now().await;
        }
    }
    assert_eq!(client.read(12).await.unwrap(), b"HTTP/1.1 200");
    assert_eq!(closed(&service, "evicted").await, 1, "only as many as others need");
    assert_eq!(closed(&service, "send_timeout").await, 0);
}

#[tokio::test]
async fn a_slow_reader_keeps_its_connection_beside_new_ones() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let service = TestService::builder().limits(limits).start();
    let address = service.listen().await;
    // A network that delivers a few packets at a time.
    let mut reader = Client::with_buffer(address, 4 * 1_024).await;
    reader.send(&format!("GET {SCRIPT} HTTP/1.1\r\nHost: galley.test\r\n\r\n")).await;
    tokio::time::pause();
    let mut open = Vec::new();
    for _ in 0..16 {
        open.push(Client::get(address, "/healthz").await);
        // 40 KiB per second.
        for _ in 0..8 {
            let mut left = 2 * 1_024;
            while left > 0 {
                let bytes = reader.read(left).await.expect("it is not closed").len();
                assert!(bytes > 0, "it is not closed");
                left -= bytes;
            }
            tokio::time::advance(Duration::from_millis(50)).await;
            for _ in 0..100 {
                yield_now().await;
            }
        }
        assert_eq!(open.last().unwrap().read(12).await.unwrap(), b"HTTP/1.1 200");
    }
    assert_eq!(closed(&service, "evicted").await, 15);
}

#[tokio::test]
async fn a_new_connection_waits_for_no_bodies_of_refused_requests() {
    let limits = Limits { connections: 4, ..Limits::default() };
    let service = TestService::builder().limits(limits).start();
    let address = service.listen().await;
    let head = "POST /api/v1.0/1/x/message_templates HTTP/1.1\r\nHost: galley.test\r\n\
                Content-Length: 2\r\n\r\n";
    let mut slow = Vec::new();
    for _ in 0..4 {
        let mut client = Client::connect(address).await;
        client.send(head).await;
        slow.push(client);
    }
    tokio::time::pause();
    let client = Client::get(address, "/healthz").await;
    for _ in 0..8 {
        tokio::time::advance(Duration::from_millis(100)).await;
        for _ in 0..1_000 {
            yield_now().await;
        }
        // Just before each is given up, the next request begins.
        for client in &mut slow {
            let _ = client.0.try_write(format!("{{}}{head}").as_bytes());
        }
    }
    assert_eq!(client.read(12).await.unwrap(), b"HTTP/1.1 200");
    assert!(closed(&service, "evicted").await > 0);
}

/// A service with a file, of which each read can be held back.
async fn with_file(limits: Limits) -> (TestService, Arc<Faults>, Vec<u8>) {
    let faults = Arc::<Faults>::default();
    let injected = Arc::clone(&faults);
    let builder = TestService::builder().limits(limits);
    let service = builder.store(move |store| Arc::new(store.with_faults(injected))).start();
    let shop = TestAccount { rulebook: &WHATSAPP, ..TestAccount::named("shop") };
    let account = service.account(shop).await;
    let mut file = b"%PDF-1.7\n".to_vec();
    file.resize(300_000, b'.');
    let (at, quota) = ("2026-11-15T09:30:00Z".parse().unwrap(), 1_000_000);
    let upload = NewUpload {
        account,
        id: "upload".to_owned(),
        handle: MEDIA.to_owned(),
        file_name: "a.pdf".to_owned(),
        file_type: "application/pdf".to_owned(),
        length: file.len() as u64,
        quota,
        at,
        emulated_at: None,
    };
    assert_eq!(service.store.begin_upload(upload).await.unwrap(), BeginUploadOutcome::Begun);
    let appended = service.store.append_upload(account, "upload", 0, &file, quota, at).await;
    assert!(matches!(appended.unwrap(), AppendOutcome::Complete { .. }));
    (service, faults, file)
}

#[tokio::test]
async fn a_download_that_waits_for_the_store_is_not_closed_to_make_room() {
    let (service, faults, file) = with_file(Limits { connections: 1, ..Limits::default() }).await;
    let address = service.listen().await;
    faults.set("media_chunk", Fault::Held);
    let download = Client::get(address, &format!("/media/{MEDIA}")).await;
    faults.held().await;
    let next = Client::get(address, "/healthz").await;
    tokio::time::pause();
    pass(120).await;
    assert_eq!(closed(&service, "evicted").await, 0);
    faults.release();
    assert!(download.response(64 * 1_024, async || {}).await == file);
    // The connection is idle now, and makes room.
    pass(5).await;
    assert!(!next.response(1_024, async || {}).await.is_empty());
    assert_eq!(closed(&service, "evicted").await, 1);
}

#[tokio::test]
async fn a_request_that_begins_during_a_download_does_not_end_it() {
    let (service, faults, file) = with_file(Limits::default()).await;
    faults.set("media_chunk", Fault::Held);
    let mut client = Client::get(service.listen().await, &format!("/media/{MEDIA}")).await;
    faults.held().await;
    client.send("GET /healthz HTTP/1.1\r\nHost: ").await;
    tokio::time::pause();
    pass(60).await;
    faults.release();
    assert!(client.response(64 * 1_024, async || {}).await == file);
    // The header has its whole time from the end of the response on.
    pass(8).await;
    client.send("galley.test\r\n\r\n").await;
    assert!(!client.response(1_024, async || {}).await.is_empty());
    client.send("GET /healthz HTTP/1.1\r\nHost: ").await;
    pass(15).await;
    assert_eq!(closed(&service, "header_timeout").await, 1);
}
