//! What endpoints and deliveries need beside the store, handed in by the command line.

use std::{sync::Arc, time::Duration};

use galley_domain::{delivery::Schedule, id::AccountId};
use galley_store::KeptSecret;

use super::{
    guard::{Guard, Refused},
    keyring::Keyring,
    outgoing::Outgoing,
    signature::Secret,
};

/// A random source, handed in so that tests can foresee it.
pub trait Random: Send + Sync {
    /// Fills the bytes so that nobody can guess them.
    fn fill(&self, bytes: &mut [u8]);
}

/// Everything around endpoints that is not in the store.
pub struct Setup {
    /// Says where events may be sent.
    pub guard: Guard,
    /// Seals the secrets that are kept.
    pub keyring: Keyring,
    /// Where secrets and the spread of attempts come from.
    pub random: Arc<dyn Random>,
    /// What sends them.
    pub outgoing: Arc<dyn Outgoing>,
    /// When attempts are made.
    pub schedule: Schedule,
    /// How many deliveries an endpoint gets in a second at most.
    pub per_second: u32,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// Whether this process delivers. Endpoints can be registered anyway.
    pub deliver: bool,
}

/// A new secret: as its owner is told it, and as it is kept.
pub(crate) struct NewSecret {
    pub(crate) shown: String,
    pub(crate) sealed: KeptSecret,
}

impl Setup {
    /// Whether an endpoint may be registered there. Where private networks are allowed every
    /// address is good, and a receiver nearby may be started later: its name is not looked up.
    pub(crate) async fn admit(&self, url: &str) -> Result<(), Refused> {
        if self.guard.rules().allow_private {
            self.guard.check_form(url).map(drop)
        } else {
            self.guard.admit(url).await.map(drop)
        }
    }

    pub(crate) fn new_secret(&self, account: AccountId) -> NewSecret {
        let secret = Secret::generate(|bytes| self.random.fill(bytes));
        let mut nonce = [0; 24];
        self.random.fill(&mut nonce);
        let sealed = self.keyring.seal(account.get(), &secret, nonce);
        NewSecret { shown: secret.reveal(), sealed }
    }
}
