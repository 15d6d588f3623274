//! What endpoints and deliveries need beside the store, handed in by the command line; and what is
//! done whenever one is registered, on whatever surface.

use std::{sync::Arc, time::Duration};

use galley_domain::{
    id::AccountId,
    violation::{Rule, Violation},
    webhook::{Format, Redacted, delivery::Schedule},
};
use galley_store::StoredSecret;
use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use super::{
    endpoint_verification::{NoHandshake, shake},
    http_client::Outgoing,
    keyring::Keyring,
    signature::Secret,
    ssrf::{Guard, Refused},
};

/// How long both secrets sign after a rotation, where a signature has room for both.
const BOTH_SECRETS: SignedDuration = SignedDuration::from_hours(24);

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
pub struct NewSecret {
    /// For its owner.
    pub shown: String,
    /// For the store.
    pub sealed: StoredSecret,
}

/// Why nothing is sent to an address.
#[derive(Clone, Debug, Error)]
pub enum NotAdmitted {
    /// It may not be called.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It was called and did not show that it wants to be.
    #[error(transparent)]
    NoHandshake(#[from] NoHandshake),
}

impl NotAdmitted {
    /// As a fault of the document in which the address stands there.
    pub(crate) fn violation(&self, pointer: &str) -> Violation {
        let (rule, hint) = match self {
            Self::Refused(_) => (
                Rule::WebhookAddress,
                "an endpoint has an address like `https://shop.example/hooks`",
            ),
            Self::NoHandshake(_) => (
                Rule::WebhookHandshake,
                "answer `GET` there with 200 and the value of `hub.challenge` when `hub.verify_token` is what you sent here as `verify_token`",
            ),
        };
        Violation {
            pointer: pointer.to_owned(),
            rule,
            // Others go on where it ends.
            message: self.to_string().trim_end_matches('.').to_owned(),
            hint: Some(hint.to_owned()),
            span: None,
        }
    }
}

impl Setup {
    /// Whether an endpoint may be registered there. Where private networks are allowed every
    /// address is good, and a receiver nearby may be started later: its name is not looked up.
    /// With a token, the address has to answer now.
    pub async fn admit(&self, url: &str, token: Option<&Redacted>) -> Result<(), NotAdmitted> {
        if token.is_none() && self.guard.rules().allow_private {
            self.guard.check_form(url)?;
            return Ok(());
        }
        let address = self.guard.admit(url).await?;
        if let Some(Redacted(token)) = token {
            shake(&*self.outgoing, &*self.random, address, token).await?;
        }
        Ok(())
    }

    /// A secret for an endpoint of that format: what was given, if it is one, or a new one.
    pub fn new_secret(
        &self,
        account: AccountId,
        format: Format,
        given: Option<&Redacted>,
    ) -> NewSecret {
        let fill = |bytes: &mut [u8]| self.random.fill(bytes);
        let given = given.and_then(|Redacted(text)| Secret::of_app(text).ok());
        let (secret, shown) = match format {
            Format::Galley => {
                let secret = Secret::generate(fill);
                let shown = secret.reveal();
                (secret, shown)
            }
            Format::Whatsapp => {
                let secret = given.unwrap_or_else(|| Secret::generate_app(fill));
                let shown = secret.reveal_app();
                (secret, shown)
            }
        };
        let mut nonce = [0; 24];
        self.random.fill(&mut nonce);
        NewSecret { shown, sealed: self.keyring.seal(account.get(), &secret, nonce) }
    }
}

/// Until when the secret before signs, too, if another takes its place now.
pub fn both_secrets_until(format: Format, now: Timestamp) -> Timestamp {
    match format {
        Format::Galley => now.checked_add(BOTH_SECRETS).unwrap_or(Timestamp::MAX),
        Format::Whatsapp => now,
    }
}
