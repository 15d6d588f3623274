//! Webhooks: which addresses are called and which never, how receivers of every kind are met, and
//! that others can verify what we sign.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod webhooks {
    mod addresses;
    mod handshake;
    mod hostile;
    mod outgoing;
    pub(crate) mod receiver;
    mod signature;
    mod spellings;
    mod tls;
}
