//! Accounts and their phone numbers, as SQL. Whoever makes or changes one holds the one row of
//! `credential_epoch`, so that what was looked at stays so until the end.

use galley_domain::{
    id::{self, AccountId},
    template::Review,
};
use jiff::Timestamp;
use tokio_postgres::Row;

use super::{
    columns::{
        account_id, at as moment_at, column, key, maybe, millis, moment, number, plain, sought,
    },
    credentials,
    pool::{Links, Values},
    templates::out_of_ids,
    transaction::Transaction,
};
use crate::{
    Account, AccountLimits, AddCredentialOutcome, AddPhoneOutcome, CreateAccountOutcome,
    NewAccount, NewCredential, StoreError,
};

/// Writes an account with its phones and credentials; refuses before it writes anything.
pub(super) async fn create(
    transaction: &mut Transaction,
    new: &NewAccount,
) -> Result<CreateAccountOutcome, StoreError> {
    credentials::hold(transaction).await?;
    if let Some(refusal) = refusal(transaction, new).await? {
        return Ok(refusal);
    }
    let last = transaction.query_one("SELECT coalesce(max(id), 0) FROM account", &[]).await?;
    let last = last.map_or(Ok(0), |row| number(&row, 0))?;
    let id = AccountId::new(id::next(last, millis(new.at))).ok_or_else(out_of_ids)?;
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
    for phone in &new.phones {
        insert_phone(transaction, id, phone, new.at).await?;
    }
    let mut ids = Vec::new();
    for credential in &new.credentials {
        match credentials::insert(transaction, id, credential, new.at).await? {
            AddCredentialOutcome::Added(credential) => ids.push(credential),
            refused => unreachable!("looked at before anything was written: {refused:?}"),
        }
    }
    Ok(CreateAccountOutcome::Created(id, ids))
}

async fn refusal(
    transaction: &Transaction,
    new: &NewAccount,
) -> Result<Option<CreateAccountOutcome>, StoreError> {
    let any = "SELECT 1 FROM account LIMIT 1";
    if new.only_as_first && transaction.query_one(any, &[]).await?.is_some() {
        return Ok(Some(CreateAccountOutcome::NotFirst));
    }
    let named = "SELECT 1 FROM account WHERE name = $1";
    if transaction.query_one(named, &[&new.name]).await?.is_some() {
        return Ok(Some(CreateAccountOutcome::NameTaken));
    }
    for phone in &new.phones {
        let owned = "SELECT 1 FROM phone WHERE id = $1";
        if transaction.query_one(owned, &[phone]).await?.is_some() {
            return Ok(Some(CreateAccountOutcome::PhoneTaken(phone.clone())));
        }
    }
    for (index, credential) in new.credentials.iter().enumerate() {
        let twice =
            |other: &NewCredential| other.kind == credential.kind && other.hash == credential.hash;
        if new.credentials[..index].iter().any(twice)
            || credentials::is_taken(transaction, credential).await?
        {
            return Ok(Some(CreateAccountOutcome::SecretTaken(credential.kind)));
        }
    }
    Ok(None)
}

const COLUMNS: &str = "id, name, rulebook, review, takes_any_phone, created_at, disabled_at, \
     template_limit";

pub(super) async fn all(links: &Links) -> Result<Vec<Account>, StoreError> {
    let statement = format!("SELECT {COLUMNS} FROM account ORDER BY id");
    let rows = links.own_for_long().await?.query(&statement, &[]).await?;
    rows.iter().map(account).collect()
}

pub(super) async fn one(links: &Links, id: AccountId) -> Result<Option<Account>, StoreError> {
    let statement = format!("SELECT {COLUMNS} FROM account WHERE id = $1");
    let row = links.read_one(&statement, &[&key(id.get())]).await?;
    row.as_ref().map(account).transpose()
}

fn account(row: &Row) -> Result<Account, StoreError> {
    Ok(Account {
        id: account_id(row, "id")?,
        name: plain(row, "name")?,
        rulebook: plain(row, "rulebook")?,
        review: column(row, "review", |word: String| Review::parse(&word))?,
        takes_any_phone: plain(row, "takes_any_phone")?,
        created_at: moment_at(row, "created_at")?,
        disabled_at: moment(row, "disabled_at")?,
        limits: limits(row)?,
    })
}

/// Whether the account is held to limits.
pub(super) fn limits(row: &Row) -> Result<Option<AccountLimits>, StoreError> {
    maybe(row, "template_limit", |most: i32| {
        Some(AccountLimits { templates: u32::try_from(most).ok()? })
    })
}

pub(super) async fn set_disabled(
    transaction: &mut Transaction,
    id: AccountId,
    disabled_at: Option<Timestamp>,
) -> Result<bool, StoreError> {
    credentials::hold(transaction).await?;
    let update = "UPDATE account SET disabled_at = $2 WHERE id = $1";
    let changed = transaction.execute(update, &[&key(id.get()), &disabled_at.map(millis)]).await?;
    credentials::raise_epoch(transaction).await?;
    Ok(changed > 0)
}

pub(super) async fn set_limits(
    transaction: &mut Transaction,
    id: AccountId,
    limits: Option<AccountLimits>,
) -> Result<bool, StoreError> {
    credentials::hold(transaction).await?;
    let most = limits.map(|it| i32::try_from(it.templates).unwrap_or(i32::MAX));
    let update = "UPDATE account SET template_limit = $2 WHERE id = $1";
    let changed = transaction.execute(update, &[&key(id.get()), &most]).await?;
    credentials::raise_epoch(transaction).await?;
    Ok(changed > 0)
}

/// Many may want the same number at once, when it is used for the first time: the first gets it, and
/// nobody waits longer than for that.
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
    let is_own = account_id(&row, "account_id")? == account;
    Ok(if is_own { AddPhoneOutcome::Owned } else { AddPhoneOutcome::Taken })
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

pub(super) async fn phones(links: &Links, account: AccountId) -> Result<Vec<String>, StoreError> {
    let statement = "SELECT id FROM phone WHERE account_id = $1 ORDER BY id";
    let rows = links.read(statement, &[&key(account.get())]).await?;
    rows.iter().map(|row| plain(row, 0)).collect()
}

pub(super) async fn phone_owner(
    links: &Links,
    phone: &str,
) -> Result<Option<AccountId>, StoreError> {
    let row = links.read_one(OWNER, &[&sought(phone)]).await?;
    row.map(|row| account_id(&row, 0)).transpose()
}
