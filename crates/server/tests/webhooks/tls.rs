//! Receivers with TLS: Galley sends a message only if the certificate is valid for the name.

use std::sync::Arc;

use galley_server::delivery::{HttpWebhookClient, trusted_roots};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};
use tokio::{io::AsyncWriteExt as _, net::TcpListener};
use tokio_rustls::TlsAcceptor;

use super::receiver::{LONG_TIMEOUT, ScriptedReceiver, failure, ok, private_guard, status};

const NAME: &str = "hooks.example.com";

/// A TLS acceptor with a self-signed certificate for these names, and the certificate.
fn acceptor(names: &[&str]) -> (TlsAcceptor, CertificateDer<'static>) {
    let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
    let signed = rcgen::generate_simple_self_signed(names).unwrap();
    let certificate = signed.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), certificate)
}

/// A client that trusts this certificate.
fn client_trusting(certificate: CertificateDer<'static>) -> HttpWebhookClient {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    HttpWebhookClient::new(private_guard(), LONG_TIMEOUT, roots)
}

#[tokio::test]
async fn an_untrusted_certificate_is_rejected() {
    let (tls, _) = acceptor(&[NAME]);
    let receiver = ScriptedReceiver::start_tls(tls, vec![vec![ok()]; 2]).await;
    let client = HttpWebhookClient::new(private_guard(), LONG_TIMEOUT, trusted_roots());
    let failure = failure(&client, &format!("https://{NAME}:{}/", receiver.port())).await;
    assert_eq!(failure.kind.as_str(), "tls", "{failure:?}");
    assert!(failure.detail.contains("certificate"), "{failure:?}");
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn a_valid_certificate_is_accepted_and_the_connection_reused() {
    let (tls, certificate) = acceptor(&[NAME]);
    let receiver = ScriptedReceiver::start_tls(tls, vec![vec![ok(), ok()]]).await;
    let client = client_trusting(certificate);
    let url = format!("https://{NAME}:{}/hook", receiver.port());
    for _ in 0..2 {
        assert_eq!(status(&client, &url).await, 200);
    }
    assert_eq!(receiver.server_names(), [Some(NAME.to_owned())]);
    assert_eq!(receiver.connections(), 1);
    let host = format!("host: {NAME}:{}\r\n", receiver.port());
    assert!(receiver.requests().iter().all(|it| it.contains(&host)));
}

#[tokio::test]
async fn a_certificate_for_another_name_is_rejected() {
    let (tls, certificate) = acceptor(&["other.example.com"]);
    let receiver = ScriptedReceiver::start_tls(tls, vec![vec![ok()]; 2]).await;
    let client = client_trusting(certificate);
    for host in [NAME, "127.0.0.1"] {
        let failure = failure(&client, &format!("https://{host}:{}/", receiver.port())).await;
        assert_eq!(failure.kind.as_str(), "tls", "{host}: {failure:?}");
    }
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn a_certificate_for_an_ip_address_is_accepted_if_ip_addresses_are_allowed() {
    let (tls, certificate) = acceptor(&["127.0.0.1"]);
    let receiver = ScriptedReceiver::start_tls(tls, vec![vec![ok()]]).await;
    let url = format!("https://127.0.0.1:{}/", receiver.port());
    assert_eq!(status(&client_trusting(certificate), &url).await, 200);
    assert_eq!(receiver.server_names(), [None]);
}

#[tokio::test]
async fn a_receiver_without_tls_is_rejected() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{NAME}:{}/", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 This is not https\r\n\r\n").await.unwrap();
    });
    let client = HttpWebhookClient::new(private_guard(), LONG_TIMEOUT, RootCertStore::empty());
    let failure = failure(&client, &url).await;
    assert_eq!(failure.kind.as_str(), "tls", "{failure:?}");
}

#[test]
fn there_are_always_trusted_roots() {
    assert!(!trusted_roots().is_empty());
}
