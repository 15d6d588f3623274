//! Sessions of the console: what a link creates when it is used, and how their rows are decoded.

use galley_domain::{account::Scopes, id::AccountId};
use jiff::{SignedDuration, Timestamp};

use crate::{
    Account, CredentialId, CredentialKind, MAX_SESSIONS_PER_TOKEN, NewCredential, NewSession,
    RedeemLinkOutcome, SESSION_IDLE_HOURS, SecretHash, Session, StoreError,
    encoding::millis,
    records::MAX_UNRECORDED_USE,
    stored_row::{Row, StoredRow as _},
};

/// The columns that [`session`] reads: those of the session and the hash of its token.
pub(crate) const COLUMNS: &str = "s.credential_id, c.hash AS token_hash, s.created_at, \
     s.last_seen_at, s.expires_at FROM console_session s \
     JOIN credential c ON c.id = s.credential_id";

/// How many sessions of a token stay when another one starts.
pub(crate) const KEPT_SESSIONS: i64 = MAX_SESSIONS_PER_TOKEN as i64 - 1;

/// Sessions that were last used at or before this time have expired, even if a later use is not
/// recorded yet.
pub(crate) fn idle_cutoff(at: Timestamp) -> i64 {
    let idle_hours = SignedDuration::from_hours(SESSION_IDLE_HOURS);
    millis(at) - millis(Timestamp::UNIX_EPOCH + idle_hours + MAX_UNRECORDED_USE)
}

/// A link as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct ConsoleLink {
    pub(crate) account: AccountId,
    name: String,
    scopes: Scopes,
    expires_at: Timestamp,
}

/// Decides what a link of an account creates at `at`, or why it is refused.
pub(crate) fn plan_redemption(
    link: &ConsoleLink,
    account: &Account,
    token: SecretHash,
    at: Timestamp,
) -> Result<NewCredential, RedeemLinkOutcome> {
    if link.expires_at <= at {
        return Err(RedeemLinkOutcome::Invalid);
    }
    if account.disabled_at.is_some() {
        return Err(RedeemLinkOutcome::AccountDisabled);
    }
    // The token lasts as long as its session.
    let session = NewSession::new(token, CredentialId(0), None, at);
    Ok(NewCredential {
        kind: CredentialKind::Token,
        hash: token,
        scopes: link.scopes,
        expires_at: Some(session.expires_at),
        name: link.name.clone(),
    })
}

/// The session in a row.
pub(crate) fn session(row: &Row<'_>) -> Result<Session, StoreError> {
    Ok(Session {
        credential: CredentialId(row.number("credential_id")?),
        token: row
            .decoded("token_hash", |hash: Vec<u8>| Some(SecretHash(hash.try_into().ok()?)))?,
        created_at: row.timestamp("created_at")?,
        last_seen_at: row.timestamp("last_seen_at")?,
        expires_at: row.timestamp("expires_at")?,
    })
}

/// The link in a row.
pub(crate) fn console_link(row: &Row<'_>) -> Result<ConsoleLink, StoreError> {
    Ok(ConsoleLink {
        account: row.account_id("account_id")?,
        name: row.value("name")?,
        scopes: row.parsed("scopes", |scopes| Scopes::parse(scopes).ok())?,
        expires_at: row.timestamp("expires_at")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_sessions_behind_the_cutoff_are_not_active() {
        let at = Timestamp::from_second(1_000_000).unwrap();
        let is_active = |last_seen_at: i64| {
            let session = Session {
                credential: CredentialId(1),
                token: SecretHash([0; 32]),
                created_at: Timestamp::UNIX_EPOCH,
                last_seen_at: Timestamp::from_millisecond(last_seen_at).unwrap(),
                expires_at: Timestamp::MAX,
            };
            session.is_active(at)
        };
        assert!(!is_active(idle_cutoff(at)));
        assert!(is_active(idle_cutoff(at) + 1));
    }
}
