//! `{base}/tokens`: lists, creates and revokes the access tokens of an account.

use axum::{
    Router,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{delete, get},
};
use galley_domain::{account, document::Document, token::NewToken};
use galley_store::{
    Credential, CredentialKind, IssueTokenOutcome, NewCredential, RevokeTokenOutcome, SecretHash,
};
use jiff::Timestamp;

use crate::{
    api::{
        auth::{Caller, Credentials},
        base_path::BasePath,
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

pub(crate) fn routes(base: BasePath) -> Router<App> {
    Router::new()
        .route(&base.at(COLLECTION), get(list).post(create))
        .route(&base.at(ITEM), delete(revoke))
}

async fn list(
    State(app): State<App>,
    caller: Caller<Credentials>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    parameters.only(&[])?;
    let tokens = app.store().active_tokens(caller.account.id, app.clock().now()).await?;
    Ok(json(StatusCode::OK, view::tokens(&tokens)))
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
        IssueTokenOutcome::Issued(id) => id,
        IssueTokenOutcome::FourEyes => {
            let detail = "Nothing was done. While the account needs a second person for decisions, only the operator creates tokens, with `galley token create`.";
            return Err(Problem::of(ProblemKind::FourEyes).detail(detail));
        }
        refused => return Err(Problem::of(refusal(refused))),
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

/// The problem of a token that was not issued. The store decides on the caller's token as it is,
/// which may differ from the cached one.
fn refusal(refused: IssueTokenOutcome) -> ProblemKind {
    match refused {
        IssueTokenOutcome::TooMany => ProblemKind::TooManyTokens,
        IssueTokenOutcome::CallerRevoked => ProblemKind::TokenRevoked,
        IssueTokenOutcome::CallerExpired => ProblemKind::TokenExpired,
        IssueTokenOutcome::ExceedsCaller => ProblemKind::TokenExceedsCaller,
        IssueTokenOutcome::AccountDisabled => ProblemKind::AccountDisabled,
        IssueTokenOutcome::FourEyes => ProblemKind::FourEyes,
        IssueTokenOutcome::NotFound => ProblemKind::TokenUnknown,
        // A random secret is never taken twice.
        IssueTokenOutcome::SecretTaken | IssueTokenOutcome::Issued(_) => ProblemKind::Internal,
    }
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

fn new_secret(app: &App) -> String {
    let mut random = [0; 32];
    app.webhooks().random.fill(&mut random);
    account::new_secret(account::prefix::TOKEN, random)
}

async fn revoke(State(app): State<App>, caller: Caller<Credentials>) -> Result<Response, Problem> {
    let id = caller.credential_id()?;
    let by = caller.author(app.clock().now());
    match app.store().revoke_token(caller.account.id, id, by).await? {
        // A token that was revoked before stays revoked: the client has what it wants.
        RevokeTokenOutcome::Revoked | RevokeTokenOutcome::AlreadyRevoked => {
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        RevokeTokenOutcome::NotFound => Err(Problem::of(ProblemKind::CredentialUnknown)),
    }
}
