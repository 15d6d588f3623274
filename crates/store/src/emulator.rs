//! Emulator accounts: their virtual clocks, apps, review scripts, faults and sandbox messages. For any
//! other account these methods find nothing and change nothing. Their parameter `at` is always real time.
//!
//! A body locks a clock after the account, if it locks both.

mod faults;
mod messages;
mod script;
mod statuses;

use galley_domain::{
    emulator::{
        EmulatorKind,
        clock::{Clock, ClockChange},
    },
    id::AccountId,
};
use jiff::Timestamp;

pub use self::script::MAX_STEPS_PER_TRANSACTION;
pub(crate) use self::{
    messages::{MessageCounter, delete_expired_messages, sent, stored_callback_data},
    script::{
        apply_due_of, emulation, finish_deletion, finish_edit, locked_name, run_first_script,
    },
};
use crate::{
    ChangeClockOutcome, DueWork, EmulatedApp, Store, StoreError, StoreFuture, StoredSecret,
    engine::{Dialect, ReadPath, Tx, Value, values},
    stored_row::{Row, StoredRow as _},
};

const CLOCK: &str = "SELECT at, since FROM emulator_clock WHERE account_id = $1";

/// How an emulator account decides on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Emulation {
    pub(crate) kind: EmulatorKind,
    /// The time that the account's clock shows.
    pub(crate) now: Timestamp,
}

impl Emulation {
    /// Whether an edit replaces the version in its place, as Meta does.
    pub(crate) fn edits_in_place(emulation: Option<Self>) -> bool {
        emulation.is_some_and(|it| it.kind.faithful)
    }

    /// The time that quotas of creates and edits count with.
    pub(crate) fn quota_time(emulation: Option<Self>, real: Timestamp) -> Timestamp {
        emulation.map_or(real, |it| it.now)
    }
}

impl Store {
    /// The clock of an account; `None` if it is not an emulator.
    pub fn emulator_clock(&self, account: AccountId) -> StoreFuture<'_, Option<Clock>> {
        self.read_one("emulator_clock", ReadPath::Point, CLOCK, values![account], clock)
    }

    /// Changes the clock of an account. What became due by that is applied by
    /// [`Store::apply_due_steps`].
    pub fn change_clock(
        &self,
        account: AccountId,
        change: ClockChange,
        at: Timestamp,
    ) -> StoreFuture<'_, ChangeClockOutcome> {
        self.write("change_clock", (account, change, at), |&(account, change, at), tx| {
            Box::pin(async move {
                let select = format!("{CLOCK}{}", lock(tx.dialect()));
                let Some(before) = tx.query_one(&select, &values![account], clock).await? else {
                    return Ok(ChangeClockOutcome::NotAnEmulator);
                };
                let after = match before.changed(change, at) {
                    Ok(after) => after,
                    Err(refusal) => return Ok(ChangeClockOutcome::Refused(refusal)),
                };
                let update = "UPDATE emulator_clock SET at = $2, since = $3 WHERE account_id = $1";
                tx.defer(update, &values![account, after.at, after.since])?;
                Ok(ChangeClockOutcome::Changed(after))
            })
        })
    }

    /// The accounts with due steps, and when the next step is due, on clocks that run.
    pub fn accounts_with_due_steps(&self, at: Timestamp) -> StoreFuture<'_, DueWork<AccountId>> {
        Box::pin(async move {
            let select = self.dialect().either(
                "SELECT account_id, at, since, (SELECT min(due_at) FROM script_step s \
                 WHERE s.account_id = c.account_id) AS due_at FROM emulator_clock c \
                 WHERE due_at IS NOT NULL ORDER BY account_id",
                "SELECT c.account_id, c.at, c.since, s.due_at FROM emulator_clock c \
             JOIN LATERAL (SELECT min(due_at) AS due_at FROM script_step \
             WHERE account_id = c.account_id) AS s ON s.due_at IS NOT NULL ORDER BY c.account_id",
            );
            let (method, path) = ("accounts_with_due_steps", ReadPath::Background);
            let work = self.read(method, path, select, [], move |row| {
                let due_at = clock(row)?.real_time_of(row.timestamp("due_at")?, at);
                Ok((row.account_id("account_id")?, due_at))
            });
            Ok(DueWork::at(at, work.await?))
        })
    }

    /// The app of an emulator account, to which clients subscribe.
    pub fn emulated_app(&self, account: AccountId) -> StoreFuture<'_, EmulatedApp> {
        Box::pin(async move {
            let (method, path) = ("emulated_app", ReadPath::Point);
            let select = "SELECT secret, callback_override FROM emulated_app WHERE account_id = $1";
            let found = self.read_one(method, path, select, values![account], |row| {
                Ok(EmulatedApp {
                    secret: row.value::<Option<Vec<u8>>>("secret")?.map(StoredSecret),
                    callback_override: row.value("callback_override")?,
                })
            });
            Ok(found.await?.unwrap_or_default())
        })
    }

    /// Sets the secret that signs the webhooks of the app; `false` if the account is not an emulator.
    pub fn set_app_secret(
        &self,
        account: AccountId,
        secret: StoredSecret,
    ) -> StoreFuture<'_, bool> {
        self.write("set_app_secret", (account, secret), |(account, secret), tx| {
            Box::pin(set(tx, *account, "emulated_app", "secret", secret.into()))
        })
    }

    /// Sets the address with which a client wants to override the callback of the app; `false` if
    /// the account is not an emulator.
    pub fn set_callback_override(
        &self,
        account: AccountId,
        url: Option<String>,
    ) -> StoreFuture<'_, bool> {
        self.write("set_callback_override", (account, url), |(account, url), tx| {
            Box::pin(set(tx, *account, "emulated_app", "callback_override", url.as_deref().into()))
        })
    }
}

/// The clock in a row with the columns `at` and `since`.
fn clock(row: &Row<'_>) -> Result<Clock, StoreError> {
    Ok(Clock { at: row.timestamp("at")?, since: row.optional_timestamp("since")? })
}

/// What a statement ends with that locks a clock, or a row like it.
const fn lock(dialect: Dialect) -> &'static str {
    dialect.either("", " FOR NO KEY UPDATE")
}

/// Sets a column of the row that an emulator account has in a table of settings; `false` if the account
/// is not an emulator.
async fn set(
    tx: &mut Tx<'_>,
    account: AccountId,
    table: &str,
    column: &str,
    value: Value<'_>,
) -> Result<bool, StoreError> {
    let upsert = format!(
        "INSERT INTO {table} (account_id, {column}) SELECT account_id, $2 FROM emulator_clock \
         WHERE account_id = $1{} \
         ON CONFLICT (account_id) DO UPDATE SET {column} = excluded.{column}",
        tx.dialect().either("", " FOR KEY SHARE")
    );
    Ok(tx.execute(&upsert, &[account.into(), value]).await? > 0)
}

/// Adds the clock of a new emulator account.
pub(crate) fn create_clock(
    tx: &mut Tx<'_>,
    account: AccountId,
    at: Timestamp,
) -> Result<(), StoreError> {
    let Clock { at, since } = Clock::new(at);
    let insert = "INSERT INTO emulator_clock (account_id, at, since) VALUES ($1, $2, $3)";
    tx.defer(insert, &values![account, at, since])
}

/// How many messages of a deleted account are deleted with it; retention deletes the rest.
const MESSAGES_DELETED_WITH_ACCOUNT: i64 = 1_000;

/// Deletes what only an emulator account has, except messages beyond the first ones.
pub(crate) fn delete_account(tx: &mut Tx<'_>, account: AccountId) -> Result<(), StoreError> {
    for delete in [
        // The clock is locked before the messages are read: no other message follows.
        "DELETE FROM emulator_clock WHERE account_id = $1",
        "DELETE FROM emulated_app WHERE account_id = $1",
        "DELETE FROM review_rules WHERE account_id = $1",
        "DELETE FROM script_step WHERE account_id = $1",
        "DELETE FROM name_lock WHERE account_id = $1",
        "DELETE FROM fault WHERE account_id = $1",
    ] {
        tx.defer(delete, &values![account])?;
    }
    let messages = "DELETE FROM message WHERE account_id = $1 AND number IN (SELECT number \
                    FROM message WHERE account_id = $1 ORDER BY number LIMIT $2)";
    tx.defer(messages, &values![account, MESSAGES_DELETED_WITH_ACCOUNT])
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn an_account_has_work_now_later_or_not_before_its_clock_moves() {
        let (at, second) = (Timestamp::UNIX_EPOCH, SignedDuration::from_secs(1));
        let [runs, stands] = [Some(at), None].map(|since| Clock { at, since });
        let steps = [
            (1, stands, at),
            (2, stands, at + second),
            (3, runs, at + second * 3),
            (4, runs, at + second * 2),
            (5, runs, at - second),
        ];
        let work = DueWork::at(
            at,
            steps.map(|(id, clock, due_at): (u64, Clock, Timestamp)| {
                (AccountId::new(id).unwrap(), clock.real_time_of(due_at, at))
            }),
        );
        let ids: Vec<u64> = work.now.iter().map(|id| id.get()).collect();
        assert_eq!((ids, work.next_at), (vec![1, 5], Some(at + second * 2)));
    }
}
