//! Faults, as SQL. The clock of the account is locked while they change.

use galley_domain::{
    emulator::faults::{Call, CountedFault, Fault, FaultEffect, MAX_FAULTS},
    id::AccountId,
};
use jiff::Timestamp;

use crate::{
    CreateFaultOutcome, StoreError, StoredFault,
    decisions::emulator::{self, FaultDecision},
    postgres::{
        columns::{key, millis, number},
        pool::Values,
        transaction::Transaction,
    },
};

macro_rules! columns {
    () => {
        "number, document, matched, created_at"
    };
}

/// All faults of an account, oldest first.
pub(super) const ALL: &str =
    concat!("SELECT ", columns!(), " FROM fault WHERE account_id = $1 ORDER BY number");

/// The faults for a call that can still strike, oldest first.
pub(super) const CAN_STRIKE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM fault WHERE account_id = $1 AND call = $2 AND NOT spent ORDER BY number"
);

/// Makes room for another fault, if one is spent.
const DELETE_OLDEST_SPENT: &str = "DELETE FROM fault WHERE account_id = $1 AND number = \
     (SELECT min(number) FROM fault WHERE account_id = $1 AND spent)";

const LOCK_CLOCK: &str =
    "SELECT last_fault FROM emulator_clock WHERE account_id = $1 FOR NO KEY UPDATE";

pub(super) async fn create(
    transaction: &Transaction,
    account: AccountId,
    fault: &Fault,
    at: Timestamp,
) -> Result<CreateFaultOutcome, StoreError> {
    let own = key(account.get());
    let Some(row) = transaction.query_one(LOCK_CLOCK, &[&own]).await? else {
        return Ok(CreateFaultOutcome::NotAnEmulator);
    };
    let number = number(&row, "last_fault")? + 1;
    let is_full = transaction.query(ALL, &[&own]).await?.len() >= MAX_FAULTS;
    if is_full && transaction.execute(DELETE_OLDEST_SPENT, &[&own]).await? == 0 {
        return Ok(CreateFaultOutcome::TooMany);
    }
    let update = "UPDATE emulator_clock SET last_fault = $2 WHERE account_id = $1";
    transaction.execute(update, &[&own, &key(number)]).await?;
    let insert = "INSERT INTO fault (account_id, number, call, document, matched, spent, \
                  created_at) VALUES ($1, $2, $3, $4, 0, false, $5)";
    let values: Values<'_> =
        &[&own, &key(number), &fault.call.as_str(), &fault.as_json(), &millis(at)];
    transaction.execute(insert, values).await?;
    let counted = CountedFault { fault: fault.clone(), matched: 0 };
    let created_at = Timestamp::from_millisecond(millis(at)).unwrap_or(at);
    Ok(CreateFaultOutcome::Created(Box::new(StoredFault { number, counted, created_at })))
}

pub(super) async fn delete(
    transaction: &Transaction,
    account: AccountId,
    number: Option<u64>,
) -> Result<usize, StoreError> {
    let number = number.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    let own = key(account.get());
    transaction.query_one(LOCK_CLOCK, &[&own]).await?;
    let delete = "DELETE FROM fault WHERE account_id = $1 AND ($2::int8 IS NULL OR number = $2)";
    let deleted = transaction.execute(delete, &[&own, &number]).await?;
    Ok(usize::try_from(deleted).unwrap_or(usize::MAX))
}

/// Decides which fault strikes a call, and stores that the faults have counted it.
pub(super) async fn decide(
    transaction: &mut Transaction,
    account: AccountId,
    call: Call,
    name: Option<&str>,
) -> Result<Option<FaultEffect>, StoreError> {
    let own = key(account.get());
    transaction.query_one(LOCK_CLOCK, &[&own]).await?;
    let rows = transaction.query(CAN_STRIKE, &[&own, &call.as_str()]).await?;
    let stored = rows.iter().map(emulator::fault).collect::<Result<Vec<_>, _>>()?;
    let FaultDecision { effect, counted } = emulator::decide(stored, call, name);
    if counted.is_empty() {
        transaction.set_rollback_only();
    }
    let update = "UPDATE fault SET matched = $3, spent = $4 WHERE account_id = $1 AND number = $2";
    for fault in &counted {
        let values: Values<'_> =
            &[&own, &key(fault.number), &key(fault.counted.matched), &fault.is_spent()];
        transaction.execute(update, values).await?;
    }
    Ok(effect)
}
