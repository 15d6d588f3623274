//! Registering, changing and deleting endpoints, and rotating their secrets.

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
        emulated_app, json,
        problem::{Problem, ProblemKind},
        throttling::Admitted,
        view,
    },
    app::App,
    delivery::secret_overlap_end,
};

pub(super) async fn create(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    admitted: Admitted,
    body: JsonBody,
) -> Result<Response, Problem> {
    let read = |bytes| {
        let read = Registration::read(&Document::parse(bytes)?, &caller.account.rulebook);
        read.map_err(Problem::invalid_webhook)
    };
    let Registration { url, events, format, verify_token, secret } =
        body.process(&app, read).await?;
    // The memory of a large body is free again while the receiver is verified.
    drop(body);
    check_url(&app, &caller, &admitted, &url, verify_token.as_ref()).await?;
    let (account, at) = (caller.account.id, app.clock().now());
    let subscribed = caller.account.is_app_callback(format);
    let given = match secret {
        None if subscribed => emulated_app::secret(&app, &caller.account).await?,
        given => given,
    };
    let secret = app.webhooks().new_secret(account, format, given.as_ref());
    let by = caller.author(at);
    let new = NewWebhook {
        account,
        url,
        events,
        format,
        subscribed,
        from_start: false,
        secret: secret.encrypted,
        by,
    };
    let webhook = match app.store().create_webhook(new).await? {
        CreateWebhookOutcome::Created(webhook) => webhook,
        CreateWebhookOutcome::TooMany => return Err(Problem::of(ProblemKind::TooManyWebhooks)),
        CreateWebhookOutcome::Subscribed(id) => return Err(Problem::second_callback(id)),
    };
    let body = view::webhook_with_secret(&webhook, &secret.shown, at);
    let mut response = json(StatusCode::CREATED, body);
    // Relative, so that no API key appears in a response.
    if let Ok(location) = HeaderValue::from_str(&format!("webhooks/{}", webhook.id)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

pub(super) async fn edit(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    admitted: Admitted,
    body: JsonBody,
) -> Result<Response, Problem> {
    let document = body.process(&app, Document::parse).await?;
    let webhook = find(&app, &caller).await?;
    let read = body.process(&app, |_| Change::read(&document, webhook.format)).await;
    let Change { url, verify_token, events, disabled } = read.map_err(Problem::invalid_webhook)?;
    drop(document);
    drop(body);
    // A token without a URL verifies the current URL again.
    if url.is_some() || verify_token.is_some() {
        let url = url.as_ref().unwrap_or(&webhook.url);
        check_url(&app, &caller, &admitted, url, verify_token.as_ref()).await?;
    }
    let change = WebhookChange { url, events, disabled };
    let (account, at) = (caller.account.id, app.clock().now());
    let webhook =
        app.store().change_webhook(account, webhook.id, change, caller.author(at)).await?;
    let webhook = webhook.ok_or(Problem::of(ProblemKind::WebhookUnknown))?;
    Ok(json(StatusCode::OK, view::webhook(&webhook, at)))
}

pub(super) async fn rotate(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    body: JsonBody,
) -> Result<Response, Problem> {
    let read = |bytes: &[u8]| {
        if bytes.is_empty() {
            return Ok(false);
        }
        let read = Rotation::read(&Document::parse(bytes)?);
        read.map(|it| it.force).map_err(Problem::invalid_webhook)
    };
    let force = body.process(&app, read).await?;
    let Webhook { account, id, format, .. } = find(&app, &caller).await?;
    let (secret, at) = (app.webhooks().new_secret(account, format, None), app.clock().now());
    let until = secret_overlap_end(format, at);
    let by = caller.author(at);
    let rotation = app.store().rotate_webhook(account, id, secret.encrypted, until, force, by);
    match rotation.await? {
        store::RotateOutcome::Done(webhook) => {
            let body = view::webhook_with_secret(&webhook, &secret.shown, at);
            Ok(json(StatusCode::OK, body))
        }
        store::RotateOutcome::InProgress(until) => Err(Problem::rotation_open(until)),
        store::RotateOutcome::NoWebhook => Err(Problem::of(ProblemKind::WebhookUnknown)),
    }
}

pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller<Webhooks>,
) -> Result<Response, Problem> {
    let by = caller.author(app.clock().now());
    let existed = app.store().delete_webhook(caller.account.id, caller.webhook_id()?, by).await?;
    if !existed {
        return Err(Problem::of(ProblemKind::WebhookUnknown));
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The endpoint with the id in the path.
async fn find(app: &App, caller: &Caller<Webhooks>) -> Result<Webhook, Problem> {
    let webhook = app.store().webhook(caller.account.id, caller.webhook_id()?).await?;
    webhook.ok_or(Problem::of(ProblemKind::WebhookUnknown))
}

/// Checks whether Galley may send events to the URL. If not, the response lists it as a violation.
async fn check_url(
    app: &App,
    caller: &Caller<Webhooks>,
    admitted: &Admitted,
    url: &str,
    token: Option<&Redacted>,
) -> Result<(), Problem> {
    if app.webhooks().waits_for_endpoint(token) {
        admitted.begin_wait(app)?;
    }
    let account = caller.account.id;
    app.webhooks().check_endpoint(account, url, token).await.map_err(|error| {
        error.log_hidden_cause(account, caller.trace);
        Problem::refused_endpoint(&error, "/url")
    })
}
