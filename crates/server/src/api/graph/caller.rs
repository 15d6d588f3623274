//! Authentication for the Graph surface: one token, in the header or in the query, and the node in
//! the path. A handler that takes a [`Caller`] runs only for authorised requests.

use std::{marker::PhantomData, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use galley_domain::{
    id::TemplateId,
    rulebook::{Rulebook, WHATSAPP},
};
use galley_store::{
    Account, Actor, Author, CredentialId, Initiator, SecretHash, TemplateChange, TraceContext,
};
use jiff::Timestamp;

use super::{faithful::Faithful, not_offered::node_problem, parameters::Query};
use crate::{
    api::{
        auth::{RequiredScope, TOKEN_PROBLEMS, ensure_active, ensure_served, scope_missing},
        problem::{Problem, ProblemKind},
        request_context::RequestContext,
        revocation::UsedCredentials,
        throttling, wrong_path,
    },
    app::App,
};

/// Edges that exist only below the id of the caller's own account.
const ACCOUNT_EDGES: [&str; 4] = [
    "message_templates",
    "message_template_previews",
    "upsert_message_templates",
    "subscribed_apps",
];

/// Whether a path segment is a version: `v`, digits, a full stop, digits.
fn is_version(segment: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = segment.strip_prefix('v').and_then(|numbers| numbers.split_once('.'));
    numbers.is_some_and(|(major, minor)| digits(major) && digits(minor))
}

/// Whether a path belongs to this surface: it begins with a version, followed by a node.
pub(crate) fn is_path(path: &str) -> bool {
    PathSegments::parse(path).is_some()
}

/// The segments of `/{version}/{node}/{edge}/{id}`.
struct PathSegments<'p> {
    version: &'p str,
    node: &'p str,
    edge: Option<&'p str>,
    item: Option<&'p str>,
}

impl<'p> PathSegments<'p> {
    /// `None` if the first segment is not a version.
    fn parse(path: &'p str) -> Option<Self> {
        let mut segments = path.strip_prefix('/')?.split('/');
        let (version, node) = (segments.next()?, segments.next()?);
        let (edge, item) = (segments.next(), segments.next());
        is_version(version).then_some(Self { version, node, edge, item })
    }
}

/// An authenticated caller whose token has the scope `S` and whose account uses this surface.
pub(super) struct Caller<S> {
    pub(super) account: Arc<Account>,
    pub(super) token: CredentialId,
    /// The trace that the client named.
    pub(super) trace: Option<TraceContext>,
    /// The token itself, which links to other pages contain.
    pub(super) secret: String,
    pub(super) version: String,
    pub(super) node: String,
    item: Option<String>,
    pub(super) context: Arc<RequestContext>,
    scope: PhantomData<S>,
}

impl<S> Caller<S> {
    /// The template in the path, directly after the version.
    pub(super) async fn template_id(&self, app: &App) -> Result<TemplateId, Problem> {
        self.resolve(app, &self.node).await
    }

    /// The template in the path, below the list of the account.
    pub(super) async fn item_id(&self, app: &App) -> Result<TemplateId, Problem> {
        self.resolve(app, self.item.as_deref().unwrap_or_default()).await
    }

    /// Whether the node in the path is the caller's own account.
    pub(super) fn is_account(&self) -> bool {
        self.node == self.account.id.to_string()
    }

    /// Whether the account is an emulator that does what Meta does and Galley deliberately does not.
    pub(super) fn is_faithful(&self) -> bool {
        self.account.emulator.is_some_and(|kind| kind.faithful)
    }

    /// The caller as the author of a change at this time.
    pub(super) fn author(&self, at: Timestamp) -> Author {
        Author::token(self.token, at)
    }

    /// A change of a template by this caller. Its events get the trace of the request.
    pub(super) fn change(&self, app: &App, id: TemplateId) -> TemplateChange {
        TemplateChange {
            account: self.account.id,
            id,
            expected: None,
            version: None,
            review: self.account.effective_review(),
            actor: Actor::Token(self.token),
            trace: self.trace,
            at: app.clock().now(),
        }
    }

    /// This caller as the one who deletes several templates.
    pub(super) fn initiator(&self, app: &App) -> Initiator {
        Initiator {
            account: self.account.id,
            review: self.account.effective_review(),
            actor: Actor::Token(self.token),
            trace: self.trace,
            at: app.clock().now(),
        }
    }
}

impl<S: RequiredScope> FromRequestParts<App> for Caller<S> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        // The router sends every path of two segments here. Only paths with a version are recorded
        // as calls of this surface.
        let path = parts.uri.path();
        let path = PathSegments::parse(path).ok_or_else(|| wrong_path::not_found(path))?;
        RequestContext::from_extensions(&parts.extensions);
        let context = parts.extensions.get::<Arc<RequestContext>>();
        let context = context.ok_or(Problem::of(ProblemKind::Internal))?;
        context.mark_graph();
        match Self::authenticate(parts, app, context, &path).await {
            Ok(caller) => {
                if let Some(faithful) = Faithful::of(app, &caller.account).await? {
                    context.record_usage(faithful.count_call(app));
                }
                caller.strike_by_header(app, &parts.headers)?;
                Ok(caller)
            }
            Err(problem) => {
                Err(throttling::failed_credentials(app, context, &parts.headers, problem).await)
            }
        }
    }
}

impl<S: RequiredScope> Caller<S> {
    /// Checks the token, its scope and the node in the path, and admits the request.
    async fn authenticate(
        parts: &Parts,
        app: &App,
        context: &Arc<RequestContext>,
        path: &PathSegments<'_>,
    ) -> Result<Self, Problem> {
        let query = Query::of(&parts.uri);
        let secret = header_token(&parts.headers).or(query.text("access_token"));
        let secret = secret.ok_or_else(|| {
            Problem::of(ProblemKind::TokenMissing)
                .detail("Send the access token as `Authorization: Bearer …`, or as `access_token` in the query.")
        })?;
        let hash = SecretHash::of(secret);
        let token = app.credentials().token(hash, context.started()).await?;
        let token = ensure_active(token, context.received_at(), TOKEN_PROBLEMS)?;
        context.record_token(token.credential.id);
        if !token.credential.scopes.contains(S::SCOPE) {
            return Err(scope_missing(S::SCOPE));
        }
        throttling::admit(app, context, &token, S::SCOPE)?;
        let account = Arc::clone(&token.account);
        let is_account_edge = path.edge.is_some_and(|edge| ACCOUNT_EDGES.contains(&edge));
        if is_account_edge && path.node != account.id.to_string() {
            return Err(unknown(path.node));
        }
        ensure_served(app, &account)?;
        if Rulebook::by_name(&account.rulebook) != Some(&WHATSAPP) {
            let detail = format!(
                "The account has the rulebook `{}`. Use API v1.0: `/api/v1.0/{{phone_number_id}}/{{key}}/message_templates`.",
                account.rulebook
            );
            return Err(Problem::of(ProblemKind::WrongSurface).detail(detail));
        }
        token.last_use.remember(context.received_at());
        context.record_credentials(UsedCredentials {
            account: account.id,
            scope: S::SCOPE,
            token: hash,
            key: None,
            is_emulator: account.emulator.is_some(),
            is_connected: account.is_connected,
            is_session: false,
        });
        Ok(Self {
            account,
            token: token.credential.id,
            trace: context.trace(),
            secret: secret.to_owned(),
            version: path.version.to_owned(),
            // Some clients percent-encode the colon in the id of an upload. No other character of
            // an id needs encoding, so nothing else is decoded.
            node: path.node.replace("%3A", ":").replace("%3a", ":"),
            item: path.item.map(str::to_owned),
            context: Arc::clone(context),
            scope: PhantomData,
        })
    }
}

/// The token of `Authorization: Bearer …`, or of `OAuth …`, which Meta documents for uploads.
fn header_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let supported = ["bearer", "oauth"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    Some(token.trim()).filter(|token| supported && !token.is_empty())
}

/// The object does not exist, or the caller may not access it. The response does not say which.
pub(super) fn unknown(id: &str) -> Problem {
    if let Some(problem) = node_problem(id) {
        return problem;
    }
    let id: String = id.chars().take(40).collect();
    let detail = format!(
        "The id `{id}` does not exist, or the account of the token has no access to it. After the version, use the id of the account or of one of its templates."
    );
    Problem::of(ProblemKind::NotFound).detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_v_with_two_numbers() {
        for good in ["v1.0", "v23.0", "v0.1", "v100.22"] {
            assert!(is_version(good), "{good}");
        }
        for other in ["", "v", "v1", "v1.", "v.0", "23.0", "V23.0", "v1.0.0", "v-1.0", "v1.0x"] {
            assert!(!is_version(other), "{other}");
        }
    }
}
