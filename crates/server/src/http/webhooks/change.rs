//! Registering, changing and deleting endpoints, and giving them other secrets.

use axum::{
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use galley_domain::{
    json::Document,
    violation::{Rule, Violation},
    webhook::{Change, Registration, Rotation},
};
use galley_store::{self as store, NewWebhook, WebhookChange, WebhookCreation};
use jiff::SignedDuration;

use crate::{
    App,
    http::{
        body::JsonBody,
        caller::{Caller, Webhooks},
        json,
        problem::{Kind, Problem},
        view,
    },
};

/// How long both secrets sign after a rotation.
const BOTH_SECRETS: SignedDuration = SignedDuration::from_hours(24);

pub(super) async fn create(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    JsonBody(body): JsonBody,
) -> Result<Response, Problem> {
    let read = Registration::read(&Document::parse(&body)?);
    let Registration { url, events } = read.map_err(Problem::invalid_webhook)?;
    admit(&app, &url).await?;
    let (account, at) = (caller.account.id, app.clock().now());
    let secret = app.webhooks().new_secret(account);
    let new = NewWebhook { account, url, events, secret: secret.sealed, at };
    let webhook = match app.store().create_webhook(new).await? {
        WebhookCreation::Created(webhook) => webhook,
        WebhookCreation::TooMany => return Err(Problem::of(Kind::TooManyWebhooks)),
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
    let read = Change::read(&Document::parse(&body)?);
    let Change { url, events, disabled } = read.map_err(Problem::invalid_webhook)?;
    if let Some(url) = &url {
        admit(&app, url).await?;
    }
    let change = WebhookChange { url, events, disabled };
    let (account, at) = (caller.account.id, app.clock().now());
    let webhook = app.store().change_webhook(account, caller.webhook()?, change, at).await?;
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
    let secret = app.webhooks().new_secret(caller.account.id);
    let (account, id, at) = (caller.account.id, caller.webhook()?, app.clock().now());
    let until = at + BOTH_SECRETS;
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

/// Asks the guard whether events may be sent there. What it refuses is a fault of the document,
/// told like any other.
async fn admit(app: &App, url: &str) -> Result<(), Problem> {
    app.webhooks().admit(url).await.map_err(|refused| {
        let violation = Violation {
            pointer: "/url".to_owned(),
            rule: Rule::WebhookAddress,
            message: refused.to_string(),
            hint: Some("an endpoint has an address like `https://shop.example/hooks`".to_owned()),
            span: None,
        };
        Problem::invalid_webhook(violation.into())
    })
}
