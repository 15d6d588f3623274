//! What a batch reads before it writes: its accounts, which it locks, and conflicting rows.

use std::{collections::HashMap, sync::Arc};

use galley_domain::{id::AccountId, rulebook::Category};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::statements::{GROUP_CATEGORIES, KEY_OWNERS, LOCK, QUOTAS, RECORDS, TEMPLATES};
use crate::{
    IdempotencyRecord, StoreError,
    creates::KeyOwner,
    encoding::{idempotency_cutoff, key},
    engine::AccountState,
    limits::{RemainingQuota, TemplateCounts, last_hour},
    postgres::{
        create_queue::PendingCreate,
        errors,
        pool::{CopySink, PgConnection, Values},
    },
    stored_row::StoredRow as _,
    templates,
};

/// How much a batch checks before it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::postgres) enum Precheck {
    /// Only what no constraint would catch. A name that is in use violates the unique key when it
    /// is written, which rolls back the whole batch.
    Optimistic,
    /// Everything.
    Full,
    /// Everything, in retry mode: the batch is a part of one that failed. It waits less for locks,
    /// since all its requests have waited before, and no further request joins it.
    Retry,
}

/// Why a batch is repeated with full prechecks: one of its accounts has limits, or has reached its
/// quota. A name in use is reported first.
#[derive(Debug, thiserror::Error)]
#[error("an account of the batch has limits")]
struct LimitedAccount;

pub(super) fn limited_account() -> StoreError {
    StoreError::Failed(Arc::new(LimitedAccount))
}

/// Whether the batch can succeed with full prechecks.
pub(in crate::postgres) fn needs_full_precheck(error: &StoreError) -> bool {
    let is_limited = matches!(error, StoreError::Failed(cause) if cause.downcast_ref::<LimitedAccount>().is_some());
    is_limited || errors::is_name_in_use(error)
}

pub(super) type BatchAccounts = HashMap<AccountId, BatchAccount>;

/// A locked account.
pub(super) struct BatchAccount {
    pub(super) state: AccountState,
    /// `None` if the account has no limits.
    pub(super) quota: Option<RemainingQuota>,
}

/// Stored rows that can conflict with a create. Each create of the batch adds its own for the
/// creates after it.
#[derive(Default)]
pub(super) struct ExistingState {
    pub(super) records: HashMap<[u8; 16], IdempotencyRecord>,
    pub(super) group_categories: HashMap<[u8; 16], Category>,
    pub(super) key_owners: HashMap<[u8; 16], KeyOwner>,
}

/// Locks the accounts and reads the existing state. Each statement sees what was committed before
/// it began, and therefore everything of the locked accounts.
pub(super) async fn begin(
    connection: &PgConnection,
    pending: &[PendingCreate],
    precheck: Precheck,
) -> Result<(BatchAccounts, ExistingState, CopySink), StoreError> {
    let mut accounts: Vec<i64> = pending.iter().map(|it| key(it.input.new.account.get())).collect();
    accounts.sort_unstable();
    accounts.dedup();
    let unique_keys: Vec<&[u8]> = pending.iter().map(|it| &it.input.keys.unique_key[..]).collect();
    let record_keys: Vec<&[u8]> = pending
        .iter()
        .filter_map(|it| it.input.keys.idempotency.as_ref())
        .map(|key| &key[..])
        .collect();
    let groups: Vec<&[u8]> = pending
        .iter()
        .filter_map(|it| it.input.new.translation_group.as_ref())
        .map(|it| &it.0[..])
        .collect();
    let first = pending.first().map_or(Timestamp::MIN, |it| it.input.new.at);
    let (hour, max_creates) = last_hour(first);
    let (account_values, quota_values): (Values<'_>, Values<'_>) =
        (&[&accounts], &[&accounts, &max_creates, &hour]);
    let (record_values, group_values): (Values<'_>, Values<'_>) = (&[&record_keys], &[&groups]);
    let unique_keys: Values<'_> = &[&unique_keys];
    let is_full = precheck != Precheck::Optimistic;
    let (started, locked, owners, quotas, records, groups, copy) = tokio::join!(
        biased;
        connection.begin_creates(precheck == Precheck::Retry),
        connection.query(LOCK, account_values),
        rows_if(is_full, connection, KEY_OWNERS, unique_keys),
        rows_if(is_full, connection, QUOTAS, quota_values),
        rows_if(!record_keys.is_empty(), connection, RECORDS, record_values),
        rows_if(!groups.is_empty(), connection, GROUP_CATEGORIES, group_values),
        connection.copy(TEMPLATES),
    );
    started?;
    let mut accounts = BatchAccounts::new();
    for row in &locked.map_err(account_locked)? {
        let state = AccountState::read(row)?;
        if precheck == Precheck::Optimistic && state.limits.is_some() {
            return Err(limited_account());
        }
        accounts.insert(row.account_id("id")?, BatchAccount { state, quota: None });
    }
    // Check in the order of sending: the first error is the cause of all later ones.
    let (owners, quotas) = (owners?, quotas?);
    let existing = ExistingState::decode(&owners, &records?, &groups?, first)?;
    for row in &quotas {
        if let Some(account) = accounts.get_mut(&row.account_id("id")?)
            && let Some(limits) = row.account_limits()?
        {
            account.quota = Some(RemainingQuota::new(limits, TemplateCounts::read(row)?));
        }
    }
    Ok((accounts, existing, copy?))
}

/// Another transaction kept one of the accounts locked for too long.
#[derive(Debug, thiserror::Error)]
#[error("the account is locked by another transaction")]
struct AccountLocked;

fn account_locked(error: StoreError) -> StoreError {
    if errors::is_lock_timeout(&error) {
        StoreError::Unavailable(Arc::new(AccountLocked))
    } else {
        error
    }
}

/// Whether a batch failed because one of its accounts is locked.
pub(in crate::postgres) fn is_account_locked(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(cause) if cause.downcast_ref::<AccountLocked>().is_some())
}

async fn rows_if(
    is_wanted: bool,
    connection: &PgConnection,
    statement: &str,
    values: Values<'_>,
) -> Result<Vec<Row>, StoreError> {
    if is_wanted { connection.query(statement, values).await } else { Ok(Vec::new()) }
}

impl ExistingState {
    fn decode(
        owners: &[Row],
        records: &[Row],
        groups: &[Row],
        at: Timestamp,
    ) -> Result<Self, StoreError> {
        // One expiry time for all: the requests of a batch arrive within moments.
        let oldest = idempotency_cutoff(at);
        let mut existing = Self::default();
        for row in owners {
            existing.key_owners.insert(row.hash("unique_key")?, KeyOwner::read(row)?);
        }
        for row in records {
            let created_at: i64 = row.value("created_at")?;
            if created_at > oldest {
                existing.records.insert(row.hash("key")?, templates::record(row)?);
            }
        }
        for row in groups {
            existing
                .group_categories
                .insert(row.hash("translation_group")?, row.category("category")?);
        }
        Ok(existing)
    }
}
