//! The apps of emulator accounts, to which their clients subscribe.

use galley_domain::webhook::Redacted;
use galley_store::Account;

use super::problem::Problem;
use crate::app::App;

/// The secret that signs the webhooks of the account's app, if one was chosen.
pub(crate) async fn secret(app: &App, account: &Account) -> Result<Option<Redacted>, Problem> {
    if account.emulator.is_none() {
        return Ok(None);
    }
    let Some(stored) = app.store().emulated_app(account.id).await?.secret else { return Ok(None) };
    let revealed = app.webhooks().reveal_app_secret(account.id, &stored);
    Ok(revealed
        .inspect_err(|error| {
            tracing::error!(account = %account.id, %error, "the app secret cannot be read");
        })
        .ok())
}
