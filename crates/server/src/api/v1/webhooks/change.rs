//! Registering, changing and deleting endpoints, and giving them other secrets.

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use galley_domain::{
    document::Document,
    webhook::{Change, Redacted, Registration, Rotation},
};
use {
    galley_store as store,
    galley_store::{CreateWebhookOutcome, NewWebhook, Webhook, WebhookChange},
};

use crate::{
    api::{
        auth::{Caller, Webhooks},
        body::JsonBody,
        json,
        problem::{Kind, Problem},
        view,
    },
    app::App,
    delivery::both_secrets_until,
};

pub(super) async fn create(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let read = Registration::read(&Document::parse(&body)?, &caller.account.rulebook);
    let Registration { url, events, format, verify_token, secret } =
        read.map_err(Problem::invalid_webhook)?;
    admit(&app, &url, verify_token.as_ref()).await?;
    let (account, at) = (caller.account.id, app.clock().now());
    let secret = app.webhooks().new_secret(account, format, secret.as_ref());
    let sealed = secret.sealed;
    let new = NewWebhook { account, url, events, format, subscribed: false, secret: sealed, at };
    let CreateWebhookOutcome::Created(webhook) = app.store().create_webhook(new).await? else {
        return Err(Problem::of(Kind::TooManyWebhooks));
    };
    let body = view::webhook_with_secret(&webhook, &secret.shown, at);
    let mut response = json(StatusCode::CREATED, body);
    // Relative, so that no key stands in an answer.
    if let Ok(location) = HeaderValue::from_str(&format!("webhooks/{}", webhook.id)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

pub(super) async fn edit(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let document = Document::parse(&body)?;
    let webhook = named(&app, &caller).await?;
    let read = Change::read(&document, webhook.format);
    let Change { url, verify_token, events, disabled } = read.map_err(Problem::invalid_webhook)?;
    // A token without an address has the present one asked once more.
    if url.is_some() || verify_token.is_some() {
        admit(&app, url.as_ref().unwrap_or(&webhook.url), verify_token.as_ref()).await?;
    }
    let change = WebhookChange { url, events, disabled };
    let (account, at) = (caller.account.id, app.clock().now());
    let webhook = app.store().change_webhook(account, webhook.id, change, at).await?;
    let webhook = webhook.ok_or(Problem::of(Kind::WebhookUnknown))?;
    Ok(json(StatusCode::OK, view::webhook(&webhook, at)))
}

pub(super) async fn rotate(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let anyway = if body.is_empty() {
        false
    } else {
        let read = Rotation::read(&Document::parse(&body)?);
        read.map_err(Problem::invalid_webhook)?.force
    };
    let Webhook { account, id, format, .. } = named(&app, &caller).await?;
    let (secret, at) = (app.webhooks().new_secret(account, format, None), app.clock().now());
    let until = both_secrets_until(format, at);
    let rotation = app.store().rotate_webhook(account, id, secret.sealed, until, anyway, at);
    match rotation.await? {
        store::Rotation::Done(webhook) => {
            let body = view::webhook_with_secret(&webhook, &secret.shown, at);
            Ok(json(StatusCode::OK, body))
        }
        store::Rotation::Open(until) => Err(Problem::rotation_open(until)),
        store::Rotation::NoWebhook => Err(Problem::of(Kind::WebhookUnknown)),
    }
}

pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller<Webhooks>,
) -> Result<Response, Problem> {
    let there = app.store().delete_webhook(caller.account.id, caller.webhook()?).await?;
    if !there {
        return Err(Problem::of(Kind::WebhookUnknown));
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The endpoint that the path names.
async fn named(app: &App, caller: &Caller<Webhooks>) -> Result<Webhook, Problem> {
    let webhook = app.store().webhook(caller.account.id, caller.webhook()?).await?;
    webhook.ok_or(Problem::of(Kind::WebhookUnknown))
}

/// Asks whether events may be sent there. A refusal is a fault of the document, told like any
/// other.
async fn admit(app: &App, url: &str, token: Option<&Redacted>) -> Result<(), Problem> {
    let admitted = app.webhooks().admit(url, token).await;
    admitted.map_err(|refused| Problem::invalid_webhook(refused.violation("/url").into()))
}
