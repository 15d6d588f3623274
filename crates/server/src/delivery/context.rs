//! The dependencies of webhook endpoints and deliveries besides the store, and the checks of a new
//! endpoint that all APIs share.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use futures_util::future::BoxFuture;
use galley_domain::{
    id::AccountId,
    violation::{Rule, Violation},
    webhook::{Format, Redacted, delivery::RetrySchedule},
};
use galley_store::{StoredSecret, TraceContext};
use jiff::{SignedDuration, Timestamp};
use thiserror::Error;
use tracing::field::display;

use super::{
    DecryptError,
    endpoint_verification::{VerificationError, verify_endpoint},
    http_client::WebhookClient,
    keyring::Keyring,
    signature::Secret,
    ssrf::{NameCause, SsrfGuard, UrlError},
};

/// How long both secrets sign after a rotation, in formats that allow several signatures.
const SECRET_OVERLAP: SignedDuration = SignedDuration::from_hours(24);

/// A source of random bytes. Tests inject a predictable one.
pub trait Random: Send + Sync {
    /// Fills `bytes` with unpredictable values.
    fn fill(&self, bytes: &mut [u8]);
}

impl dyn Random {
    /// An unguessable name of 32 letters, digits, `_` and `-`.
    pub(crate) fn name(&self) -> String {
        let mut bytes = [0; 24];
        self.fill(&mut bytes);
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }
}

/// The dependencies and settings of webhook endpoints and deliveries, besides the store.
pub struct WebhookContext {
    /// Decides which URLs Galley may connect to.
    pub guard: SsrfGuard,
    /// Encrypts the stored signing secrets.
    pub keyring: Keyring,
    /// Source of new secrets and of the jitter between attempts.
    pub random: Arc<dyn Random>,
    /// Sends the requests.
    pub client: Arc<dyn WebhookClient>,
    /// The retry schedule.
    pub schedule: RetrySchedule,
    /// Maximum deliveries per second to one endpoint.
    pub per_second: u32,
    /// Time limit of one attempt.
    pub timeout: Duration,
    /// Whether this process delivers events. Endpoints can be registered either way.
    pub deliver: bool,
}

/// A new signing secret, in plain text and encrypted.
pub struct NewSecret {
    /// Plain text, shown once to the owner.
    pub shown: String,
    /// Encrypted, for the store.
    pub encrypted: StoredSecret,
}

/// Why a URL cannot be registered as an endpoint.
#[derive(Clone, Debug, Error)]
pub enum EndpointError {
    /// The URL is not allowed.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The endpoint did not pass the verification request.
    #[error(transparent)]
    Verification(#[from] VerificationError),
}

impl EndpointError {
    /// What the message does not tell the client.
    pub fn hidden_cause(&self) -> Option<NameCause> {
        match self {
            Self::Url(error) => error.hidden_cause(),
            Self::Verification(_) => None,
        }
    }

    /// Logs what the response does not tell the client.
    pub(crate) fn log_hidden_cause(&self, account: AccountId, trace: Option<TraceContext>) {
        if let Some(cause) = self.hidden_cause() {
            let trace_id = trace.map(|it| display(it.trace_id()));
            tracing::warn!(%account, %cause, trace_id, "the URL of an endpoint was refused");
        }
    }

    /// The error as a violation in the document that contains the URL at `pointer`.
    pub(crate) fn violation(&self, pointer: &str) -> Violation {
        let (rule, hint) = match self {
            Self::Url(_) => (
                Rule::WebhookAddress,
                "use a public https URL such as `https://shop.example/hooks`",
            ),
            Self::Verification(_) => (
                Rule::WebhookHandshake,
                "respond to `GET` with 200 and the value of `hub.challenge` if `hub.verify_token` equals the `verify_token` of this request",
            ),
        };
        Violation {
            pointer: pointer.to_owned(),
            rule,
            // Violation messages end without a period.
            message: self.to_string().trim_end_matches('.').to_owned(),
            hint: Some(hint.to_owned()),
            span: None,
        }
    }
}

impl WebhookContext {
    /// Whether [`Self::check_endpoint`] waits: for the resolver, or for the endpoint. Without a token, and
    /// with private networks allowed, the name is not resolved: nearly every address is allowed, and a
    /// local receiver may start later.
    pub fn waits_for_endpoint(&self, token: Option<&Redacted>) -> bool {
        token.is_some() || !self.guard.policy().allow_private
    }

    /// Checks whether a URL may be registered as an endpoint. With a token, the endpoint must pass
    /// the verification request now.
    pub fn check_endpoint<'s>(
        &'s self,
        account: AccountId,
        url: &'s str,
        token: Option<&'s Redacted>,
    ) -> BoxFuture<'s, Result<(), EndpointError>> {
        Box::pin(async move {
            if !self.waits_for_endpoint(token) {
                self.guard.check_url(url)?;
                return Ok(());
            }
            let target = self.guard.resolve(account, url).await?;
            if let Some(Redacted(token)) = token {
                verify_endpoint(&*self.client, &*self.random, target, token).await?;
            }
            Ok(())
        })
    }

    /// Creates the secret of an endpoint. Uses `given` in the format whatsapp if it is a valid app
    /// secret, and generates one otherwise.
    pub fn new_secret(
        &self,
        account: AccountId,
        format: Format,
        given: Option<&Redacted>,
    ) -> NewSecret {
        let fill = |bytes: &mut [u8]| self.random.fill(bytes);
        let given = given.and_then(|Redacted(text)| Secret::from_app_secret(text).ok());
        let (secret, shown) = match format {
            Format::Galley => {
                let secret = Secret::generate(fill);
                let shown = secret.reveal();
                (secret, shown)
            }
            Format::Whatsapp => {
                let secret = given.unwrap_or_else(|| Secret::generate_app_secret(fill));
                let shown = secret.reveal_app_secret();
                (secret, shown)
            }
        };
        let mut nonce = [0; 24];
        self.random.fill(&mut nonce);
        NewSecret { shown, encrypted: self.keyring.encrypt(account.get(), &secret, nonce) }
    }
}

impl WebhookContext {
    /// The text of a stored app secret.
    pub(crate) fn reveal_app_secret(
        &self,
        account: AccountId,
        stored: &StoredSecret,
    ) -> Result<Redacted, DecryptError> {
        let secret = self.keyring.decrypt(account.get(), stored)?;
        Ok(Redacted(secret.reveal_app_secret()))
    }
}

/// When the former secret stops signing after a rotation at `now`.
pub fn secret_overlap_end(format: Format, now: Timestamp) -> Timestamp {
    match format {
        Format::Galley => now.checked_add(SECRET_OVERLAP).unwrap_or(Timestamp::MAX),
        Format::Whatsapp => now,
    }
}
