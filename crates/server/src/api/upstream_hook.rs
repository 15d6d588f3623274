//! `/upstream/{hook_token}`: the webhooks of providers. The secret in the path selects the connection,
//! and the signature shows that the provider has sent the request. A webhook is a hint: what only it
//! says is stored, and the template is read soon. A provider sends the webhooks of all accounts of an app
//! to one address: they are stored for each connection with the same app.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use galley_domain::{
    id::AccountId,
    upstream::{Hint, HookError, RemoteId, read_hook_accounts},
};
use galley_store::{SecretHash, UpstreamConnection};
use galley_upstream::{Secret, verify_hook};
use url::Url;

use super::{
    body, json,
    problem::{Problem, ProblemKind},
    request_context::RequestContext,
    throttling,
};
use crate::app::App;

/// The pattern names the secret as a parameter, so that logs and metrics never contain it.
const HOOK: &str = "/upstream/{hook_token}";

/// The longest body of a webhook, as Meta documents it.
pub(crate) const MAX_HOOK_BYTES: usize = 3 << 20;

/// The longest challenge that is sent back.
const MAX_CHALLENGE_CHARS: usize = 256;

/// The most connections that one webhook is stored for besides that of the path, and the most accounts
/// at the provider that they are looked up by. Sweeps find other changes.
const MAX_OTHER_CONNECTIONS: usize = 100;

const SIGNATURE: &str = "x-hub-signature-256";

/// The path of the webhook in a request.
type HookToken = Result<Path<String>, PathRejection>;

pub(crate) fn routes() -> Router<App> {
    Router::new().route(HOOK, get(confirm).post(receive))
}

/// Confirms the address to a provider, which asks before it sends webhooks. The verify token is the
/// secret in the path.
async fn confirm(
    State(app): State<App>,
    Extension(context): Extension<Arc<RequestContext>>,
    token: HookToken,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let (_, token) = connection(&app, &context, token, &headers).await?;
    match challenge(uri.query().unwrap_or_default(), &token) {
        Some(challenge) => {
            let content_type = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
            Ok((content_type, challenge).into_response())
        }
        None => Err(Problem::of(ProblemKind::HookNotVerified)),
    }
}

/// The challenge of a request that names the right token.
fn challenge(query: &str, token: &str) -> Option<String> {
    let value = |name: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    };
    let is_token = |given: &String| SecretHash::of(given) == SecretHash::of(token);
    value("hub.mode").filter(|mode| mode == "subscribe")?;
    value("hub.verify_token").filter(is_token)?;
    let is_short = |it: &String| (1..=MAX_CHALLENGE_CHARS).contains(&it.len());
    let is_plain = |it: &String| it.bytes().all(|byte| byte.is_ascii_graphic());
    value("hub.challenge").filter(is_short).filter(is_plain)
}

/// Stores the hints of a webhook, if its signature is right. Nothing else of the request is parsed
/// before.
async fn receive(
    State(app): State<App>,
    Extension(context): Extension<Arc<RequestContext>>,
    token: HookToken,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, Problem> {
    let (connection, _) = connection(&app, &context, token, &headers).await?;
    let Some(sealed) = &connection.app_secret else {
        return Err(Problem::of(ProblemKind::HookSecretMissing));
    };
    let secret = app.webhooks().keyring.unseal(connection.account.get(), sealed);
    let secret = Secret::new(secret.map_err(Problem::unreadable_secret)?);
    // Without a signature there is no reason to read the body.
    let Some(signature) = headers.get(SIGNATURE).and_then(|it| it.to_str().ok()) else {
        return Err(Problem::of(ProblemKind::HookSignature));
    };
    let body = body::read_for(request, &app, connection.account, MAX_HOOK_BYTES).await?;
    let read = || hints(&secret, &body, signature);
    let hints = match app.admission().process(body.len(), read).await {
        Ok(hints) => hints,
        // Guesses of signatures are slowed down, as those of credentials.
        Err(problem) => {
            return Err(throttling::failed_credentials(&app, &context, &headers, problem).await);
        }
    };
    let recipients = recipients(&app, &connection, &secret, &hints).await?;
    for (account, hints) in recipients {
        app.store().record_hints(account, hints.clone(), app.clock().now()).await?;
        app.upstream().wake();
    }
    Ok(json(StatusCode::OK, r#"{"success":true}"#.to_owned()))
}

/// The hints about templates of accounts at the provider.
type Hints = BTreeMap<RemoteId, Vec<Hint>>;

/// The accounts that a webhook is for, with their hints: that of the connection of the path, and those
/// of other connections with the same app. The same app secret proves the same signature.
async fn recipients<'h>(
    app: &App,
    own: &UpstreamConnection,
    secret: &Secret,
    hints: &'h Hints,
) -> Result<Vec<(AccountId, &'h Vec<Hint>)>, Problem> {
    let hints_of = |connection: &UpstreamConnection| {
        let hints = RemoteId::parse(&connection.waba).and_then(|waba| hints.get(&waba))?;
        Some((connection.account, hints))
    };
    let mut recipients: Vec<_> = hints_of(own).into_iter().collect();
    let wabas = hints.keys().take(MAX_OTHER_CONNECTIONS).map(|waba| waba.as_str().to_owned());
    let wabas: Vec<String> = wabas.collect();
    if wabas.is_empty() {
        return Ok(recipients);
    }
    // One of them may be that of the path.
    let others = app.store().connections_to(&wabas, MAX_OTHER_CONNECTIONS + 1).await?;
    let others = others.iter().filter(|it| it.account != own.account);
    recipients.extend(others.filter(|it| is_same_app(app, own, secret, it)).filter_map(hints_of));
    Ok(recipients)
}

/// Whether another connection is to the same provider and has the same app secret.
fn is_same_app(
    app: &App,
    own: &UpstreamConnection,
    secret: &Secret,
    other: &UpstreamConnection,
) -> bool {
    let origin = |it: &UpstreamConnection| Url::parse(&it.base_url).ok().map(|url| url.origin());
    let Some(sealed) = &other.app_secret else { return false };
    let Ok(other_secret) = app.webhooks().keyring.unseal(other.account.get(), sealed) else {
        return false;
    };
    let is_same_secret = SecretHash::of(&other_secret) == SecretHash::of(secret.expose());
    is_same_secret && origin(own).is_some_and(|own| Some(own) == origin(other))
}

/// The hints about templates in a signed body. An app may send other webhooks to the same address.
fn hints(secret: &Secret, body: &Bytes, signature: &str) -> Result<Hints, Problem> {
    if !verify_hook(secret, body, signature) {
        return Err(Problem::of(ProblemKind::HookSignature));
    }
    match read_hook_accounts(body) {
        Ok(mut accounts) => {
            accounts.retain(|_, hints| {
                hints.retain(|hint| hint.template().is_some());
                !hints.is_empty()
            });
            Ok(accounts)
        }
        Err(HookError::NotWhatsapp) => Ok(Hints::new()),
        Err(error @ HookError::NotJson) => {
            Err(Problem::of(ProblemKind::MalformedJson).detail(sentence(error)))
        }
        Err(error @ HookError::TooManyChanges) => {
            Err(Problem::of(ProblemKind::TooLarge).detail(sentence(error)))
        }
    }
}

fn sentence(error: HookError) -> String {
    format!("Nothing was stored: {error}.")
}

/// The connection that the path names, and the secret in the path. Guesses are slowed down, as those
/// of credentials.
async fn connection(
    app: &App,
    context: &RequestContext,
    token: HookToken,
    headers: &HeaderMap,
) -> Result<(UpstreamConnection, String), Problem> {
    if let Ok(Path(token)) = token {
        let found = app.store().connection_by_hook(SecretHash::of(&token)).await?;
        if let Some(connection) = found {
            return Ok((connection, token));
        }
    }
    let problem = Problem::of(ProblemKind::HookUnknown);
    Err(throttling::failed_credentials(app, context, headers, problem).await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_of_the_path_gets_a_challenge_back() {
        let query = "hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=path";
        assert_eq!(challenge(query, "path").as_deref(), Some("1158201444"));
        assert_eq!(challenge(query, "other"), None);
        for other in [
            "",
            "hub.mode=subscribe&hub.challenge=1",
            "hub.challenge=1&hub.verify_token=path",
            "hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=path",
            "hub.mode=subscribe&hub.challenge=&hub.verify_token=path",
            "hub.mode=subscribe&hub.verify_token=path",
            "hub.mode=subscribe&hub.challenge=%0D%0A&hub.verify_token=path",
        ] {
            assert_eq!(challenge(other, "path"), None, "{other}");
        }
        let long = query.replace("1158201444", &"1".repeat(MAX_CHALLENGE_CHARS + 1));
        assert_eq!(challenge(&long, "path"), None);
    }
}
