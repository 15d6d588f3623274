//! SQL for the app of an emulator account.

use galley_domain::id::AccountId;

use crate::{
    StoreError, StoredSecret,
    postgres::{columns::key, pool::Values, transaction::Transaction},
};

pub(super) const READ: &str =
    "SELECT secret, callback_override FROM emulated_app WHERE account_id = $1";

pub(super) async fn set_secret(
    transaction: &Transaction,
    account: AccountId,
    secret: &StoredSecret,
) -> Result<bool, StoreError> {
    let upsert = "INSERT INTO emulated_app (account_id, secret) SELECT account_id, $2 \
                  FROM emulator_clock WHERE account_id = $1 FOR KEY SHARE \
                  ON CONFLICT (account_id) DO UPDATE SET secret = excluded.secret";
    let values: Values<'_> = &[&key(account.get()), &secret.0];
    Ok(transaction.execute(upsert, values).await? > 0)
}

pub(super) async fn set_override(
    transaction: &Transaction,
    account: AccountId,
    url: Option<&str>,
) -> Result<bool, StoreError> {
    let upsert = "INSERT INTO emulated_app (account_id, callback_override) SELECT account_id, $2 \
                  FROM emulator_clock WHERE account_id = $1 FOR KEY SHARE \
                  ON CONFLICT (account_id) DO UPDATE \
                  SET callback_override = excluded.callback_override";
    let values: Values<'_> = &[&key(account.get()), &url];
    Ok(transaction.execute(upsert, values).await? > 0)
}
