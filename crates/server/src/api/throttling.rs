//! Admits authenticated requests within the limits of their account, and slows down clients whose
//! credentials fail.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Bytes,
    http::{Extensions, HeaderMap},
};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    problem::{Problem, ProblemKind, Throttle},
    request_context::RequestContext,
};
use crate::{
    admission::{self, BURST_SECONDS, LARGE_BODY_BYTES, Overload},
    app::App,
    credential_cache::CachedCredential,
};

/// Admits a request whose caller is authenticated. It counts until its response is complete.
pub(crate) fn admit(
    app: &App,
    context: &RequestContext,
    token: &CachedCredential,
) -> Result<(), Problem> {
    let max = app.limits().requests_per_account;
    let per_second = token.account.quotas.requests_per_second;
    match token.load.admit(max, per_second, context.started()) {
        Ok(in_flight) => {
            context.record_in_flight(in_flight);
            Ok(())
        }
        Err(overload) => {
            if token.load.is_first_overload(context.started()) {
                let account = token.account.id.get();
                let limit = overload.limit_name();
                tracing::warn!(
                    account,
                    limit,
                    "an account has reached a limit: its requests get 429"
                );
            }
            Err(refused(app, overload))
        }
    }
}

/// Counts a request that waits for events apart from others.
pub(crate) fn begin_long_poll(app: &App, extensions: &Extensions) -> Result<(), Problem> {
    let context = RequestContext::from_extensions(extensions);
    let in_flight = context.and_then(RequestContext::in_flight);
    let max = app.limits().requests_per_account;
    let counted = in_flight.map_or(Ok(()), |it| it.become_long_poll(max));
    counted.map_err(|overload| refused(app, overload))
}

/// The body of a request of an account. A large one waits for its turn.
pub(crate) struct BodyAdmission(Option<Arc<RequestContext>>);

impl BodyAdmission {
    /// Refuses a body that is declared to be large, if the account has too many of them, before it is
    /// read.
    pub(crate) fn begin(
        app: &App,
        extensions: &Extensions,
        declared: Option<usize>,
    ) -> Result<Self, Problem> {
        let context = extensions.get::<Arc<RequestContext>>().cloned();
        let admission = Self(context.filter(|it| it.in_flight().is_some()));
        if declared.is_some_and(|length| length > LARGE_BODY_BYTES) {
            admission.count_large(app)?;
        }
        Ok(admission)
    }

    fn count_large(&self, app: &App) -> Result<(), Problem> {
        let Some(context) = self.0.as_ref().filter(|it| it.large_body().is_none()) else {
            return Ok(());
        };
        let Some(in_flight) = context.in_flight() else { return Ok(()) };
        let large = in_flight.load().admit_large_body().map_err(|it| refused(app, it))?;
        context.record_large_body(large);
        Ok(())
    }

    /// Waits until a body that was read can be processed, if it is large. The account has few turns,
    /// which last until the response is complete; the processor is free again when the body is
    /// dropped, so that other bodies are parsed while this one waits for the store.
    pub(crate) async fn finish(self, app: &App, body: Bytes) -> Result<Bytes, Problem> {
        if body.len() <= LARGE_BODY_BYTES {
            return Ok(body);
        }
        self.count_large(app)?;
        let Some(context) = self.0 else { return Ok(body) };
        if let Some(large) = context.large_body() {
            context.record_turn(large.turn().await);
        }
        let processor = app.admission().processor().await;
        Ok(Bytes::from_owner(AdmittedBody { body, _processor: processor }))
    }
}

/// A large body that is being processed.
struct AdmittedBody {
    body: Bytes,
    _processor: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for AdmittedBody {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

/// The problem of a request whose credentials have failed. If this happens too often from one
/// address, the response waits for its turn. Valid credentials never wait: they are checked first.
pub(crate) async fn failed_credentials(
    app: &App,
    context: &RequestContext,
    headers: &HeaderMap,
    problem: Problem,
) -> Problem {
    if !is_failed_credential(problem.kind()) {
        return problem;
    }
    let limits = app.limits();
    let address = admission::client_address(context.peer(), headers, &limits.trusted_proxies);
    let failures = &app.admission().failed_credentials;
    let Some(throttled) = failures.record(address, app.clock().monotonic()) else { return problem };
    app.metrics().record_throttled(FAILED_CREDENTIALS);
    let per_second = limits.failed_credentials;
    if throttled.is_first {
        tracing::warn!(
            %address,
            per_second,
            "credentials from an address fail too often: further failures from it are slowed down. If it is a proxy, add it to `trusted_proxies`"
        );
    }
    // If too many responses wait, the client has to connect again for each guess.
    let place = throttled.delay.and_then(|delay| Some((delay, failures.delay()?)));
    let closes = place.is_none();
    if let Some((delay, _place)) = place {
        tokio::time::sleep(delay).await;
    }
    let throttle = Throttle {
        policy: FAILED_CREDENTIALS,
        quota: u64::from(per_second) * u64::from(BURST_SECONDS),
        window: Some(BURST_SECONDS),
        retry_after: throttled.retry_after,
        closes,
    };
    let detail = format!(
        "Credentials from this address fail more than {per_second} times a second. Check the access token and the API key. Valid credentials are accepted without waiting."
    );
    Problem::throttled(ProblemKind::TooManyFailures, throttle).detail(detail)
}

/// The policy of failed credentials, and its reason in the metrics.
const FAILED_CREDENTIALS: &str = "failed-credentials";

/// Whether a problem means that a credential was wrong. A missing one is not a guess.
fn is_failed_credential(kind: ProblemKind) -> bool {
    matches!(
        kind,
        ProblemKind::TokenUnknown
            | ProblemKind::TokenExpired
            | ProblemKind::TokenRevoked
            | ProblemKind::KeyUnknown
            | ProblemKind::KeyExpired
            | ProblemKind::KeyRevoked
            | ProblemKind::CredentialsMismatch
    )
}

/// The problem of a request that its account has to repeat later.
fn refused(app: &App, overload: Overload) -> Problem {
    const SOON: Duration = Duration::from_secs(1);
    let policy = overload.limit_name();
    app.metrics().record_throttled(policy);
    let (quota, window, retry_after, what) = match overload {
        Overload::Requests(max) => (max as u64, None, SOON, "requests in flight"),
        Overload::LongPolls(max) => (max as u64, None, SOON, "requests that wait for events"),
        Overload::LargeBodies(max) => {
            (max as u64, None, SOON, "requests with large bodies in flight")
        }
        Overload::Rate { per_second, retry_after } => {
            (per_second, Some(1), retry_after, "requests per second")
        }
    };
    let throttle = Throttle { policy, quota, window, retry_after, closes: false };
    let detail = format!(
        "The account has {quota} {what}, which is its limit. Nothing was done. Send the request again after the time in Retry-After."
    );
    Problem::throttled(ProblemKind::TooManyRequests, throttle).detail(detail)
}
