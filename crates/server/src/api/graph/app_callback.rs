//! `subscribed_apps` of faithful emulator accounts. As at Meta, webhooks go to the callback of the app,
//! which is not set here, and an `override_callback_uri` is stored, but template webhooks ignore it.

use galley_domain::webhook::{Format, Subscription, delivery::DisableReason};
use galley_store::{CreateWebhookOutcome, NewWebhook, Webhook, WebhookChange};

use super::caller::Caller;
use crate::{
    api::{
        auth::Webhooks,
        problem::{Problem, ProblemKind},
    },
    app::App,
};

/// The endpoint that stores the address: in Meta's format, never subscribed, and switched off.
pub(super) fn is_override(webhook: &Webhook) -> bool {
    let is_off = matches!(webhook.disabled, Some((_, DisableReason::SwitchedOff)));
    !webhook.subscribed && webhook.format == Format::Whatsapp && is_off
}

/// Lets webhooks go to the callback of the app, and stores the address that overrides it, if there is
/// one.
pub(super) async fn subscribe(
    app: &App,
    caller: &Caller<Webhooks>,
    subscription: Option<Subscription>,
) -> Result<(), Problem> {
    let (account, by) = (caller.account.id, caller.author(app.clock().now()));
    let webhooks = app.store().webhooks(account).await?;
    set_callback(app, caller, &webhooks, false).await?;
    let stored = webhooks.iter().find(|webhook| is_override(webhook));
    match (subscription, stored) {
        (None, None) => {}
        (None, Some(stored)) => {
            app.store().delete_webhook(account, stored.id, by).await?;
        }
        (Some(Subscription { url, .. }), Some(stored)) => {
            let change = WebhookChange { url: Some(url), events: None, disabled: None };
            app.store().change_webhook(account, stored.id, change, by).await?;
        }
        (Some(Subscription { url, .. }), None) => {
            let format = Format::Whatsapp;
            let secret = app.webhooks().new_secret(account, format, None).encrypted;
            let (events, subscribed) = (Vec::new(), false);
            let new = NewWebhook { account, url, events, format, subscribed, secret, by };
            let CreateWebhookOutcome::Created(created) = app.store().create_webhook(new).await?
            else {
                return Err(Problem::of(ProblemKind::TooManyWebhooks));
            };
            let change = WebhookChange { disabled: Some(true), ..WebhookChange::default() };
            app.store().change_webhook(account, created.id, change, by).await?;
        }
    }
    Ok(())
}

/// Ends webhooks to the callback of the app, and deletes the address that overrides it.
pub(super) async fn unsubscribe(app: &App, caller: &Caller<Webhooks>) -> Result<(), Problem> {
    let webhooks = app.store().webhooks(caller.account.id).await?;
    set_callback(app, caller, &webhooks, true).await?;
    for webhook in webhooks.iter().filter(|webhook| is_override(webhook)) {
        let by = caller.author(app.clock().now());
        app.store().delete_webhook(webhook.account, webhook.id, by).await?;
    }
    Ok(())
}

/// Disables or enables the callback of the app, if there is one.
async fn set_callback(
    app: &App,
    caller: &Caller<Webhooks>,
    webhooks: &[Webhook],
    disabled: bool,
) -> Result<(), Problem> {
    let callback = webhooks.iter().find(|webhook| webhook.subscribed);
    let Some(callback) = callback.filter(|it| it.disabled.is_some() != disabled) else {
        return Ok(());
    };
    let change = WebhookChange { disabled: Some(disabled), ..WebhookChange::default() };
    let by = caller.author(app.clock().now());
    app.store().change_webhook(caller.account.id, callback.id, change, by).await?;
    Ok(())
}
