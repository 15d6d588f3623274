//! Faults: what a test wants to go wrong. The clock of the account is locked while they change.

use galley_domain::{
    emulator::faults::{self, Call, CountedFault, Fault, FaultEffect, MAX_FAULTS},
    id::AccountId,
};
use jiff::Timestamp;

use super::lock;
use crate::{
    CreateFaultOutcome, Store, StoreError, StoreFuture, StoredFault,
    encoding::millis,
    engine::{ReadPath, Tx, Value, values},
    stored_row::{Row, StoredRow as _},
};

/// The faults of an account for a call that can still strike, oldest first.
const CAN_STRIKE: &str = "SELECT number, document, matched, created_at FROM fault \
     WHERE account_id = $1 AND call = $2 AND NOT spent ORDER BY number";

impl Store {
    /// Adds a fault. If there is no room for it, it replaces the oldest one that is spent.
    pub fn create_fault(
        &self,
        account: AccountId,
        fault: Fault,
        at: Timestamp,
    ) -> StoreFuture<'_, CreateFaultOutcome> {
        self.write("create_fault", (account, fault, at), |&(account, ref fault, at), tx| {
            Box::pin(async move {
                let Some(last) = lock_clock(tx, account).await? else {
                    return Ok(CreateFaultOutcome::NotAnEmulator);
                };
                let number = last + 1;
                let count = "SELECT count(*) AS count FROM fault WHERE account_id = $1";
                let count =
                    tx.query_one(count, &values![account], |row| row.number("count")).await?;
                // Makes room for another fault, if one is spent.
                let delete = "DELETE FROM fault WHERE account_id = $1 AND number = \
                              (SELECT min(number) FROM fault WHERE account_id = $1 AND spent)";
                if count >= Some(MAX_FAULTS as u64)
                    && tx.execute(delete, &values![account]).await? == 0
                {
                    return Ok(CreateFaultOutcome::TooMany);
                }
                let update = "UPDATE emulator_clock SET last_fault = $2 WHERE account_id = $1";
                tx.defer(update, &values![account, number])?;
                let insert = "INSERT INTO fault (account_id, number, call, document, matched, \
                              spent, created_at) VALUES ($1, $2, $3, $4, 0, false, $5)";
                tx.defer(
                    insert,
                    &values![account, number, fault.call.as_str(), fault.as_json(), at],
                )?;
                let counted = CountedFault { fault: fault.clone(), matched: 0 };
                let created_at = Timestamp::from_millisecond(millis(at)).unwrap_or(at);
                Ok(CreateFaultOutcome::Created(Box::new(StoredFault {
                    number,
                    counted,
                    created_at,
                })))
            })
        })
    }

    /// The faults of an account, oldest first, also those that never strike again.
    pub fn faults(&self, account: AccountId) -> StoreFuture<'_, Vec<StoredFault>> {
        let select = "SELECT number, document, matched, created_at FROM fault \
                      WHERE account_id = $1 ORDER BY number";
        self.read("faults", ReadPath::Point, select, values![account], fault)
    }

    /// Deletes one fault, or all of an account; returns how many.
    pub fn delete_faults(&self, account: AccountId, number: Option<u64>) -> StoreFuture<'_, usize> {
        self.write("delete_faults", (account, number), |&(account, number), tx| {
            Box::pin(async move {
                lock_clock(tx, account).await?;
                let delete = "DELETE FROM fault WHERE account_id = $1 AND \
                              (CAST($2 AS bigint) IS NULL OR number = $2)";
                let deleted =
                    tx.execute(delete, &values![account, number.map(Value::bound)]).await?;
                Ok(usize::try_from(deleted).unwrap_or(usize::MAX))
            })
        })
    }

    /// Decides which fault strikes a call about a template of this name, and counts the call. Only
    /// reads if the account has no fault for this call that can still strike.
    pub fn decide_fault<'s>(
        &'s self,
        account: AccountId,
        call: Call,
        name: Option<&'s str>,
    ) -> StoreFuture<'s, Option<FaultEffect>> {
        Box::pin(async move {
            // Most calls of most accounts meet no fault, and need no write.
            let values = values![account, call.as_str()];
            if !self.exists("decide_fault", ReadPath::Point, CAN_STRIKE, values).await? {
                return Ok(None);
            }
            let input = (account, call, name.map(str::to_owned));
            self.write("count_struck_call", input, |&(account, call, ref name), tx| {
                Box::pin(async move {
                    lock_clock(tx, account).await?;
                    let stored =
                        tx.query(CAN_STRIKE, &values![account, call.as_str()], fault).await?;
                    let (effect, counted) = decide(stored, call, name.as_deref());
                    if counted.is_empty() {
                        // A commit would wait for the disk, although nothing has changed.
                        return Ok(tx.refuse(effect));
                    }
                    for fault in &counted {
                        let update = "UPDATE fault SET matched = $3, spent = $4 \
                                      WHERE account_id = $1 AND number = $2";
                        let matched = fault.counted.matched;
                        tx.defer(
                            update,
                            &values![account, fault.number, matched, fault.is_spent()],
                        )?;
                    }
                    Ok(effect)
                })
            })
            .await
        })
    }
}

/// Locks the clock of an account; returns the number of the last fault, or `None` if the account is
/// not an emulator.
async fn lock_clock(tx: &mut Tx<'_>, account: AccountId) -> Result<Option<u64>, StoreError> {
    let select = format!(
        "SELECT last_fault FROM emulator_clock WHERE account_id = $1{}",
        lock(tx.dialect())
    );
    tx.query_one(&select, &values![account], |row| row.number("last_fault")).await
}

/// Decides which of the faults, oldest first, strikes a call; returns what it does, and the faults that
/// have counted the call.
fn decide(
    stored: Vec<StoredFault>,
    call: Call,
    name: Option<&str>,
) -> (Option<FaultEffect>, Vec<StoredFault>) {
    let mut after: Vec<CountedFault> = stored.iter().map(|it| it.counted.clone()).collect();
    let struck = faults::decide(&mut after, call, name);
    let effect = struck.map(|index| after[index].fault.effect);
    let counted = stored.into_iter().zip(after).filter(|(before, after)| before.counted != *after);
    (effect, counted.map(|(before, counted)| StoredFault { counted, ..before }).collect())
}

impl StoredFault {
    /// Whether it never strikes again.
    fn is_spent(&self) -> bool {
        self.counted.fault.is_spent(self.counted.matched)
    }
}

/// The fault in a row.
fn fault(row: &Row<'_>) -> Result<StoredFault, StoreError> {
    let (fault, matched) = (row.parsed("document", Fault::restore)?, row.number("matched")?);
    Ok(StoredFault {
        number: row.number("number")?,
        counted: CountedFault { fault, matched },
        created_at: row.timestamp("created_at")?,
    })
}

#[cfg(test)]
mod tests {
    use galley_domain::document::Document;
    use jiff::Timestamp;

    use super::*;

    fn stored(number: u64, document: &str) -> StoredFault {
        let fault = Fault::read(&Document::parse(document.as_bytes()).unwrap()).unwrap();
        let counted = CountedFault { fault, matched: 0 };
        StoredFault { number, counted, created_at: Timestamp::UNIX_EPOCH }
    }

    #[test]
    fn only_the_faults_that_counted_the_call_are_written() {
        let faults = vec![
            stored(1, r#"{"call":"edit","kind":"truncate","times":1}"#),
            stored(2, r#"{"call":"create","kind":"truncate","share":0.5}"#),
            stored(3, r#"{"call":"create","kind":"close_before","times":1}"#),
            stored(4, r#"{"call":"create","kind":"truncate","times":1}"#),
        ];
        let (effect, counted) = decide(faults.clone(), Call::Create, Some("a"));
        assert_eq!(effect, Some(FaultEffect::CloseBefore));
        let counted: Vec<_> =
            counted.iter().map(|it| (it.number, it.counted.matched, it.is_spent())).collect();
        assert_eq!(counted, [(2, 1, false), (3, 1, true)]);
        assert_eq!(decide(faults, Call::Delete, None), (None, Vec::new()));
    }
}
