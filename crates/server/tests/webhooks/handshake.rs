//! Asking an address before it is believed, through the same client that delivers.

use galley_server::webhooks::{FailureKind, HttpOutgoing, Outgoing as _, Page};
use rustls::RootCertStore;

use super::receiver::{HASTY, Names, PATIENT, Receiver, Reply, nearby, ok, strict};

#[tokio::test]
async fn a_page_is_asked_for_with_its_whole_address_and_read() {
    let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345".to_owned();
    let receiver = Receiver::start(vec![vec![Reply::Say(text)]]).await;
    let page = nearby(PATIENT).get(format!("{}?a=b&hub.mode=subscribe", receiver.url())).await;
    assert_eq!(page, Ok(Page { status: 200, body: b"12345".to_vec() }));
    let [request] = &receiver.requests()[..] else { panic!("not one") };
    assert!(request.starts_with("GET /hook?a=b&hub.mode=subscribe HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("user-agent: Galley/"), "{request}");
    assert!(!request.contains("content-length"), "{request}");
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let elsewhere = Receiver::start(vec![vec![ok()]]).await;
    let text =
        format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", elsewhere.url());
    let receiver = Receiver::start(vec![vec![Reply::Say(text)]]).await;
    let page = nearby(PATIENT).get(receiver.url()).await.unwrap();
    assert_eq!((page.status, elsewhere.connections()), (302, 0));
}

#[tokio::test]
async fn of_a_page_without_end_only_the_beginning_is_read() {
    let endless = Reply::Endless("HTTP/1.1 200 OK\r\n\r\n", "x");
    let receiver = Receiver::start(vec![vec![endless]]).await;
    let page = nearby(PATIENT).get(receiver.url()).await.unwrap();
    assert_eq!(page.body, vec![b'x'; 4_096]);
}

#[tokio::test]
async fn whoever_never_answers_costs_the_timeout() {
    let receiver = Receiver::start(vec![Vec::new()]).await;
    let failure = nearby(HASTY).get(receiver.url()).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout);
}

#[tokio::test]
async fn a_private_address_is_never_connected_to() {
    let receiver = Receiver::start(vec![vec![ok()]]).await;
    let outgoing = HttpOutgoing::new(strict(Names::here()), PATIENT, RootCertStore::empty());
    let port = receiver.port();
    for url in [format!("https://shop.example:{port}/"), format!("http://127.0.0.1:{port}/")] {
        let failure = outgoing.get(url).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused, "{failure}");
    }
    assert_eq!(receiver.connections(), 0);
}
