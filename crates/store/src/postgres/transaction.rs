//! Transactions. Whoever changes something of an account locks its row first, and accounts in the
//! order of their ids: so events are numbered one after the other, and nobody waits in a circle.

use std::collections::HashMap;

use galley_domain::id::AccountId;
use tokio::time::Instant;
use tokio_postgres::Row;

use super::{
    accounts,
    columns::{key, number},
    errors,
    pool::{Link, Links, Values, is_worth_a_second_try},
};
use crate::{AccountLimits, StoreError};

/// How often a transaction is begun again that others stood in the way of.
pub(super) const MOST_TRIES: u32 = 5;

/// Runs work in a transaction, commits it, and tells of its events. The work may run more than
/// once, but only one run is ever committed.
macro_rules! transact {
    ($store:expr, $tx:ident => $work:expr) => {{
        let mut tries = 0;
        loop {
            tries += 1;
            let mut open = $crate::postgres::transaction::Transaction::begin(&$store.links).await?;
            let $tx = &mut open;
            match $work.await {
                Ok(done) => {
                    let newest = open.commit().await?;
                    $store.event_notifier.tell(&newest);
                    break Ok(done);
                }
                Err(error) => {
                    open.roll_back().await;
                    if !$crate::postgres::transaction::again(tries, &error) {
                        break Err(error);
                    }
                }
            }
        }
    }};
}
pub(super) use transact;

/// Whether to try once more.
pub(super) fn again(tries: u32, error: &StoreError) -> bool {
    let may_succeed = errors::is_worth_another_try(error) || errors::is_collision(error);
    tries < MOST_TRIES && may_succeed
}

/// A transaction that is open. Dropped before its end, it takes its connection with it
/// ([`Link`]), so that nothing of it is ever committed.
pub(super) struct Transaction {
    link: Link,
    accounts: HashMap<AccountId, Locked>,
    is_undone: bool,
}

/// What a transaction knows of an account whose row it has locked.
struct Locked {
    last_seq: u64,
    raised: bool,
    limits: Option<AccountLimits>,
}

impl Transaction {
    pub(super) async fn begin(links: &Links) -> Result<Self, StoreError> {
        let link = links.own().await?;
        let begun = Instant::now();
        let link = match link.begin().await {
            Ok(()) => link,
            Err(error) if !is_worth_a_second_try(begun) => return Err(error),
            Err(_) => {
                // It may have been lost while nobody used it: another one may be good.
                drop(link);
                let link = links.own().await?;
                link.begin().await?;
                link
            }
        };
        Ok(Self { link, accounts: HashMap::new(), is_undone: false })
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    pub(super) async fn query(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        self.link().query(statement, values).await
    }

    pub(super) async fn query_one(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.query(statement, values).await?.into_iter().next())
    }

    pub(super) async fn execute(
        &self,
        statement: &str,
        values: Values<'_>,
    ) -> Result<u64, StoreError> {
        self.link().execute(statement, values).await
    }

    /// Locks an account until the end. `false`: there is none. Every account of a transaction is
    /// locked before anything else, those with smaller ids first.
    pub(super) async fn lock(&mut self, account: AccountId) -> Result<bool, StoreError> {
        if self.accounts.contains_key(&account) {
            return Ok(true);
        }
        let statement =
            "SELECT last_seq, template_limit FROM account WHERE id = $1 FOR NO KEY UPDATE";
        let Some(row) = self.query_one(statement, &[&key(account.get())]).await? else {
            return Ok(false);
        };
        let (last_seq, limits) = (number(&row, "last_seq")?, accounts::limits(&row)?);
        let locked = Locked { last_seq, raised: false, limits };
        self.accounts.insert(account, locked);
        Ok(true)
    }

    /// The number of the next event of an account that is locked.
    pub(super) fn next_seq(&mut self, account: AccountId) -> u64 {
        let locked = self.accounts.get_mut(&account).expect("locked before it is changed");
        locked.last_seq += 1;
        locked.raised = true;
        locked.last_seq
    }

    /// The number of the newest event of an account that is locked.
    pub(super) fn newest_seq(&self, account: AccountId) -> u64 {
        self.accounts.get(&account).expect("locked before it is looked at").last_seq
    }

    /// The limits of an account that is locked.
    pub(super) fn limits(&self, account: AccountId) -> Option<AccountLimits> {
        self.accounts.get(&account).expect("locked before it is looked at").limits
    }

    /// Lets nothing of it count, though the work ends well: with a refusal that came after changes.
    pub(super) fn undo(&mut self) {
        self.is_undone = true;
    }

    /// Makes it durable, unless it is undone; answers the newest events of the accounts that have new
    /// ones. An error is known to have undone everything, or else the outcome is unknown.
    pub(super) async fn commit(self) -> Result<Vec<(AccountId, u64)>, StoreError> {
        if self.is_undone {
            self.roll_back().await;
            return Ok(Vec::new());
        }
        let raised = self.accounts.iter().filter(|(_, locked)| locked.raised);
        let newest: Vec<(AccountId, u64)> =
            raised.map(|(account, locked)| (*account, locked.last_seq)).collect();
        for (account, seq) in &newest {
            let statement = "UPDATE account SET last_seq = $2 WHERE id = $1";
            self.execute(statement, &[&key(account.get()), &key(*seq)]).await?;
        }
        self.link.commit().await?;
        Ok(newest)
    }

    /// Undoes everything.
    pub(super) async fn roll_back(self) {
        self.link.roll_back().await;
    }
}
