//! Asking an address before it is believed, through the same client that delivers.

use std::{sync::Arc, time::Duration};

use galley_domain::webhook::{Redacted, delivery::Schedule};
use galley_server::delivery::{
    Failure, FailureKind, Guard, Keyring, NoHandshake, NotAdmitted, Outgoing as _, Page, Random,
    Refused, Setup,
};

use super::receiver::{HASTY, Names, PATIENT, Receiver, Reply, lenient, nearby, ok, strict};

/// Asks for a page as somebody does who has checked where it is.
async fn get(timeout: Duration, url: &str) -> Result<Page, Failure> {
    nearby(timeout).get(lenient().admit(url).await.unwrap()).await
}

struct Zero;

impl Random for Zero {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

/// Registers as far as it goes without a store.
async fn register(guard: Guard, url: &str) -> Result<(), NotAdmitted> {
    let setup = Setup {
        guard,
        keyring: Keyring::new(None).unwrap(),
        random: Arc::new(Zero),
        outgoing: Arc::new(nearby(PATIENT)),
        schedule: Schedule::default(),
        per_second: 1,
        timeout: PATIENT,
        deliver: false,
    };
    setup.admit(url, Some(&Redacted("a token".to_owned()))).await
}

fn page(status: &str, body: &str) -> Reply {
    Reply::Say(format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
}

#[tokio::test]
async fn a_page_is_asked_for_with_its_whole_address_and_read() {
    let receiver = Receiver::start(vec![vec![page("200 OK", "12345")]]).await;
    let page = get(PATIENT, &format!("{}?a=b&hub.mode=subscribe", receiver.url())).await;
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
    let page = get(PATIENT, &receiver.url()).await.unwrap();
    assert_eq!((page.status, elsewhere.connections()), (302, 0));
}

#[tokio::test]
async fn of_a_page_without_end_only_the_beginning_is_read() {
    let endless = Reply::Endless("HTTP/1.1 200 OK\r\n\r\n", "x");
    let receiver = Receiver::start(vec![vec![endless]]).await;
    let page = get(PATIENT, &receiver.url()).await.unwrap();
    assert_eq!(page.body, vec![b'x'; 4_096]);
}

#[tokio::test]
async fn whoever_never_answers_costs_the_timeout() {
    let receiver = Receiver::start(vec![Vec::new()]).await;
    let failure = get(HASTY, &receiver.url()).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout);
}

#[tokio::test]
async fn whoever_answers_with_the_challenge_is_believed_and_nobody_else() {
    for (answer, expected) in [
        (page("200 OK", "1000000000"), Ok(())),
        (page("200 OK", " 1000000000\r\n"), Ok(())),
        (page("200 OK", "\"1000000000\""), Err(NoHandshake::Another(12))),
        (page("200 OK", ""), Err(NoHandshake::Another(0))),
        (page("201 Created", "1000000000"), Err(NoHandshake::Status(201))),
        (page("403 Forbidden", "no"), Err(NoHandshake::Status(403))),
    ] {
        let receiver = Receiver::start(vec![vec![answer.clone()]]).await;
        let registered = register(lenient(), &format!("{}?shop=1", receiver.url())).await;
        let registered = registered.map_err(|refused| match refused {
            NotAdmitted::NoHandshake(why) => why,
            NotAdmitted::Refused(why) => panic!("{why}"),
        });
        assert_eq!(registered, expected, "{answer:?}");
        let asked = "GET /hook?shop=1&hub.mode=subscribe&hub.challenge=1000000000&hub.verify_token=a+token ";
        assert!(receiver.requests()[0].starts_with(asked), "{:?}", receiver.requests());
    }
}

#[tokio::test]
async fn a_private_address_is_never_connected_to() {
    let receiver = Receiver::start(vec![vec![ok()]]).await;
    let port = receiver.port();
    for url in [format!("https://shop.example:{port}/"), format!("http://127.0.0.1:{port}/")] {
        let refused = register(strict(Names::here()), &url).await.unwrap_err();
        assert!(
            matches!(refused, NotAdmitted::Refused(Refused::PrivateAddress(_) | Refused::Scheme)),
            "{refused}"
        );
    }
    assert_eq!(receiver.connections(), 0);
}
