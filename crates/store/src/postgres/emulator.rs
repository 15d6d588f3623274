//! Emulator accounts, as SQL: their clocks, and the settings that their users change. Clocks are
//! locked after the account, if both are.

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

pub(super) use self::{
    messages::MessageQueue,
    script::{
        apply_due_of, emulation, finish_deletion, finish_edit, locked_name, run_first_script,
    },
};
use super::{
    PostgresStore,
    columns::{account_id, key, millis, timestamp},
    pool::Values,
    transaction::{Transaction, transact},
};
use crate::{
    ChangeClockOutcome, CreateFaultOutcome, DueSteps, EmulatedApp, EmulatorStore, EmulatorWork,
    MessageQuery, NewMessage, RecordStatusesOutcome, StatusCursor, StatusLease, StoreError,
    StoredFault, StoredMessage, StoredSecret, WebhookKey, decisions::emulator,
};

#[async_trait]
impl EmulatorStore for PostgresStore {
    async fn emulator_clock(&self, account: AccountId) -> Result<Option<Clock>, StoreError> {
        let row = self.pools.read_one(CLOCK, &[&key(account.get())]).await?;
        row.as_ref().map(emulator::clock).transpose()
    }

    async fn change_clock(
        &self,
        account: AccountId,
        change: ClockChange,
        at: Timestamp,
    ) -> Result<ChangeClockOutcome, StoreError> {
        transact!(self, tx => change_clock(tx, account, change, at))
    }

    async fn apply_due_steps(
        &self,
        account: AccountId,
        at: Timestamp,
    ) -> Result<DueSteps, StoreError> {
        transact!(self, tx => script::apply_due(tx, account, at))
    }

    async fn accounts_with_due_steps(
        &self,
        at: Timestamp,
    ) -> Result<EmulatorWork<AccountId>, StoreError> {
        let statement = "SELECT c.account_id, c.at, c.since, s.due_at FROM emulator_clock c \
                         JOIN LATERAL (SELECT min(due_at) AS due_at FROM script_step \
                         WHERE account_id = c.account_id) AS s ON s.due_at IS NOT NULL \
                         ORDER BY c.account_id";
        let mut work = EmulatorWork { now: Vec::new(), next_at: None };
        for row in &self.pools.acquire_slow().await?.query(statement, &[]).await? {
            let due_at = timestamp(row, "due_at")?;
            work.add(account_id(row, "account_id")?, emulator::clock(row)?, due_at, at);
        }
        Ok(work)
    }

    async fn review_rules(&self, account: AccountId) -> Result<ReviewRules, StoreError> {
        let row = self.pools.read_one(script::RULES, &[&key(account.get())]).await?;
        script::rules(row.as_ref())
    }

    async fn set_review_rules(
        &self,
        account: AccountId,
        rules: ReviewRules,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => script::set_rules(tx, account, &rules))
    }

    async fn emulated_app(&self, account: AccountId) -> Result<EmulatedApp, StoreError> {
        let row = self.pools.read_one(app::READ, &[&key(account.get())]).await?;
        row.as_ref().map_or_else(|| Ok(EmulatedApp::default()), emulator::app)
    }

    async fn set_app_secret(
        &self,
        account: AccountId,
        secret: StoredSecret,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => app::set_secret(tx, account, &secret))
    }

    async fn set_callback_override(
        &self,
        account: AccountId,
        url: Option<String>,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => app::set_override(tx, account, url.as_deref()))
    }

    async fn create_fault(
        &self,
        account: AccountId,
        fault: Fault,
        at: Timestamp,
    ) -> Result<CreateFaultOutcome, StoreError> {
        transact!(self, tx => faults::create(tx, account, &fault, at))
    }

    async fn faults(&self, account: AccountId) -> Result<Vec<StoredFault>, StoreError> {
        let rows = self.pools.read(faults::ALL, &[&key(account.get())]).await?;
        rows.iter().map(emulator::fault).collect()
    }

    async fn delete_faults(
        &self,
        account: AccountId,
        number: Option<u64>,
    ) -> Result<usize, StoreError> {
        transact!(self, tx => faults::delete(tx, account, number))
    }

    async fn decide_fault(
        &self,
        account: AccountId,
        call: Call,
        name: Option<&str>,
    ) -> Result<Option<FaultEffect>, StoreError> {
        // Most calls of most accounts meet no fault, and need no write.
        let values: Values<'_> = &[&key(account.get()), &call.as_str()];
        if self.pools.read_one(faults::CAN_STRIKE, values).await?.is_none() {
            return Ok(None);
        }
        transact!(self, tx => faults::decide(tx, account, call, name))
    }

    async fn add_message(&self, new: NewMessage) -> Result<Option<StoredMessage>, StoreError> {
        self.message_queue.add(new).await
    }

    async fn messages(
        &self,
        account: AccountId,
        query: MessageQuery,
        at: Timestamp,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        self.message_page(account, query, at).await
    }

    async fn endpoints_with_statuses(&self, at: Timestamp) -> Result<Vec<WebhookKey>, StoreError> {
        statuses::endpoints(&self.pools, at).await
    }

    async fn lease_statuses(
        &self,
        endpoint: WebhookId,
        limit: usize,
        at: Timestamp,
        lease_until: Timestamp,
    ) -> Result<StatusLease, StoreError> {
        transact!(self, tx => statuses::lease(tx, endpoint, limit, at, lease_until))
    }

    async fn record_statuses(
        &self,
        endpoint: WebhookId,
        lease_until: Timestamp,
        through: StatusCursor,
    ) -> Result<RecordStatusesOutcome, StoreError> {
        transact!(self, tx => statuses::record(tx, endpoint, lease_until, through))
    }
}

const CLOCK: &str = "SELECT at, since FROM emulator_clock WHERE account_id = $1";

/// Adds the clock of a new emulator account.
pub(super) async fn create_clock(
    transaction: &Transaction,
    account: AccountId,
    at: Timestamp,
) -> Result<(), StoreError> {
    let Clock { at, since } = Clock::new(at);
    let insert = "INSERT INTO emulator_clock (account_id, at, since) VALUES ($1, $2, $3)";
    let values: Values<'_> = &[&key(account.get()), &millis(at), &since.map(millis)];
    transaction.execute(insert, values).await.map(drop)
}

async fn change_clock(
    transaction: &Transaction,
    account: AccountId,
    change: ClockChange,
    at: Timestamp,
) -> Result<ChangeClockOutcome, StoreError> {
    let lock = format!("{CLOCK} FOR NO KEY UPDATE");
    let Some(row) = transaction.query_one(&lock, &[&key(account.get())]).await? else {
        return Ok(ChangeClockOutcome::NotAnEmulator);
    };
    let after = match emulator::clock(&row)?.changed(change, at) {
        Ok(after) => after,
        Err(refusal) => return Ok(ChangeClockOutcome::Refused(refusal)),
    };
    let update = "UPDATE emulator_clock SET at = $2, since = $3 WHERE account_id = $1";
    let values: Values<'_> = &[&key(account.get()), &millis(after.at), &after.since.map(millis)];
    transaction.execute(update, values).await?;
    Ok(ChangeClockOutcome::Changed(after))
}

/// How many messages of a deleted account are deleted with it; retention deletes the rest.
const MESSAGES_DELETED_WITH_ACCOUNT: i64 = 1_000;

/// Deletes what only an emulator account has, except messages beyond the first ones.
pub(super) async fn delete_account(
    transaction: &Transaction,
    account: AccountId,
) -> Result<(), StoreError> {
    for statement in [
        // The clock is locked before the messages are read: no other message follows.
        "DELETE FROM emulator_clock WHERE account_id = $1",
        "DELETE FROM emulated_app WHERE account_id = $1",
        "DELETE FROM review_rules WHERE account_id = $1",
        "DELETE FROM script_step WHERE account_id = $1",
        "DELETE FROM name_lock WHERE account_id = $1",
        "DELETE FROM fault WHERE account_id = $1",
    ] {
        transaction.execute(statement, &[&key(account.get())]).await?;
    }
    let messages = "DELETE FROM message WHERE account_id = $1 AND number IN (SELECT number \
                    FROM message WHERE account_id = $1 ORDER BY number LIMIT $2)";
    let values: Values<'_> = &[&key(account.get()), &MESSAGES_DELETED_WITH_ACCOUNT];
    transaction.execute(messages, values).await.map(drop)
}
