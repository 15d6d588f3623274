//! Authentication for API v1.0: phone number and API key from the path, access token from the
//! header. A handler that takes a [`Caller`] runs only for authorised requests.

use std::{marker::PhantomData, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use galley_domain::{
    account::{self, Scope},
    id::{TemplateId, WebhookId},
    rulebook::{Rulebook, V1},
};
use galley_store::{Account, AddPhoneOutcome, CredentialId, SecretHash};
use jiff::Timestamp;

use super::{
    problem::{Kind, Problem},
    request_context::RequestContext,
};
use crate::{app::App, credential_cache::CachedCredential};

/// The variable segments of `/api/v1.0/{phone_number_id}/{key}/{collection}/{id}`. They are not
/// percent-decoded: no valid segment needs encoding.
pub(crate) struct Segments<'p> {
    phone: &'p str,
    key: &'p str,
    item: Option<&'p str>,
}

impl<'p> Segments<'p> {
    /// `None` if phone number or key contain other than the allowed characters.
    pub(crate) fn parse(path: &'p str) -> Option<Self> {
        let mut segments = path.strip_prefix("/api/v1.0/")?.split('/');
        let mut next = || segments.next().filter(|segment| account::is_valid_path_segment(segment));
        let (phone, key, _collection) = (next()?, next()?, next()?);
        Some(Self { phone, key, item: segments.next() })
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
    pub(crate) phone: String,
    pub(crate) token: CredentialId,
    item: Option<TemplateId>,
    scope: PhantomData<S>,
}

impl<S> Caller<S> {
    /// The template id in the path. A segment that is not an id is an unknown template.
    pub(crate) fn template_id(&self) -> Result<TemplateId, Problem> {
        self.item.ok_or(Problem::of(Kind::TemplateUnknown))
    }

    /// The endpoint id in the path. All ids have the same syntax.
    pub(crate) fn webhook_id(&self) -> Result<WebhookId, Problem> {
        let id = self.item.and_then(|item| WebhookId::new(item.get()));
        id.ok_or(Problem::of(Kind::WebhookUnknown))
    }

    /// Rejects accounts that have to create and edit templates on the Graph surface.
    pub(crate) fn require_v1(&self) -> Result<(), Problem> {
        if self.rulebook()? == &V1 {
            return Ok(());
        }
        let (rulebook, account) = (&self.account.rulebook, self.account.id);
        let detail = format!(
            "The account has the rulebook `{rulebook}`. Create templates with `POST /v23.0/{account}/message_templates` and edit them with `POST /v23.0/{{template id}}`."
        );
        Err(Problem::of(Kind::WrongSurface).detail(detail))
    }

    /// The rulebook of the account.
    pub(crate) fn rulebook(&self) -> Result<&'static Rulebook, Problem> {
        let rulebook = Rulebook::by_name(&self.account.rulebook);
        rulebook.ok_or_else(|| {
            Problem::of(Kind::Internal)
                .detail("This version of Galley does not know the account's rulebook. Contact the operator.")
        })
    }
}

impl<S: RequiredScope> FromRequestParts<App> for Caller<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let context =
            RequestContext::record_route(&parts.extensions).ok_or(Problem::of(Kind::Internal))?;
        let path = Segments::parse(parts.uri.path()).ok_or(Problem::of(Kind::NotFound))?;
        let now = context.received_at();

        let token = bearer_token(&parts.headers).ok_or(Problem::of(Kind::TokenMissing))?;
        let hashes = (SecretHash::of(token), SecretHash::of(path.key));
        let [token, key] = app.credentials().find(hashes.0, hashes.1, context.started()).await?;
        let token = ensure_active(
            token,
            now,
            [Kind::TokenUnknown, Kind::TokenExpired, Kind::TokenRevoked],
        )?;
        context.record_token(token.credential.id);
        let key = ensure_active(key, now, [Kind::KeyUnknown, Kind::KeyExpired, Kind::KeyRevoked])?;
        if key.account.id != token.account.id {
            return Err(Problem::of(Kind::CredentialsMismatch));
        }
        let account = Arc::clone(&token.account);
        let owner = app.credentials().phone_owner(path.phone).await?;
        let claims_phone = owner.is_none() && account.takes_any_phone;
        if owner != Some(account.id) && !claims_phone {
            return Err(Problem::of(Kind::PhoneUnknown));
        }
        if !token.credential.scopes.contains(S::SCOPE) {
            return Err(scope_missing(S::SCOPE));
        }
        if account.disabled_at.is_some() {
            return Err(Problem::of(Kind::AccountDisabled));
        }
        // An account claims an unowned number on first use.
        if claims_phone
            && app.store().add_phone(account.id, path.phone, now).await?
                == AddPhoneOutcome::OwnedByOther
        {
            return Err(Problem::of(Kind::PhoneUnknown));
        }
        let item = path.item.and_then(|id| id.parse().ok());
        let (phone, token) = (path.phone.to_owned(), token.credential.id);
        Ok(Self { account, phone, token, item, scope: PhantomData })
    }
}

/// The problem of a token without the required scope.
pub(crate) fn scope_missing(scope: Scope) -> Problem {
    let scope = scope.as_str();
    let detail = format!(
        "This call requires a token with the scope `{scope}`. `galley token create --scopes` creates one."
    );
    Problem::of(Kind::ScopeMissing).detail(detail)
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
    [unknown, expired, revoked]: [Kind; 3],
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
