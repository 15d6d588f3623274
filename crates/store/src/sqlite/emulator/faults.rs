//! SQL for faults.

use galley_domain::{
    emulator::faults::{Call, CountedFault, Fault, FaultEffect, MAX_FAULTS},
    id::AccountId,
};
use jiff::Timestamp;
use rusqlite::{Connection, params};

use crate::{
    CreateFaultOutcome, StoreError, StoredFault,
    decisions::emulator::{self, FaultDecision},
    sqlite::{
        columns::{key, millis, number},
        writer::Batch,
    },
};

pub(super) fn create(
    batch: &Batch,
    account: AccountId,
    fault: &Fault,
    at: Timestamp,
) -> Result<CreateFaultOutcome, StoreError> {
    let connection = batch.connection();
    let mut query = connection.prepare_cached(
        "SELECT last_fault, (SELECT count(*) FROM fault f WHERE f.account_id = c.account_id) \
         AS count FROM emulator_clock c WHERE account_id = ?1",
    )?;
    let mut rows = query.query([key(account.get())])?;
    let Some(row) = rows.next()? else { return Ok(CreateFaultOutcome::NotAnEmulator) };
    let is_full = number(row, "count")? >= MAX_FAULTS as u64;
    let number = number(row, "last_fault")? + 1;
    drop(rows);
    if is_full && !delete_oldest_spent(connection, account)? {
        return Ok(CreateFaultOutcome::TooMany);
    }
    connection
        .prepare_cached("UPDATE emulator_clock SET last_fault = ?2 WHERE account_id = ?1")?
        .execute([key(account.get()), key(number)])?;
    connection
        .prepare_cached(
            "INSERT INTO fault (account_id, number, call, document, matched, spent, created_at) \
             VALUES (?1, ?2, ?3, ?4, 0, 0, ?5)",
        )?
        .execute(params![
            key(account.get()),
            key(number),
            fault.call.as_str(),
            fault.as_json(),
            millis(at)
        ])?;
    let counted = CountedFault { fault: fault.clone(), matched: 0 };
    let created_at = Timestamp::from_millisecond(millis(at)).unwrap_or(at);
    Ok(CreateFaultOutcome::Created(Box::new(StoredFault { number, counted, created_at })))
}

/// Makes room for another fault. Returns whether a fault was spent.
fn delete_oldest_spent(connection: &Connection, account: AccountId) -> Result<bool, StoreError> {
    let mut delete = connection.prepare_cached(
        "DELETE FROM fault WHERE account_id = ?1 AND number = \
         (SELECT min(number) FROM fault WHERE account_id = ?1 AND spent)",
    )?;
    Ok(delete.execute([key(account.get())])? > 0)
}

pub(super) fn all(
    connection: &Connection,
    account: AccountId,
) -> Result<Vec<StoredFault>, StoreError> {
    read(connection, "SELECT * FROM fault WHERE account_id = ?1 ORDER BY number", account, None)
}

/// The faults for a call that can still strike, oldest first.
pub(super) fn that_can_strike(
    connection: &Connection,
    account: AccountId,
    call: Call,
) -> Result<Vec<StoredFault>, StoreError> {
    let query = "SELECT * FROM fault WHERE account_id = ?1 AND call = ?2 AND NOT spent \
                 ORDER BY number";
    read(connection, query, account, Some(call))
}

fn read(
    connection: &Connection,
    query: &str,
    account: AccountId,
    call: Option<Call>,
) -> Result<Vec<StoredFault>, StoreError> {
    let mut query = connection.prepare_cached(query)?;
    let mut rows = match call {
        Some(call) => query.query(params![key(account.get()), call.as_str()])?,
        None => query.query([key(account.get())])?,
    };
    let mut faults = Vec::new();
    while let Some(row) = rows.next()? {
        faults.push(emulator::fault(row)?);
    }
    Ok(faults)
}

pub(super) fn delete(
    batch: &Batch,
    account: AccountId,
    number: Option<u64>,
) -> Result<usize, StoreError> {
    let number = number.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
    let deleted = batch
        .connection()
        .prepare_cached("DELETE FROM fault WHERE account_id = ?1 AND (?2 IS NULL OR number = ?2)")?
        .execute(params![key(account.get()), number])?;
    Ok(deleted)
}

/// Decides which fault strikes a call, and stores that the faults have counted it.
pub(super) fn decide(
    batch: &Batch,
    account: AccountId,
    call: Call,
    name: Option<&str>,
) -> Result<Option<FaultEffect>, StoreError> {
    let stored = that_can_strike(batch.connection(), account, call)?;
    let FaultDecision { effect, counted } = emulator::decide(stored, call, name);
    let mut update = batch.connection().prepare_cached(
        "UPDATE fault SET matched = ?3, spent = ?4 WHERE account_id = ?1 AND number = ?2",
    )?;
    for fault in counted {
        update.execute(params![
            key(account.get()),
            key(fault.number),
            key(fault.counted.matched),
            fault.is_spent()
        ])?;
    }
    Ok(effect)
}
