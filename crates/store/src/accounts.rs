//! Accounts with their phone numbers and credentials. A body that creates or changes one of them locks
//! the credentials first, so that what it has checked stays true until it is committed.

mod credentials;
mod phones;

use std::collections::BTreeSet;

use galley_domain::{
    emulator::EmulatorKind,
    id::{self, AccountId},
    template::Review,
};
use serde_json::json;

pub use self::credentials::MAX_ACTIVE_TOKENS;
pub(crate) use self::{
    credentials::{add as add_credential, unrevoked},
    phones::delete_all as delete_phones,
};
use crate::{
    Account, AccountLimits, AccountQuotas, AccountUsage, AddCredentialOutcome, AuditKind, Author,
    CreateAccountOutcome, NewAccount, RenameAccountOutcome, SetReviewOutcome, Store, StoreError,
    StoreFuture,
    decisions::audit::{AuditedChange, limits_shown, quotas_shown},
    emulator,
    encoding::{quota, stored_quota},
    engine::{ReadPath, Tx, values},
    error::failed,
    stored_row::{Row, StoredRow as _},
};

impl Store {
    /// Creates an account with its phone numbers and first credentials.
    pub fn create_account(&self, new: NewAccount) -> StoreFuture<'_, CreateAccountOutcome> {
        self.write("create_account", new, |new, tx| Box::pin(create(tx, new)))
    }

    /// All accounts, oldest first.
    pub fn accounts(&self) -> StoreFuture<'_, Vec<Account>> {
        let statement = select("deleted_at IS NULL ORDER BY id");
        self.read("accounts", ReadPath::Background, statement, [], account)
    }

    /// Whether the store has or had an account, even if all of them are deleted.
    pub fn has_had_accounts(&self) -> StoreFuture<'_, bool> {
        let statement = "SELECT 1 FROM account LIMIT 1";
        self.exists("has_had_accounts", ReadPath::Point, statement, [])
    }

    /// One account.
    pub fn account(&self, id: AccountId) -> StoreFuture<'_, Option<Account>> {
        self.read_one("account", ReadPath::Point, select(ONE), values![id], account)
    }

    /// Gives an account another name.
    pub fn rename_account(
        &self,
        id: AccountId,
        name: String,
        by: Author,
    ) -> StoreFuture<'_, RenameAccountOutcome> {
        self.write_for_operator("rename_account", (id, name, by), |(id, name, by), tx| {
            let (id, by) = (*id, *by);
            Box::pin(async move {
                tx.lock_credentials().await?;
                let statement = format!("SELECT id, name FROM account WHERE ({ONE}) OR name = $2");
                let found = tx
                    .query(&statement, &values![id, name], |row| {
                        Ok((row.account_id("id")?, row.value::<String>("name")?))
                    })
                    .await?;
                let Some((_, former)) = found.iter().find(|(found, _)| *found == id) else {
                    return Ok(RenameAccountOutcome::NotFound);
                };
                if found.iter().any(|(found, _)| *found != id) {
                    return Ok(RenameAccountOutcome::NameTaken);
                }
                if former != name {
                    tx.defer("UPDATE account SET name = $2 WHERE id = $1", &values![id, name])?;
                    let details = json!({"from": former, "to": name});
                    tx.audit(id, AuditedChange::new(AuditKind::AccountRenamed, id, details), by)?;
                    tx.credentials_changed().await?;
                }
                Ok(RenameAccountOutcome::Renamed)
            })
        })
    }

    /// Sets how new versions of an account's templates are approved. Pending versions stay pending.
    pub fn set_account_review(
        &self,
        id: AccountId,
        review: Review,
        by: Author,
    ) -> StoreFuture<'_, SetReviewOutcome> {
        self.write_for_operator("set_account_review", (id, review, by), |&(id, review, by), tx| {
            Box::pin(async move {
                tx.lock_credentials().await?;
                let Some(before) = one(tx, id).await? else {
                    return Ok(SetReviewOutcome::NotFound);
                };
                if before.emulator.is_some() {
                    return Ok(SetReviewOutcome::Emulator);
                }
                // A provider's review is never stored.
                if !Review::CHOICES.contains(&review.as_str()) {
                    return Ok(SetReviewOutcome::NotAnEmulator);
                }
                write(tx, &before, Setting::Review(review), by).await?;
                Ok(SetReviewOutcome::Set)
            })
        })
    }

    /// Sets whether another token than the one that created a version has to decide on it; `false`
    /// if the account does not exist. While it is set, tokens do not create tokens.
    pub fn set_account_four_eyes(
        &self,
        id: AccountId,
        is_on: bool,
        by: Author,
    ) -> StoreFuture<'_, bool> {
        self.set("set_account_four_eyes", id, Setting::FourEyes(is_on), by)
    }

    /// Disables or enables an account; `false` if it does not exist.
    pub fn set_account_disabled(
        &self,
        id: AccountId,
        is_disabled: bool,
        by: Author,
    ) -> StoreFuture<'_, bool> {
        self.set("set_account_disabled", id, Setting::Disabled(is_disabled), by)
    }

    /// Sets or removes the limits of an account; `false` if it does not exist. Rate limits count
    /// from this call on; the template limit counts all templates.
    pub fn set_account_limits(
        &self,
        id: AccountId,
        limits: Option<AccountLimits>,
        by: Author,
    ) -> StoreFuture<'_, bool> {
        self.set("set_account_limits", id, Setting::Limits(limits), by)
    }

    /// Sets the quotas of an account; `false` if it does not exist.
    pub fn set_account_quotas(
        &self,
        id: AccountId,
        quotas: AccountQuotas,
        by: Author,
    ) -> StoreFuture<'_, bool> {
        self.set("set_account_quotas", id, Setting::Quotas(quotas), by)
    }

    /// Sets one setting; `false` if the account does not exist.
    fn set(
        &self,
        method: &'static str,
        id: AccountId,
        setting: Setting,
        by: Author,
    ) -> StoreFuture<'_, bool> {
        self.write_for_operator(method, (id, setting, by), |&(id, setting, by), tx| {
            Box::pin(async move {
                tx.lock_credentials().await?;
                let Some(before) = one(tx, id).await? else { return Ok(false) };
                write(tx, &before, setting, by).await?;
                Ok(true)
            })
        })
    }
}

/// A new value of one setting of an account.
#[derive(Clone, Copy)]
enum Setting {
    Review(Review),
    FourEyes(bool),
    Disabled(bool),
    Limits(Option<AccountLimits>),
    Quotas(AccountQuotas),
}

/// The condition of one account (`$1`), unless it is deleted.
const ONE: &str = "id = $1 AND deleted_at IS NULL";

/// The columns that [`account`] reads.
pub(crate) const COLUMNS: &str = "id, name, rulebook, review, emulator, four_eyes, takes_any_phone, \
     created_at, disabled_at, CAST(template_limit AS BIGINT) AS template_limit, \
     requests_per_second, stored_bytes_limit, phone_limit, template_bytes, counting, media_bytes, \
     EXISTS (SELECT 1 FROM upstream u WHERE u.account_id = account.id) AS is_connected";

fn select(condition: &str) -> String {
    format!("SELECT {COLUMNS} FROM account WHERE {condition}")
}

/// An account, unless it is deleted.
pub(crate) async fn one(tx: &mut Tx<'_>, id: AccountId) -> Result<Option<Account>, StoreError> {
    tx.query_one(&select(ONE), &values![id], account).await
}

/// Creates an account with its phone numbers and credentials. All checks come before the first
/// write.
async fn create(tx: &mut Tx<'_>, new: &NewAccount) -> Result<CreateAccountOutcome, StoreError> {
    tx.lock_credentials().await?;
    // The highest id, even of a deleted account; 0 without accounts.
    let find = "SELECT (SELECT coalesce(max(id), 0) FROM account) AS last, \
                EXISTS (SELECT 1 FROM account WHERE name = $1) AS has_name";
    let found = tx
        .query_one(find, &values![&new.name], |row| {
            Ok((row.number("last")?, row.value("has_name")?))
        })
        .await?;
    let (last, has_name) = found.unwrap_or_default();
    // The id of a first account is free.
    if (new.only_if_first || new.id.is_some()) && last > 0 {
        return Ok(CreateAccountOutcome::NotFirst);
    }
    if has_name {
        return Ok(CreateAccountOutcome::NameTaken);
    }
    let owned = phones::owned(tx, &new.phones).await?;
    if let Some(taken) = new.phones.iter().find(|phone| owned.contains(phone)) {
        return Ok(CreateAccountOutcome::PhoneTaken(taken.clone()));
    }
    for (index, new_one) in new.credentials.iter().enumerate() {
        let mut earlier = new.credentials[..index].iter();
        if earlier.any(|it| (it.kind, it.hash) == (new_one.kind, new_one.hash))
            || credentials::is_in_use(tx, new_one).await?
        {
            return Ok(CreateAccountOutcome::SecretTaken(new_one.kind));
        }
    }
    let next = || AccountId::new(id::next(last, new.by.at.as_millisecond()));
    let id = new.id.or_else(next).ok_or_else(|| failed("no account ids are left"))?;
    let insert = "INSERT INTO account (id, name, rulebook, review, takes_any_phone, created_at, \
                  emulator, template_limit) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let values = values![
        id,
        &new.name,
        new.rulebook,
        new.first_review().as_str(),
        new.phones.is_empty(),
        new.by.at,
        new.emulator.map(EmulatorKind::as_str),
        storable(new.limits).map(|limits| limits.templates),
    ];
    tx.execute(insert, &values).await?;
    if new.emulator.is_some() {
        emulator::create_clock(tx, id, new.by.at)?;
    }
    tx.audit(id, AuditedChange::account_created(id, new), new.by)?;
    // In the order in which they are locked.
    for phone in new.phones.iter().collect::<BTreeSet<_>>() {
        phones::insert(tx, id, phone, new.by)?;
    }
    let mut added = Vec::with_capacity(new.credentials.len());
    for credential in &new.credentials {
        match add_credential(tx, id, credential, new.by).await? {
            AddCredentialOutcome::Added(credential) => added.push(credential),
            refused => unreachable!("checked before the first write: {refused:?}"),
        }
    }
    Ok(CreateAccountOutcome::Created(id, added))
}

/// Writes a setting and records it, unless the account has this value.
async fn write(
    tx: &mut Tx<'_>,
    before: &Account,
    setting: Setting,
    by: Author,
) -> Result<(), StoreError> {
    let id = before.id;
    let (is_set, update, values, kind, details) = match setting {
        Setting::Review(review) => (
            before.review == review,
            "UPDATE account SET review = $2 WHERE id = $1",
            Vec::from(values![id, review.as_str()]),
            AuditKind::AccountReviewChanged,
            json!({"from": before.review.as_str(), "to": review.as_str()}),
        ),
        Setting::FourEyes(is_on) => (
            before.four_eyes == is_on,
            "UPDATE account SET four_eyes = $2 WHERE id = $1",
            Vec::from(values![id, is_on]),
            AuditKind::AccountFourEyesChanged,
            json!({"four_eyes": is_on}),
        ),
        Setting::Disabled(true) => (
            before.disabled_at.is_some(),
            "UPDATE account SET disabled_at = $2 WHERE id = $1",
            Vec::from(values![id, by.at]),
            AuditKind::AccountDisabled,
            json!({}),
        ),
        Setting::Disabled(false) => (
            before.disabled_at.is_none(),
            "UPDATE account SET disabled_at = NULL WHERE id = $1",
            Vec::from(values![id]),
            AuditKind::AccountEnabled,
            json!({}),
        ),
        Setting::Limits(limits) => {
            let limits = storable(limits);
            (
                before.limits == limits,
                "UPDATE account SET template_limit = $2 WHERE id = $1",
                Vec::from(values![id, limits.map(|limits| limits.templates)]),
                AuditKind::AccountLimitsChanged,
                json!({"from": limits_shown(before.limits), "to": limits_shown(limits)}),
            )
        }
        Setting::Quotas(quotas) => (
            before.quotas == quotas,
            "UPDATE account SET requests_per_second = $2, stored_bytes_limit = $3, \
             phone_limit = $4 WHERE id = $1",
            Vec::from(values![
                id,
                quotas.requests_per_second,
                stored_quota(quotas.stored_bytes),
                stored_quota(quotas.phone_numbers),
            ]),
            AuditKind::AccountLimitsChanged,
            json!({"from": quotas_shown(before.quotas), "to": quotas_shown(quotas)}),
        ),
    };
    if is_set {
        return Ok(());
    }
    tx.defer(update, &values)?;
    tx.account_changed(id)?;
    tx.audit(id, AuditedChange::new(kind, id, details), by)?;
    tx.credentials_changed().await
}

/// The limits that are stored. The column of PostgreSQL takes no larger number.
pub(crate) fn storable(limits: Option<AccountLimits>) -> Option<AccountLimits> {
    let templates = |limits: AccountLimits| limits.templates.min(i32::MAX.unsigned_abs());
    limits.map(|limits| AccountLimits { templates: templates(limits) })
}

/// The account in a row.
pub(crate) fn account(row: &Row<'_>) -> Result<Account, StoreError> {
    let max = |column| row.optional(column, |max: i64| u64::try_from(max).ok());
    let is_counted = row.value::<Option<i64>>("counting")?.is_none();
    let template_bytes: i64 = row.value("template_bytes")?;
    Ok(Account {
        id: row.account_id("id")?,
        name: row.value("name")?,
        rulebook: row.value("rulebook")?,
        review: row.parsed("review", |word| {
            Review::parse(word).filter(|review| !review.is_by_provider())
        })?,
        emulator: row.optional("emulator", |kind: String| EmulatorKind::parse(&kind))?,
        four_eyes: row.value("four_eyes")?,
        is_connected: row.value("is_connected")?,
        takes_any_phone: row.value("takes_any_phone")?,
        created_at: row.timestamp("created_at")?,
        disabled_at: row.optional_timestamp("disabled_at")?,
        limits: row.account_limits()?,
        quotas: AccountQuotas {
            requests_per_second: max("requests_per_second")?,
            stored_bytes: quota(max("stored_bytes_limit")?),
            phone_numbers: quota(max("phone_limit")?),
        },
        usage: AccountUsage {
            template_bytes: is_counted.then(|| u64::try_from(template_bytes).unwrap_or(0)),
            media_bytes: row.number("media_bytes")?,
        },
    })
}
