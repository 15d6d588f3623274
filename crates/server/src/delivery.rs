//! Webhook delivery: signs events and sends them to endpoints, protected against SSRF.
//!
//! `ssrf` decides which addresses Galley may connect to, `http_client` sends the requests,
//! `signed_request` and `signature` sign them, and `keyring` encrypts the signing secrets at rest.
//! `meta_payload`, `status_payload`, `endpoint_verification` and `meta_signature` implement Meta's
//! format. `test_event` is what an operator sends to try an endpoint.

mod context;
mod endpoint_verification;
mod http_client;
mod keyring;
mod listen;
pub(crate) mod meta_payload;
pub(crate) mod meta_signature;
mod resolve;
pub(crate) mod signature;
mod signed_request;
mod ssrf;
pub(crate) mod status_payload;
mod test_event;

pub use context::{EndpointError, NewSecret, Random, WebhookContext, secret_overlap_end};
pub use endpoint_verification::VerificationError;
pub use http_client::{
    ExchangeFailure, ExchangeRequest, Failure, FailureKind, FullResponse, HttpWebhookClient,
    PostOutcome, PostReport, PostRequest, ResponseStart, RetryAfter, TestReport, WebhookClient,
    trusted_roots,
};
pub use keyring::{DecryptError, InvalidKeyLength, Keyring};
pub use listen::{ReceivedDelivery, SignatureCheck, WebhookReceiver};
pub use meta_signature::{META_SIGNATURE_HEADER, sign_meta, verify_meta};
pub use resolve::{Resolve, SystemResolver};
pub use signature::{
    ID_HEADER, InvalidSecret, SIGNATURE_HEADER, Secret, SignatureError, SignatureHeaders,
    TIMESTAMP_HEADER, sign, verify,
};
pub(crate) use ssrf::MAX_SLOT_WAIT;
pub use ssrf::{NameCause, ResolvedTarget, SsrfGuard, SsrfPolicy, UrlError, is_public};
