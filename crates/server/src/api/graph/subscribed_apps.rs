//! `subscribed_apps`: the webhook URL of an account, as clients of the Graph API manage it. An
//! account has at most one such URL; it is an endpoint like any other.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    rulebook::graph_codes::GraphError,
    webhook::{Format, Subscription},
};
use galley_store::{CreateWebhookOutcome, NewWebhook, Webhook, WebhookChange};

use super::{app_callback, body::GraphBody, caller::Caller, success};
use crate::{
    api::{
        auth::Webhooks,
        emulated_app, json,
        problem::{Problem, ProblemKind},
        throttling::Admitted,
    },
    app::App,
    delivery::EndpointError,
    json_writer::ObjectWriter,
};

/// Meta's error for a URL that fails the verification.
const NOT_VERIFIED: GraphError =
    GraphError { code: 2_200, subcode: None, title: "Callback verification failed" };

/// Subscribes a URL, or replaces the current one. Without a URL it does nothing: every account is
/// subscribed, and `DELETE` removes the URL.
pub(super) async fn subscribe(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    admitted: Admitted,
    mut body: GraphBody,
) -> Result<Response, Problem> {
    let read = |_: &[u8], document: Result<_, Problem>| {
        Subscription::read(&document?).map_err(Problem::invalid_webhook)
    };
    let subscription = body.process(app.admission(), read).await?;
    // The memory of a large body is free again while the receiver is verified.
    drop(body);
    let Some(Subscription { url, verify_token }) = subscription else {
        if caller.is_faithful() {
            app_callback::subscribe(&app, &caller, None).await?;
        }
        return Ok(success());
    };
    let account = caller.account.id;
    admitted.begin_wait(&app)?;
    app.webhooks().check_endpoint(account, &url, Some(&verify_token)).await.map_err(|error| {
        error.log_hidden_cause(account, caller.trace);
        let problem = Problem::refused_endpoint(&error, "/override_callback_uri");
        match error {
            EndpointError::Verification(_) => problem.graph(NOT_VERIFIED),
            EndpointError::Url(_) => problem,
        }
    })?;
    if caller.is_faithful() {
        app_callback::subscribe(&app, &caller, Some(url)).await?;
        return Ok(success());
    }
    let (format, at) = (Format::Whatsapp, app.clock().now());
    let app_secret = emulated_app::secret(&app, &caller.account).await?;
    let secret = app.webhooks().new_secret(account, format, app_secret.as_ref());
    let new = NewWebhook {
        account,
        url: url.clone(),
        events: Vec::new(),
        format,
        subscribed: true,
        from_start: false,
        secret: secret.encrypted,
        by: caller.author(at),
    };
    match app.store().create_webhook(new).await? {
        CreateWebhookOutcome::Created(_) => Ok(success_with_secret(&secret.shown)),
        CreateWebhookOutcome::TooMany => Err(Problem::of(ProblemKind::TooManyWebhooks)),
        CreateWebhookOutcome::Subscribed(id) => {
            // A client that subscribes expects deliveries, so the endpoint is enabled again.
            let change = WebhookChange { url: Some(url), events: None, disabled: Some(false) };
            let changed =
                app.store().change_webhook(account, id, change, caller.author(at)).await?;
            // A concurrent request has deleted the endpoint: the client can try again.
            changed.map(|_| success()).ok_or(Problem::of(ProblemKind::Busy))
        }
    }
}

/// Lists one app, which is this service.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller<Webhooks>,
) -> Result<Response, Problem> {
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object.object("whatsapp_business_api_data", |data| {
        data.display("id", caller.account.id);
        data.unescaped("name", "Galley");
        data.string("link", app.public_url());
    });
    if caller.is_faithful() {
        let stored = app.store().emulated_app(caller.account.id).await?;
        if let Some(url) = stored.callback_override {
            object.string("override_callback_uri", &url);
        }
    } else if let Some(webhook) = subscribed(&app, &caller).await? {
        object.string("override_callback_uri", &webhook.url);
        if let Some((at, reason)) = webhook.disabled {
            object.timestamp("galley_disabled_at", at);
            object.unescaped("galley_disabled_because", reason.as_str());
        }
    }
    object.close();
    Ok(json(StatusCode::OK, format!("{{\"data\":[{out}]}}")))
}

pub(super) async fn unsubscribe(
    State(app): State<App>,
    caller: Caller<Webhooks>,
) -> Result<Response, Problem> {
    if caller.is_faithful() {
        app_callback::unsubscribe(&app, &caller).await?;
    } else if let Some(webhook) = subscribed(&app, &caller).await? {
        let by = caller.author(app.clock().now());
        app.store().delete_webhook(webhook.account, webhook.id, by).await?;
    }
    Ok(success())
}

async fn subscribed(app: &App, caller: &Caller<Webhooks>) -> Result<Option<Webhook>, Problem> {
    let webhooks = app.store().webhooks(caller.account.id).await?;
    Ok(webhooks.into_iter().find(|webhook| webhook.subscribed))
}

/// Meta's response with the new secret, which no later response contains.
fn success_with_secret(secret: &str) -> Response {
    let mut out = String::new();
    let mut object = ObjectWriter::open(&mut out);
    object.raw("success", "true");
    object.string("galley_secret", secret);
    object.close();
    json(StatusCode::OK, out)
}
