//! Accounts: what a change writes, or why it is refused, and how their rows are decoded.

use galley_domain::{emulator::EmulatorKind, id::AccountId, template::Review};

use crate::{
    Account, AccountLimits, AccountQuotas, AccountUsage, AddPhoneOutcome, CreateAccountOutcome,
    NewAccount, StoreError,
    encoding::quota,
    stored_row::{Row, StoredRow as _},
};

/// The columns that [`account`] reads.
pub(crate) const COLUMNS: &str = "id, name, rulebook, review, emulator, four_eyes, takes_any_phone, \
     created_at, disabled_at, CAST(template_limit AS BIGINT) AS template_limit, \
     requests_per_second, stored_bytes_limit, phone_limit, template_bytes, counting, media_bytes, \
     EXISTS (SELECT 1 FROM upstream u WHERE u.account_id = account.id) AS is_connected";

/// What the store already has of a new account.
#[derive(Default)]
pub(crate) struct ExistingAccounts {
    /// The highest id of an account, even if it is deleted; 0 without accounts.
    pub(crate) last: u64,
    pub(crate) has_name: bool,
    /// Those of the new account's phone numbers that an account owns.
    pub(crate) phones: Vec<String>,
    /// For each of the new account's credentials, whether one with the same secret exists.
    pub(crate) secrets: Vec<bool>,
}

/// Why an account cannot be created, if it cannot.
pub(crate) fn refusal(
    new: &NewAccount,
    existing: &ExistingAccounts,
) -> Option<CreateAccountOutcome> {
    // The id of a first account is free.
    if (new.only_if_first || new.id.is_some()) && existing.last > 0 {
        return Some(CreateAccountOutcome::NotFirst);
    }
    if existing.has_name {
        return Some(CreateAccountOutcome::NameTaken);
    }
    if let Some(taken) = new.phones.iter().find(|phone| existing.phones.contains(phone)) {
        return Some(CreateAccountOutcome::PhoneTaken(taken.clone()));
    }
    let is_taken = |index: usize| {
        let (new, earlier) = (&new.credentials[index], &new.credentials[..index]);
        existing.secrets.get(index).copied().unwrap_or(false)
            || earlier.iter().any(|other| other.kind == new.kind && other.hash == new.hash)
    };
    let taken = (0..new.credentials.len()).find(|index| is_taken(*index))?;
    Some(CreateAccountOutcome::SecretTaken(new.credentials[taken].kind))
}

/// The name that the row of a deleted account has. No account can be created with it, because it
/// contains a control character.
pub(crate) fn deleted_name(id: AccountId) -> String {
    format!("deleted\u{1f}{id}")
}

/// The limits that are stored. The column of PostgreSQL takes no larger number.
pub(crate) fn storable(limits: Option<AccountLimits>) -> Option<AccountLimits> {
    let templates = |limits: AccountLimits| limits.templates.min(i32::MAX.unsigned_abs());
    limits.map(|limits| AccountLimits { templates: templates(limits) })
}

/// The outcome of adding a phone number that has an owner.
pub(crate) fn owned_phone(owner: AccountId, account: AccountId) -> AddPhoneOutcome {
    if owner == account { AddPhoneOutcome::AlreadyOwned } else { AddPhoneOutcome::OwnedByOther }
}

/// Who owns a phone number, and how many numbers the account that claims it has.
pub(crate) struct Claims {
    pub(crate) owner: Option<AccountId>,
    pub(crate) claimed: u64,
}

impl Claims {
    /// Why the account cannot claim the number, if it cannot.
    pub(crate) fn refusal(&self, account: AccountId, max: Option<u64>) -> Option<AddPhoneOutcome> {
        let is_full = max.is_some_and(|max| self.claimed >= max);
        let owned = self.owner.map(|owner| owned_phone(owner, account));
        owned.or(is_full.then_some(AddPhoneOutcome::TooMany))
    }
}

/// The claims in a row.
pub(crate) fn claims(row: &Row<'_>) -> Result<Claims, StoreError> {
    let owner = row.optional("owner", |id: i64| AccountId::new(u64::try_from(id).ok()?))?;
    Ok(Claims { owner, claimed: row.number("claimed")? })
}

/// The account in a row.
pub(crate) fn account(row: &Row<'_>) -> Result<Account, StoreError> {
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
        quotas: quotas(row)?,
        usage: usage(row)?,
    })
}

fn usage(row: &Row<'_>) -> Result<AccountUsage, StoreError> {
    let is_counted = row.value::<Option<i64>>("counting")?.is_none();
    let template_bytes: i64 = row.value("template_bytes")?;
    Ok(AccountUsage {
        template_bytes: is_counted.then(|| u64::try_from(template_bytes).unwrap_or(0)),
        media_bytes: row.number("media_bytes")?,
    })
}

fn quotas(row: &Row<'_>) -> Result<AccountQuotas, StoreError> {
    let max = |column| row.optional(column, |max: i64| u64::try_from(max).ok());
    Ok(AccountQuotas {
        requests_per_second: max("requests_per_second")?,
        stored_bytes: quota(max("stored_bytes_limit")?),
        phone_numbers: quota(max("phone_limit")?),
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::{Author, CredentialKind, NewCredential};

    fn new(secrets: &[(CredentialKind, &str)]) -> NewAccount {
        let credential =
            |(kind, secret): &(CredentialKind, &str)| NewCredential::unrestricted(*kind, secret);
        NewAccount {
            id: None,
            name: "one".to_owned(),
            rulebook: "v1",
            review: Review::Auto,
            emulator: None,
            limits: None,
            phones: vec!["1".to_owned(), "2".to_owned()],
            credentials: secrets.iter().map(credential).collect(),
            only_if_first: false,
            by: Author::operator(Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn the_names_of_deleted_accounts_are_unique_and_free_for_no_other() {
        let [one, two] = [1, 2].map(|id| deleted_name(AccountId::new(id).unwrap()));
        assert_ne!(one, two);
        assert!(one.contains(char::is_control), "{one:?}");
    }

    #[test]
    fn an_account_is_refused_by_the_first_conflict() {
        let account = new(&[(CredentialKind::Key, "a"), (CredentialKind::Token, "b")]);
        let first = NewAccount { only_if_first: true, ..account.clone() };
        let mut existing = ExistingAccounts::default();
        assert_eq!(refusal(&first, &existing), None);
        existing.secrets = vec![false, true];
        let refused = refusal(&account, &existing);
        assert_eq!(refused, Some(CreateAccountOutcome::SecretTaken(CredentialKind::Token)));
        existing.phones = vec!["2".to_owned()];
        let refused = refusal(&account, &existing);
        assert_eq!(refused, Some(CreateAccountOutcome::PhoneTaken("2".to_owned())));
        existing.has_name = true;
        assert_eq!(refusal(&account, &existing), Some(CreateAccountOutcome::NameTaken));
        existing.last = 1;
        assert_eq!(refusal(&account, &existing), Some(CreateAccountOutcome::NameTaken));
        assert_eq!(refusal(&first, &existing), Some(CreateAccountOutcome::NotFirst));
        let chosen = NewAccount { id: AccountId::new(7), ..account };
        assert_eq!(refusal(&chosen, &existing), Some(CreateAccountOutcome::NotFirst));
    }

    #[test]
    fn two_credentials_of_a_kind_need_different_secrets() {
        let existing = ExistingAccounts::default();
        let (key, token) = (CredentialKind::Key, CredentialKind::Token);
        assert_eq!(refusal(&new(&[(key, "a"), (token, "a")]), &existing), None);
        let refused = refusal(&new(&[(key, "a"), (key, "a")]), &existing);
        assert_eq!(refused, Some(CreateAccountOutcome::SecretTaken(key)));
    }
}
