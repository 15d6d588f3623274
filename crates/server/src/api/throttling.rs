//! Admits authenticated requests within the limits of their account, and slows down clients whose
//! credentials fail.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::FromRequestParts,
    http::{Extensions, HeaderMap, request::Parts},
};

use galley_domain::account::Scope;

use super::{
    problem::{Problem, ProblemKind, Throttle},
    request_context::RequestContext,
};
use crate::{
    admission::{self, AccountLoad, BURST_SECONDS, LARGE_BODY_BYTES, Overload},
    app::App,
    credential_cache::CachedCredential,
};

/// Admits a request whose caller is authenticated and has the scope of the call. It counts until its
/// response is complete.
pub(crate) fn admit(
    app: &App,
    context: &RequestContext,
    token: &CachedCredential,
    scope: Scope,
) -> Result<(), Problem> {
    let max = app.limits().requests_per_account;
    let per_second = token.account.quotas.requests_per_second;
    let in_flight = token.load.admit(max, per_second, context.started());
    let in_flight = in_flight.map_err(|it| refused(app, context, &token.load, it))?;
    context.record_in_flight(in_flight);
    // The response to a write is sent even if the account has not read others, so the write must not
    // begin. A read waits for room when its response is known.
    if !scope.only_reads() && app.response_memory().is_used_up(token.account.id) {
        return Err(too_many_bytes(app, RESPONSE_BYTES));
    }
    Ok(())
}

/// A request that was admitted. Extract it after the caller.
pub(crate) struct Admitted(Arc<RequestContext>);

impl FromRequestParts<App> for Admitted {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        Self::of(&parts.extensions).ok_or(Problem::of(ProblemKind::Internal))
    }
}

impl Admitted {
    /// The request with these extensions; `None` if it has no account.
    pub(crate) fn of(extensions: &Extensions) -> Option<Self> {
        let context = extensions.get::<Arc<RequestContext>>()?;
        context.in_flight().map(|_| Self(Arc::clone(context)))
    }

    /// Counts a request that waits for events apart from others.
    pub(crate) fn begin_long_poll(&self, app: &App) -> Result<(), Problem> {
        reserve_wait(app, &self.0, Overload::LongPolls)?;
        self.0.mark_long_poll();
        Ok(())
    }

    /// Counts a request that waits for a receiver apart from others.
    pub(crate) fn begin_wait(&self, app: &App) -> Result<(), Problem> {
        self.0.release_body();
        reserve_wait(app, &self.0, Overload::Waits)
    }

    /// Refuses a document of so many bytes if it is large and the account has too many of them.
    pub(crate) fn count_large(&self, app: &App, bytes: usize) -> Result<(), Problem> {
        if bytes <= LARGE_BODY_BYTES || self.0.has_large_body() {
            return Ok(());
        }
        let Some(in_flight) = self.0.in_flight() else { return Ok(()) };
        let load = in_flight.load();
        let large = load.admit_large_body().map_err(|it| refused(app, &self.0, load, it))?;
        self.0.record_large_body(large);
        Ok(())
    }

    /// Waits until the account may process a document of so many bytes, if it is large. The account
    /// has few turns, which last until the response is complete.
    pub(crate) async fn take_turn(&self, app: &App, bytes: usize) -> Result<(), Problem> {
        self.count_large(app, bytes)?;
        // A request that has its turn must not wait for another: those that have the others may do
        // the same.
        if let Some(turns) = self.0.turns() {
            self.0.record_turn(turns.acquire_owned().await.ok());
        }
        Ok(())
    }
}

/// Counts a request that is to wait apart from others. It is refused, as an overload of this kind, if
/// those that wait have the share of the account.
pub(crate) fn reserve_wait(
    app: &App,
    context: &RequestContext,
    overload: fn(usize) -> Overload,
) -> Result<(), Problem> {
    let Some(in_flight) = context.in_flight() else { return Ok(()) };
    let counted = in_flight.begin_wait(&app.admission().waits);
    counted.map_err(|count| refused(app, context, in_flight.load(), overload(count)))
}

/// Counts a request that waits for its provider apart from others. Without room it need not wait:
/// returns `false`, and is counted.
pub(crate) fn may_wait(app: &App, context: &RequestContext) -> bool {
    context.release_body();
    let waits = &app.admission().waits;
    let may_wait = context.in_flight().is_none_or(|it| it.begin_wait(waits).is_ok());
    if !may_wait {
        app.metrics().record_throttled(Overload::Waits(0).limit_name());
    }
    may_wait
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
        let advice = if admission::is_ambiguous(context.peer(), headers, &limits.trusted_proxies) {
            "If it is a proxy, it passes on both `X-Forwarded-For` and `Forwarded`: let it remove the one that it does not write"
        } else {
            "If it is a proxy, add it to `trusted_proxies`"
        };
        tracing::warn!(
            %address,
            per_second,
            advice,
            trace_id = context.trace().map(|it| display(it.trace_id())),
            "credentials from an address fail too often: further failures from it are slowed down"
        );
    }
    // If too many responses wait, the client has to connect again for each guess.
    let place = throttled.delay.and_then(|delay| Some((delay, failures.delay()?)));
    let closes = place.is_none();
    let mut retry_after = throttled.retry_after;
    if let Some((delay, _place)) = place {
        tokio::time::sleep(delay).await;
        // The client has waited for this part.
        retry_after = retry_after.saturating_sub(delay);
    }
    let throttle = Throttle {
        policy: FAILED_CREDENTIALS,
        quota: u64::from(per_second) * u64::from(BURST_SECONDS),
        window: Some(BURST_SECONDS),
        retry_after,
        closes,
    };
    let detail = format!(
        "Credentials from this address fail more than {per_second} times a second. Check the access token and the API key. Valid credentials are accepted without waiting."
    );
    Problem::throttled(ProblemKind::TooManyFailures, throttle).detail(detail)
}

/// The limit of an account's large bodies that are in memory, in the metrics.
pub(crate) const REQUEST_BYTES: &str = "request-bytes";

/// The limit of an account's large responses that clients have not read, in the metrics.
pub(crate) const RESPONSE_BYTES: &str = "response-bytes";

/// The problem of an account that has used its share of the memory with this limit.
pub(crate) fn too_many_bytes(app: &App, limit: &'static str) -> Problem {
    app.metrics().record_throttled(limit);
    Problem::of(ProblemKind::TooMuchInFlight)
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
            | ProblemKind::HookSignature
            | ProblemKind::HookUnknown
            | ProblemKind::InvalidLink
            | ProblemKind::SessionEnded
    )
}

/// The problem of a request that its account has to repeat later. The first of a burst is logged.
fn refused(app: &App, context: &RequestContext, load: &AccountLoad, overload: Overload) -> Problem {
    const SOON: Duration = Duration::from_secs(1);
    let policy = overload.limit_name();
    app.metrics().record_throttled(policy);
    if load.is_first_overload(context.started()) {
        let (account, limit) = (load.account().get(), policy);
        tracing::warn!(
            account,
            limit,
            trace_id = context.trace().map(|it| display(it.trace_id())),
            "an account has reached a limit: its requests get 429"
        );
    }
    let (quota, window, retry_after, what) = match overload {
        Overload::Requests(max) => (max as u64, None, SOON, "requests in flight"),
        Overload::LongPolls(count) | Overload::Waits(count) => {
            (count as u64, None, SOON, "requests that wait")
        }
        Overload::LargeBodies(max) => {
            (max as u64, None, SOON, "requests with large bodies in flight")
        }
        Overload::Rate { per_second, retry_after } => {
            (per_second, Some(1), retry_after, "requests per second")
        }
    };
    let throttle = Throttle { policy, quota, window, retry_after, closes: false };
    let limit = match overload {
        Overload::LongPolls(0) | Overload::Waits(0) => {
            "The requests of other accounts that wait leave no room for a further one".to_owned()
        }
        _ => format!("The account has {quota} {what}, which is its limit"),
    };
    let detail =
        format!("{limit}. Nothing was done. Send the request again after the time in Retry-After.");
    Problem::throttled(ProblemKind::TooManyRequests, throttle).detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observability::metrics::LIMITS;

    #[test]
    fn the_metrics_know_every_limit() {
        let rate = Overload::Rate { per_second: 1, retry_after: Duration::ZERO };
        let overloads = [
            Overload::Requests(1),
            Overload::LongPolls(1),
            Overload::Waits(1),
            Overload::LargeBodies(1),
            rate,
        ];
        let others = [FAILED_CREDENTIALS, REQUEST_BYTES, RESPONSE_BYTES];
        let names: Vec<&str> =
            overloads.map(Overload::limit_name).into_iter().chain(others).collect();
        assert_eq!(names.len(), LIMITS.len());
        assert!(names.iter().all(|name| LIMITS.contains(name)), "{names:?}");
    }
}
