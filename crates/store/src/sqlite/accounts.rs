//! SQL for accounts and their phone numbers.

use async_trait::async_trait;
use galley_domain::{emulator::EmulatorKind, id::AccountId, template::Review};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::{
    SqliteStore, audit,
    columns::{key, millis, number},
    credentials, emulator, limits,
    statements::ready,
    writer::Batch,
};
use crate::{
    Account, AccountLimits, AccountQuotas, AccountStore, AddPhoneOutcome, Author,
    CreateAccountOutcome, DeleteAccountOutcome, NewAccount, RenameAccountOutcome, SetReviewOutcome,
    StoreError,
    decisions::audit::AuditedChange,
    decisions::{
        self,
        accounts::{
            COLUMNS, ExistingAccounts, created, deleted_name, deletion_refusal, disabling,
            distinct_phones, owned_phone, refusal, rename_outcome, set_review_outcome,
            stored_quota, stored_review,
        },
    },
    engine::Tx,
    upstream, webhooks,
};

#[async_trait]
impl AccountStore for SqliteStore {
    async fn create_account(&self, new: NewAccount) -> Result<CreateAccountOutcome, StoreError> {
        self.writer.write(move |batch| create(batch, &new)).await
    }

    async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        self.readers.read(all)
    }

    async fn has_had_accounts(&self) -> Result<bool, StoreError> {
        self.readers.read(has_had_any)
    }

    async fn account(&self, id: AccountId) -> Result<Option<Account>, StoreError> {
        self.point_readers.read(|connection| one(connection, id))
    }

    async fn rename_account(
        &self,
        id: AccountId,
        name: String,
        by: Author,
    ) -> Result<RenameAccountOutcome, StoreError> {
        self.writer.write_for_operator(move |batch| rename(batch, id, &name, by)).await
    }

    async fn set_account_review(
        &self,
        id: AccountId,
        review: Review,
        by: Author,
    ) -> Result<SetReviewOutcome, StoreError> {
        self.writer.write_for_operator(move |batch| set_review(batch, id, review, by)).await
    }

    async fn set_account_four_eyes(
        &self,
        id: AccountId,
        is_on: bool,
        by: Author,
    ) -> Result<bool, StoreError> {
        self.writer.write_for_operator(move |batch| set_four_eyes(batch, id, is_on, by)).await
    }

    async fn set_account_disabled(
        &self,
        id: AccountId,
        is_disabled: bool,
        by: Author,
    ) -> Result<bool, StoreError> {
        self.writer
            .write_for_operator(move |batch| {
                let Some(before) = one(batch.connection(), id)? else { return Ok(false) };
                if before.disabled_at.is_some() == is_disabled {
                    return Ok(true);
                }
                let disabled_at = is_disabled.then(|| millis(by.at));
                batch.connection().execute(
                    "UPDATE account SET disabled_at = ?2 WHERE id = ?1",
                    params![key(id.get()), disabled_at],
                )?;
                changed_account(batch, id, disabling(is_disabled), by)
            })
            .await
    }

    async fn delete_account(
        &self,
        id: AccountId,
        by: Author,
    ) -> Result<DeleteAccountOutcome, StoreError> {
        self.writer.write_for_operator(move |batch| delete(batch, id, by)).await
    }

    async fn set_account_limits(
        &self,
        id: AccountId,
        limits: Option<AccountLimits>,
        by: Author,
    ) -> Result<bool, StoreError> {
        self.writer
            .write_for_operator(move |batch| {
                let Some(before) = one(batch.connection(), id)? else { return Ok(false) };
                if before.limits == limits {
                    return Ok(true);
                }
                limits::set(batch, id, limits)?;
                let change = AuditedChange::LimitsChanged { from: before.limits, to: limits };
                changed_account(batch, id, change, by)
            })
            .await
    }

    async fn set_account_quotas(
        &self,
        id: AccountId,
        quotas: AccountQuotas,
        by: Author,
    ) -> Result<bool, StoreError> {
        self.writer.write_for_operator(move |batch| set_quotas(batch, id, quotas, by)).await
    }

    async fn add_phone(
        &self,
        account: AccountId,
        phone: &str,
        by: Author,
    ) -> Result<AddPhoneOutcome, StoreError> {
        let phone = phone.to_owned();
        self.writer.write(move |batch| add_phone(batch, account, &phone, None, by)).await
    }

    async fn claim_phone(
        &self,
        account: AccountId,
        phone: &str,
        max: Option<u64>,
        by: Author,
    ) -> Result<AddPhoneOutcome, StoreError> {
        // Every request with an unknown number comes here: those of an account that has reached its
        // maximum do not queue a write.
        let refusal = |connection: &Connection| refused_claim(connection, account, phone, max);
        if let Some(refusal) = self.point_readers.read(refusal)? {
            return Ok(refusal);
        }
        let phone = phone.to_owned();
        self.writer.write(move |batch| add_phone(batch, account, &phone, max, by)).await
    }

    async fn remove_phone(
        &self,
        account: AccountId,
        phone: &str,
        by: Author,
    ) -> Result<bool, StoreError> {
        let phone = phone.to_owned();
        self.writer.write_for_operator(move |batch| remove_phone(batch, account, &phone, by)).await
    }

    async fn phones(&self, account: AccountId) -> Result<Vec<String>, StoreError> {
        self.readers.read(|connection| phones(connection, account))
    }

    async fn phone_owner(&self, phone: &str) -> Result<Option<AccountId>, StoreError> {
        self.point_readers.read(|connection| phone_owner(connection, phone))
    }
}

/// Creates an account with its phones and credentials. Checks everything before the first write.
pub(super) fn create(
    batch: &mut Batch,
    new: &NewAccount,
) -> Result<CreateAccountOutcome, StoreError> {
    if let Some(refusal) = refusal(new, &existing(batch.connection(), new)?) {
        return Ok(refusal);
    }
    let id = new.id.map_or_else(|| batch.next_account(new.by.at), Ok)?;
    batch.connection().execute(
        "INSERT INTO account (id, name, rulebook, review, takes_any_phone, created_at, emulator, \
         template_limit) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            key(id.get()),
            new.name,
            new.rulebook,
            stored_review(new).as_str(),
            new.phones.is_empty(),
            millis(new.by.at),
            new.emulator.map(EmulatorKind::as_str),
            new.limits.map(|limits| limits.templates),
        ],
    )?;
    if new.emulator.is_some() {
        emulator::create_clock(batch.connection(), id, new.by.at)?;
    }
    audit::append(batch.connection(), id, AuditedChange::AccountCreated(new), new.by)?;
    for phone in distinct_phones(new) {
        add_phone(batch, id, phone, None, new.by)?;
    }
    let mut added = Vec::with_capacity(new.credentials.len());
    for credential in &new.credentials {
        added.push(credentials::add(batch, id, credential, new.by)?);
    }
    Ok(created(id, &added))
}

/// What the store already has of a new account.
fn existing(connection: &Connection, new: &NewAccount) -> Result<ExistingAccounts, StoreError> {
    let exists = |query: &str, value: &dyn rusqlite::ToSql| -> Result<bool, StoreError> {
        Ok(connection.prepare_cached(query)?.exists([value])?)
    };
    let mut existing = ExistingAccounts {
        has_accounts: has_had_any(connection)?,
        has_name: exists("SELECT 1 FROM account WHERE name = ?1", &new.name)?,
        ..ExistingAccounts::default()
    };
    for phone in &new.phones {
        if phone_owner(connection, phone)?.is_some() {
            existing.phones.push(phone.clone());
        }
    }
    for credential in &new.credentials {
        let found = credentials::by_hash(connection, credential.kind, credential.hash)?;
        existing.secrets.push(found.is_some());
    }
    Ok(existing)
}

fn has_had_any(connection: &Connection) -> Result<bool, StoreError> {
    Ok(connection.prepare_cached("SELECT 1 FROM account")?.exists([])?)
}

pub(super) fn all(connection: &Connection) -> Result<Vec<Account>, StoreError> {
    let mut query = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM account WHERE deleted_at IS NULL ORDER BY id"
    ))?;
    let mut rows = query.query([])?;
    let mut accounts = Vec::new();
    while let Some(row) = rows.next()? {
        accounts.push(account(row)?);
    }
    Ok(accounts)
}

pub(super) fn one(connection: &Connection, id: AccountId) -> Result<Option<Account>, StoreError> {
    let mut query = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM account WHERE id = ?1 AND deleted_at IS NULL"
    ))?;
    let mut rows = query.query([key(id.get())])?;
    rows.next()?.map(account).transpose()
}

fn account(row: &Row<'_>) -> Result<Account, StoreError> {
    decisions::accounts::account(row, limits::column(row, "template_limit")?)
}

fn rename(
    batch: &mut Batch,
    id: AccountId,
    name: &str,
    by: Author,
) -> Result<RenameAccountOutcome, StoreError> {
    let connection = batch.connection();
    let former = one(connection, id)?.map(|account| account.name);
    let is_taken = connection
        .prepare_cached("SELECT 1 FROM account WHERE name = ?1 AND id <> ?2")?
        .exists(params![name, key(id.get())])?;
    let outcome = rename_outcome(former.as_deref(), is_taken);
    let former = former.filter(|former| former != name);
    if let (RenameAccountOutcome::Renamed, Some(former)) = (outcome, former) {
        connection
            .execute("UPDATE account SET name = ?2 WHERE id = ?1", params![key(id.get()), name])?;
        let renamed = AuditedChange::AccountRenamed { from: &former, to: name };
        changed_account(batch, id, renamed, by)?;
    }
    Ok(outcome)
}

fn set_review(
    batch: &mut Batch,
    id: AccountId,
    review: Review,
    by: Author,
) -> Result<SetReviewOutcome, StoreError> {
    let before = one(batch.connection(), id)?;
    let outcome = set_review_outcome(before.as_ref(), review);
    let former = before.map(|it| it.review).filter(|former| *former != review);
    let (SetReviewOutcome::Set, Some(former)) = (outcome, former) else { return Ok(outcome) };
    batch.connection().execute(
        "UPDATE account SET review = ?2 WHERE id = ?1",
        params![key(id.get()), review.as_str()],
    )?;
    let audited = AuditedChange::ReviewChanged { from: former, to: review };
    changed_account(batch, id, audited, by)?;
    Ok(outcome)
}

fn set_four_eyes(
    batch: &mut Batch,
    id: AccountId,
    is_on: bool,
    by: Author,
) -> Result<bool, StoreError> {
    let Some(before) = one(batch.connection(), id)? else { return Ok(false) };
    if before.four_eyes == is_on {
        return Ok(true);
    }
    let update = "UPDATE account SET four_eyes = ?2 WHERE id = ?1";
    batch.connection().execute(update, params![key(id.get()), is_on])?;
    changed_account(batch, id, AuditedChange::FourEyesChanged { is_on }, by)
}

fn delete(
    batch: &mut Batch,
    id: AccountId,
    by: Author,
) -> Result<DeleteAccountOutcome, StoreError> {
    let connection = batch.connection();
    let account = one(connection, id)?;
    let has_templates = connection
        .prepare_cached("SELECT 1 FROM template WHERE account_id = ?1 AND unique_key IS NOT NULL")?
        .exists([key(id.get())])?;
    if let Some(refusal) = deletion_refusal(account.as_ref(), has_templates) {
        return Ok(refusal);
    }
    let credentials = credentials::of_account(connection, id)?;
    for revoked in credentials.iter().filter(|it| it.revoked_at.is_none()) {
        audit::append(connection, id, AuditedChange::CredentialRevoked(revoked), by)?;
    }
    ready(webhooks::delete_all(&mut Tx::new(batch), id, by))?;
    let connection = batch.connection();
    for phone in phones(connection, id)? {
        audit::append(connection, id, AuditedChange::PhoneRemoved(&phone), by)?;
    }
    for statement in [
        "DELETE FROM phone WHERE account_id = ?1",
        "UPDATE upload SET used_at = NULL WHERE account_id = ?1 AND used_at IS NOT NULL",
    ] {
        connection.execute(statement, [key(id.get())])?;
    }
    if account.as_ref().is_some_and(|account| account.emulator.is_some()) {
        emulator::delete_account(batch, id)?;
    }
    ready(upstream::delete_account(&mut Tx::new(batch), id))?;
    let connection = batch.connection();
    connection.execute(
        "UPDATE credential SET revoked_at = ?2 WHERE account_id = ?1 AND revoked_at IS NULL",
        [key(id.get()), millis(by.at)],
    )?;
    connection.execute(
        "UPDATE account SET deleted_at = ?2, name = ?3 WHERE id = ?1",
        params![key(id.get()), millis(by.at), deleted_name(id)],
    )?;
    let name = account.map(|account| account.name).unwrap_or_default();
    changed_account(batch, id, AuditedChange::AccountDeleted { name: &name }, by)?;
    batch.account_deleted(id);
    Ok(DeleteAccountOutcome::Deleted)
}

/// Records the change of an account and invalidates cached accounts.
fn changed_account(
    batch: &mut Batch,
    id: AccountId,
    change: AuditedChange<'_>,
    by: Author,
) -> Result<bool, StoreError> {
    audit::append(batch.connection(), id, change, by)?;
    batch.credentials_changed();
    Ok(true)
}

fn set_quotas(
    batch: &mut Batch,
    id: AccountId,
    quotas: AccountQuotas,
    by: Author,
) -> Result<bool, StoreError> {
    let Some(before) = one(batch.connection(), id)? else { return Ok(false) };
    if before.quotas == quotas {
        return Ok(true);
    }
    batch.connection().execute(
        "UPDATE account SET requests_per_second = ?2, stored_bytes_limit = ?3, phone_limit = ?4 \
         WHERE id = ?1",
        params![
            key(id.get()),
            quotas.requests_per_second.map(key),
            stored_quota(quotas.stored_bytes),
            stored_quota(quotas.phone_numbers),
        ],
    )?;
    let change = AuditedChange::QuotasChanged { from: before.quotas, to: quotas };
    changed_account(batch, id, change, by)
}

pub(super) fn add_phone(
    batch: &mut Batch,
    account: AccountId,
    phone: &str,
    max: Option<u64>,
    by: Author,
) -> Result<AddPhoneOutcome, StoreError> {
    if let Some(refusal) = refused_claim(batch.connection(), account, phone, max)? {
        return Ok(refusal);
    }
    if one(batch.connection(), account)?.is_none() {
        return Ok(AddPhoneOutcome::NoAccount);
    }
    batch.connection().execute(
        "INSERT INTO phone (id, account_id, created_at) VALUES (?1, ?2, ?3)",
        params![phone, key(account.get()), millis(by.at)],
    )?;
    audit::append(batch.connection(), account, AuditedChange::PhoneAdded(phone), by)?;
    Ok(AddPhoneOutcome::Added)
}

/// Why an account cannot claim a phone number, if it cannot.
fn refused_claim(
    connection: &Connection,
    account: AccountId,
    phone: &str,
    max: Option<u64>,
) -> Result<Option<AddPhoneOutcome>, StoreError> {
    if let Some(owner) = phone_owner(connection, phone)? {
        return Ok(Some(owned_phone(owner, account)));
    }
    let Some(max) = max else { return Ok(None) };
    let has_room = count_phones(connection, account, max)? < max;
    Ok((!has_room).then_some(AddPhoneOutcome::TooMany))
}

/// How many phone numbers the account has, counted up to `max`.
fn count_phones(connection: &Connection, account: AccountId, max: u64) -> Result<u64, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT count(*) FROM (SELECT 1 FROM phone WHERE account_id = ?1 LIMIT ?2)",
    )?;
    let mut rows = query.query([key(account.get()), key(max)])?;
    rows.next()?.map_or(Ok(0), |row| number(row, 0))
}

fn remove_phone(
    batch: &mut Batch,
    account: AccountId,
    phone: &str,
    by: Author,
) -> Result<bool, StoreError> {
    let removed = batch.connection().execute(
        "DELETE FROM phone WHERE id = ?1 AND account_id = ?2",
        params![phone, key(account.get())],
    )?;
    if removed == 0 {
        return Ok(false);
    }
    changed_account(batch, account, AuditedChange::PhoneRemoved(phone), by)
}

pub(super) fn phones(
    connection: &Connection,
    account: AccountId,
) -> Result<Vec<String>, StoreError> {
    let mut query =
        connection.prepare_cached("SELECT id FROM phone WHERE account_id = ?1 ORDER BY id")?;
    let phones = query.query_map([key(account.get())], |row| row.get(0))?;
    Ok(phones.collect::<Result<_, _>>()?)
}

pub(super) fn phone_owner(
    connection: &Connection,
    phone: &str,
) -> Result<Option<AccountId>, StoreError> {
    let mut query = connection.prepare_cached("SELECT account_id FROM phone WHERE id = ?1")?;
    let owner: Option<i64> = query.query_row([phone], |row| row.get(0)).optional()?;
    Ok(owner.and_then(|id| AccountId::new(u64::try_from(id).ok()?)))
}
