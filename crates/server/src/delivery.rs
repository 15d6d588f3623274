//! Delivering events to endpoints, without being led to call anything else.
//!
//! `guard` says which addresses may be called, `outgoing` calls them, `signature` lets a receiver
//! know that it was us, and `keyring` seals the secrets of those signatures at rest. `envelope`,
//! `handshake` and `hub` do as Meta does, for endpoints of that format.

mod context;
mod endpoint_verification;
mod http_client;
mod keyring;
mod listen;
pub(crate) mod meta_payload;
pub(crate) mod meta_signature;
mod resolve;
pub(crate) mod signature;
mod ssrf;

pub use context::{NewSecret, NotAdmitted, Random, Setup, both_secrets_until};
pub use endpoint_verification::NoHandshake;
pub use http_client::{
    Failure, FailureKind, HttpOutgoing, Outcome, Outgoing, Page, Post, RetryAfter, trusted_roots,
};
pub use keyring::{CannotOpen, KeyTooShort, Keyring};
pub use listen::{Checked, Received, Receiver};
pub use meta_signature::{HUB_HEADER, sign_hub, verify_hub};
pub use resolve::{Resolve, SystemResolver};
pub use signature::{
    ID_HEADER, NotASecret, NotVerified, SIGNATURE_HEADER, Secret, Signed, TIMESTAMP_HEADER, sign,
    verify,
};
pub use ssrf::{Admitted, Guard, Refused, Rules, is_public};
