//! Who calls: the path's phone number and key, the header's token, and what they allow. A handler
//! that takes a [`Caller`] cannot run for anybody who may not.

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
    request_context::Trace,
};
use crate::{app::App, credential_cache::Known};

/// The segments that vary in `/api/v1.0/{phone_number_id}/{key}/{collection}/{id}`. Read from the
/// path as it came: what would have to be decoded is no path of ours.
pub(crate) struct Segments<'p> {
    phone: &'p str,
    key: &'p str,
    item: Option<&'p str>,
}

impl<'p> Segments<'p> {
    /// None if phone number and key are not plain segments.
    pub(crate) fn of(path: &'p str) -> Option<Self> {
        let mut segments = path.strip_prefix("/api/v1.0/")?.split('/');
        let mut plain = || segments.next().filter(|segment| account::is_segment(segment));
        let (phone, key, _collection) = (plain()?, plain()?, plain()?);
        Some(Self { phone, key, item: segments.next() })
    }
}

/// A scope as a type, so that a handler names what it needs in its arguments.
pub(crate) trait Needs: Send + Sync {
    const SCOPE: Scope;
}

/// For handlers that read.
pub(crate) struct Read;

/// For handlers that make or change templates.
pub(crate) struct Write;

/// For handlers that decide on templates.
pub(crate) struct Review;

/// For handlers of endpoints.
pub(crate) struct Webhooks;

impl Needs for Read {
    const SCOPE: Scope = Scope::Read;
}

impl Needs for Write {
    const SCOPE: Scope = Scope::Write;
}

impl Needs for Review {
    const SCOPE: Scope = Scope::Review;
}

impl Needs for Webhooks {
    const SCOPE: Scope = Scope::Webhooks;
}

/// Somebody whose key, token and phone number are good and whose token has the scope `S`.
pub(crate) struct Caller<S> {
    pub(crate) account: Arc<Account>,
    pub(crate) phone: String,
    pub(crate) token: CredentialId,
    item: Option<TemplateId>,
    needs: PhantomData<S>,
}

impl<S> Caller<S> {
    /// The template that the path names; what cannot be an id is no template's.
    pub(crate) fn item(&self) -> Result<TemplateId, Problem> {
        self.item.ok_or(Problem::of(Kind::TemplateUnknown))
    }

    /// The endpoint that the path names; all ids are spelt alike.
    pub(crate) fn webhook(&self) -> Result<WebhookId, Problem> {
        let id = self.item.and_then(|item| WebhookId::new(item.get()));
        id.ok_or(Problem::of(Kind::WebhookUnknown))
    }

    /// Refuses accounts that create and edit on the other surface.
    pub(crate) fn may_make(&self) -> Result<(), Problem> {
        if self.rulebook()? == &V1 {
            return Ok(());
        }
        let (rulebook, account) = (&self.account.rulebook, self.account.id);
        let detail = format!(
            "The account has the rulebook `{rulebook}`: create with `POST /v23.0/{account}/message_templates`, edit with `POST /v23.0/{{template id}}`."
        );
        Err(Problem::of(Kind::WrongSurface).detail(detail))
    }

    /// How the account's documents are read.
    pub(crate) fn rulebook(&self) -> Result<&'static Rulebook, Problem> {
        let rulebook = Rulebook::by_name(&self.account.rulebook);
        rulebook.ok_or_else(|| {
            Problem::of(Kind::Internal)
                .detail("The account's rulebook is not known to this version.")
        })
    }
}

impl<S: Needs> FromRequestParts<App> for Caller<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let trace = Trace::note_route(&parts.extensions).ok_or(Problem::of(Kind::Internal))?;
        let path = Segments::of(parts.uri.path()).ok_or(Problem::of(Kind::NotFound))?;
        let now = trace.at();

        let token = bearer(&parts.headers).ok_or(Problem::of(Kind::TokenMissing))?;
        let hashes = (SecretHash::of(token), SecretHash::of(path.key));
        let [token, key] = app.credentials().find(hashes.0, hashes.1, trace.started()).await?;
        let token =
            alive(token, now, [Kind::TokenUnknown, Kind::TokenExpired, Kind::TokenRevoked])?;
        trace.note_token(token.credential.id);
        let key = alive(key, now, [Kind::KeyUnknown, Kind::KeyExpired, Kind::KeyRevoked])?;
        if key.account.id != token.account.id {
            return Err(Problem::of(Kind::CredentialsMismatch));
        }
        let account = Arc::clone(&token.account);
        let owner = app.credentials().phone_owner(path.phone).await?;
        let free = owner.is_none() && account.takes_any_phone;
        if owner != Some(account.id) && !free {
            return Err(Problem::of(Kind::PhoneUnknown));
        }
        if !token.credential.scopes.allow(S::SCOPE) {
            let detail = format!("This needs a token with the scope `{}`.", S::SCOPE.as_str());
            return Err(Problem::of(Kind::ScopeMissing).detail(detail));
        }
        if account.disabled_at.is_some() {
            return Err(Problem::of(Kind::AccountDisabled));
        }
        // A free number belongs to the account from its first use on.
        if free
            && app.store().add_phone(account.id, path.phone, now).await? == AddPhoneOutcome::Taken
        {
            return Err(Problem::of(Kind::PhoneUnknown));
        }
        let item = path.item.and_then(|id| id.parse().ok());
        let (phone, token) = (path.phone.to_owned(), token.credential.id);
        Ok(Self { account, phone, token, item, needs: PhantomData })
    }
}

/// The token of `Authorization: Bearer …`, the scheme in any letter case.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// A credential that is known, not expired and not revoked.
pub(crate) fn alive(
    known: Option<Arc<Known>>,
    now: Timestamp,
    [unknown, expired, revoked]: [Kind; 3],
) -> Result<Arc<Known>, Problem> {
    let known = known.ok_or(Problem::of(unknown))?;
    if known.credential.revoked_at.is_some() {
        return Err(Problem::of(revoked));
    }
    if known.credential.expires_at.is_some_and(|end| end <= now) {
        return Err(Problem::of(expired));
    }
    Ok(known)
}
