//! Keys and tokens: stored as hashes in the database, loaded into memory at start.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

/// The stored hash of a key or a token.
pub(crate) type Hash = [u8; 32];

/// The credentials of all accounts.
pub(crate) struct Credentials {
    accounts: HashMap<(String, Hash), i64>,
}

impl Credentials {
    pub(crate) fn new(accounts: HashMap<(String, Hash), i64>) -> Self {
        Self { accounts }
    }

    /// Returns the account that owns both the key and the token.
    pub(crate) fn account(&self, key: &str, token: &str) -> Option<i64> {
        let account = |kind: &str, secret| self.accounts.get(&(kind.to_owned(), hash(secret)));
        let (by_key, by_token) = (account("key", key)?, account("token", token)?);
        (by_key == by_token).then_some(*by_key)
    }
}

pub(crate) fn hash(secret: &str) -> Hash {
    Sha256::digest(secret).into()
}
