//! Delivering events to endpoints, without being led to call anything else.
//!
//! `guard` says which addresses may be called, `outgoing` calls them, `signature` lets a receiver
//! know that it was us, and `keyring` seals the secrets of those signatures at rest. `envelope`,
//! `handshake` and `hub` do as Meta does, for endpoints of that format.

mod deliver;
mod envelope;
mod guard;
mod handshake;
mod hub;
mod keyring;
mod listen;
mod outgoing;
mod resolve;
mod rounds;
mod setup;
mod signature;

pub use deliver::{Step, deliver_one};
pub use guard::{Admitted, Guard, Refused, Rules, is_public};
pub use handshake::NoHandshake;
pub use hub::{HUB_HEADER, sign_hub, verify_hub};
pub use keyring::{CannotOpen, KeyTooShort, Keyring};
pub use listen::{Checked, Received, Receiver};
pub use outgoing::{
    Failure, FailureKind, HttpOutgoing, Outcome, Outgoing, Page, Post, RetryAfter, trusted_roots,
};
pub use resolve::{Resolve, SystemResolver};
pub use rounds::deliver_webhooks_forever;
pub use setup::{NewSecret, NotAdmitted, Random, Setup, both_secrets_until};
pub use signature::{
    ID_HEADER, NotASecret, NotVerified, SIGNATURE_HEADER, Secret, Signed, TIMESTAMP_HEADER, sign,
    verify,
};
