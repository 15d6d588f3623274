//! Sessions of the console, and the links that start them.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::{
    Author, NewConsoleLink, NewSession, RedeemLinkOutcome, SecretHash, Session, StoreError,
};

/// Sessions of the console, and the links that start them.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Starts a session.
    async fn start_session(&self, new: NewSession) -> Result<(), StoreError>;

    /// The session with this secret, unless it has expired. Its token may be invalid.
    async fn session(&self, hash: SecretHash, at: Timestamp)
    -> Result<Option<Session>, StoreError>;

    /// Records when sessions were last used. An earlier time than the recorded one changes nothing,
    /// and neither does a session that does not exist.
    async fn record_session_use(
        &self,
        uses: Vec<(SecretHash, Timestamp)>,
    ) -> Result<(), StoreError>;

    /// Ends a session; `false` if there is none.
    async fn end_session(&self, hash: SecretHash) -> Result<bool, StoreError>;

    /// Creates a link that starts one session; `false` if the account does not exist.
    async fn create_console_link(
        &self,
        new: NewConsoleLink,
        by: Author,
    ) -> Result<bool, StoreError>;

    /// Uses up a link: creates a token with the secret `token` that lasts [`SESSION_HOURS`](crate::SESSION_HOURS), and
    /// starts the session `session` for it.
    async fn redeem_console_link(
        &self,
        link: SecretHash,
        token: SecretHash,
        session: SecretHash,
        at: Timestamp,
    ) -> Result<RedeemLinkOutcome, StoreError>;
}
