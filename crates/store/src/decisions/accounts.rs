//! Accounts: whether a new one conflicts with those that exist, and how their rows are decoded.

use std::collections::BTreeSet;

use galley_domain::{emulator::EmulatorKind, id::AccountId, template::Review};

use crate::{
    Account, AccountLimits, AccountQuotas, AccountUsage, AddCredentialOutcome, AddPhoneOutcome,
    CreateAccountOutcome, DeleteAccountOutcome, NewAccount, Quota, RenameAccountOutcome,
    SetReviewOutcome, StoreError, decisions::audit::AuditedChange, encoding::key,
    stored_row::StoredRow,
};

/// The columns that [`account`] reads.
pub(crate) const COLUMNS: &str = "id, name, rulebook, review, emulator, four_eyes, takes_any_phone, \
     created_at, disabled_at, template_limit, requests_per_second, stored_bytes_limit, phone_limit, \
     template_bytes, counting, media_bytes, \
     EXISTS (SELECT 1 FROM upstream u WHERE u.account_id = account.id) AS is_connected";

/// What the store already has of a new account.
#[derive(Default)]
pub(crate) struct ExistingAccounts {
    pub(crate) has_accounts: bool,
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
    if (new.only_if_first || new.id.is_some()) && existing.has_accounts {
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

/// The phone numbers of a new account, each once, in the order in which they are locked.
pub(crate) fn distinct_phones(new: &NewAccount) -> BTreeSet<&str> {
    new.phones.iter().map(String::as_str).collect()
}

/// The outcome once an account that was not refused has its credentials.
pub(crate) fn created(id: AccountId, added: &[AddCredentialOutcome]) -> CreateAccountOutcome {
    let credential = |added: &AddCredentialOutcome| match added {
        AddCredentialOutcome::Added(id) => *id,
        refused => unreachable!("checked before the first write: {refused:?}"),
    };
    CreateAccountOutcome::Created(id, added.iter().map(credential).collect())
}

/// How the templates of a new account get their first status.
pub(crate) fn stored_review(new: &NewAccount) -> Review {
    if new.emulator.is_some() { Review::Scripted } else { new.review }
}

/// Whether the review of an account can be set: the account, if it exists, and the new review.
pub(crate) fn set_review_outcome(account: Option<&Account>, review: Review) -> SetReviewOutcome {
    match account {
        None => SetReviewOutcome::NotFound,
        Some(account) if account.emulator.is_some() => SetReviewOutcome::Emulator,
        // A provider's review is never stored.
        Some(_) if !Review::CHOICES.contains(&review.as_str()) => SetReviewOutcome::NotAnEmulator,
        Some(_) => SetReviewOutcome::Set,
    }
}

/// Whether an account can be renamed: its present name, and whether another account has the new one.
pub(crate) fn rename_outcome(former: Option<&str>, is_taken: bool) -> RenameAccountOutcome {
    match (former, is_taken) {
        (None, _) => RenameAccountOutcome::NotFound,
        (Some(_), true) => RenameAccountOutcome::NameTaken,
        (Some(_), false) => RenameAccountOutcome::Renamed,
    }
}

/// Why an account cannot be deleted, if it cannot.
pub(crate) fn deletion_refusal(
    account: Option<&Account>,
    has_templates: bool,
) -> Option<DeleteAccountOutcome> {
    match account {
        None => Some(DeleteAccountOutcome::NotFound),
        Some(account) if account.disabled_at.is_none() => Some(DeleteAccountOutcome::NotDisabled),
        Some(_) if has_templates => Some(DeleteAccountOutcome::HasTemplates),
        Some(_) => None,
    }
}

/// The name that the row of a deleted account has. No account can be created with it, because it
/// contains a control character.
pub(crate) fn deleted_name(id: AccountId) -> String {
    format!("deleted\u{1f}{id}")
}

/// The change of an account that is disabled or enabled.
pub(crate) fn disabling(is_disabled: bool) -> AuditedChange<'static> {
    if is_disabled { AuditedChange::AccountDisabled } else { AuditedChange::AccountEnabled }
}

/// The outcome of adding a phone number that has an owner.
pub(crate) fn owned_phone(owner: AccountId, account: AccountId) -> AddPhoneOutcome {
    if owner == account { AddPhoneOutcome::AlreadyOwned } else { AddPhoneOutcome::OwnedByOther }
}

/// The account in a row. The databases store the limits in columns of different types.
pub(crate) fn account(
    row: &impl StoredRow,
    limits: Option<AccountLimits>,
) -> Result<Account, StoreError> {
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
        limits,
        quotas: quotas(row)?,
        usage: usage(row)?,
    })
}

fn usage(row: &impl StoredRow) -> Result<AccountUsage, StoreError> {
    let is_counted = row.value::<Option<i64>>("counting")?.is_none();
    let template_bytes: i64 = row.value("template_bytes")?;
    Ok(AccountUsage {
        template_bytes: is_counted.then(|| u64::try_from(template_bytes).unwrap_or(0)),
        media_bytes: row.number("media_bytes")?,
    })
}

fn quotas(row: &impl StoredRow) -> Result<AccountQuotas, StoreError> {
    let max = |column| row.optional(column, |max: i64| u64::try_from(max).ok());
    Ok(AccountQuotas {
        requests_per_second: max("requests_per_second")?,
        stored_bytes: quota(max("stored_bytes_limit")?),
        phone_numbers: quota(max("phone_limit")?),
    })
}

/// A quota as it is stored: `None` for the default, 0 for no limit.
pub(crate) fn stored_quota(quota: Quota) -> Option<i64> {
    match quota {
        Quota::Default => None,
        Quota::Unlimited => Some(0),
        Quota::Max(max) => Some(key(max.max(1))),
    }
}

/// A quota from its stored value.
pub(crate) fn quota(stored: Option<u64>) -> Quota {
    match stored {
        None => Quota::Default,
        Some(0) => Quota::Unlimited,
        Some(max) => Quota::Max(max),
    }
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
        existing.has_accounts = true;
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
