//! Sessions of the console, and the links that start them.

use galley_domain::account::Scopes;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::{
    AddCredentialOutcome, AuditKind, Author, CredentialId, CredentialKind, LinkRedemption,
    MAX_SESSIONS_PER_TOKEN, NewConsoleLink, NewCredential, NewSession, RedeemLinkOutcome,
    SESSION_IDLE_HOURS, SecretHash, Session, Store, StoreError, StoreFuture, accounts,
    decisions::audit::AuditedChange,
    encoding::millis,
    engine::{Read, ReadPath, Tx, Value, Write, values},
    records::MAX_UNRECORDED_USE,
    stored_row::{Row, StoredRow as _},
};

impl Store {
    /// Starts a session, and ends the oldest ones of its token beyond the maximum. Sessions of one
    /// token start one after the other.
    pub fn start_session(&self, new: NewSession) -> StoreFuture<'_, ()> {
        self.write("start_session", new, |new, tx| {
            Box::pin(async move {
                let credential = new.credential.0;
                let token =
                    format!("SELECT 1 FROM credential WHERE id = $1{}", tx.dialect().for_update());
                tx.exists(&token, &values![credential]).await?;
                let surplus = "SELECT hash FROM console_session WHERE credential_id = $1 \
                               ORDER BY created_at DESC LIMIT 9223372036854775807 OFFSET $2";
                delete_sessions(tx, surplus, &values![credential, MAX_SESSIONS_PER_TOKEN - 1])
                    .await?;
                insert(tx, new)
            })
        })
    }

    /// The session with this secret, unless it has expired. Its token may be invalid.
    pub fn session(&self, hash: SecretHash, at: Timestamp) -> StoreFuture<'_, Option<Session>> {
        Box::pin(async move {
            let statement = "SELECT s.credential_id, c.hash AS token_hash, s.created_at, s.last_seen_at, \
                             s.expires_at FROM console_session s \
                             JOIN credential c ON c.id = s.credential_id WHERE s.hash = $1";
            let found = self
                .read_one("session", ReadPath::Point, statement, values![hash], session)
                .await?;
            Ok(found.filter(|session| session.is_active(at)))
        })
    }

    /// Records when sessions were last used. An earlier time than the recorded one changes nothing,
    /// and neither does a session that does not exist.
    pub fn record_session_use(&self, uses: Vec<(SecretHash, Timestamp)>) -> StoreFuture<'_, ()> {
        self.write("record_session_use", uses, |uses, tx| {
            Box::pin(async move {
                let mut in_order = uses.clone();
                in_order.sort_unstable_by_key(|(hash, _)| hash.0);
                for (hash, at) in in_order {
                    let update = "UPDATE console_session SET last_seen_at = $2 WHERE hash = $1 \
                                  AND last_seen_at < $2";
                    tx.defer(update, &values![hash, at])?;
                }
                Ok(())
            })
        })
    }

    /// Ends a session; `false` if there is none.
    pub fn end_session(&self, hash: SecretHash) -> StoreFuture<'_, bool> {
        self.write_for_operator("end_session", hash, |hash, tx| {
            Box::pin(async move {
                let delete = "DELETE FROM console_session WHERE hash = $1";
                Ok(tx.execute(delete, &values![*hash]).await? > 0)
            })
        })
    }

    /// Creates a link that starts one session; `false` if the account does not exist.
    pub fn create_console_link(&self, new: NewConsoleLink, by: Author) -> StoreFuture<'_, bool> {
        self.write_for_operator("create_console_link", (new, by), |(new, by), tx| {
            Box::pin(async move {
                tx.lock_credentials().await?;
                if accounts::one(tx, new.account).await?.is_none() {
                    return Ok(false);
                }
                let insert = "INSERT INTO console_link (hash, account_id, name, scopes, expires_at) \
                              VALUES ($1, $2, $3, $4, $5)";
                let (scopes, end) = (new.scopes.to_string(), NewConsoleLink::end(by.at));
                tx.defer(insert, &values![new.hash, new.account, &new.name, &scopes, end])?;
                let details = json!({"name": new.name, "scopes": scopes});
                let kind = AuditKind::ConsoleLinkCreated;
                tx.audit(new.account, AuditedChange::new(kind, new.account, details), *by)?;
                Ok(true)
            })
        })
    }

    /// Uses up a link: creates a token that lasts [`SESSION_HOURS`](crate::SESSION_HOURS), and starts a
    /// session for it.
    pub fn redeem_console_link(
        &self,
        redemption: LinkRedemption,
    ) -> StoreFuture<'_, RedeemLinkOutcome> {
        Box::pin(async move {
            // A wrong guess queues no write and takes no lock.
            let find = "SELECT 1 FROM console_link WHERE hash = $1";
            if !self
                .exists("find_console_link", ReadPath::Point, find, values![redemption.link])
                .await?
            {
                return Ok(RedeemLinkOutcome::Invalid);
            }
            self.write("redeem_console_link", redemption, |redemption, tx| {
                Box::pin(redeem(tx, *redemption))
            })
            .await
        })
    }
}

/// Sessions that were last used at or before this time have expired, even if a later use is not
/// recorded yet.
fn idle_cutoff(at: Timestamp) -> i64 {
    let idle_hours = SignedDuration::from_hours(SESSION_IDLE_HOURS);
    millis(at) - millis(Timestamp::UNIX_EPOCH + idle_hours + MAX_UNRECORDED_USE)
}

fn insert(tx: &mut Tx<'_>, new: &NewSession) -> Result<(), StoreError> {
    let insert = "INSERT INTO console_session (hash, credential_id, created_at, last_seen_at, \
                  expires_at) VALUES ($1, $2, $3, $3, $4)";
    tx.defer(insert, &values![new.hash, new.credential.0, new.at, new.expires_at])
}

/// Deletes the sessions whose hashes a statement finds. All transactions lock sessions in the order of
/// their hashes, so that they never wait for each other in a circle.
async fn delete_sessions(
    tx: &mut Tx<'_>,
    hashes: &str,
    values: &[Value<'_>],
) -> Result<(), StoreError> {
    let delete = format!(
        "DELETE FROM console_session WHERE hash IN (SELECT hash FROM console_session \
         WHERE hash IN ({hashes}) ORDER BY hash{})",
        tx.dialect().for_update()
    );
    tx.execute(&delete, values).await.map(drop)
}

async fn redeem(
    tx: &mut Tx<'_>,
    LinkRedemption { link, token, session, at }: LinkRedemption,
) -> Result<RedeemLinkOutcome, StoreError> {
    tx.lock_credentials().await?;
    let find = format!(
        "SELECT account_id, name, scopes, expires_at FROM console_link WHERE hash = $1{}",
        tx.dialect().for_update()
    );
    let values = values![link];
    let found = tx.query_one(&find, &values, |row| {
        let scopes = row.parsed("scopes", |scopes| Scopes::parse(scopes).ok())?;
        let (account, end) = (row.account_id("account_id")?, row.timestamp("expires_at")?);
        Ok((account, row.value("name")?, scopes, end))
    });
    let invalid = Ok(RedeemLinkOutcome::Invalid);
    let Some((account, name, scopes, end)) = found.await? else { return invalid };
    let Some(account) = accounts::one(tx, account).await? else { return invalid };
    if end <= at {
        return invalid;
    }
    if account.disabled_at.is_some() {
        return Ok(RedeemLinkOutcome::AccountDisabled);
    }
    // The token lasts as long as its session.
    let mut session = NewSession::new(session, CredentialId(0), None, at);
    let (kind, expires_at) = (CredentialKind::Token, Some(session.expires_at));
    let new = NewCredential { kind, hash: token, scopes, expires_at, name };
    // The operator who created the link permits the token.
    let by = Author::operator(at);
    let added = accounts::add_credential(tx, account.id, &new, by).await?;
    let AddCredentialOutcome::Added(id) = added else { return invalid };
    tx.execute("DELETE FROM console_link WHERE hash = $1", &values).await?;
    session.credential = id;
    insert(tx, &session)?;
    Ok(RedeemLinkOutcome::Redeemed(id))
}

/// The sessions and links that have expired.
pub(crate) fn expired(at: Timestamp) -> Read<()> {
    let statement = "SELECT 1 FROM console_session WHERE expires_at <= $1 OR last_seen_at <= $2 \
                     UNION ALL SELECT 1 FROM console_link WHERE expires_at <= $1 LIMIT 1";
    Read::new(ReadPath::Background, statement, values![at, idle_cutoff(at)], |_| Ok(()))
}

/// Deletes sessions and links that have expired.
pub(crate) fn deletion(at: Timestamp) -> Write<Timestamp, ()> {
    Write::new(at, |&at, tx| {
        Box::pin(async move {
            let sessions =
                "SELECT hash FROM console_session WHERE expires_at <= $1 OR last_seen_at <= $2";
            delete_sessions(tx, sessions, &values![at, idle_cutoff(at)]).await?;
            let links = "DELETE FROM console_link WHERE expires_at <= $1";
            tx.execute(links, &values![at]).await.map(drop)
        })
    })
}

/// The session in a row.
fn session(row: &Row<'_>) -> Result<Session, StoreError> {
    Ok(Session {
        credential: CredentialId(row.number("credential_id")?),
        token: row
            .decoded("token_hash", |hash: Vec<u8>| Some(SecretHash(hash.try_into().ok()?)))?,
        created_at: row.timestamp("created_at")?,
        last_seen_at: row.timestamp("last_seen_at")?,
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
