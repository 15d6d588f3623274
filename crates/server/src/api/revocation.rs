//! Ends calls that wait, for events or for a body, when their credentials become invalid.

use std::{future::pending, time::Duration};

use axum::{
    extract::FromRequestParts,
    http::{Extensions, request::Parts},
};
use galley_domain::{account::Scope, id::AccountId};
use galley_store::SecretHash;

use super::{
    auth::{KEY_PROBLEMS, TOKEN_PROBLEMS, ensure_active},
    problem::{Problem, ProblemKind},
    request_context::RequestContext,
};
use crate::app::App;

/// Interval at which a waiting call checks its credentials. Together with the refresh interval of
/// the credential cache it is below the five seconds that SECURITY.md promises.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The credentials with which a call was authenticated. Extract them after the caller.
#[derive(Clone, Copy)]
pub(crate) struct UsedCredentials {
    pub(crate) account: AccountId,
    /// The scope that the call required.
    pub(crate) scope: Scope,
    pub(crate) token: SecretHash,
    /// The Graph surface and the console have no keys.
    pub(crate) key: Option<SecretHash>,
    /// Whether the account is an emulator.
    pub(crate) is_emulator: bool,
    /// Whether the account is connected to a provider.
    pub(crate) is_connected: bool,
    /// Whether a session of the console stands for the token.
    pub(crate) is_session: bool,
}

impl UsedCredentials {
    /// The credentials of the request with these extensions; `None` if it needs none.
    pub(crate) fn of(extensions: &Extensions) -> Option<Self> {
        RequestContext::from_extensions(extensions)?.credentials()
    }

    /// Rejects credentials that have expired or were revoked, and those of a disabled account.
    async fn check(&self, app: &App) -> Result<(), Problem> {
        match self.check_token(app).await {
            Err(problem) if self.is_session && problem.kind() != ProblemKind::Unavailable => {
                Err(Problem::of(ProblemKind::SessionEnded))
            }
            checked => checked,
        }
    }

    async fn check_token(&self, app: &App) -> Result<(), Problem> {
        let (now, monotonic) = (app.clock().now(), app.clock().monotonic());
        let token = match self.key {
            Some(key) => {
                let [token, key] = app.credentials().find(self.token, key, monotonic).await?;
                ensure_active(key, now, KEY_PROBLEMS)?;
                token
            }
            None => app.credentials().token(self.token, monotonic).await?,
        };
        let token = ensure_active(token, now, TOKEN_PROBLEMS)?;
        match token.account.disabled_at {
            Some(_) => Err(Problem::of(ProblemKind::AccountDisabled)),
            None => Ok(()),
        }
    }
}

impl FromRequestParts<App> for UsedCredentials {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        Self::of(&parts.extensions).ok_or(Problem::of(ProblemKind::Internal))
    }
}

/// Completes when the credentials become invalid, or can no longer be checked, with the problem to
/// respond with. Never completes without credentials.
pub(crate) async fn revoked(app: &App, credentials: Option<UsedCredentials>) -> Problem {
    let Some(credentials) = credentials else { return pending().await };
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        if let Err(problem) = credentials.check(app).await {
            return problem;
        }
    }
}
