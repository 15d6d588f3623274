//! Where changes of templates are sent to, as clients of the Graph API say it: an account has one
//! such address, and it is an endpoint like any other.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    document::Document,
    rulebook::graph_codes::Graph,
    webhook::{Format, Subscription},
};
use galley_store::{CreateWebhookOutcome, NewWebhook, Webhook, WebhookChange};

use super::{body::JsonText, caller::Caller, success};
use crate::{
    api::{
        auth::Webhooks,
        json,
        problem::{Kind, Problem},
    },
    app::App,
    delivery::NotAdmitted,
    json_writer::Object,
};

/// What Meta answers when an address does not answer as it has to.
const NOT_VERIFIED: Graph =
    Graph { code: 2_200, subcode: None, title: "Callback verification failed" };

/// Subscribes an address, or lets another take its place. Without one nothing is to be done: every
/// account is subscribed, and an address is taken away by deleting it.
pub(super) async fn subscribe(
    State(app): State<App>,
    caller: Caller<Webhooks>,
    JsonText(body): JsonText,
) -> Result<Response, Problem> {
    let read = Subscription::read(&Document::parse(&body)?);
    let Some(Subscription { url, verify_token }) = read.map_err(Problem::invalid_webhook)? else {
        return Ok(success());
    };
    app.webhooks().admit(&url, Some(&verify_token)).await.map_err(|refused| {
        let problem = Problem::invalid_webhook(refused.violation("/override_callback_uri").into());
        match refused {
            NotAdmitted::NoHandshake(_) => problem.graph(NOT_VERIFIED),
            NotAdmitted::Refused(_) => problem,
        }
    })?;
    let (account, format, at) = (caller.account.id, Format::Whatsapp, app.clock().now());
    let secret = app.webhooks().new_secret(account, format, None);
    let new = NewWebhook {
        account,
        url: url.clone(),
        events: Vec::new(),
        format,
        subscribed: true,
        secret: secret.sealed,
        at,
    };
    match app.store().create_webhook(new).await? {
        CreateWebhookOutcome::Created(_) => Ok(with_secret(&secret.shown)),
        CreateWebhookOutcome::TooMany => Err(Problem::of(Kind::TooManyWebhooks)),
        CreateWebhookOutcome::Subscribed(id) => {
            // Whoever subscribes wants to get something, whatever had become of it before.
            let change = WebhookChange { url: Some(url), events: None, disabled: Some(false) };
            let changed = app.store().change_webhook(account, id, change, at).await?;
            // Somebody has taken it away in this moment: to be tried again.
            changed.map(|_| success()).ok_or(Problem::of(Kind::Busy))
        }
    }
}

/// One app, which is this service.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller<Webhooks>,
) -> Result<Response, Problem> {
    let webhook = subscribed(&app, &caller).await?;
    let mut out = String::new();
    let mut object = Object::open(&mut out);
    object.object("whatsapp_business_api_data", |data| {
        data.plain("id", caller.account.id);
        data.word("name", "Galley");
        data.text("link", app.public_url());
    });
    if let Some(webhook) = webhook {
        object.text("override_callback_uri", &webhook.url);
        if let Some((at, because)) = webhook.disabled {
            object.plain("galley_disabled_at", at);
            object.word("galley_disabled_because", because.as_str());
        }
    }
    object.close();
    Ok(json(StatusCode::OK, format!("{{\"data\":[{out}]}}")))
}

pub(super) async fn unsubscribe(
    State(app): State<App>,
    caller: Caller<Webhooks>,
) -> Result<Response, Problem> {
    if let Some(webhook) = subscribed(&app, &caller).await? {
        app.store().delete_webhook(webhook.account, webhook.id).await?;
    }
    Ok(success())
}

async fn subscribed(app: &App, caller: &Caller<Webhooks>) -> Result<Option<Webhook>, Problem> {
    let webhooks = app.store().webhooks(caller.account.id).await?;
    Ok(webhooks.into_iter().find(|webhook| webhook.subscribed))
}

/// Meta's answer, and the secret that was made, which is told this once.
fn with_secret(secret: &str) -> Response {
    let mut out = String::new();
    let mut object = Object::open(&mut out);
    object.raw("success", "true");
    object.text("galley_secret", secret);
    object.close();
    json(StatusCode::OK, out)
}
