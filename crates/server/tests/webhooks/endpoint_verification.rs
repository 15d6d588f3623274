//! Endpoint verification through the HTTP client that also delivers.

use std::{sync::Arc, time::Duration};

use galley_domain::webhook::{Redacted, delivery::RetrySchedule};
use galley_server::delivery::{
    EndpointError, Failure, FailureKind, Keyring, Random, ResponseStart, SsrfGuard, UrlError,
    VerificationError, WebhookClient as _, WebhookContext,
};

use super::receiver::{
    FixedResolver, LONG_TIMEOUT, Reply, SHORT_TIMEOUT, ScriptedReceiver, account, ok,
    private_client, private_guard, strict_guard,
};

/// Resolves a URL and sends a `GET` request.
async fn get(timeout: Duration, url: &str) -> Result<ResponseStart, Failure> {
    private_client(timeout).get(private_guard().resolve(account(), url).await.unwrap()).await
}

struct ZeroRandom;

impl Random for ZeroRandom {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

/// Checks an endpoint as a registration does.
async fn check_endpoint(guard: SsrfGuard, url: &str) -> Result<(), EndpointError> {
    let context = WebhookContext {
        guard,
        keyring: Keyring::new(None).unwrap(),
        random: Arc::new(ZeroRandom),
        client: Arc::new(private_client(LONG_TIMEOUT)),
        schedule: RetrySchedule::default(),
        per_second: 1,
        timeout: LONG_TIMEOUT,
        deliver: false,
    };
    context.check_endpoint(account(), url, Some(&Redacted("a token".to_owned()))).await
}

fn reply(status: &str, body: &str) -> Reply {
    Reply::Send(format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
}

#[tokio::test]
async fn a_get_request_has_the_whole_url_and_returns_the_body() {
    let receiver = ScriptedReceiver::start(vec![vec![reply("200 OK", "12345")]]).await;
    let response = get(LONG_TIMEOUT, &format!("{}?a=b&hub.mode=subscribe", receiver.url())).await;
    assert_eq!(response, Ok(ResponseStart { status: 200, body: b"12345".to_vec() }));
    let [request] = &receiver.requests()[..] else { panic!("not one request") };
    assert!(request.starts_with("GET /hook?a=b&hub.mode=subscribe HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("user-agent: Galley/"), "{request}");
    assert!(!request.contains("content-length"), "{request}");
}

#[tokio::test]
async fn a_redirect_is_returned_and_not_followed() {
    let elsewhere = ScriptedReceiver::start(vec![vec![ok()]]).await;
    let text =
        format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", elsewhere.url());
    let receiver = ScriptedReceiver::start(vec![vec![Reply::Send(text)]]).await;
    let response = get(LONG_TIMEOUT, &receiver.url()).await.unwrap();
    assert_eq!((response.status, elsewhere.connections()), (302, 0));
}

#[tokio::test]
async fn only_the_beginning_of_an_endless_body_is_read() {
    let endless = Reply::Endless("HTTP/1.1 200 OK\r\n\r\n", "x");
    let receiver = ScriptedReceiver::start(vec![vec![endless]]).await;
    let response = get(LONG_TIMEOUT, &receiver.url()).await.unwrap();
    assert_eq!(response.body, vec![b'x'; 4_096]);
}

#[tokio::test]
async fn a_get_request_without_a_response_times_out() {
    let receiver = ScriptedReceiver::start(vec![Vec::new()]).await;
    let failure = get(SHORT_TIMEOUT, &receiver.url()).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout);
}

#[tokio::test]
async fn an_endpoint_is_verified_only_if_it_echoes_the_challenge() {
    for (reply, expected) in [
        (reply("200 OK", "1000000000"), Ok(())),
        (reply("200 OK", " 1000000000\r\n"), Ok(())),
        (reply("200 OK", "\"1000000000\""), Err(VerificationError::WrongBody(12))),
        (reply("200 OK", ""), Err(VerificationError::WrongBody(0))),
        (reply("201 Created", "1000000000"), Err(VerificationError::Status(201))),
        (reply("403 Forbidden", "no"), Err(VerificationError::Status(403))),
    ] {
        let receiver = ScriptedReceiver::start(vec![vec![reply.clone()]]).await;
        let checked = check_endpoint(private_guard(), &format!("{}?shop=1", receiver.url())).await;
        let checked = checked.map_err(|error| match error {
            EndpointError::Verification(error) => error,
            EndpointError::Url(error) => panic!("{error}"),
        });
        assert_eq!(checked, expected, "{reply:?}");
        let expected_start = "GET /hook?shop=1&hub.mode=subscribe&hub.challenge=1000000000&hub.verify_token=a+token ";
        assert!(receiver.requests()[0].starts_with(expected_start), "{:?}", receiver.requests());
    }
}

#[tokio::test]
async fn verification_never_connects_to_a_private_address() {
    let receiver = ScriptedReceiver::start(vec![vec![ok()]]).await;
    let port = receiver.port();
    for url in [format!("https://shop.example:{port}/"), format!("http://127.0.0.1:{port}/")] {
        let error =
            check_endpoint(strict_guard(FixedResolver::loopback()), &url).await.unwrap_err();
        assert!(
            matches!(error, EndpointError::Url(UrlError::UnusableName { .. } | UrlError::Scheme)),
            "{error}"
        );
    }
    assert_eq!(receiver.connections(), 0);
}
