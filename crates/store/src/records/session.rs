//! Sessions of the console, and the links that start them.

use galley_domain::{account::Scopes, id::AccountId};
use jiff::{SignedDuration, Timestamp};

use crate::{CredentialId, SecretHash};

/// How long a session lasts at most.
pub const SESSION_HOURS: i64 = 12;

/// How long a session lasts without being used.
pub const SESSION_IDLE_HOURS: i64 = 2;

/// How long the last use of a session may not be recorded yet.
pub(crate) const MAX_UNRECORDED_USE: SignedDuration = SignedDuration::from_mins(2);

/// How long a link to the console is valid.
pub const CONSOLE_LINK_SECONDS: i64 = 60;

/// How many sessions a token has. Starting another one ends the oldest.
pub const MAX_SESSIONS_PER_TOKEN: u32 = 20;

/// The name of a token that a link creates, unless the link has one.
pub const CONSOLE_LINK_TOKEN_NAME: &str = "console link";

/// A session to start.
#[derive(Clone, Copy, Debug)]
pub struct NewSession {
    /// The hash of its secret.
    pub hash: SecretHash,
    /// The token that it stands for.
    pub credential: CredentialId,
    /// When it starts.
    pub at: Timestamp,
    /// When it ends at the latest.
    pub expires_at: Timestamp,
}

impl NewSession {
    /// A session that lasts as long as possible, but not longer than its token.
    pub fn new(
        hash: SecretHash,
        credential: CredentialId,
        token_expires_at: Option<Timestamp>,
        at: Timestamp,
    ) -> Self {
        let end = later(at, SignedDuration::from_hours(SESSION_HOURS));
        let expires_at = token_expires_at.map_or(end, |token_end| token_end.min(end));
        Self { hash, credential, at, expires_at }
    }
}

/// A session that has not expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// The token that it stands for.
    pub credential: CredentialId,
    /// The hash of that token's secret.
    pub token: SecretHash,
    /// When it was started.
    pub created_at: Timestamp,
    /// When it was last used, as far as the store knows.
    pub last_seen_at: Timestamp,
    /// When it ends at the latest.
    pub expires_at: Timestamp,
}

impl Session {
    /// When a session ends that was last used at this time.
    pub fn idle_end(last_seen_at: Timestamp) -> Timestamp {
        later(last_seen_at, SignedDuration::from_hours(SESSION_IDLE_HOURS))
    }

    /// Whether the session has neither ended nor been idle for too long. The last use may not be
    /// recorded yet.
    pub fn is_active(&self, at: Timestamp) -> bool {
        let idle_end = later(Self::idle_end(self.last_seen_at), MAX_UNRECORDED_USE);
        at < self.expires_at && at < idle_end
    }
}

/// A link to create, which starts one session.
#[derive(Clone, Debug)]
pub struct NewConsoleLink {
    /// The account that it signs in to.
    pub account: AccountId,
    /// The hash of its secret.
    pub hash: SecretHash,
    /// What the session permits.
    pub scopes: Scopes,
    /// The name of its token, which shows who uses it.
    pub name: String,
}

impl NewConsoleLink {
    /// When a link ends that is created at this time.
    pub fn end(at: Timestamp) -> Timestamp {
        later(at, SignedDuration::from_secs(CONSOLE_LINK_SECONDS))
    }
}

/// The use of a link, by the hashes of three secrets.
#[derive(Clone, Copy, Debug)]
pub struct LinkRedemption {
    /// The link.
    pub link: SecretHash,
    /// The token that it creates.
    pub token: SecretHash,
    /// The session that it starts.
    pub session: SecretHash,
    /// When it is used.
    pub at: Timestamp,
}

/// The result of [`redeem_console_link`](crate::Store::redeem_console_link).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedeemLinkOutcome {
    /// The session was started, for this new token.
    Redeemed(CredentialId),
    /// No such link exists: it was used, has expired, or never existed.
    Invalid,
    /// The account is disabled. The link stays.
    AccountDisabled,
}

fn later(at: Timestamp, duration: SignedDuration) -> Timestamp {
    at.checked_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hour(hour: i64) -> Timestamp {
        Timestamp::from_second(hour * 3_600).unwrap()
    }

    #[test]
    fn a_session_ends_with_its_token_or_after_twelve_hours() {
        let end = |token: Option<i64>| {
            let new =
                NewSession::new(SecretHash([0; 32]), CredentialId(1), token.map(hour), hour(1));
            new.expires_at
        };
        assert_eq!(end(None), hour(13));
        assert_eq!(end(Some(99)), hour(13));
        assert_eq!(end(Some(3)), hour(3));
    }

    #[test]
    fn a_session_is_active_until_it_ends_or_was_idle_for_two_hours() {
        let session = Session {
            credential: CredentialId(1),
            token: SecretHash([0; 32]),
            created_at: hour(0),
            last_seen_at: hour(9),
            expires_at: hour(12),
        };
        assert!(session.is_active(later(hour(11), SignedDuration::from_secs(119))));
        assert!(!session.is_active(later(hour(11), MAX_UNRECORDED_USE)), "idle");
        let used = Session { last_seen_at: hour(11), ..session };
        assert!(used.is_active(hour(11)));
        assert!(!used.is_active(hour(12)), "ended");
    }
}
