//! The app's callback: the endpoint that receives the webhooks of the emulator.

use std::{sync::Arc, time::Duration};

use galley_domain::{
    id::AccountId,
    webhook::{Format, Redacted},
};
use galley_server::{Clock as _, delivery::WebhookContext};
use galley_store::{Author, CreateWebhookOutcome, NewWebhook, Store, StoreError, StoredSecret};

use crate::{arguments::EmulatorOptions, clock::SystemClock};

/// Pause between two verification requests.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The app of the account. Its callback is registered when a receiver has answered the verification
/// request.
pub(super) struct Callback {
    store: Arc<Store>,
    context: WebhookContext,
    account: AccountId,
    /// URL and verify token.
    receiver: Option<(String, Redacted)>,
    secret: StoredSecret,
    pub(super) app_secret: String,
}

impl Callback {
    /// Chooses the app secret, which signs the webhooks of every callback.
    pub(super) async fn prepare(
        store: Arc<Store>,
        context: WebhookContext,
        account: AccountId,
        options: &EmulatorOptions,
        app_secret: Option<Redacted>,
    ) -> anyhow::Result<Self> {
        let receiver = options.callback.clone().zip(options.verify_token.clone().map(Redacted));
        let secret = context.new_secret(account, Format::Whatsapp, app_secret.as_ref());
        let (secret, app_secret) = (secret.encrypted, secret.shown);
        store.set_app_secret(account, secret.clone()).await?;
        Ok(Self { store, context, account, receiver, secret, app_secret })
    }

    /// Sends the verification request until the receiver answers it, then registers the callback: a
    /// receiver usually starts after the emulator, because it needs its credentials.
    pub(super) async fn register(self) {
        let Some((url, token)) = &self.receiver else { return };
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
        match self.create_webhook(url).await {
            Ok(CreateWebhookOutcome::Created(_)) => {
                tracing::info!("the callback is verified: webhooks are sent to it from now on");
            }
            Ok(_) => {
                tracing::warn!("the callback is not used: a client has subscribed another URL");
            }
            Err(error) => tracing::error!(%error, "the callback could not be registered"),
        }
    }

    async fn create_webhook(&self, url: &str) -> Result<CreateWebhookOutcome, StoreError> {
        let new = NewWebhook {
            account: self.account,
            url: url.to_owned(),
            events: Vec::new(),
            format: Format::Whatsapp,
            subscribed: true,
            // What happened before the verification is not lost.
            from_start: true,
            secret: self.secret.clone(),
            by: Author::operator(SystemClock::new().now()),
        };
        self.store.create_webhook(new).await
    }
}
