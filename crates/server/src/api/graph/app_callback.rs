//! The app of a faithful emulator account. As at Meta, its webhooks go to the callback of the app,
//! which the operator sets. Clients subscribe and unsubscribe the app; the address with which they
//! override its callback is stored and ignored.

use galley_store::WebhookChange;

use super::caller::Caller;
use crate::{
    api::{auth::Webhooks, problem::Problem},
    app::App,
};

/// Lets webhooks go to the callback of the app, and stores the address that overrides it.
pub(super) async fn subscribe(
    app: &App,
    caller: &Caller<Webhooks>,
    callback_override: Option<String>,
) -> Result<(), Problem> {
    app.store().set_callback_override(caller.account.id, callback_override).await?;
    set_disabled(app, caller, false).await
}

/// Ends webhooks to the callback of the app, and deletes the address that overrides it.
pub(super) async fn unsubscribe(app: &App, caller: &Caller<Webhooks>) -> Result<(), Problem> {
    app.store().set_callback_override(caller.account.id, None).await?;
    set_disabled(app, caller, true).await
}

/// Disables or enables the callback of the app, if it has one.
async fn set_disabled(app: &App, caller: &Caller<Webhooks>, disabled: bool) -> Result<(), Problem> {
    let account = caller.account.id;
    let webhooks = app.store().webhooks(account).await?;
    let callback = webhooks.iter().find(|webhook| webhook.subscribed);
    if let Some(callback) = callback.filter(|it| it.disabled.is_some() != disabled) {
        let change = WebhookChange { disabled: Some(disabled), ..WebhookChange::default() };
        let by = caller.author(app.clock().now());
        app.store().change_webhook(account, callback.id, change, by).await?;
    }
    Ok(())
}
