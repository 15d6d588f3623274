//! SQL for the app of an emulator account.

use galley_domain::id::AccountId;
use rusqlite::{Connection, params};

use crate::{
    EmulatedApp, StoreError, StoredSecret,
    decisions::emulator,
    sqlite::{columns::key, writer::Batch},
};

pub(super) fn read(connection: &Connection, account: AccountId) -> Result<EmulatedApp, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT secret, callback_override FROM emulated_app WHERE account_id = ?1",
    )?;
    let mut rows = query.query([key(account.get())])?;
    rows.next()?.map_or_else(|| Ok(EmulatedApp::default()), emulator::app)
}

pub(super) fn set_secret(
    batch: &Batch,
    account: AccountId,
    secret: &StoredSecret,
) -> Result<bool, StoreError> {
    let set = batch
        .connection()
        .prepare_cached(
            "INSERT INTO emulated_app (account_id, secret) SELECT account_id, ?2 \
             FROM emulator_clock WHERE account_id = ?1 \
             ON CONFLICT (account_id) DO UPDATE SET secret = excluded.secret",
        )?
        .execute(params![key(account.get()), secret.0])?;
    Ok(set > 0)
}

pub(super) fn set_override(
    batch: &Batch,
    account: AccountId,
    url: Option<&str>,
) -> Result<bool, StoreError> {
    let set = batch
        .connection()
        .prepare_cached(
            "INSERT INTO emulated_app (account_id, callback_override) SELECT account_id, ?2 \
             FROM emulator_clock WHERE account_id = ?1 \
             ON CONFLICT (account_id) DO UPDATE SET callback_override = excluded.callback_override",
        )?
        .execute(params![key(account.get()), url])?;
    Ok(set > 0)
}
