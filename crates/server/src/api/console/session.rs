//! `/console/session`: signs in with a token or a link, tells who is signed in, and signs out.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{Extensions, HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use galley_domain::account::Scope;
use galley_store::{LinkRedemption, NewSession, RedeemLinkOutcome, SecretHash, Session};
use jiff::Timestamp;
use serde::Deserialize;

use super::cookie;
use crate::{
    api::{
        auth::{TOKEN_PROBLEMS, ensure_active, ensure_served, scope_missing},
        body, json,
        problem::{Problem, ProblemKind},
        request_context::RequestContext,
        throttling, view,
    },
    app::App,
    credential_cache::CachedCredential,
};

const ROUTE: &str = "/console/session";

/// Maximum length of the document that signs in.
const MAX_BODY_BYTES: usize = 4_096;

/// The problems of a token whose session cannot go on.
const ENDED: [ProblemKind; 3] = [ProblemKind::SessionEnded; 3];

pub(crate) fn routes() -> Router<App> {
    Router::new().route(ROUTE, post(sign_in).get(show).delete(sign_out))
}

/// The session of a request, with its token.
pub(crate) struct SignedIn {
    pub(crate) session: Session,
    pub(crate) token: Arc<CachedCredential>,
    hash: SecretHash,
}

impl SignedIn {
    /// Finds the session by the cookie. Its token must be valid and its account enabled.
    pub(crate) async fn find(
        app: &App,
        context: &RequestContext,
        headers: &HeaderMap,
    ) -> Result<Self, Problem> {
        let ended = || Problem::of(ProblemKind::SessionEnded);
        let secret = cookie::secret(headers, app.public_url()).ok_or_else(ended)?;
        let (hash, now) = (SecretHash::of(secret), context.received_at());
        let session = app.store().session(hash, now).await?.ok_or_else(ended)?;
        let token = app.credentials().token(session.token, context.started()).await?;
        let token = ensure_active(token, now, ENDED)?;
        context.record_token(token.credential.id);
        if token.account.disabled_at.is_some() {
            return Err(ended());
        }
        ensure_served(app, &token.account)?;
        Ok(Self { session, token, hash })
    }

    /// Counts the request as a use of the session.
    pub(crate) fn remember_use(&self, app: &App, now: Timestamp) {
        app.session_uses().remember(self.hash, self.session.last_seen_at, now);
    }
}

/// What signs in: one of both.
#[derive(Deserialize)]
struct SignIn {
    token: Option<String>,
    link: Option<String>,
}

async fn sign_in(
    State(app): State<App>,
    extensions: Extensions,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let context =
        RequestContext::from_extensions(&extensions).ok_or(Problem::of(ProblemKind::Internal))?;
    if !body::is_json(&headers) {
        return Err(Problem::of(ProblemKind::UnsupportedMediaType));
    }
    let bytes = body::read_all(request, &app, MAX_BODY_BYTES).await?;
    // The reader's own message could repeat the secret.
    let document = serde_json::from_slice::<SignIn>(&bytes).ok();
    drop(bytes);
    let secret = random_secret(&app);
    let started = match document {
        Some(SignIn { token: Some(token), link: None }) => {
            start_with_token(&app, context, &token, &secret).await
        }
        Some(SignIn { token: None, link: Some(link) }) => {
            start_with_link(&app, context, &link, &secret).await
        }
        _ => {
            return Err(Problem::of(ProblemKind::BadRequest)
                .detail("Send a JSON object with either `token`, an access token, or `link`, the secret of a link from `galley console`."));
        }
    };
    if let Err(problem) = started {
        return Err(throttling::failed_credentials(&app, context, &headers, problem).await);
    }
    // The browser forgets the secret of its former session. If that one cannot be ended now, it
    // expires by itself.
    let _ = end(&app, context, &headers).await;
    let mut response = StatusCode::NO_CONTENT.into_response();
    let cookie = cookie::set(app.public_url(), &secret);
    response.headers_mut().extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    Ok(response)
}

async fn start_with_token(
    app: &App,
    context: &RequestContext,
    token: &str,
    secret: &str,
) -> Result<(), Problem> {
    let now = context.received_at();
    let found = app.credentials().token(SecretHash::of(token), context.started()).await?;
    let token = ensure_active(found, now, TOKEN_PROBLEMS)?;
    let credential = &token.credential;
    context.record_token(credential.id);
    ensure_served(app, &token.account)?;
    if !credential.scopes.contains(Scope::Read) {
        return Err(scope_missing(Scope::Read));
    }
    throttling::admit(app, context, &token, Scope::Read)?;
    token.last_use.remember(now);
    let hash = SecretHash::of(secret);
    let new = NewSession::new(hash, credential.id, credential.expires_at, now);
    Ok(app.store().start_session(new).await?)
}

async fn start_with_link(
    app: &App,
    context: &RequestContext,
    link: &str,
    secret: &str,
) -> Result<(), Problem> {
    // No one learns the secret of this token: it works through its session only.
    let token = SecretHash::of(&random_secret(app));
    let (link, session) = (SecretHash::of(link), SecretHash::of(secret));
    let redemption = LinkRedemption { link, token, session, at: context.received_at() };
    let redeemed = app.store().redeem_console_link(redemption);
    match redeemed.await? {
        RedeemLinkOutcome::Redeemed(id) => {
            context.record_token(id);
            let found = app.credentials().token(token, context.started()).await?;
            match found.map_or(Ok(()), |it| ensure_served(app, &it.account)) {
                Ok(()) => Ok(()),
                Err(problem) => {
                    app.store().end_session(session).await?;
                    Err(problem)
                }
            }
        }
        RedeemLinkOutcome::Invalid => Err(Problem::of(ProblemKind::InvalidLink)),
        RedeemLinkOutcome::AccountDisabled => Err(Problem::of(ProblemKind::AccountDisabled)),
    }
}

/// 256 random bits as text.
fn random_secret(app: &App) -> String {
    let mut bytes = [0; 32];
    app.webhooks().random.fill(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Tells who is signed in: 204 without a cookie, which is no error that a browser should report. Does
/// not count as a use, so that a page may ask at any time.
async fn show(
    State(app): State<App>,
    extensions: Extensions,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let context =
        RequestContext::from_extensions(&extensions).ok_or(Problem::of(ProblemKind::Internal))?;
    if cookie::secret(&headers, app.public_url()).is_none() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let SignedIn { session, token, .. } = match SignedIn::find(&app, context, &headers).await {
        Ok(found) => found,
        Err(problem) => {
            return Err(throttling::failed_credentials(&app, context, &headers, problem).await);
        }
    };
    throttling::admit(&app, context, &token, Scope::Read)?;
    let phones = app.store().phones(token.account.id).await?;
    let body = view::session(&session, &token.account, &token.credential, &phones);
    Ok(json(StatusCode::OK, body))
}

/// Ends the session in the cookie. Returns `false` if the cookie has none. This does not cause a
/// write: everyone can send such a cookie.
async fn end(app: &App, context: &RequestContext, headers: &HeaderMap) -> Result<bool, Problem> {
    let Some(secret) = cookie::secret(headers, app.public_url()) else { return Ok(true) };
    let hash = SecretHash::of(secret);
    let found = app.store().session(hash, context.received_at()).await?.is_some();
    if found {
        app.store().end_session(hash).await?;
    }
    Ok(found)
}

/// Ends the session, if there is one, and removes the cookie.
async fn sign_out(
    State(app): State<App>,
    extensions: Extensions,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let context =
        RequestContext::from_extensions(&extensions).ok_or(Problem::of(ProblemKind::Internal))?;
    if !end(&app, context, &headers).await? {
        let ended = Problem::of(ProblemKind::SessionEnded);
        let problem = throttling::failed_credentials(&app, context, &headers, ended).await;
        if problem.kind() != ProblemKind::SessionEnded {
            return Err(problem);
        }
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let cookie = cookie::clear(app.public_url());
    response.headers_mut().extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    Ok(response)
}
