//! Delivering events to endpoints, without being led to call anything else.
//!
//! `guard` says which addresses may be called, `outgoing` calls them, `signature` lets a receiver
//! know that it was us, and `keyring` seals the secrets of those signatures at rest.

mod deliver;
mod guard;
mod keyring;
mod listen;
mod outgoing;
mod resolve;
mod rounds;
mod setup;
mod signature;

pub use deliver::{Step, deliver_one};
pub use guard::{Admitted, Guard, Refused, Rules, is_public};
pub use keyring::{CannotOpen, KeyTooShort, Keyring};
pub use listen::{Checked, Received, Receiver};
pub use outgoing::{
    Failure, FailureKind, HttpOutgoing, Outcome, Outgoing, Post, RetryAfter, trusted_roots,
};
pub use resolve::{Resolve, SystemResolver};
pub use rounds::deliver_webhooks_forever;
pub use setup::{Random, Setup};
pub use signature::{
    ID_HEADER, NotASecret, NotVerified, SIGNATURE_HEADER, Secret, Signed, TIMESTAMP_HEADER, sign,
    verify,
};
