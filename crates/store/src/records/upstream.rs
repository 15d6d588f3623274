//! Accounts that are connected to a provider: connections, leases and sweeps.

use galley_domain::{
    id::AccountId,
    upstream::{CallBudget, CallKind, ProviderError, SweepProgress},
};
use jiff::{SignedDuration, Timestamp};

use crate::{Author, SecretHash, StoredSecret};

/// A connection to create.
#[derive(Clone, Debug)]
pub struct NewConnection {
    /// The account.
    pub account: AccountId,
    /// The base URL of the provider's API, with its version.
    pub base_url: String,
    /// The account at the provider.
    pub waba: String,
    /// The app that uploads samples.
    pub app_id: Option<String>,
    /// The token, sealed.
    pub token: StoredSecret,
    /// When the token expires, if that is known.
    pub token_expires_at: Option<Timestamp>,
    /// The secret of the app, sealed.
    pub app_secret: Option<StoredSecret>,
    /// The hash of the secret in the path of its webhook.
    pub hook_hash: SecretHash,
    /// Who connects it, and when.
    pub by: Author,
}

/// The result of [`connect_upstream`](crate::Store::connect_upstream).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectOutcome {
    /// The account is connected.
    Connected,
    /// The account is already connected.
    Exists,
    /// The account has another rulebook than `whatsapp`.
    NotWhatsapp,
    /// The account is an emulator.
    Emulator,
    /// No such account exists.
    NoAccount,
}

/// The connection of an account to a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamConnection {
    /// The account.
    pub account: AccountId,
    /// The base URL of the provider's API, with its version.
    pub base_url: String,
    /// The account at the provider.
    pub waba: String,
    /// The app that uploads samples.
    pub app_id: Option<String>,
    /// The token, sealed.
    pub token: StoredSecret,
    /// When the token expires, if that is known.
    pub token_expires_at: Option<Timestamp>,
    /// The secret of the app, sealed.
    pub app_secret: Option<StoredSecret>,
    /// When it was connected.
    pub connected_at: Timestamp,
    /// When a person paused it.
    pub paused_at: Option<Timestamp>,
    /// Since then nothing is marked as missing, because a sweep did not see too many templates. A
    /// person ends it.
    pub suspicious_at: Option<Timestamp>,
    /// Why calls fail.
    pub degraded: Option<Degraded>,
    /// The calls of the last hour. The limit of calls is that of the caller.
    pub budget: CallBudget,
    /// The sweep that runs.
    pub sweep: Option<Sweep>,
    /// Whether a webhook named a template that is not mirrored, so that a sweep should begin soon.
    pub sweep_wanted: bool,
    /// When the last sweep ended, counted or not.
    pub sweep_ended_at: Option<Timestamp>,
    /// When the last counted sweep ended.
    pub swept_at: Option<Timestamp>,
    /// When the last counted sweep that read components ended.
    pub read_all_at: Option<Timestamp>,
    /// The maximum number of templates at the provider, if it tells.
    pub template_limit: Option<u64>,
    /// Until when a worker holds the lease.
    pub leased_until: Option<Timestamp>,
}

/// The state of a connection: the first one that applies. A pause hides the others, because no call is
/// made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// A person paused it.
    Paused,
    /// A sweep did not see too many templates.
    Suspicious,
    /// Calls fail.
    Degraded,
    /// None of these.
    Connected,
}

impl ConnectionState {
    pub(crate) fn new(is_paused: bool, is_suspicious: bool, is_degraded: bool) -> Self {
        match (is_paused, is_suspicious, is_degraded) {
            (true, ..) => Self::Paused,
            (_, true, _) => Self::Suspicious,
            (.., true) => Self::Degraded,
            _ => Self::Connected,
        }
    }

    /// The word that is displayed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Suspicious => "suspicious",
            Self::Degraded => "degraded",
            Self::Connected => "connected",
        }
    }
}

impl UpstreamConnection {
    /// Its state.
    pub fn state(&self) -> ConnectionState {
        let is_paused = self.paused_at.is_some();
        ConnectionState::new(is_paused, self.suspicious_at.is_some(), self.degraded.is_some())
    }

    /// Whether operations wait until a person has looked: the provider may be another account than
    /// before, which nothing must change.
    pub fn is_frozen(&self) -> bool {
        self.suspicious_at.is_some()
    }

    /// Whether no call of an operation of this kind is made now: a person paused the connection or has
    /// to look at it, it rests after a failure or because the provider asked for it, or its budget is
    /// used up.
    pub fn is_resting(&self, kind: CallKind, calls_per_hour: u32, at: Timestamp) -> bool {
        let budget = CallBudget { calls_per_hour, ..self.budget.clone() };
        let degraded_until = self.degraded.as_ref().and_then(|it| it.until);
        self.paused_at.is_some()
            || self.is_frozen()
            || degraded_until.is_some_and(|until| at < until)
            || budget.take(kind, at).is_err()
    }

    /// Whether its first sweep has begun.
    pub fn has_begun_import(&self) -> bool {
        self.sweep.is_some() || self.sweep_ended_at.is_some()
    }

    /// When the service begins the first sweep, if no person has and it ends no approvals. A webhook does
    /// not hasten it: the operator looks at the account first.
    pub fn first_sweep_at(&self, sweep_interval: SignedDuration) -> Timestamp {
        self.connected_at.checked_add(sweep_interval).unwrap_or(Timestamp::MAX)
    }

    /// Whether a template that the mirror does not have is not at the provider, either: a sweep has
    /// counted, and nothing is suspicious since.
    pub(crate) fn has_seen_all(&self) -> bool {
        self.swept_at.is_some() && self.suspicious_at.is_none()
    }
}

/// A walk over the list of templates that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Its number in the account.
    pub number: u64,
    /// When it began.
    pub began_at: Timestamp,
    /// Whether its pages have components.
    pub full: bool,
    /// The next page.
    pub position: SweepPosition,
    /// What it has seen.
    pub progress: SweepProgress,
    /// How many templates were new or had changed.
    pub changed: u64,
}

/// The page of a sweep that comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SweepPosition {
    /// The first one.
    Start,
    /// The page after this cursor.
    After(String),
    /// None: the sweep can be finished.
    End,
}

/// Why calls to a provider fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DegradedReason {
    /// The provider does not accept the token.
    Credentials,
    /// The provider has restricted the account.
    Restricted,
    /// The budget of calls is used up.
    Throttle,
    /// The provider does not answer.
    Unreachable,
}

impl DegradedReason {
    const ALL: [Self; 4] = [Self::Credentials, Self::Restricted, Self::Throttle, Self::Unreachable];

    /// The word that is stored and displayed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Credentials => "credentials",
            Self::Restricted => "restricted",
            Self::Throttle => "throttle",
            Self::Unreachable => "unreachable",
        }
    }

    /// The reason with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }
}

/// The state of a connection whose calls fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Degraded {
    /// Why they fail.
    pub reason: DegradedReason,
    /// Since when.
    pub since: Timestamp,
    /// Until when no call is made.
    pub until: Option<Timestamp>,
    /// The last error of the provider, or of a call that had no response (code 0).
    pub error: Option<ProviderError>,
}

/// A change of a connection by a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionChange {
    /// Another token, sealed, and when it expires. The provider has accepted it: the connection is not
    /// degraded any more, and calls are made again at once.
    Token(StoredSecret, Option<Timestamp>),
    /// Another secret of the app, sealed, or none.
    AppSecret(Option<StoredSecret>),
    /// Another secret in the path of the webhook.
    Hook(SecretHash),
    /// No calls until it is resumed.
    Paused,
    /// Ends a pause and the suspicion about a sweep. Calls are made again at once.
    Resumed,
    /// The same, and the templates that the last sweep did not see are missing: a read of each decides
    /// whether it is gone.
    MissingAccepted,
}

impl ConnectionChange {
    /// The word for the audit feed.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Token(..) => "token",
            Self::AppSecret(_) => "app_secret",
            Self::Hook(_) => "hook",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::MissingAccepted => "missing_accepted",
        }
    }
}

/// The right to work on a connection: every write under a lease checks its number, so that a worker
/// whose lease another one has taken over changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    /// The account.
    pub account: AccountId,
    /// The number of the lease.
    pub number: u64,
}

/// A lease on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What each write under the lease presents.
    pub fence: Fence,
    /// The connection.
    pub connection: UpstreamConnection,
}

/// Whether work goes on under a lease that was extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// It does.
    Active,
    /// A person has paused the connection or disabled the account since: workers make no more calls.
    Paused,
}

/// The result of a write under a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Fenced<T> {
    /// It was made.
    Done(T),
    /// Another worker may have the lease, or what was leased is gone. Nothing changed.
    LeaseLost,
}

/// Whether a call may be made now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPermit {
    /// It is counted and may be made.
    Granted,
    /// No such call is possible before this time.
    NotBefore(Timestamp),
}
