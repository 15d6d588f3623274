//! What the environment chooses of the account; the rest is random.

use anyhow::{Context as _, bail};
use galley_domain::{account, id::AccountId, webhook::Redacted};
use galley_server::delivery::Secret;

use crate::settings::RawSettings;

/// The ids and secrets that the environment names.
pub(super) struct ChosenAccount {
    pub(super) waba_id: Option<AccountId>,
    pub(super) phone: Option<String>,
    pub(super) key: Option<String>,
    pub(super) token: Option<String>,
    pub(super) app_secret: Option<Redacted>,
}

impl ChosenAccount {
    /// Reads the variables. An empty one is not set, because Compose files pass unset variables as
    /// empty.
    pub(super) fn read(raw: &RawSettings) -> anyhow::Result<Self> {
        let secret = |name: &str| raw.secret(name).map_err(anyhow::Error::msg);
        let segment = |name: &str, max_bytes: usize| -> anyhow::Result<Option<String>> {
            let Some(value) = secret(name)? else { return Ok(None) };
            if !account::is_valid_path_segment(&value) || value.len() > max_bytes {
                bail!("{name}: use 1 to {max_bytes} of the characters A-Z a-z 0-9 . _ ~ + -");
            }
            Ok(Some(value))
        };
        let waba_id = secret("GALLEY_EMULATOR_WABA_ID")?.map(|id| id.parse()).transpose();
        // A shell reads what the command prints.
        let app_secret = segment("GALLEY_EMULATOR_APP_SECRET", account::MAX_SECRET_BYTES)?;
        if let Some(secret) = &app_secret {
            Secret::from_app_secret(secret).context("GALLEY_EMULATOR_APP_SECRET")?;
        }
        Ok(Self {
            waba_id: waba_id
                .context("GALLEY_EMULATOR_WABA_ID: use a positive whole number below 2^53")?,
            phone: segment("GALLEY_EMULATOR_PHONE_NUMBER_ID", account::MAX_SEGMENT_BYTES)?,
            key: segment("GALLEY_EMULATOR_KEY", account::MAX_SECRET_BYTES)?,
            token: segment("GALLEY_EMULATOR_TOKEN", account::MAX_SECRET_BYTES)?,
            app_secret: app_secret.map(Redacted),
        })
    }
}
