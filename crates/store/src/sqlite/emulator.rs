//! SQL for emulator accounts: their clocks, and the settings that their users change.

mod app;
mod faults;
mod messages;
mod script;
mod statuses;

use async_trait::async_trait;
use galley_domain::{
    emulator::{
        clock::{Clock, ClockChange},
        faults::{Call, Fault, FaultEffect},
        rules::ReviewRules,
    },
    id::{AccountId, WebhookId},
};
use jiff::Timestamp;
use rusqlite::{Connection, params};

pub(super) use self::script::{
    apply_due_of, emulation, finish_deletion, finish_edit, run_first_script, until_name_is_free,
};
use super::{
    SqliteStore,
    columns::{account_id, key, millis, timestamp},
    writer::Batch,
};
use crate::{
    ChangeClockOutcome, CreateFaultOutcome, DueSteps, EmulatedApp, EmulatorStore, EmulatorWork,
    MessageQuery, NewMessage, ReadKind, RecordStatusesOutcome, StatusCursor, StatusLease,
    StoreError, StoredFault, StoredMessage, StoredSecret, WebhookKey, decisions::emulator,
};

#[async_trait]
impl EmulatorStore for SqliteStore {
    async fn emulator_clock(&self, account: AccountId) -> Result<Option<Clock>, StoreError> {
        self.point_readers.read(|connection| clock(connection, account))
    }

    async fn change_clock(
        &self,
        account: AccountId,
        change: ClockChange,
        at: Timestamp,
    ) -> Result<ChangeClockOutcome, StoreError> {
        self.writer.write(move |batch| change_clock(batch.connection(), account, change, at)).await
    }

    async fn apply_due_steps(
        &self,
        account: AccountId,
        at: Timestamp,
    ) -> Result<DueSteps, StoreError> {
        self.writer.write(move |batch| script::apply_due(batch, account, at)).await
    }

    async fn accounts_with_due_steps(
        &self,
        at: Timestamp,
    ) -> Result<EmulatorWork<AccountId>, StoreError> {
        self.readers.read(|connection| accounts_with_due_steps(connection, at))
    }

    async fn review_rules(&self, account: AccountId) -> Result<ReviewRules, StoreError> {
        self.point_readers.read(|connection| script::rules(connection, account))
    }

    async fn set_review_rules(
        &self,
        account: AccountId,
        rules: ReviewRules,
    ) -> Result<bool, StoreError> {
        self.writer.write(move |batch| script::set_rules(batch, account, &rules)).await
    }

    async fn emulated_app(&self, account: AccountId) -> Result<EmulatedApp, StoreError> {
        self.point_readers.read(|connection| app::read(connection, account))
    }

    async fn set_app_secret(
        &self,
        account: AccountId,
        secret: StoredSecret,
    ) -> Result<bool, StoreError> {
        self.writer.write(move |batch| app::set_secret(batch, account, &secret)).await
    }

    async fn set_callback_override(
        &self,
        account: AccountId,
        url: Option<String>,
    ) -> Result<bool, StoreError> {
        self.writer.write(move |batch| app::set_override(batch, account, url.as_deref())).await
    }

    async fn create_fault(
        &self,
        account: AccountId,
        fault: Fault,
        at: Timestamp,
    ) -> Result<CreateFaultOutcome, StoreError> {
        self.writer.write(move |batch| faults::create(batch, account, &fault, at)).await
    }

    async fn faults(&self, account: AccountId) -> Result<Vec<StoredFault>, StoreError> {
        self.point_readers.read(|connection| faults::all(connection, account))
    }

    async fn delete_faults(
        &self,
        account: AccountId,
        number: Option<u64>,
    ) -> Result<usize, StoreError> {
        self.writer.write(move |batch| faults::delete(batch, account, number)).await
    }

    async fn decide_fault(
        &self,
        account: AccountId,
        call: Call,
        name: Option<&str>,
    ) -> Result<Option<FaultEffect>, StoreError> {
        // Most calls of most accounts meet no fault, and need no write.
        let find = |connection: &Connection| faults::that_can_strike(connection, account, call);
        if self.point_readers.read(find)?.is_empty() {
            return Ok(None);
        }
        let name = name.map(str::to_owned);
        self.writer.write(move |batch| faults::decide(batch, account, call, name.as_deref())).await
    }

    async fn add_message(&self, new: NewMessage) -> Result<Option<StoredMessage>, StoreError> {
        self.writer.write(move |batch| messages::add(batch, &new)).await
    }

    async fn messages(
        &self,
        account: AccountId,
        query: MessageQuery,
        at: Timestamp,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let read = move |connection: &Connection| messages::page(connection, account, query, at);
        self.read_blocking(ReadKind::List, account, read).await
    }

    async fn endpoints_with_statuses(&self, at: Timestamp) -> Result<Vec<WebhookKey>, StoreError> {
        self.readers.read(|connection| statuses::endpoints(connection, at))
    }

    async fn lease_statuses(
        &self,
        endpoint: WebhookId,
        limit: usize,
        at: Timestamp,
        lease_until: Timestamp,
    ) -> Result<StatusLease, StoreError> {
        self.writer
            .write(move |batch| statuses::lease(batch, endpoint, limit, at, lease_until))
            .await
    }

    async fn record_statuses(
        &self,
        endpoint: WebhookId,
        lease_until: Timestamp,
        through: StatusCursor,
    ) -> Result<RecordStatusesOutcome, StoreError> {
        self.writer
            .write(move |batch| statuses::record(batch, endpoint, lease_until, through))
            .await
    }
}

/// Adds the clock of a new emulator account.
pub(super) fn create_clock(
    connection: &Connection,
    account: AccountId,
    at: Timestamp,
) -> Result<(), StoreError> {
    let Clock { at, since } = Clock::new(at);
    connection.execute(
        "INSERT INTO emulator_clock (account_id, at, since) VALUES (?1, ?2, ?3)",
        params![key(account.get()), millis(at), since.map(millis)],
    )?;
    Ok(())
}

fn clock(connection: &Connection, account: AccountId) -> Result<Option<Clock>, StoreError> {
    let mut query =
        connection.prepare_cached("SELECT at, since FROM emulator_clock WHERE account_id = ?1")?;
    let mut rows = query.query([key(account.get())])?;
    rows.next()?.map(emulator::clock).transpose()
}

fn change_clock(
    connection: &Connection,
    account: AccountId,
    change: ClockChange,
    at: Timestamp,
) -> Result<ChangeClockOutcome, StoreError> {
    let Some(before) = clock(connection, account)? else {
        return Ok(ChangeClockOutcome::NotAnEmulator);
    };
    let after = match before.changed(change, at) {
        Ok(after) => after,
        Err(refusal) => return Ok(ChangeClockOutcome::Refused(refusal)),
    };
    connection
        .prepare_cached("UPDATE emulator_clock SET at = ?2, since = ?3 WHERE account_id = ?1")?
        .execute(params![key(account.get()), millis(after.at), after.since.map(millis)])?;
    Ok(ChangeClockOutcome::Changed(after))
}

fn accounts_with_due_steps(
    connection: &Connection,
    at: Timestamp,
) -> Result<EmulatorWork<AccountId>, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT account_id, at, since, (SELECT min(due_at) FROM script_step s \
         WHERE s.account_id = c.account_id) AS due_at FROM emulator_clock c \
         WHERE due_at IS NOT NULL ORDER BY account_id",
    )?;
    let mut rows = query.query([])?;
    let mut work = EmulatorWork { now: Vec::new(), next_at: None };
    while let Some(row) = rows.next()? {
        let due_at = timestamp(row, "due_at")?;
        work.add(account_id(row, "account_id")?, emulator::clock(row)?, due_at, at);
    }
    Ok(work)
}

/// How many messages of a deleted account are deleted with it; retention deletes the rest.
const MESSAGES_DELETED_WITH_ACCOUNT: i64 = 1_000;

/// Deletes what only an emulator account has, except messages beyond the first ones.
pub(super) fn delete_account(batch: &Batch, account: AccountId) -> Result<(), StoreError> {
    for statement in [
        "DELETE FROM emulator_clock WHERE account_id = ?1",
        "DELETE FROM emulated_app WHERE account_id = ?1",
        "DELETE FROM review_rules WHERE account_id = ?1",
        "DELETE FROM script_step WHERE account_id = ?1",
        "DELETE FROM name_lock WHERE account_id = ?1",
        "DELETE FROM fault WHERE account_id = ?1",
    ] {
        batch.connection().execute(statement, [key(account.get())])?;
    }
    batch.connection().execute(
        "DELETE FROM message WHERE account_id = ?1 AND number IN (SELECT number FROM message \
         WHERE account_id = ?1 ORDER BY number LIMIT ?2)",
        [key(account.get()), MESSAGES_DELETED_WITH_ACCOUNT],
    )?;
    Ok(())
}
