//! TLS connections to the database, with rustls.

use std::{
    convert::Infallible,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{
        CertificateDer, InvalidDnsNameError, ServerName, UnixTime,
        pem::{self, PemObject as _},
    },
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{self as driver, ChannelBinding, MakeTlsConnect, TlsConnect},
};
use tokio_rustls::TlsConnector;

use super::address::{PostgresAddress, Verification};
use crate::{StoreError, error::failed};

/// Opens TLS connections to the database.
#[derive(Clone)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// TLS as configured by the address.
    pub(super) fn new(address: &PostgresAddress) -> Result<Self, StoreError> {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let config = config.with_safe_default_protocol_versions().map_err(failed)?;
        let config = match &address.verification {
            Verification::Full(root) => config.with_root_certificates(roots(root.as_deref())?),
            Verification::None => config
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(NoCertificateVerification(provider))),
        };
        Ok(Self { config: Arc::new(config.with_no_client_auth()) })
    }
}

/// Trusted authorities: those in the file, or those of the system.
fn roots(file: Option<&std::path::Path>) -> Result<RootCertStore, StoreError> {
    let mut store = RootCertStore::empty();
    let Some(file) = file else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return Ok(store);
    };
    let path = file.display();
    let invalid = |error: pem::Error| failed(format!("{path}: {error}"));
    let found = CertificateDer::pem_file_iter(file);
    for certificate in found.map_err(invalid)? {
        let certificate = certificate.map_err(invalid)?;
        store.add(certificate).map_err(failed)?;
    }
    if store.is_empty() {
        return Err(failed(format!("{path} contains no certificate")));
    }
    Ok(store)
}

/// Accepts any certificate, as `sslmode=require` specifies: encrypted, but the server is not
/// authenticated.
#[derive(Debug)]
struct NoCertificateVerification(Arc<CryptoProvider>);

impl ServerCertVerifier for NoCertificateVerification {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = TlsStream;
    type TlsConnect = Handshake;
    type Error = Infallible;

    /// The driver calls this even if no handshake follows, so an invalid name is reported later: a
    /// Unix socket has no server name and needs none.
    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Infallible> {
        let name = ServerName::try_from(host).map(|name| name.to_owned());
        Ok(Handshake { connector: TlsConnector::from(Arc::clone(&self.config)), name })
    }
}

/// A handshake that has not started.
pub(super) struct Handshake {
    connector: TlsConnector,
    name: Result<ServerName<'static>, InvalidDnsNameError>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = TlsStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TlsStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let name =
                self.name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            self.connector.connect(name, socket).await.map(Box::new).map(TlsStream)
        })
    }
}

/// An encrypted connection.
pub(super) struct TlsStream(Box<tokio_rustls::client::TlsStream<Socket>>);

impl driver::TlsStream for TlsStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
