//! Receivers behind TLS: only who can show a good certificate for its name gets the message.

use std::sync::Arc;

use galley_server::delivery::{HttpOutgoing, trusted_roots};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};
use tokio::{io::AsyncWriteExt as _, net::TcpListener};
use tokio_rustls::TlsAcceptor;

use super::receiver::{PATIENT, Receiver, failure, lenient, ok, status};

const NAME: &str = "hooks.example.com";

/// A receiver's end of TLS with a certificate for these names, and that certificate.
fn certified(names: &[&str]) -> (TlsAcceptor, CertificateDer<'static>) {
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

fn trusting(certificate: CertificateDer<'static>) -> HttpOutgoing {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    HttpOutgoing::new(lenient(), PATIENT, roots)
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let (tls, _) = certified(&[NAME]);
    let receiver = Receiver::start_tls(tls, vec![vec![ok()]; 2]).await;
    let outgoing = HttpOutgoing::new(lenient(), PATIENT, trusted_roots());
    let failure = failure(&outgoing, &format!("https://{NAME}:{}/", receiver.port())).await;
    assert_eq!(failure.kind.as_str(), "tls", "{failure:?}");
    assert!(failure.detail.contains("certificate"), "{failure:?}");
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn a_good_certificate_is_accepted_the_name_is_sent_and_the_handshake_used_again() {
    let (tls, certificate) = certified(&[NAME]);
    let receiver = Receiver::start_tls(tls, vec![vec![ok(), ok()]]).await;
    let outgoing = trusting(certificate);
    let url = format!("https://{NAME}:{}/hook", receiver.port());
    for _ in 0..2 {
        assert_eq!(status(&outgoing, &url).await, 200);
    }
    assert_eq!(receiver.server_names(), [Some(NAME.to_owned())]);
    assert_eq!(receiver.connections(), 1);
    let host = format!("host: {NAME}:{}\r\n", receiver.port());
    assert!(receiver.requests().iter().all(|it| it.contains(&host)));
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let (tls, certificate) = certified(&["other.example.com"]);
    let receiver = Receiver::start_tls(tls, vec![vec![ok()]; 2]).await;
    let outgoing = trusting(certificate);
    for host in [NAME, "127.0.0.1"] {
        let failure = failure(&outgoing, &format!("https://{host}:{}/", receiver.port())).await;
        assert_eq!(failure.kind.as_str(), "tls", "{host}: {failure:?}");
    }
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn an_address_with_its_own_certificate_is_accepted_where_addresses_are() {
    let (tls, certificate) = certified(&["127.0.0.1"]);
    let receiver = Receiver::start_tls(tls, vec![vec![ok()]]).await;
    let url = format!("https://127.0.0.1:{}/", receiver.port());
    assert_eq!(status(&trusting(certificate), &url).await, 200);
    assert_eq!(receiver.server_names(), [None]);
}

#[tokio::test]
async fn a_receiver_without_tls_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{NAME}:{}/", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 This is not https\r\n\r\n").await.unwrap();
    });
    let outgoing = HttpOutgoing::new(lenient(), PATIENT, RootCertStore::empty());
    let failure = failure(&outgoing, &url).await;
    assert_eq!(failure.kind.as_str(), "tls", "{failure:?}");
}

#[test]
fn somebody_is_always_trusted() {
    assert!(!trusted_roots().is_empty());
}
