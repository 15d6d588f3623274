//! Work on one connection, under its lease.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use galley_domain::{
    id::AccountId,
    upstream::{CallFailure, HeldReason, budget::DEFAULT_CALLS_PER_HOUR, failure::PROBE_INTERVAL},
};
use galley_store::{
    Degraded, DegradedReason, EndedApproval, Fence, Fenced, Lease, LeaseState, Store, StoreError,
    UpstreamConnection,
};
use galley_upstream::{Dialect, DialectError, GraphUpstream, Secret, Upstream as _};
use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use super::{
    budget::{BudgetState, BudgetedTransport},
    refused_fields::RefusedFields,
    samples::SampleSettings,
    secrets::{SealedSecret, SecretError},
    transport::Transports,
    waker::UpstreamWaker,
};
use crate::{clock::Clock, delivery::Keyring};

/// After a failure that is not about the account, calls rest this long.
const UNREACHABLE_REST: SignedDuration = SignedDuration::from_mins(1);

/// After so many calls in a row whose outcome is not known, the provider counts as unreachable.
pub(super) const MAX_UNKNOWN_CALLS: u32 = 5;

/// Why operations are held that continue when a call succeeds.
pub(super) const HELD_UNTIL_SUCCESS: [HeldReason; 2] =
    [HeldReason::Credentials, HeldReason::Restricted];

/// How calls are limited.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamSettings {
    /// The time between two sweeps.
    pub sweep_interval: Duration,
    /// The time between two sweeps that read all components.
    pub full_interval: Duration,
    /// The budget of calls of an hour.
    pub calls_per_hour: u32,
    /// How long a lease lasts.
    pub lease: Duration,
}

impl Default for UpstreamSettings {
    fn default() -> Self {
        Self {
            sweep_interval: Duration::from_mins(15),
            full_interval: Duration::from_hours(24),
            calls_per_hour: DEFAULT_CALLS_PER_HOUR,
            lease: Duration::from_secs(30),
        }
    }
}

/// What work on connections needs.
#[derive(Clone)]
pub struct UpstreamContext {
    /// The store.
    pub store: Arc<Store>,
    /// Real time.
    pub clock: Arc<dyn Clock>,
    /// Makes the transport of an account.
    pub transports: Transports,
    /// Opens the sealed tokens.
    pub keyring: Keyring,
    /// The limits.
    pub settings: UpstreamSettings,
    /// How the samples of providers are kept.
    pub samples: SampleSettings,
    /// Tells requests that operations have moved.
    pub waker: UpstreamWaker,
    /// The fields that providers refuse.
    pub refused_fields: RefusedFields,
}

/// Why work on a connection ended.
#[derive(Debug, Error)]
pub enum SyncError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A call failed.
    #[error("{0}")]
    Call(CallFailure),
    /// The budget allows no call before this time.
    #[error("the budget of calls is used up until {0:.3}")]
    NotBefore(Timestamp),
    /// Another process has taken the lease over.
    #[error("another process works on the connection")]
    LeaseLost,
    /// A person has paused the connection or disabled the account while a worker was working on it.
    #[error("the connection is paused")]
    Paused,
    /// The token or the app secret cannot be opened.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The stored address is not one of a provider.
    #[error(transparent)]
    Address(#[from] DialectError),
}

/// The beginning of work on a connection.
pub enum Begun {
    /// The session has the lease.
    Session(Box<Session>),
    /// The account is not connected.
    NotConnected,
    /// Another process has the lease.
    Leased,
}

/// Work on one connection, under its lease.
pub struct Session {
    pub(super) context: UpstreamContext,
    pub(super) fence: Fence,
    /// The connection at the beginning of the session.
    pub connection: UpstreamConnection,
    pub(super) upstream: GraphUpstream<BudgetedTransport>,
    pub(super) budget: Arc<BudgetState>,
    /// Whether it is recorded that calls succeed.
    is_recovered: AtomicBool,
    /// Whether the provider has restricted the account, so that it makes no operation.
    pub(super) is_restricted: AtomicBool,
    /// Whether operations may be held until calls succeed.
    pub(super) has_held_operations: AtomicBool,
    /// The approvals that its pages and reads have ended.
    ended_approvals: Mutex<Vec<EndedApproval>>,
    /// When the lease was extended last.
    extended_at: Mutex<Timestamp>,
    /// When the account was last read, to learn what a failure is about.
    pub(super) readable_at: Mutex<Option<Timestamp>>,
    /// How many reads in a row have an unknown outcome.
    pub(super) unknown_reads: AtomicU32,
    /// Whether the work ends when the connection is paused: no person has asked for it.
    stops_when_paused: bool,
}

impl Session {
    /// Takes the lease of a connection, for a person. A key that opens no secret is that person's, and
    /// tells nothing about the connection.
    pub fn begin(
        context: &UpstreamContext,
        account: AccountId,
    ) -> BoxFuture<'_, Result<Begun, SyncError>> {
        Box::pin(async move { Self::begin_with(context, account, false).await })
    }

    /// Takes the lease of a connection, for the service. If its key does not open the secrets, the
    /// connection is degraded.
    pub(super) async fn begin_in_background(
        context: &UpstreamContext,
        account: AccountId,
    ) -> Result<Begun, SyncError> {
        Self::begin_with(context, account, true).await
    }

    async fn begin_with(
        context: &UpstreamContext,
        account: AccountId,
        is_background: bool,
    ) -> Result<Begun, SyncError> {
        let now = context.clock.now();
        let until = now + SignedDuration::try_from(context.settings.lease).unwrap_or_default();
        let Some(lease) = context.store.lease_connection(account, now..until).await? else {
            let is_connected = context.store.connection(account).await?.is_some();
            return Ok(if is_connected { Begun::Leased } else { Begun::NotConnected });
        };
        let fence = lease.fence;
        match Self::under(context, lease, until) {
            Ok(session) => {
                let session = Self { stops_when_paused: is_background, ..session };
                Ok(Begun::Session(Box::new(session)))
            }
            Err(error) => {
                let degraded = match &error {
                    SyncError::Secret(error) if is_background => {
                        let until = now.checked_add(PROBE_INTERVAL).unwrap_or(Timestamp::MAX);
                        let degraded = Degraded {
                            reason: DegradedReason::Credentials,
                            since: now,
                            until: Some(until),
                            error: Some(error.shown()),
                        };
                        context.store.set_degraded(fence, Some(degraded), now).await.map(drop)
                    }
                    _ => Ok(()),
                };
                let _ = context.store.release_connection(fence).await?;
                degraded?;
                Err(error)
            }
        }
    }

    fn under(context: &UpstreamContext, lease: Lease, until: Timestamp) -> Result<Self, SyncError> {
        let Lease { fence, connection } = lease;
        let token = SealedSecret::Token.open(&context.keyring, fence.account, &connection.token)?;
        let dialect = dialect(context, &connection)?;
        let budget = Arc::new(BudgetState::default());
        budget.lease_until(until);
        let transport = BudgetedTransport {
            inner: (context.transports)(fence.account),
            store: Arc::clone(&context.store),
            clock: Arc::clone(&context.clock),
            fence,
            waba: connection.waba.clone(),
            calls_per_hour: context.settings.calls_per_hour,
            state: Arc::clone(&budget),
        };
        let (base_url, now) = (&connection.base_url, context.clock.now());
        let refused = context.refused_fields.of(fence.account, base_url, now);
        let upstream = GraphUpstream::new(transport, dialect, Secret::new(token))
            .without_refused_fields(refused);
        let has_held_operations = AtomicBool::new(connection.degraded.is_some());
        let degraded = connection.degraded.as_ref().map(|it| it.reason);
        let is_restricted = AtomicBool::new(degraded == Some(DegradedReason::Restricted));
        Ok(Self {
            context: context.clone(),
            fence,
            connection,
            upstream,
            budget,
            is_recovered: AtomicBool::default(),
            is_restricted,
            has_held_operations,
            ended_approvals: Mutex::default(),
            extended_at: Mutex::new(context.clock.now()),
            readable_at: Mutex::default(),
            unknown_reads: AtomicU32::default(),
            stops_when_paused: false,
        })
    }

    /// Ends the lease.
    pub fn end(self) -> BoxFuture<'static, Result<(), SyncError>> {
        Box::pin(async move {
            let refused = self.upstream.refused_fields();
            let now = self.context.clock.now();
            let Self { fence, connection, .. } = &self;
            self.context.refused_fields.record(fence.account, &connection.base_url, refused, now);
            let _ = self.context.store.release_connection(self.fence).await?;
            Ok(())
        })
    }

    /// The number of calls that the session has made.
    pub fn calls(&self) -> u32 {
        self.budget.calls()
    }

    /// The approvals that have ended since the last question, because of what the provider has shown,
    /// by template.
    pub fn take_ended_approvals(&self) -> Vec<EndedApproval> {
        let ended = &self.ended_approvals;
        let mut ended = std::mem::take(&mut *ended.lock().unwrap_or_else(PoisonError::into_inner));
        ended.sort_by_key(|it| it.template);
        ended
    }

    pub(super) fn add_ended(&self, ended: impl IntoIterator<Item = EndedApproval>) {
        self.ended_approvals.lock().unwrap_or_else(PoisonError::into_inner).extend(ended);
    }

    pub(super) fn now(&self) -> Timestamp {
        self.context.clock.now()
    }

    /// Extends the lease between two steps, so that it lasts for the next call. In the background,
    /// the work ends here if the connection is paused.
    pub(super) async fn extend(&self) -> Result<(), SyncError> {
        match self.extend_lease().await? {
            LeaseState::Paused if self.stops_when_paused => Err(SyncError::Paused),
            LeaseState::Paused | LeaseState::Active => Ok(()),
        }
    }

    async fn extend_lease(&self) -> Result<LeaseState, SyncError> {
        let now = self.now();
        *self.extended_at.lock().unwrap_or_else(PoisonError::into_inner) = now;
        let lease = SignedDuration::try_from(self.context.settings.lease).unwrap_or_default();
        let extended = kept(self.context.store.extend_lease(self.fence, now + lease).await?)?;
        self.budget.lease_until(now + lease);
        Ok(extended)
    }

    /// Extends the lease if a third of it is over. A pause does not interrupt the work.
    pub(super) async fn extend_if_due(&self) -> Result<(), SyncError> {
        let extended_at = *self.extended_at.lock().unwrap_or_else(PoisonError::into_inner);
        let third = SignedDuration::try_from(self.context.settings.lease / 3).unwrap_or_default();
        if self.now().duration_since(extended_at) < third {
            return Ok(());
        }
        self.extend_lease().await.map(drop)
    }

    /// Records that a call failed, and returns why the work ends.
    pub(super) async fn failed(&self, failure: CallFailure) -> Result<SyncError, SyncError> {
        if self.budget.is_lost() {
            return Ok(SyncError::LeaseLost);
        }
        let now = self.now();
        let later = |rest: SignedDuration| now.checked_add(rest).unwrap_or(Timestamp::MAX);
        if let (CallFailure::Throttled { .. }, Some(until)) = (&failure, self.budget.take_refusal())
        {
            return Ok(SyncError::NotBefore(until));
        }
        let is_about_token = matches!(failure, CallFailure::Credentials(_) | CallFailure::Gone(_));
        if is_about_token && self.is_token_replaced().await? {
            // The failure is that of the former token: the operation is made again with the new one.
            let reason = HeldReason::Credentials;
            kept(self.context.store.release_operations(self.fence, reason, now).await?)?;
            return Ok(SyncError::Call(failure));
        }
        let (reason, until) = match &failure {
            CallFailure::Throttled { rest } => (DegradedReason::Throttle, later(*rest)),
            // A list that does not exist: the token cannot see the account.
            CallFailure::Credentials(_) | CallFailure::Gone(_) => {
                (DegradedReason::Credentials, later(PROBE_INTERVAL))
            }
            CallFailure::Restricted(_) => (DegradedReason::Restricted, later(PROBE_INTERVAL)),
            // The next session begins with one operation, as this one did.
            _ if self.is_restricted.load(Ordering::Relaxed) => {
                (DegradedReason::Restricted, later(PROBE_INTERVAL))
            }
            _ => (DegradedReason::Unreachable, later(UNREACHABLE_REST)),
        };
        let (until, error) = (Some(until), Some(failure.to_error()));
        let degraded = Degraded { reason, since: now, until, error };
        kept(self.context.store.set_degraded(self.fence, Some(degraded), now).await?)?;
        Ok(SyncError::Call(failure))
    }

    /// Whether a person has replaced the token since the session began.
    pub(super) async fn is_token_replaced(&self) -> Result<bool, SyncError> {
        let connection = self.context.store.connection(self.connection.account).await?;
        Ok(connection.is_some_and(|it| it.token != self.connection.token))
    }

    /// Records that a read has succeeded after failures. An account that is restricted can be read, too.
    pub(super) async fn recovered(&self) -> Result<(), SyncError> {
        if self.is_restricted.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.recovered_fully().await
    }

    /// Records that all calls succeed again, and queues the operations that waited for it.
    pub(super) async fn recovered_fully(&self) -> Result<(), SyncError> {
        self.is_restricted.store(false, Ordering::Relaxed);
        let (store, now) = (&self.context.store, self.now());
        let was_recovered = self.is_recovered.swap(true, Ordering::Relaxed);
        if !was_recovered && self.connection.degraded.is_some() {
            kept(store.set_degraded(self.fence, None, now).await?)?;
        }
        // Whatever the last failure was: the token is accepted, and the account is not restricted.
        if self.has_held_operations.swap(false, Ordering::Relaxed) {
            for reason in HELD_UNTIL_SUCCESS {
                kept(store.release_operations(self.fence, reason, now).await?)?;
            }
        }
        Ok(())
    }

    /// Checks that calls succeed again after a failure, if none has succeeded in this session. Before
    /// the first import, no sweep shows it.
    pub(super) async fn confirm_recovery(&self) -> Result<(), SyncError> {
        if self.connection.degraded.is_none() || self.is_recovered.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.while_leased(self.upstream.check()).await? {
            Ok(_) => self.recovered().await,
            Err(failure) => Err(self.failed(failure).await?),
        }
    }

    /// Extends the lease for as long as a call takes. A pause does not interrupt the call.
    pub(super) async fn while_leased<T>(
        &self,
        call: impl Future<Output = T>,
    ) -> Result<T, SyncError> {
        self.extend_if_due().await?;
        let mut call = pin!(call);
        loop {
            tokio::select! {
                biased;
                result = &mut call => return Ok(result),
                () = tokio::time::sleep(self.context.settings.lease / 3) => {
                    self.extend_lease().await?;
                }
            }
        }
    }
}

/// The address of the account at the provider, with the app secret.
pub(super) fn dialect(
    context: &UpstreamContext,
    connection: &UpstreamConnection,
) -> Result<Dialect, SyncError> {
    let mut dialect = Dialect::new(&connection.base_url, &connection.waba)?;
    dialect.app_id.clone_from(&connection.app_id);
    if let Some(sealed) = &connection.app_secret {
        let app_secret =
            SealedSecret::AppSecret.open(&context.keyring, connection.account, sealed)?;
        dialect.app_secret = Some(Secret::new(app_secret));
    }
    Ok(dialect)
}

/// The result of a write under the lease.
pub(super) fn kept<T>(fenced: Fenced<T>) -> Result<T, SyncError> {
    match fenced {
        Fenced::Done(done) => Ok(done),
        Fenced::LeaseLost => Err(SyncError::LeaseLost),
    }
}
