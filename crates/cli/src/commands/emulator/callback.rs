//! The app's callback: the endpoint that receives the webhooks of the emulator.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use galley_domain::{
    id::{AccountId, WebhookId},
    webhook::{Format, Redacted},
};
use galley_server::{
    Clock as _,
    delivery::{NO_CALLBACK, Secret, WebhookContext},
};
use galley_store::{Author, CreateWebhookOutcome, NewWebhook, Store, WebhookChange};

use crate::{arguments::EmulatorOptions, clock::SystemClock};

/// Pause between two verification requests.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The subscription of the account, which is disabled until a receiver has answered the verification
/// request. It exists from the beginning, so that the app secret signs the webhooks of every callback.
pub(super) struct Callback {
    store: Arc<dyn Store>,
    context: WebhookContext,
    account: AccountId,
    /// `None` for an app that can never get a callback: a faithful account takes none from clients.
    webhook: Option<WebhookId>,
    /// URL and verify token.
    receiver: Option<(String, Redacted)>,
    pub(super) app_secret: String,
}

impl Callback {
    pub(super) async fn prepare(
        store: Arc<dyn Store>,
        context: WebhookContext,
        account: AccountId,
        options: &EmulatorOptions,
        app_secret: Option<Redacted>,
    ) -> anyhow::Result<Self> {
        if let Some(Redacted(secret)) = &app_secret {
            Secret::from_app_secret(secret).context("GALLEY_WEBHOOK_SECRET")?;
        }
        let receiver = options.callback.clone().zip(options.verify_token.clone().map(Redacted));
        let url = receiver.as_ref().map_or(NO_CALLBACK, |(url, _)| url).to_owned();
        let secret = context.new_secret(account, Format::Whatsapp, app_secret.as_ref());
        let app_secret = secret.shown;
        if receiver.is_none() && options.faithful {
            return Ok(Self { store, context, account, webhook: None, receiver, app_secret });
        }
        let by = Author::operator(SystemClock::new().now());
        let new = NewWebhook {
            account,
            url,
            events: Vec::new(),
            format: Format::Whatsapp,
            subscribed: true,
            secret: secret.encrypted,
            by,
        };
        let CreateWebhookOutcome::Created(webhook) = store.create_webhook(new).await? else {
            bail!("the temporary store already has a callback")
        };
        let change = WebhookChange { url: None, events: None, disabled: Some(true) };
        store.change_webhook(account, webhook.id, change, by).await?;
        let webhook = Some(webhook.id);
        Ok(Self { store, context, account, webhook, receiver, app_secret })
    }

    /// Sends the verification request until the receiver answers it, then enables the webhooks: a
    /// receiver usually starts after the emulator, because it needs its credentials.
    pub(super) async fn register(self) {
        let (Some((url, token)), Some(webhook)) = (&self.receiver, self.webhook) else { return };
        let mut reported = String::new();
        loop {
            match self.context.check_endpoint(self.account, url, Some(token)).await {
                Ok(()) => break,
                Err(error) => {
                    let error = error.to_string();
                    if error != reported {
                        tracing::warn!(
                            "webhooks wait for the receiver at the callback, which is asked every second: {error}"
                        );
                        reported = error;
                    }
                }
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        let change = WebhookChange { url: None, events: None, disabled: Some(false) };
        let by = Author::operator(SystemClock::new().now());
        match self.store.change_webhook(self.account, webhook, change, by).await {
            Ok(Some(_)) => {
                tracing::info!("the callback is verified: webhooks are sent to it from now on");
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "the callback could not be registered"),
        }
    }
}
