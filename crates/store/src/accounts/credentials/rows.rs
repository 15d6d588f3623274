//! Credentials: whether one can be issued or rotated, when both expire then, and how their rows are
//! decoded.

use galley_domain::{account::Scopes, id::AccountId};
use jiff::Timestamp;

use crate::{
    Account, Actor, Author, Credential, CredentialId, CredentialKind, IssueTokenOutcome,
    NewCredential, RevokeTokenOutcome, RotateCredentialOutcome, StoreError,
    accounts::{COLUMNS as ACCOUNT_COLUMNS, account},
    stored_row::{Row, StoredRow as _},
};

/// How many tokens an account may have when a client creates another one: those that are neither
/// expired nor revoked, and those that were created within the last hour. The operator may exceed it.
pub const MAX_ACTIVE_TOKENS: usize = 100;

/// The columns that [`credential`] reads.
pub(crate) const COLUMNS: &str =
    "id, account_id, kind, name, scopes, created_at, last_used_at, expires_at, revoked_at";

/// How long a revoked or expired token counts towards the maximum after its creation, in
/// milliseconds: otherwise a client could fill the store by creating and revoking tokens.
const ISSUED_TOKEN_COUNTS_MS: i64 = 3_600_000;

/// Tokens that were created after this time count towards the maximum even if they are not active.
pub(crate) fn issued_since(at: Timestamp) -> i64 {
    at.as_millisecond().saturating_sub(ISSUED_TOKEN_COUNTS_MS)
}

/// An account that gets a token.
pub(crate) struct TokenOwner {
    account: Account,
    /// How many of its tokens count towards the maximum.
    tokens: u64,
}

/// Reads the owner (`$1`) of a token (`$2`: the kind) to be issued at `$3`; tokens that were created
/// after `$4` count.
pub(crate) fn select_owner() -> String {
    format!(
        "SELECT {ACCOUNT_COLUMNS}, (SELECT count(*) FROM credential WHERE account_id = $1 \
         AND kind = $2 AND (revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3) \
         OR created_at > $4)) AS tokens FROM account WHERE id = $1 AND deleted_at IS NULL"
    )
}

/// The owner in a row of [`select_owner`].
pub(crate) fn token_owner(row: &Row<'_>) -> Result<TokenOwner, StoreError> {
    Ok(TokenOwner { account: account(row)?, tokens: row.number("tokens")? })
}

/// Why an author may not add a token to an account, if it may not. `caller` is the author's token:
/// it is read again in the transaction, because a cached one may have been revoked since.
pub(crate) fn issue_refusal(
    owner: Option<&TokenOwner>,
    caller: Option<&Credential>,
    new: &NewCredential,
    by: Author,
) -> Option<IssueTokenOutcome> {
    let Some(owner) = owner else { return Some(IssueTokenOutcome::NotFound) };
    let is_full = owner.tokens >= MAX_ACTIVE_TOKENS as u64;
    caller_refusal(&owner.account, caller, new, by)
        .or(is_full.then_some(IssueTokenOutcome::TooMany))
}

fn caller_refusal(
    account: &Account,
    caller: Option<&Credential>,
    new: &NewCredential,
    by: Author,
) -> Option<IssueTokenOutcome> {
    let Actor::Token(_) = by.actor else { return None };
    let own = caller.filter(|it| it.account == account.id && it.kind == CredentialKind::Token);
    let Some(caller) = own else { return Some(IssueTokenOutcome::NotFound) };
    if caller.revoked_at.is_some() {
        return Some(IssueTokenOutcome::CallerRevoked);
    }
    if caller.expires_at.is_some_and(|end| end <= by.at) {
        return Some(IssueTokenOutcome::CallerExpired);
    }
    if account.disabled_at.is_some() {
        return Some(IssueTokenOutcome::AccountDisabled);
    }
    // A client with two tokens would be its own second person.
    if account.four_eyes {
        return Some(IssueTokenOutcome::FourEyes);
    }
    let lives_longer =
        caller.expires_at.is_some_and(|end| new.expires_at.is_none_or(|wanted| wanted > end));
    let permits_more = !new.scopes.without(caller.scopes).is_empty();
    (lives_longer || permits_more).then_some(IssueTokenOutcome::ExceedsCaller)
}

/// The credential, if it can be revoked: any, or only a token of this account.
pub(crate) fn revocable(
    account: Option<AccountId>,
    found: Option<Credential>,
) -> Result<Credential, RevokeTokenOutcome> {
    let is_token_of =
        |account, it: &Credential| it.account == account && it.kind == CredentialKind::Token;
    let found = found
        .filter(|it| account.is_none_or(|account| is_token_of(account, it)))
        .ok_or(RevokeTokenOutcome::NotFound)?;
    if found.revoked_at.is_some() { Err(RevokeTokenOutcome::AlreadyRevoked) } else { Ok(found) }
}

/// What a rotation writes.
#[derive(Clone, Debug)]
pub(crate) struct RotationPlan {
    /// The account that gets the replacement.
    pub(crate) account: AccountId,
    /// The credential to add.
    pub(crate) replacement: NewCredential,
    /// When the old credential ends.
    pub(crate) old_ends_at: Timestamp,
}

/// Decides what a rotation of `old` at `at` writes, or why it is refused.
///
/// The replacement keeps the remaining lifetime, unless it has an expiry of its own: otherwise a
/// rotation would turn a temporary credential into a permanent one. It keeps the name, too. The old
/// credential never ends later than without the rotation.
pub(crate) fn plan_rotation(
    old: Option<&Credential>,
    new: &NewCredential,
    old_ends_at: Timestamp,
    at: Timestamp,
) -> Result<RotationPlan, RotateCredentialOutcome> {
    let old = old.ok_or(RotateCredentialOutcome::NotFound)?;
    if let Some(revoked_at) = old.revoked_at {
        return Err(RotateCredentialOutcome::Revoked(revoked_at));
    }
    match old.expires_at {
        Some(expired_at) if expired_at <= at => Err(RotateCredentialOutcome::Expired(expired_at)),
        expiry => Ok(RotationPlan {
            account: old.account,
            replacement: NewCredential {
                expires_at: new.expires_at.or(expiry),
                name: if new.name.is_empty() { old.name.clone() } else { new.name.clone() },
                ..*new
            },
            old_ends_at: expiry.map_or(old_ends_at, |expiry| expiry.min(old_ends_at)),
        }),
    }
}

/// The credential in a row.
pub(crate) fn credential(row: &Row<'_>) -> Result<Credential, StoreError> {
    Ok(Credential {
        id: CredentialId(row.number("id")?),
        account: row.account_id("account_id")?,
        kind: row.parsed("kind", CredentialKind::parse)?,
        name: row.value("name")?,
        scopes: row.parsed("scopes", |scopes| Scopes::parse(scopes).ok())?,
        created_at: row.timestamp("created_at")?,
        last_used_at: row.optional_timestamp("last_used_at")?,
        expires_at: row.optional_timestamp("expires_at")?,
        revoked_at: row.optional_timestamp("revoked_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 100;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn planned(
        expires_at: Option<i64>,
        revoked_at: Option<i64>,
        new_expires_at: Option<i64>,
        old_ends_at: i64,
    ) -> Result<(Option<i64>, i64), RotateCredentialOutcome> {
        let old = Credential {
            id: CredentialId(1),
            account: AccountId::new(1).unwrap(),
            kind: CredentialKind::Token,
            name: "nightly".to_owned(),
            scopes: Scopes::DEFAULT,
            created_at: second(0),
            last_used_at: None,
            expires_at: expires_at.map(second),
            revoked_at: revoked_at.map(second),
        };
        let new = NewCredential {
            expires_at: new_expires_at.map(second),
            ..NewCredential::unrestricted(CredentialKind::Token, "new")
        };
        let plan = plan_rotation(Some(&old), &new, second(old_ends_at), second(NOW))?;
        Ok((plan.replacement.expires_at.map(Timestamp::as_second), plan.old_ends_at.as_second()))
    }

    #[test]
    fn the_replacement_keeps_the_remaining_lifetime_unless_it_has_its_own() {
        assert_eq!(planned(None, None, None, 150), Ok((None, 150)));
        assert_eq!(planned(Some(900), None, None, 150), Ok((Some(900), 150)));
        assert_eq!(planned(Some(900), None, Some(2_000), 150), Ok((Some(2_000), 150)));
        assert_eq!(planned(None, None, Some(2_000), 150), Ok((Some(2_000), 150)));
    }

    #[test]
    fn the_old_credential_never_ends_later_than_before() {
        assert_eq!(planned(Some(120), None, None, 150), Ok((Some(120), 120)));
        assert_eq!(planned(Some(101), None, None, NOW), Ok((Some(101), NOW)));
    }

    #[test]
    fn an_expired_or_revoked_credential_is_not_rotated() {
        for expired in [NOW, NOW - 1] {
            let refused = Err(RotateCredentialOutcome::Expired(second(expired)));
            assert_eq!(planned(Some(expired), None, Some(2_000), 150), refused);
        }
        let refused = Err(RotateCredentialOutcome::Revoked(second(50)));
        assert_eq!(planned(None, Some(50), None, 150), refused);
        assert_eq!(planned(Some(60), Some(50), None, 150), refused);
    }
}
