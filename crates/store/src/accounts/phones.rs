//! Phone numbers, each of which one account owns.

use galley_domain::id::AccountId;
use serde_json::json;

use crate::{
    AddPhoneOutcome, AuditKind, Author, Store, StoreError, StoreFuture,
    decisions::audit::AuditedChange,
    encoding::without_nul,
    engine::{Dialect, ReadPath, Tx, Value, values},
    stored_row::{Row, StoredRow as _},
};

/// The owner of a phone number (`$1`), and how many numbers an account (`$2`) has, counted up to
/// `$3`.
const CLAIMS: &str = "SELECT (SELECT account_id FROM phone WHERE id = $1) AS owner, \
     (SELECT count(*) FROM (SELECT 1 FROM phone WHERE account_id = $2 LIMIT $3) AS few) AS claimed";

const OWNER: &str = "SELECT account_id FROM phone WHERE id = $1";

/// A phone number that an account is to own.
struct NewPhone {
    account: AccountId,
    phone: String,
    /// How many numbers the account may have; `None` without a maximum.
    max: Option<u64>,
    by: Author,
}

impl Store {
    /// Adds a phone number to an account.
    pub fn add_phone(
        &self,
        account: AccountId,
        phone: &str,
        by: Author,
    ) -> StoreFuture<'_, AddPhoneOutcome> {
        let new = NewPhone { account, phone: phone.to_owned(), max: None, by };
        self.write("add_phone", new, |new, tx| Box::pin(add(tx, new)))
    }

    /// Adds a phone number to an account that has fewer than `max`; without a maximum, like
    /// [`Store::add_phone`].
    pub fn claim_phone<'s>(
        &'s self,
        account: AccountId,
        phone: &'s str,
        max: Option<u64>,
        by: Author,
    ) -> StoreFuture<'s, AddPhoneOutcome> {
        Box::pin(async move {
            // Every request with an unknown number comes here: those of an account that has reached its
            // maximum queue no write and take no lock. Without a maximum, PostgreSQL takes no lock.
            if max.is_some() || self.dialect() == Dialect::Sqlite {
                let values = [text(phone), account.into(), max.unwrap_or(0).into()];
                let found =
                    self.read_one("find_claims", ReadPath::Point, CLAIMS, values, claims).await?;
                if let Some(refusal) = found.and_then(|found| found.refusal(account, max)) {
                    return Ok(refusal);
                }
            }
            let new = NewPhone { account, phone: phone.to_owned(), max, by };
            self.write("claim_phone", new, |new, tx| Box::pin(add(tx, new))).await
        })
    }

    /// Takes a phone number from an account, so that another one can claim it; `false` if the
    /// account does not own it. Templates that were created for it stay.
    pub fn remove_phone(
        &self,
        account: AccountId,
        phone: &str,
        by: Author,
    ) -> StoreFuture<'_, bool> {
        let input = (account, phone.to_owned(), by);
        self.write_for_operator("remove_phone", input, |(account, phone, by), tx| {
            Box::pin(async move {
                tx.lock_credentials().await?;
                let delete = "DELETE FROM phone WHERE id = $1 AND account_id = $2";
                if tx.execute(delete, &[text(phone), (*account).into()]).await? == 0 {
                    return Ok(false);
                }
                let removed = AuditedChange::new(AuditKind::PhoneRemoved, &**phone, json!({}));
                tx.audit(*account, removed, *by)?;
                tx.credentials_changed().await?;
                Ok(true)
            })
        })
    }

    /// The phone numbers of an account.
    pub fn phones(&self, account: AccountId) -> StoreFuture<'_, Vec<String>> {
        let statement = "SELECT id FROM phone WHERE account_id = $1 ORDER BY id";
        self.read("phones", ReadPath::Point, statement, values![account], phone)
    }

    /// The account that owns a phone number.
    pub fn phone_owner(&self, phone: &str) -> StoreFuture<'_, Option<AccountId>> {
        self.read_one("phone_owner", ReadPath::Point, OWNER, [text(phone)], owner)
    }
}

/// A phone number to look for.
fn text(phone: &str) -> Value<'_> {
    Value::Text(without_nul(phone))
}

fn phone(row: &Row<'_>) -> Result<String, StoreError> {
    row.value("id")
}

fn owner(row: &Row<'_>) -> Result<AccountId, StoreError> {
    row.account_id("account_id")
}

/// Frees the phone numbers of an account that is being deleted; returns them.
pub(crate) async fn delete_all(
    tx: &mut Tx<'_>,
    account: AccountId,
) -> Result<Vec<String>, StoreError> {
    let delete = "DELETE FROM phone WHERE account_id = $1 RETURNING id";
    let mut deleted = tx.query(delete, &values![account], phone).await?;
    deleted.sort_unstable();
    Ok(deleted)
}

/// Those of these phone numbers that an account owns.
pub(super) async fn owned(tx: &mut Tx<'_>, phones: &[String]) -> Result<Vec<String>, StoreError> {
    if phones.is_empty() {
        return Ok(Vec::new());
    }
    let statement = format!("SELECT id FROM phone WHERE {}", tx.dialect().is_any("id", "$1"));
    let phones: Vec<&str> = phones.iter().map(String::as_str).collect();
    tx.query(&statement, &values![phones], phone).await
}

/// Adds a phone number that no account owns. On PostgreSQL, a concurrent claim of the number fails the
/// transaction, which then runs again and sees the owner.
pub(super) fn insert(
    tx: &mut Tx<'_>,
    account: AccountId,
    phone: &str,
    by: Author,
) -> Result<(), StoreError> {
    let insert = "INSERT INTO phone (id, account_id, created_at) VALUES ($1, $2, $3)";
    tx.defer(insert, &values![phone, account, by.at])?;
    tx.audit(account, AuditedChange::new(AuditKind::PhoneAdded, phone, json!({})), by)
}

/// Adds a phone number to an account that has fewer than its maximum. When several requests use a new
/// number concurrently, the first one adds it, and the others wait only for that insert.
async fn add(tx: &mut Tx<'_>, new: &NewPhone) -> Result<AddPhoneOutcome, StoreError> {
    let NewPhone { account, ref phone, max, by } = *new;
    if let Some(few) = max {
        // The lock keeps concurrent claims of the account from exceeding the maximum together.
        if !tx.lock(account).await? {
            return Ok(AddPhoneOutcome::NoAccount);
        }
        let found = tx.query_one(CLAIMS, &values![phone, account, few], claims).await?;
        if let Some(refusal) = found.and_then(|found| found.refusal(account, max)) {
            return Ok(refusal);
        }
    }
    // An account that is being deleted is waited for, so that it owns no number afterwards.
    let insert = format!(
        "INSERT INTO phone (id, account_id, created_at) SELECT $1, id, $3 FROM account \
         WHERE id = $2 AND deleted_at IS NULL{} ON CONFLICT (id) DO NOTHING",
        tx.dialect().either("", " FOR SHARE")
    );
    if tx.execute(&insert, &values![phone, account, by.at]).await? > 0 {
        tx.audit(account, AuditedChange::new(AuditKind::PhoneAdded, phone, json!({})), by)?;
        return Ok(AddPhoneOutcome::Added);
    }
    let owner = tx.query_one(OWNER, &values![phone], owner).await?;
    Ok(owner.map_or(AddPhoneOutcome::NoAccount, |owner| owned_phone(owner, account)))
}

/// The outcome of adding a phone number that has an owner.
fn owned_phone(owner: AccountId, account: AccountId) -> AddPhoneOutcome {
    if owner == account { AddPhoneOutcome::AlreadyOwned } else { AddPhoneOutcome::OwnedByOther }
}

/// Who owns a phone number, and how many numbers the account that claims it has.
struct Claims {
    owner: Option<AccountId>,
    claimed: u64,
}

impl Claims {
    /// Why the account cannot claim the number, if it cannot.
    fn refusal(&self, account: AccountId, max: Option<u64>) -> Option<AddPhoneOutcome> {
        let is_full = max.is_some_and(|max| self.claimed >= max);
        let owned = self.owner.map(|owner| owned_phone(owner, account));
        owned.or(is_full.then_some(AddPhoneOutcome::TooMany))
    }
}

/// The claims in a row.
fn claims(row: &Row<'_>) -> Result<Claims, StoreError> {
    let owner = row.optional("owner", |id: i64| AccountId::new(u64::try_from(id).ok()?))?;
    Ok(Claims { owner, claimed: row.number("claimed")? })
}
