//! Signing secrets of webhooks that are stored in plain text: reported by `serve`, `doctor` and
//! `webhook add`.

use std::sync::Arc;

use galley_server::delivery::Keyring;
use galley_store::{Store, StoreError, StoredSecret};

use crate::terminal;

/// How to encrypt secrets that are stored in plain text.
const REMEDY: &str = "set GALLEY_SECRET_KEY, the same for the service and the command line, then run \
                      `galley webhook rotate ACCOUNT ID` for each endpoint";

/// The number of endpoints, and how many of them have a secret in plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SecretCount {
    pub(super) plain: usize,
    pub(super) all: usize,
}

impl SecretCount {
    /// The result for `galley doctor`.
    pub(super) fn finding(self) -> String {
        let Self { plain, all } = self;
        match plain {
            0 => format!("0 of {all} in plain text"),
            _ => format!("{plain} of {all} in plain text: {REMEDY}"),
        }
    }
}

/// Counts the current signing secrets of all accounts.
pub(super) async fn count(store: &Store) -> Result<SecretCount, StoreError> {
    let mut count = SecretCount { plain: 0, all: 0 };
    for account in store.accounts().await? {
        let webhooks = store.webhooks(account.id).await?;
        count.all += webhooks.len();
        count.plain += webhooks.iter().filter(|it| Keyring::is_plain(&it.secret)).count();
    }
    Ok(count)
}

/// Logs at the start of the service whether secrets are or will be stored in plain text.
pub(super) async fn log(store: Arc<Store>, keyring: Keyring) {
    match count(&store).await {
        Ok(SecretCount { plain: 0, .. }) if keyring.has_key() => {}
        Ok(SecretCount { plain: 0, .. }) => tracing::info!(
            "GALLEY_SECRET_KEY is not set: signing secrets of webhooks will be stored in plain text"
        ),
        Ok(SecretCount { plain, all }) => tracing::warn!(
            plain,
            all,
            "signing secrets of webhooks are stored in plain text: {REMEDY}"
        ),
        Err(error) => {
            tracing::warn!(%error, "the signing secrets of webhooks could not be checked");
        }
    }
}

/// Warns after a secret was stored, if it is in plain text.
pub(super) fn warn_if_plain(stored: &StoredSecret) {
    if Keyring::is_plain(stored) {
        terminal::print_warning(format_args!(
            "the secret of this webhook is stored in plain text: {REMEDY}"
        ));
    }
}
