//! Who calls: one token, in the header or in the query, and the node that the path names. A handler
//! that takes a [`Caller`] cannot run for anybody who may not.

use std::{marker::PhantomData, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use galley_domain::{
    id::TemplateId,
    rulebook::{Rulebook, WHATSAPP},
};
use galley_store::{Account, Actor, CredentialId, SecretHash, TemplateChange};

use super::parameters::Query;
use crate::{
    api::{
        auth::{Needs, alive},
        problem::{Kind, Problem},
        request_context::Trace,
    },
    app::App,
};

/// What stands behind the account's id only: nobody else's list can be named.
const OF_ACCOUNT: [&str; 3] = ["message_templates", "upsert_message_templates", "subscribed_apps"];

/// Whether a path segment is a version: `v`, digits, a full stop, digits.
fn is_version(segment: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = segment.strip_prefix('v').and_then(|numbers| numbers.split_once('.'));
    numbers.is_some_and(|(major, minor)| digits(major) && digits(minor))
}

/// Whether a path that has the form of one of ours begins with a version.
pub(crate) fn is_path(path: &str) -> bool {
    Segments::of(path).is_some()
}

/// The segments of `/{version}/{node}/{edge}/{id}`.
struct Segments<'p> {
    version: &'p str,
    node: &'p str,
    edge: Option<&'p str>,
    item: Option<&'p str>,
}

impl<'p> Segments<'p> {
    /// None if the first segment is no version.
    fn of(path: &'p str) -> Option<Self> {
        let mut segments = path.strip_prefix('/')?.split('/');
        let (version, node) = (segments.next()?, segments.next()?);
        let (edge, item) = (segments.next(), segments.next());
        is_version(version).then_some(Self { version, node, edge, item })
    }
}

/// Somebody whose token is good, has the scope `S`, and belongs to an account of this surface.
pub(super) struct Caller<S> {
    pub(super) account: Arc<Account>,
    pub(super) token: CredentialId,
    /// The token itself: a link to the next page has to hold it.
    pub(super) secret: String,
    pub(super) version: String,
    pub(super) node: String,
    item: Option<String>,
    needs: PhantomData<S>,
}

impl<S> Caller<S> {
    /// The template that the path names, right behind the version.
    pub(super) fn template(&self) -> Result<TemplateId, Problem> {
        self.node.parse().map_err(|_| unknown(&self.node))
    }

    /// The template that the path names below the account.
    pub(super) fn item(&self) -> Result<TemplateId, Problem> {
        let item = self.item.as_deref().unwrap_or_default();
        item.parse().map_err(|_| unknown(item))
    }

    /// Whether the path names the caller's own account.
    pub(super) fn is_account(&self) -> bool {
        self.node == self.account.id.to_string()
    }

    /// A change of a template, by this caller.
    pub(super) fn change(&self, app: &App, id: TemplateId) -> TemplateChange {
        TemplateChange {
            account: self.account.id,
            id,
            expected: None,
            review: self.account.review,
            actor: Actor::Token(self.token),
            at: app.clock().now(),
        }
    }
}

impl<S: Needs> FromRequestParts<App> for Caller<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        // Any path of two segments comes here: what is none of ours is not noted as one.
        let path = Segments::of(parts.uri.path()).ok_or(Problem::of(Kind::NotFound))?;
        let trace = Trace::note_route(&parts.extensions).ok_or(Problem::of(Kind::Internal))?;
        trace.note_graph();

        let query = Query::of(&parts.uri);
        let secret = in_header(&parts.headers).or(query.text("access_token"));
        let secret = secret.ok_or_else(|| {
            Problem::of(Kind::TokenMissing)
                .detail("Send the access token as `Authorization: Bearer …` or as `access_token` in the query.")
        })?;
        let known = app.credentials().token(SecretHash::of(secret), trace.started()).await?;
        let known =
            alive(known, trace.at(), [Kind::TokenUnknown, Kind::TokenExpired, Kind::TokenRevoked])?;
        trace.note_token(known.credential.id);
        let account = Arc::clone(&known.account);
        let of_account = path.edge.is_some_and(|edge| OF_ACCOUNT.contains(&edge));
        if of_account && path.node != account.id.to_string() {
            return Err(unknown(path.node));
        }
        if !known.credential.scopes.allow(S::SCOPE) {
            let detail = format!("This needs a token with the scope `{}`.", S::SCOPE.as_str());
            return Err(Problem::of(Kind::ScopeMissing).detail(detail));
        }
        if account.disabled_at.is_some() {
            return Err(Problem::of(Kind::AccountDisabled));
        }
        if Rulebook::by_name(&account.rulebook) != Some(&WHATSAPP) {
            let detail = format!(
                "The account has the rulebook `{}`: use API v1.0, `/api/v1.0/{{phone_number_id}}/{{key}}/message_templates`.",
                account.rulebook
            );
            return Err(Problem::of(Kind::WrongSurface).detail(detail));
        }
        Ok(Self {
            account,
            token: known.credential.id,
            secret: secret.to_owned(),
            version: path.version.to_owned(),
            // Some clients encode the colon of an upload's id.
            node: path.node.replace("%3A", ":").replace("%3a", ":"),
            item: path.item.map(str::to_owned),
            needs: PhantomData,
        })
    }
}

/// The token of `Authorization: Bearer …`, or of `OAuth …`, as uploads are documented with.
fn in_header(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let known = ["bearer", "oauth"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    Some(token.trim()).filter(|token| known && !token.is_empty())
}

/// Nothing of that id is there, or the caller may not see it: nobody is told which.
pub(super) fn unknown(id: &str) -> Problem {
    let id: String = id.chars().take(40).collect();
    let detail = format!(
        "There is nothing with the id `{id}`, or the token's account may not see it. Behind the version stands the account's own id or that of one of its templates."
    );
    Problem::of(Kind::NotFound).detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_a_v_and_two_numbers() {
        for good in ["v1.0", "v23.0", "v0.1", "v100.22"] {
            assert!(is_version(good), "{good}");
        }
        for other in ["", "v", "v1", "v1.", "v.0", "23.0", "V23.0", "v1.0.0", "v-1.0", "v1.0x"] {
            assert!(!is_version(other), "{other}");
        }
    }
}
