//! Accounts and their phone numbers, as SQL. A transaction that creates or changes an account locks
//! the single row of `credential_epoch` first, so that what it checked stays true until it commits.

use async_trait::async_trait;
use galley_domain::id::{self, AccountId};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::{
    PostgresStore,
    columns::{account_id, get, key, millis, number, optional, without_nul},
    credentials,
    pool::Values,
    templates::ids_exhausted,
    transaction::{Transaction, transact},
};
use crate::{
    Account, AccountLimits, AccountQuotas, AccountStore, AddPhoneOutcome, CreateAccountOutcome,
    NewAccount, StoreError,
    decisions::{
        self,
        accounts::{
            COLUMNS, ExistingAccounts, created, distinct_phones, owned_phone, refusal, stored_quota,
        },
    },
};

#[async_trait]
impl AccountStore for PostgresStore {
    async fn create_account(&self, new: NewAccount) -> Result<CreateAccountOutcome, StoreError> {
        transact!(self, tx => create(tx, &new))
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        let statement = format!("SELECT {COLUMNS} FROM account ORDER BY id");
        let rows = self.pools.acquire_slow().await?.query(&statement, &[]).await?;
        rows.iter().map(account).collect()
    }

    async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        let statement = format!("SELECT {COLUMNS} FROM account WHERE id = $1");
        let row = self.pools.read_one(&statement, &[&key(id.get())]).await?;
        row.as_ref().map(account).transpose()
    }

    async fn set_account_disabled(
        &self,
        id: AccountId,
        disabled_at: Option<Timestamp>,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => set_disabled(tx, id, disabled_at))
    }

    async fn set_account_limits(
        &self,
        id: AccountId,
        limits: Option<AccountLimits>,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => set_limits(tx, id, limits))
    }

    async fn set_account_quotas(
        &self,
        id: AccountId,
        quotas: AccountQuotas,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => set_quotas(tx, id, quotas))
    }

    async fn add_phone(
        &self,
        account: AccountId,
        phone: &str,
        at: Timestamp,
    ) -> Result<AddPhoneOutcome, StoreError> {
        transact!(self, tx => add_phone(tx, account, phone, at))
    }

    async fn claim_phone(
        &self,
        account: AccountId,
        phone: &str,
        max: Option<u64>,
        at: Timestamp,
    ) -> Result<AddPhoneOutcome, StoreError> {
        // Every request with an unknown number comes here: those of an account that has reached its
        // maximum open no transaction.
        if let Some(max) = max {
            let values: Values<'_> = &[&without_nul(phone), &key(account.get()), &key(max)];
            let row = self.pools.read_one(CLAIMS, values).await?;
            if let Some(refusal) = row.map_or(Ok(None), |row| refused_claim(&row, account, max))? {
                return Ok(refusal);
            }
        }
        transact!(self, tx => claim_phone(tx, account, phone, max, at))
    }

    async fn remove_phone(&self, account: AccountId, phone: &str) -> Result<bool, StoreError> {
        transact!(self, tx => remove_phone(tx, account, phone))
    }

    async fn phones(&self, account: AccountId) -> Result<Vec<String>, StoreError> {
        let statement = "SELECT id FROM phone WHERE account_id = $1 ORDER BY id";
        let rows = self.pools.read(statement, &[&key(account.get())]).await?;
        rows.iter().map(|row| get(row, 0)).collect()
    }

    async fn phone_owner(&self, phone: &str) -> Result<Option<AccountId>, StoreError> {
        let row = self.pools.read_one(OWNER, &[&without_nul(phone)]).await?;
        row.map(|row| account_id(&row, 0)).transpose()
    }
}

/// Creates an account with its phone numbers and credentials. All checks come before the first
/// write.
pub(super) async fn create(
    transaction: &mut Transaction,
    new: &NewAccount,
) -> Result<CreateAccountOutcome, StoreError> {
    credentials::lock_epoch(transaction).await?;
    if let Some(refusal) = refusal(new, &existing(transaction, new).await?) {
        return Ok(refusal);
    }
    let last = transaction.query_one("SELECT coalesce(max(id), 0) FROM account", &[]).await?;
    let last = last.map_or(Ok(0), |row| number(&row, 0))?;
    let id = AccountId::new(id::next(last, millis(new.at))).ok_or_else(ids_exhausted)?;
    let values: Values<'_> = &[
        &key(id.get()),
        &new.name,
        &new.rulebook,
        &new.review.as_str(),
        &new.phones.is_empty(),
        &millis(new.at),
    ];
    transaction
        .execute(
            "INSERT INTO account (id, name, rulebook, review, takes_any_phone, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6)",
            values,
        )
        .await?;
    for phone in distinct_phones(new) {
        insert_phone(transaction, id, phone, new.at).await?;
    }
    let mut added = Vec::with_capacity(new.credentials.len());
    for credential in &new.credentials {
        added.push(credentials::insert(transaction, id, credential, new.at).await?);
    }
    Ok(created(id, &added))
}

/// What the store already has of a new account.
async fn existing(
    transaction: &Transaction,
    new: &NewAccount,
) -> Result<ExistingAccounts, StoreError> {
    let statement = "SELECT EXISTS (SELECT 1 FROM account) AS has_accounts, \
                     EXISTS (SELECT 1 FROM account WHERE name = $1) AS has_name, \
                     ARRAY(SELECT id FROM phone WHERE id = ANY($2)) AS phones";
    let Some(row) = transaction.query_one(statement, &[&new.name, &new.phones]).await? else {
        return Ok(ExistingAccounts::default());
    };
    let mut secrets = Vec::with_capacity(new.credentials.len());
    for credential in &new.credentials {
        secrets.push(credentials::is_in_use(transaction, credential).await?);
    }
    Ok(ExistingAccounts {
        has_accounts: get(&row, "has_accounts")?,
        has_name: get(&row, "has_name")?,
        phones: get(&row, "phones")?,
        secrets,
    })
}

fn account(row: &Row) -> Result<Account, StoreError> {
    decisions::accounts::account(row, limits(row)?)
}

/// The limits of the account, if it has any.
pub(super) fn limits(row: &Row) -> Result<Option<AccountLimits>, StoreError> {
    optional(row, "template_limit", |max: i32| {
        Some(AccountLimits { templates: u32::try_from(max).ok()? })
    })
}

pub(super) async fn set_disabled(
    transaction: &mut Transaction,
    id: AccountId,
    disabled_at: Option<Timestamp>,
) -> Result<bool, StoreError> {
    credentials::lock_epoch(transaction).await?;
    let update = "UPDATE account SET disabled_at = $2 WHERE id = $1";
    let changed = transaction.execute(update, &[&key(id.get()), &disabled_at.map(millis)]).await?;
    credentials::increment_epoch(transaction).await?;
    Ok(changed > 0)
}

pub(super) async fn set_limits(
    transaction: &mut Transaction,
    id: AccountId,
    limits: Option<AccountLimits>,
) -> Result<bool, StoreError> {
    credentials::lock_epoch(transaction).await?;
    let max_templates = limits.map(|it| i32::try_from(it.templates).unwrap_or(i32::MAX));
    let update = "UPDATE account SET template_limit = $2 WHERE id = $1";
    let changed = transaction.execute(update, &[&key(id.get()), &max_templates]).await?;
    credentials::increment_epoch(transaction).await?;
    Ok(changed > 0)
}

async fn set_quotas(
    transaction: &mut Transaction,
    id: AccountId,
    quotas: AccountQuotas,
) -> Result<bool, StoreError> {
    credentials::lock_epoch(transaction).await?;
    let update = "UPDATE account SET requests_per_second = $2, stored_bytes_limit = $3, \
                  phone_limit = $4 WHERE id = $1";
    let values: Values<'_> = &[
        &key(id.get()),
        &quotas.requests_per_second.map(key),
        &stored_quota(quotas.stored_bytes),
        &stored_quota(quotas.phone_numbers),
    ];
    let changed = transaction.execute(update, values).await?;
    credentials::increment_epoch(transaction).await?;
    Ok(changed > 0)
}

/// Adds a phone number to an account. When several requests use a new number concurrently, the
/// first one adds it, and the others wait only for that insert.
pub(super) async fn add_phone(
    transaction: &mut Transaction,
    account: AccountId,
    phone: &str,
    at: Timestamp,
) -> Result<AddPhoneOutcome, StoreError> {
    let insert = "INSERT INTO phone (id, account_id, created_at) SELECT $1, id, $3 FROM account \
                  WHERE id = $2 ON CONFLICT (id) DO NOTHING";
    let values: Values<'_> = &[&phone, &key(account.get()), &millis(at)];
    if transaction.execute(insert, values).await? > 0 {
        return Ok(AddPhoneOutcome::Added);
    }
    let Some(row) = transaction.query_one(OWNER, &[&phone]).await? else {
        return Ok(AddPhoneOutcome::NoAccount);
    };
    Ok(owned_phone(account_id(&row, "account_id")?, account))
}

/// Adds a phone number to an account that has fewer than `max`. The lock keeps concurrent claims of
/// the account from exceeding it together.
async fn claim_phone(
    transaction: &mut Transaction,
    account: AccountId,
    phone: &str,
    max: Option<u64>,
    at: Timestamp,
) -> Result<AddPhoneOutcome, StoreError> {
    let Some(max) = max else { return add_phone(transaction, account, phone, at).await };
    if !transaction.lock(account).await? {
        return Ok(AddPhoneOutcome::NoAccount);
    }
    let row = transaction.query_one(CLAIMS, &[&phone, &key(account.get()), &key(max)]).await?;
    if let Some(refusal) = row.map_or(Ok(None), |row| refused_claim(&row, account, max))? {
        return Ok(refusal);
    }
    add_phone(transaction, account, phone, at).await
}

/// The owner of a phone number (`$1`), and how many numbers an account (`$2`) has, counted up to
/// `$3`.
const CLAIMS: &str = "SELECT (SELECT account_id FROM phone WHERE id = $1) AS owner, \
     (SELECT count(*) FROM (SELECT 1 FROM phone WHERE account_id = $2 LIMIT $3) AS few) AS claimed";

/// Why an account cannot claim a phone number, if it cannot, from a row of [`CLAIMS`].
fn refused_claim(
    row: &Row,
    account: AccountId,
    max: u64,
) -> Result<Option<AddPhoneOutcome>, StoreError> {
    if get::<Option<i64>>(row, "owner")?.is_some() {
        return Ok(Some(owned_phone(account_id(row, "owner")?, account)));
    }
    Ok((number(row, "claimed")? >= max).then_some(AddPhoneOutcome::TooMany))
}

async fn remove_phone(
    transaction: &mut Transaction,
    account: AccountId,
    phone: &str,
) -> Result<bool, StoreError> {
    credentials::lock_epoch(transaction).await?;
    let delete = "DELETE FROM phone WHERE id = $1 AND account_id = $2";
    let removed = transaction.execute(delete, &[&without_nul(phone), &key(account.get())]).await?;
    credentials::increment_epoch(transaction).await?;
    Ok(removed > 0)
}

const OWNER: &str = "SELECT account_id FROM phone WHERE id = $1";

async fn insert_phone(
    transaction: &Transaction,
    account: AccountId,
    phone: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    let insert = "INSERT INTO phone (id, account_id, created_at) VALUES ($1, $2, $3)";
    let values: Values<'_> = &[&phone, &key(account.get()), &millis(at)];
    transaction.execute(insert, values).await.map(drop)
}
