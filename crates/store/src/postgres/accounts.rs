//! Accounts and their phone numbers, as SQL. A transaction that creates or changes an account locks
//! the single row of `credential_epoch` first, so that what it checked stays true until it commits.

mod deletion;

use async_trait::async_trait;
use galley_domain::{
    emulator::EmulatorKind,
    id::{self, AccountId},
    template::Review,
};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::{
    PostgresStore,
    columns::{account_id, get, key, millis, number, optional, without_nul},
    credentials, emulator,
    pool::Values,
    templates::ids_exhausted,
    transaction::{Transaction, transact},
};
use crate::{
    Account, AccountLimits, AccountQuotas, AccountStore, AddPhoneOutcome, Author,
    CreateAccountOutcome, DeleteAccountOutcome, NewAccount, RenameAccountOutcome, SetReviewOutcome,
    StoreError,
    decisions::audit::AuditedChange,
    decisions::{
        self,
        accounts::{
            COLUMNS, ExistingAccounts, created, disabling, distinct_phones, owned_phone, refusal,
            rename_outcome, set_review_outcome, stored_quota, stored_review,
        },
    },
};

#[async_trait]
impl AccountStore for PostgresStore {
    async fn create_account(&self, new: NewAccount) -> Result<CreateAccountOutcome, StoreError> {
        transact!(self, tx => create(tx, &new))
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        let statement =
            format!("SELECT {COLUMNS} FROM account WHERE deleted_at IS NULL ORDER BY id");
        let rows = self.pools.acquire_slow().await?.query(&statement, &[]).await?;
        rows.iter().map(account).collect()
    }

    async fn has_had_accounts(&self) -> Result<bool, StoreError> {
        let row = self.pools.read_one("SELECT 1 FROM account LIMIT 1", &[]).await?;
        Ok(row.is_some())
    }

    async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        let statement = one_statement();
        let row = self.pools.read_one(&statement, &[&key(id.get())]).await?;
        row.as_ref().map(account).transpose()
    }

    async fn rename_account(
        &self,
        id: AccountId,
        name: String,
        by: Author,
    ) -> Result<RenameAccountOutcome, StoreError> {
        transact!(self, tx => rename(tx, id, &name, by))
    }

    async fn set_account_review(
        &self,
        id: AccountId,
        review: Review,
        by: Author,
    ) -> Result<SetReviewOutcome, StoreError> {
        transact!(self, tx => set_review(tx, id, review, by))
    }

    async fn set_account_four_eyes(
        &self,
        id: AccountId,
        is_on: bool,
        by: Author,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => set_four_eyes(tx, id, is_on, by))
    }

    async fn set_account_disabled(
        &self,
        id: AccountId,
        is_disabled: bool,
        by: Author,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => set_disabled(tx, id, is_disabled, by))
    }

    async fn delete_account(
        &self,
        id: AccountId,
        by: Author,
    ) -> Result<DeleteAccountOutcome, StoreError> {
        transact!(self, tx => deletion::delete(tx, id, by))
    }

    async fn set_account_limits(
        &self,
        id: AccountId,
        limits: Option<AccountLimits>,
        by: Author,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => set_limits(tx, id, limits, by))
    }

    async fn set_account_quotas(
        &self,
        id: AccountId,
        quotas: AccountQuotas,
        by: Author,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => set_quotas(tx, id, quotas, by))
    }

    async fn add_phone(
        &self,
        account: AccountId,
        phone: &str,
        by: Author,
    ) -> Result<AddPhoneOutcome, StoreError> {
        transact!(self, tx => add_phone(tx, account, phone, by))
    }

    async fn claim_phone(
        &self,
        account: AccountId,
        phone: &str,
        max: Option<u64>,
        by: Author,
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
        transact!(self, tx => claim_phone(tx, account, phone, max, by))
    }

    async fn remove_phone(
        &self,
        account: AccountId,
        phone: &str,
        by: Author,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => remove_phone(tx, account, phone, by))
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
    let next = || AccountId::new(id::next(last, millis(new.by.at)));
    let id = new.id.or_else(next).ok_or_else(ids_exhausted)?;
    let values: Values<'_> = &[
        &key(id.get()),
        &new.name,
        &new.rulebook,
        &stored_review(new).as_str(),
        &new.phones.is_empty(),
        &millis(new.by.at),
        &new.emulator.map(EmulatorKind::as_str),
        &stored_limits(new.limits),
    ];
    transaction
        .execute(
            "INSERT INTO account (id, name, rulebook, review, takes_any_phone, created_at, \
             emulator, template_limit) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            values,
        )
        .await?;
    if new.emulator.is_some() {
        emulator::create_clock(transaction, id, new.by.at).await?;
    }
    transaction.audit(id, AuditedChange::AccountCreated(new), new.by);
    for phone in distinct_phones(new) {
        insert_phone(transaction, id, phone, new.by.at).await?;
        transaction.audit(id, AuditedChange::PhoneAdded(phone), new.by);
    }
    let mut added = Vec::with_capacity(new.credentials.len());
    for credential in &new.credentials {
        added.push(credentials::add(transaction, id, credential, new.by).await?);
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

/// Reads one account (`$1`).
fn one_statement() -> String {
    format!("SELECT {COLUMNS} FROM account WHERE id = $1 AND deleted_at IS NULL")
}

/// Reads one account in a transaction.
pub(super) async fn one(
    transaction: &Transaction,
    id: AccountId,
) -> Result<Option<Account>, StoreError> {
    let row = transaction.query_one(&one_statement(), &[&key(id.get())]).await?;
    row.as_ref().map(account).transpose()
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

async fn rename(
    transaction: &mut Transaction,
    id: AccountId,
    name: &str,
    by: Author,
) -> Result<RenameAccountOutcome, StoreError> {
    credentials::lock_epoch(transaction).await?;
    let statement = "SELECT id, name FROM account WHERE (id = $1 AND deleted_at IS NULL) \
                     OR name = $2";
    let rows = transaction.query(statement, &[&key(id.get()), &name]).await?;
    let mut former = None;
    let mut is_taken = false;
    for row in &rows {
        if account_id(row, "id")? == id {
            former = Some(get::<String>(row, "name")?);
        } else {
            is_taken = true;
        }
    }
    let outcome = rename_outcome(former.as_deref(), is_taken);
    let former = former.filter(|former| former != name);
    if let (RenameAccountOutcome::Renamed, Some(former)) = (outcome, former) {
        let update = "UPDATE account SET name = $2 WHERE id = $1";
        transaction.execute(update, &[&key(id.get()), &name]).await?;
        transaction.audit(id, AuditedChange::AccountRenamed { from: &former, to: name }, by);
        credentials::increment_epoch(transaction).await?;
    }
    Ok(outcome)
}

async fn set_review(
    transaction: &mut Transaction,
    id: AccountId,
    review: Review,
    by: Author,
) -> Result<SetReviewOutcome, StoreError> {
    credentials::lock_epoch(transaction).await?;
    let before = one(transaction, id).await?;
    let outcome = set_review_outcome(before.as_ref(), review);
    let former = before.map(|it| it.review).filter(|former| *former != review);
    let (SetReviewOutcome::Set, Some(former)) = (outcome, former) else { return Ok(outcome) };
    let update = "UPDATE account SET review = $2 WHERE id = $1";
    let change = AuditedChange::ReviewChanged { from: former, to: review };
    write(transaction, id, update, &[&key(id.get()), &review.as_str()], change, by).await?;
    Ok(outcome)
}

async fn set_four_eyes(
    transaction: &mut Transaction,
    id: AccountId,
    is_on: bool,
    by: Author,
) -> Result<bool, StoreError> {
    credentials::lock_epoch(transaction).await?;
    let Some(before) = one(transaction, id).await? else { return Ok(false) };
    if before.four_eyes == is_on {
        return Ok(true);
    }
    let update = "UPDATE account SET four_eyes = $2 WHERE id = $1";
    let change = AuditedChange::FourEyesChanged { is_on };
    write(transaction, id, update, &[&key(id.get()), &is_on], change, by).await
}

async fn set_disabled(
    transaction: &mut Transaction,
    id: AccountId,
    is_disabled: bool,
    by: Author,
) -> Result<bool, StoreError> {
    credentials::lock_epoch(transaction).await?;
    let Some(before) = one(transaction, id).await? else { return Ok(false) };
    if before.disabled_at.is_some() == is_disabled {
        return Ok(true);
    }
    let update = "UPDATE account SET disabled_at = $2 WHERE id = $1";
    let disabled_at = is_disabled.then(|| millis(by.at));
    write(transaction, id, update, &[&key(id.get()), &disabled_at], disabling(is_disabled), by)
        .await
}

/// The limits as they are stored.
fn stored_limits(limits: Option<AccountLimits>) -> Option<i32> {
    limits.map(|it| i32::try_from(it.templates).unwrap_or(i32::MAX))
}

async fn set_limits(
    transaction: &mut Transaction,
    id: AccountId,
    limits: Option<AccountLimits>,
    by: Author,
) -> Result<bool, StoreError> {
    credentials::lock_epoch(transaction).await?;
    let Some(before) = one(transaction, id).await? else { return Ok(false) };
    if before.limits == limits {
        return Ok(true);
    }
    let update = "UPDATE account SET template_limit = $2 WHERE id = $1";
    let values: Values<'_> = &[&key(id.get()), &stored_limits(limits)];
    let change = AuditedChange::LimitsChanged { from: before.limits, to: limits };
    write(transaction, id, update, values, change, by).await
}

async fn set_quotas(
    transaction: &mut Transaction,
    id: AccountId,
    quotas: AccountQuotas,
    by: Author,
) -> Result<bool, StoreError> {
    credentials::lock_epoch(transaction).await?;
    let Some(before) = one(transaction, id).await? else { return Ok(false) };
    if before.quotas == quotas {
        return Ok(true);
    }
    let update = "UPDATE account SET requests_per_second = $2, stored_bytes_limit = $3, \
                  phone_limit = $4 WHERE id = $1";
    let values: Values<'_> = &[
        &key(id.get()),
        &quotas.requests_per_second.map(key),
        &stored_quota(quotas.stored_bytes),
        &stored_quota(quotas.phone_numbers),
    ];
    let change = AuditedChange::QuotasChanged { from: before.quotas, to: quotas };
    write(transaction, id, update, values, change, by).await
}

/// Changes the row of an account and records it. The caller has locked the epoch row.
async fn write(
    transaction: &mut Transaction,
    id: AccountId,
    update: &str,
    values: Values<'_>,
    audited: AuditedChange<'_>,
    by: Author,
) -> Result<bool, StoreError> {
    transaction.execute(update, values).await?;
    transaction.audit(id, audited, by);
    credentials::increment_epoch(transaction).await?;
    Ok(true)
}

/// Adds a phone number to an account. When several requests use a new number concurrently, the
/// first one adds it, and the others wait only for that insert.
pub(super) async fn add_phone(
    transaction: &mut Transaction,
    account: AccountId,
    phone: &str,
    by: Author,
) -> Result<AddPhoneOutcome, StoreError> {
    let insert = "INSERT INTO phone (id, account_id, created_at) SELECT $1, id, $3 FROM account \
                  WHERE id = $2 AND deleted_at IS NULL ON CONFLICT (id) DO NOTHING";
    let values: Values<'_> = &[&phone, &key(account.get()), &millis(by.at)];
    if transaction.execute(insert, values).await? > 0 {
        transaction.audit(account, AuditedChange::PhoneAdded(phone), by);
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
    by: Author,
) -> Result<AddPhoneOutcome, StoreError> {
    let Some(max) = max else { return add_phone(transaction, account, phone, by).await };
    if !transaction.lock(account).await? {
        return Ok(AddPhoneOutcome::NoAccount);
    }
    let row = transaction.query_one(CLAIMS, &[&phone, &key(account.get()), &key(max)]).await?;
    if let Some(refusal) = row.map_or(Ok(None), |row| refused_claim(&row, account, max))? {
        return Ok(refusal);
    }
    add_phone(transaction, account, phone, by).await
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
    by: Author,
) -> Result<bool, StoreError> {
    credentials::lock_epoch(transaction).await?;
    let delete = "DELETE FROM phone WHERE id = $1 AND account_id = $2";
    let values: Values<'_> = &[&without_nul(phone), &key(account.get())];
    let is_removed = transaction.execute(delete, values).await? > 0;
    if is_removed {
        transaction.audit(account, AuditedChange::PhoneRemoved(phone), by);
    }
    credentials::increment_epoch(transaction).await?;
    Ok(is_removed)
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
