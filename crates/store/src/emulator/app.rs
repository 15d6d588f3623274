//! The app of an emulator account, to which clients subscribe.

use galley_domain::id::AccountId;

use super::{Setting, decisions::app, set};
use crate::{
    EmulatedApp, Store, StoreError, StoredSecret,
    engine::{ReadPath, values},
};

const SECRET: Setting = Setting { table: "emulated_app", column: "secret" };
const OVERRIDE: Setting = Setting { table: "emulated_app", column: "callback_override" };

impl Store {
    /// The app of an emulator account.
    pub async fn emulated_app(&self, account: AccountId) -> Result<EmulatedApp, StoreError> {
        let (method, path) = ("emulated_app", ReadPath::Point);
        let select = "SELECT secret, callback_override FROM emulated_app WHERE account_id = $1";
        let found = self.read_one(method, path, select, values![account], app).await?;
        Ok(found.unwrap_or_default())
    }

    /// Sets the secret that signs the webhooks of the app; `false` if the account is not an emulator.
    pub async fn set_app_secret(
        &self,
        account: AccountId,
        secret: StoredSecret,
    ) -> Result<bool, StoreError> {
        self.write("set_app_secret", (account, secret), |(account, secret), tx| {
            Box::pin(set(tx, *account, SECRET, secret.into()))
        })
        .await
    }

    /// Sets the address with which a client wants to override the callback of the app; `false` if
    /// the account is not an emulator.
    pub async fn set_callback_override(
        &self,
        account: AccountId,
        url: Option<String>,
    ) -> Result<bool, StoreError> {
        self.write("set_callback_override", (account, url), |(account, url), tx| {
            Box::pin(set(tx, *account, OVERRIDE, url.as_deref().into()))
        })
        .await
    }
}
