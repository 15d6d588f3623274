//! What a client that closes its connection leaves behind: nothing. Over a real socket, because the
//! HTTP library detects the end of the connection.

use std::time::Duration;

use galley_server::{Limits, Stop};
use galley_store::testing::Fault;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::{
    app::{KEY, PHONE, TOKEN, path},
    failures,
};

/// Longer than it takes to notice a closed connection.
const TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_is_dropped_when_its_client_closes_the_connection() {
    let (app, faults) = failures::start(Limits::default()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Box::pin(std::future::pending::<Stop>());
    let service = tokio::spawn(galley_server::serve(app.galley.clone(), listener, None, stop));
    let templates = path(PHONE, KEY);
    let events = templates.replace("/message_templates", "/events");
    for (method, path) in [
        ("list", templates.clone()),
        ("list", format!("{templates}?q=word")),
        ("versions", format!("{templates}/1/versions")),
        ("events", events),
    ] {
        faults.set(method, Fault::Hangs);
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: galley.test\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        );
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(request.as_bytes()).await.unwrap();
            clients.push(client);
        }
        timeout(TIMEOUT, faults.hanging(3)).await.expect(method);
        clients.pop();
        timeout(TIMEOUT, faults.hanging(2)).await.expect("the first client has left");
        drop(clients);
        timeout(TIMEOUT, faults.hanging(0)).await.expect("all clients have left");
        faults.clear();
    }
    service.abort();
}

#[tokio::test]
async fn a_read_is_dropped_at_the_deadline_of_its_request() {
    let request = Duration::from_millis(20);
    let (app, faults) = failures::start(Limits { request, ..Limits::default() }).await;
    faults.set("list", Fault::Hangs);
    app.call(axum::http::Method::GET, "?q=word", &serde_json::Value::Null)
        .await
        .problem(503, "deadline");
    timeout(TIMEOUT, faults.hanging(0)).await.expect("the read is dropped");
}
