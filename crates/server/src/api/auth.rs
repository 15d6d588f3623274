//! Authentication for API v1.0: phone number and API key from the path, access token from the
//! header; in the console, the cookie of a session stands for key and token. A handler that takes a
//! [`Caller`] runs only for authorised requests.

use std::{marker::PhantomData, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use galley_domain::{
    account::{self, Scope},
    id::{TemplateId, WebhookId},
    rulebook::Rulebook,
};
use galley_store::{
    Account, AddPhoneOutcome, Author, Credential, CredentialId, DEFAULT_PHONE_NUMBERS, SecretHash,
    TraceContext,
};
use jiff::Timestamp;

use super::{
    console::session::SignedIn,
    problem::{Problem, ProblemKind},
    request_context::RequestContext,
    revocation::UsedCredentials,
    throttling, wrong_path,
};
use crate::{app::App, credential_cache::CachedCredential};

/// The phone number in a path of the console that stands for no number in particular.
const NO_PHONE: &str = "-";

/// The variable segments of `/api/v1.0/{phone_number_id}/{key}/{collection}/{id}`, and of
/// `/console/api/{phone_number_id}/{collection}/{id}`. They are not percent-decoded: no valid
/// segment needs encoding.
pub(crate) struct PathSegments<'p> {
    phone_number_id: &'p str,
    /// `None` in the console.
    key: Option<&'p str>,
    resource_id: Option<&'p str>,
}

impl<'p> PathSegments<'p> {
    /// `None` if a segment is missing or contains a character that is not allowed.
    pub(crate) fn parse(path: &'p str) -> Option<Self> {
        let (rest, has_key) = match path.strip_prefix("/api/v1.0/") {
            Some(rest) => (rest, true),
            None => (path.strip_prefix("/console/api/")?, false),
        };
        let mut segments = rest.split('/');
        let mut next = || segments.next().filter(|segment| account::is_valid_path_segment(segment));
        let phone_number_id = next()?;
        let key = if has_key { Some(next()?) } else { None };
        let _collection = next()?;
        Some(Self { phone_number_id, key, resource_id: segments.next() })
    }
}

/// A scope as a type, so that the signature of a handler names the scope that it requires.
pub(crate) trait RequiredScope: Send + Sync {
    const SCOPE: Scope;
}

/// The scope of handlers that read.
pub(crate) struct Read;

/// The scope of handlers that create or change templates.
pub(crate) struct Write;

/// The scope of handlers that decide on templates.
pub(crate) struct Review;

/// The scope of handlers that manage endpoints.
pub(crate) struct Webhooks;

/// The scope of handlers that manage tokens.
pub(crate) struct Credentials;

/// The scope of handlers that read the audit feed.
pub(crate) struct Audit;

/// The scope of handlers that control the emulator.
pub(crate) struct Emulator;

/// The scope of handlers about the connection to a provider.
pub(crate) struct Upstream;

impl RequiredScope for Upstream {
    const SCOPE: Scope = Scope::Upstream;
}

impl RequiredScope for Emulator {
    const SCOPE: Scope = Scope::Emulator;
}

impl RequiredScope for Credentials {
    const SCOPE: Scope = Scope::Credentials;
}

impl RequiredScope for Audit {
    const SCOPE: Scope = Scope::Audit;
}

impl RequiredScope for Read {
    const SCOPE: Scope = Scope::Read;
}

impl RequiredScope for Write {
    const SCOPE: Scope = Scope::Write;
}

impl RequiredScope for Review {
    const SCOPE: Scope = Scope::Review;
}

impl RequiredScope for Webhooks {
    const SCOPE: Scope = Scope::Webhooks;
}

/// An authenticated caller with a valid key, token and phone number, whose token has the scope `S`.
pub(crate) struct Caller<S> {
    pub(crate) account: Arc<Account>,
    /// `None` for no number in particular.
    pub(crate) phone_number_id: Option<String>,
    pub(crate) token: CredentialId,
    cached_token: Arc<CachedCredential>,
    /// The trace that the client named.
    pub(crate) trace: Option<TraceContext>,
    resource_id: Option<TemplateId>,
    scope: PhantomData<S>,
}

impl<S> Caller<S> {
    /// The template id in the path. Returns `TemplateUnknown` if the segment is not an id.
    pub(crate) fn template_id(&self) -> Result<TemplateId, Problem> {
        self.resource_id.ok_or(Problem::of(ProblemKind::TemplateUnknown))
    }

    /// The endpoint id in the path. All ids have the same syntax.
    pub(crate) fn webhook_id(&self) -> Result<WebhookId, Problem> {
        let id = self.resource_id.and_then(|id| WebhookId::new(id.get()));
        id.ok_or(Problem::of(ProblemKind::WebhookUnknown))
    }

    /// The credential id in the path. All ids have the same syntax.
    pub(crate) fn credential_id(&self) -> Result<CredentialId, Problem> {
        let id = self.resource_id.map(|id| CredentialId(id.get()));
        id.ok_or(Problem::of(ProblemKind::CredentialUnknown))
    }

    /// The caller's token.
    pub(crate) fn credential(&self) -> &Credential {
        &self.cached_token.credential
    }

    /// The caller as the author of a change at this time.
    pub(crate) fn author(&self, at: Timestamp) -> Author {
        Author::token(self.token, at)
    }

    /// The rulebook of the account.
    pub(crate) fn rulebook(&self) -> Result<&'static Rulebook, Problem> {
        let rulebook = Rulebook::by_name(&self.account.rulebook);
        rulebook.ok_or_else(|| {
            Problem::of(ProblemKind::Internal)
                .detail("This version of Galley does not know the account's rulebook. Contact the operator.")
        })
    }
}

impl<S: RequiredScope> FromRequestParts<App> for Caller<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let context = RequestContext::from_extensions(&parts.extensions)
            .ok_or(Problem::of(ProblemKind::Internal))?;
        match Self::authenticate(parts, app, context).await {
            Ok(caller) => Ok(caller),
            Err(problem) => {
                Err(throttling::failed_credentials(app, context, &parts.headers, problem).await)
            }
        }
    }
}

impl<S: RequiredScope> Caller<S> {
    /// Checks the credentials in the order that `docs/api/authentication.md` promises, and admits the
    /// request.
    async fn authenticate(
        parts: &Parts,
        app: &App,
        context: &RequestContext,
    ) -> Result<Self, Problem> {
        let path = parts.uri.path();
        let path = PathSegments::parse(path).ok_or_else(|| wrong_path::not_found(path))?;
        let now = context.received_at();

        let PresentedCredentials { token, key, session, hashes } = match path.key {
            Some(key) => {
                PresentedCredentials::of_program(&parts.headers, app, context, key).await?
            }
            None => PresentedCredentials::of_session(&parts.headers, app, context).await?,
        };
        // Before the phone number, so that a token without the scope cannot find out which exist.
        if !token.credential.scopes.contains(S::SCOPE) {
            return Err(scope_missing(S::SCOPE));
        }
        // Also before it, so that requests for any number count, and a refusal does not disclose
        // which numbers are in use.
        throttling::admit(app, context, &token, S::SCOPE)?;
        let account = Arc::clone(&token.account);
        let phone = Some(path.phone_number_id).filter(|it| session.is_none() || *it != NO_PHONE);
        let claimed_phone = match phone {
            Some(phone) => unclaimed_phone(app, &account, phone).await?,
            None => None,
        };
        // A person in a browser claims no number: a wrong path would claim one permanently.
        if claimed_phone.is_some() && session.is_some() {
            return Err(phone_unknown(&account));
        }
        ensure_served(app, &account)?;
        if let Some(phone) = claimed_phone {
            claim_phone(app, &account, phone, Author::token(token.credential.id, now)).await?;
        }
        token.last_use.remember(now);
        if let Some(key) = key {
            key.last_use.remember(now);
        }
        if let Some(session) = &session {
            session.remember_use(app, now);
        }
        context.record_credentials(UsedCredentials {
            account: account.id,
            scope: S::SCOPE,
            token: hashes.0,
            key: hashes.1,
            is_emulator: account.emulator.is_some(),
            is_connected: account.is_connected,
            is_session: session.is_some(),
        });
        let resource_id = path.resource_id.and_then(|id| id.parse().ok());
        Ok(Self {
            account,
            phone_number_id: phone.map(str::to_owned),
            token: token.credential.id,
            cached_token: token,
            trace: context.trace(),
            resource_id,
            scope: PhantomData,
        })
    }
}

/// The valid credentials of a request.
struct PresentedCredentials {
    token: Arc<CachedCredential>,
    /// `None` in the console.
    key: Option<Arc<CachedCredential>>,
    /// The session of the console.
    session: Option<SignedIn>,
    /// The hashes of token and key.
    hashes: (SecretHash, Option<SecretHash>),
}

impl PresentedCredentials {
    /// The key in the path and the token in the header.
    async fn of_program(
        headers: &HeaderMap,
        app: &App,
        context: &RequestContext,
        key: &str,
    ) -> Result<Self, Problem> {
        let now = context.received_at();
        let token = bearer_token(headers).ok_or(Problem::of(ProblemKind::TokenMissing))?;
        let hashes = (SecretHash::of(token), SecretHash::of(key));
        let [token, key] = app.credentials().find(hashes.0, hashes.1, context.started()).await?;
        let token = ensure_active(token, now, TOKEN_PROBLEMS)?;
        context.record_token(token.credential.id);
        let key = ensure_active(key, now, KEY_PROBLEMS)?;
        if key.account.id != token.account.id {
            return Err(Problem::of(ProblemKind::CredentialsMismatch));
        }
        Ok(Self { token, key: Some(key), session: None, hashes: (hashes.0, Some(hashes.1)) })
    }

    /// The token of the session in the cookie. An `Authorization` header is ignored.
    async fn of_session(
        headers: &HeaderMap,
        app: &App,
        context: &RequestContext,
    ) -> Result<Self, Problem> {
        let signed_in = SignedIn::find(app, context, headers).await?;
        let token = Arc::clone(&signed_in.token);
        let hashes = (signed_in.session.token, None);
        Ok(Self { token, key: None, session: Some(signed_in), hashes })
    }
}

/// Refuses a phone number that the account cannot use, and claims one that no account has.
pub(crate) async fn ensure_phone(
    app: &App,
    account: &Account,
    phone: &str,
    by: Author,
) -> Result<(), Problem> {
    match unclaimed_phone(app, account, phone).await? {
        Some(phone) => claim_phone(app, account, phone, by).await,
        None => Ok(()),
    }
}

/// Claims a phone number on its first use, for an account that takes any that no other owns.
async fn claim_phone(app: &App, account: &Account, phone: &str, by: Author) -> Result<(), Problem> {
    let max = account.quotas.phone_numbers.max(DEFAULT_PHONE_NUMBERS);
    match app.store().claim_phone(account.id, phone, max, by).await? {
        AddPhoneOutcome::OwnedByOther | AddPhoneOutcome::TooMany => Err(phone_unknown(account)),
        _ => Ok(()),
    }
}

/// The phone number if the account has to claim it first; `None` if the account owns it. Other
/// numbers are refused.
async fn unclaimed_phone<'p>(
    app: &App,
    account: &Account,
    phone: &'p str,
) -> Result<Option<&'p str>, Problem> {
    match app.credentials().phone_owner(phone).await? {
        Some(owner) if owner == account.id => Ok(None),
        None if account.takes_any_phone => Ok(Some(phone)),
        _ => Err(phone_unknown(account)),
    }
}

/// The problem for a phone number that the account cannot use. An account that claims numbers gets
/// the same response for the number of another account, beyond its quota and in the console, so that
/// it cannot find out which numbers are in use.
fn phone_unknown(account: &Account) -> Problem {
    let problem = Problem::of(ProblemKind::PhoneUnknown);
    match account.quotas.phone_numbers.max(DEFAULT_PHONE_NUMBERS) {
        Some(max) if account.takes_any_phone => problem.detail(format!(
            "Another account owns this phone number id, or this account owns {max} of them and cannot claim more; the console claims none. The operator lists them with `galley phone list`, adds one with `galley phone add`, removes unused ones with `galley phone remove`, and raises the limit with `galley account limit --phone-numbers`."
        )),
        _ => problem,
    }
}

/// Rejects an account that is disabled, or that is an emulator while this process serves none.
pub(crate) fn ensure_served(app: &App, account: &Account) -> Result<(), Problem> {
    if account.disabled_at.is_some() {
        return Err(Problem::of(ProblemKind::AccountDisabled));
    }
    if account.emulator.is_some() && !app.emulator().is_on() {
        return Err(Problem::of(ProblemKind::EmulatorOff));
    }
    Ok(())
}

/// The problems of a token that does not exist, has expired or was revoked.
pub(crate) const TOKEN_PROBLEMS: [ProblemKind; 3] =
    [ProblemKind::TokenUnknown, ProblemKind::TokenExpired, ProblemKind::TokenRevoked];

/// The problems of a key that does not exist, has expired or was revoked.
pub(crate) const KEY_PROBLEMS: [ProblemKind; 3] =
    [ProblemKind::KeyUnknown, ProblemKind::KeyExpired, ProblemKind::KeyRevoked];

/// The problem for a token that lacks the required scope.
pub(crate) fn scope_missing(scope: Scope) -> Problem {
    let scope = scope.as_str();
    let detail = format!(
        "This call requires a token with the scope `{scope}`. `galley token create --scopes` creates one."
    );
    Problem::of(ProblemKind::ScopeMissing).detail(detail)
}

/// The token of `Authorization: Bearer …`, with the scheme in any letter case.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Rejects a credential that does not exist, has expired or was revoked, with the given kinds.
pub(crate) fn ensure_active(
    cached: Option<Arc<CachedCredential>>,
    now: Timestamp,
    [unknown, expired, revoked]: [ProblemKind; 3],
) -> Result<Arc<CachedCredential>, Problem> {
    let cached = cached.ok_or(Problem::of(unknown))?;
    if cached.credential.revoked_at.is_some() {
        return Err(Problem::of(revoked));
    }
    if cached.credential.expires_at.is_some_and(|end| end <= now) {
        return Err(Problem::of(expired));
    }
    Ok(cached)
}
