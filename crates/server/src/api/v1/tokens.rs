//! `{base}/tokens`: lists, creates and revokes the access tokens of an account.

use axum::{
    Router,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{delete, get},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use galley_domain::{document::Document, token::NewToken};
use galley_store::{AddCredentialOutcome, Credential, CredentialKind, NewCredential, SecretHash};
use jiff::Timestamp;

use crate::{
    api::{
        auth::{Caller, Credentials},
        body::JsonBody,
        json,
        problem::{Problem, ProblemKind},
        query::Parameters,
        view,
    },
    app::App,
};

pub(crate) const COLLECTION: &str = "/api/v1.0/{phone_number_id}/{key}/tokens";
pub(crate) const ITEM: &str = "/api/v1.0/{phone_number_id}/{key}/tokens/{id}";

/// The prefix of tokens, by which people and secret scanners recognise them.
const PREFIX: &str = "gt_";

pub(crate) fn routes() -> Router<App> {
    Router::new().route(COLLECTION, get(list).post(create)).route(ITEM, delete(revoke))
}

async fn list(
    State(app): State<App>,
    caller: Caller<Credentials>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let now = app.clock().now();
    let mut tokens = app.store().credentials(caller.account.id).await?;
    tokens.retain(|it| it.kind == CredentialKind::Token && is_active(it, now));
    Ok(json(StatusCode::OK, view::tokens(&tokens)))
}

fn is_active(token: &Credential, now: Timestamp) -> bool {
    token.revoked_at.is_none() && token.expires_at.is_none_or(|end| end > now)
}

async fn create(
    State(app): State<App>,
    caller: Caller<Credentials>,
    body: JsonBody,
) -> Result<Response, Problem> {
    let now = app.clock().now();
    let read = |bytes: &[u8]| {
        NewToken::read(&Document::parse(bytes)?, now).map_err(Problem::invalid_token_document)
    };
    let wanted = body.process(&app, read).await?;
    let expires_at = permitted_expiry(caller.credential(), &wanted)?;
    let secret = new_secret(&app);
    let new = NewCredential {
        kind: CredentialKind::Token,
        hash: SecretHash::of(&secret),
        scopes: wanted.scopes,
        expires_at,
        name: wanted.name.clone(),
    };
    let issued = app.store().issue_token(caller.account.id, new, caller.author(now)).await?;
    let id = match issued {
        AddCredentialOutcome::Added(id) => id,
        AddCredentialOutcome::TooMany => return Err(Problem::of(ProblemKind::TooManyTokens)),
        // A random secret is never taken twice, and the account of a caller exists.
        AddCredentialOutcome::SecretTaken | AddCredentialOutcome::NotFound => {
            return Err(Problem::of(ProblemKind::Internal));
        }
    };
    let token = Credential {
        id,
        account: caller.account.id,
        kind: CredentialKind::Token,
        name: wanted.name,
        scopes: wanted.scopes,
        created_at: now,
        last_used_at: None,
        expires_at,
        revoked_at: None,
    };
    let mut response = json(StatusCode::CREATED, view::token_with_secret(&token, &secret));
    // Relative, so that no API key appears in a response.
    if let Ok(location) = HeaderValue::from_str(&format!("tokens/{id}")) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// When the new token expires: by default when the caller's token does. Refuses a token that would
/// permit more than the caller's, or for longer: otherwise a temporary token could make itself
/// permanent.
fn permitted_expiry(caller: &Credential, wanted: &NewToken) -> Result<Option<Timestamp>, Problem> {
    let refused = |detail: String| Err(Problem::of(ProblemKind::TokenExceedsCaller).detail(detail));
    let missing = wanted.scopes.without(caller.scopes);
    if !missing.is_empty() {
        return refused(format!(
            "The calling token does not have the scopes `{missing}`. Leave them out, or let the operator create the token with `galley token create --scopes`."
        ));
    }
    match (wanted.expires_at, caller.expires_at) {
        (Some(wanted), Some(own)) if wanted > own => refused(format!(
            "The calling token expires at {own:.3}, and the new one must not expire later."
        )),
        (wanted, own) => Ok(wanted.or(own)),
    }
}

/// A new secret: the prefix followed by 192 random bits.
fn new_secret(app: &App) -> String {
    let mut bytes = [0; 24];
    app.webhooks().random.fill(&mut bytes);
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))
}

async fn revoke(State(app): State<App>, caller: Caller<Credentials>) -> Result<Response, Problem> {
    let id = caller.credential_id()?;
    let tokens = app.store().credentials(caller.account.id).await?;
    let is_own = tokens.iter().any(|it| it.id == id && it.kind == CredentialKind::Token);
    if !is_own {
        return Err(Problem::of(ProblemKind::CredentialUnknown));
    }
    // A token that was revoked before stays revoked: the client has what it wants.
    app.store().revoke_credential(id, caller.author(app.clock().now())).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
