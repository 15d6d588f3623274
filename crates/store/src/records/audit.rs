//! The audit feed: who changed accounts, credentials, phone numbers, endpoints, connections to providers
//! and the schema, and who decided about templates there.

use galley_domain::id::AccountId;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::Actor;

/// How many entries the tokens of an account may cause within 24 hours by creating tokens,
/// registering or changing endpoints and replacing their secrets. Entries are never deleted, so they
/// must not grow at a client's will. What deletes or revokes something is always possible.
pub const MAX_DAILY_CHANGES: u32 = 2_000;

/// Declares the kinds with their stored and displayed values.
macro_rules! audit_kinds {
    ($($(#[$doc:meta])* $kind:ident $value:literal,)+) => {
        /// What an entry of the audit feed records.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum AuditKind {
            $($(#[$doc])* $kind,)+
        }

        impl AuditKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// The stored and displayed value.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => $value,)+
                }
            }
        }
    };
}

audit_kinds! {
    /// An account was created.
    AccountCreated "account.created",
    /// An account has another name.
    AccountRenamed "account.renamed",
    /// An account reviews its templates in another way.
    AccountReviewChanged "account.review_changed",
    /// Versions of an account's templates need a second person's decision, or no longer do.
    AccountFourEyesChanged "account.four_eyes_changed",
    /// An account has other limits or quotas.
    AccountLimitsChanged "account.limits_changed",
    /// An account was disabled.
    AccountDisabled "account.disabled",
    /// An account was enabled.
    AccountEnabled "account.enabled",
    /// An account was deleted.
    AccountDeleted "account.deleted",
    /// A key or token was created.
    CredentialCreated "credential.created",
    /// A key or token was replaced; the old one expires.
    CredentialRotated "credential.rotated",
    /// A key or token was revoked.
    CredentialRevoked "credential.revoked",
    /// A link to the console was created.
    ConsoleLinkCreated "console.link_created",
    /// An account owns another phone number.
    PhoneAdded "phone.added",
    /// An account no longer owns a phone number.
    PhoneRemoved "phone.removed",
    /// An endpoint was registered.
    WebhookCreated "webhook.created",
    /// An endpoint was changed, disabled or enabled.
    WebhookChanged "webhook.changed",
    /// An endpoint has another secret.
    WebhookSecretRotated "webhook.secret_rotated",
    /// An endpoint was deleted.
    WebhookDeleted "webhook.deleted",
    /// An account was connected to a provider.
    UpstreamConnected "upstream.connected",
    /// An account is no longer connected to its provider.
    UpstreamDisconnected "upstream.disconnected",
    /// The connection of an account to its provider was paused, resumed or got other credentials.
    UpstreamChanged "upstream.changed",
    /// A person submitted, pushed, accepted, retried or adopted a template of a connected account.
    TemplateUpstreamAction "template.upstream_action",
    /// The schema of the store was migrated.
    StoreMigrated "store.migrated",
}

/// An entry of the audit feed. Entries are never changed or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The sequence number. It increases from entry to entry in the whole store.
    pub seq: u64,
    /// The time of the change.
    pub at: Timestamp,
    /// Who made it.
    pub actor: Actor,
    /// The present name of the actor's token; empty without one.
    pub actor_name: String,
    /// The account that was changed; `None` for the whole store.
    pub account: Option<AccountId>,
    /// The value of an [`AuditKind`]; possibly of a later release.
    pub kind: String,
    /// The id of what was changed: of a credential, an endpoint, a phone number, a template or an
    /// account.
    pub subject: String,
    /// More about the change, never a secret.
    pub details: Map<String, Value>,
}
