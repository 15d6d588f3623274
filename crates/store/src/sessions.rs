//! Sessions of the console, and the links that start them.

mod rows;

use jiff::Timestamp;
use serde_json::json;

use self::rows::{COLUMNS, KEPT_SESSIONS, console_link, idle_cutoff, plan_redemption, session};
use crate::{
    AddCredentialOutcome, AuditKind, Author, NewConsoleLink, NewSession, RedeemLinkOutcome,
    SecretHash, Session, Store, StoreError, accounts,
    decisions::audit::AuditedChange,
    engine::{Read, ReadPath, Tx, Value, Write, values},
};

impl Store {
    /// Starts a session.
    pub async fn start_session(&self, new: NewSession) -> Result<(), StoreError> {
        self.write("start_session", new, |new, tx| Box::pin(start(tx, new))).await
    }

    /// The session with this secret, unless it has expired. Its token may be invalid.
    pub async fn session(
        &self,
        hash: SecretHash,
        at: Timestamp,
    ) -> Result<Option<Session>, StoreError> {
        let statement = format!("SELECT {COLUMNS} WHERE s.hash = $1");
        let found =
            self.read_one("session", ReadPath::Point, statement, values![hash], session).await?;
        Ok(found.filter(|session| session.is_active(at)))
    }

    /// Records when sessions were last used. An earlier time than the recorded one changes nothing,
    /// and neither does a session that does not exist.
    pub async fn record_session_use(
        &self,
        uses: Vec<(SecretHash, Timestamp)>,
    ) -> Result<(), StoreError> {
        self.write("record_session_use", uses, |uses, tx| {
            Box::pin(std::future::ready(record_use(tx, uses)))
        })
        .await
    }

    /// Ends a session; `false` if there is none.
    pub async fn end_session(&self, hash: SecretHash) -> Result<bool, StoreError> {
        self.write_for_operator("end_session", hash, |hash, tx| Box::pin(end(tx, *hash))).await
    }

    /// Creates a link that starts one session; `false` if the account does not exist.
    pub async fn create_console_link(
        &self,
        new: NewConsoleLink,
        by: Author,
    ) -> Result<bool, StoreError> {
        self.write_for_operator("create_console_link", (new, by), |(new, by), tx| {
            Box::pin(create_link(tx, new, *by))
        })
        .await
    }

    /// Uses up a link: creates a token with the secret `token` that lasts
    /// [`SESSION_HOURS`](crate::SESSION_HOURS), and starts the session `session` for it.
    pub async fn redeem_console_link(
        &self,
        link: SecretHash,
        token: SecretHash,
        session: SecretHash,
        at: Timestamp,
    ) -> Result<RedeemLinkOutcome, StoreError> {
        // A wrong guess queues no write and takes no lock.
        let find = "SELECT 1 FROM console_link WHERE hash = $1";
        if !self.exists("find_console_link", ReadPath::Point, find, values![link]).await? {
            return Ok(RedeemLinkOutcome::Invalid);
        }
        let input = (link, token, session, at);
        self.write("redeem_console_link", input, |&(link, token, session, at), tx| {
            Box::pin(redeem(tx, link, token, session, at))
        })
        .await
    }
}

/// Starts a session, and ends the oldest ones of its token beyond the maximum. Sessions of one token
/// start one after the other.
async fn start(tx: &mut Tx<'_>, new: &NewSession) -> Result<(), StoreError> {
    let token = format!("SELECT 1 FROM credential WHERE id = $1{}", tx.dialect().for_update());
    tx.exists(&token, &values![new.credential.0]).await?;
    let surplus = "SELECT hash FROM console_session WHERE credential_id = $1 \
                   ORDER BY created_at DESC LIMIT 9223372036854775807 OFFSET $2";
    delete_sessions(tx, surplus, &values![new.credential.0, KEPT_SESSIONS]).await?;
    insert(tx, new)
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

fn record_use(tx: &mut Tx<'_>, uses: &[(SecretHash, Timestamp)]) -> Result<(), StoreError> {
    let mut in_order = uses.to_vec();
    in_order.sort_unstable_by_key(|(hash, _)| hash.0);
    for (hash, at) in in_order {
        let update =
            "UPDATE console_session SET last_seen_at = $2 WHERE hash = $1 AND last_seen_at < $2";
        tx.defer(update, &values![hash, at])?;
    }
    Ok(())
}

async fn end(tx: &mut Tx<'_>, hash: SecretHash) -> Result<bool, StoreError> {
    let delete = "DELETE FROM console_session WHERE hash = $1";
    Ok(tx.execute(delete, &values![hash]).await? > 0)
}

async fn create_link(
    tx: &mut Tx<'_>,
    new: &NewConsoleLink,
    by: Author,
) -> Result<bool, StoreError> {
    tx.lock_credentials().await?;
    if accounts::one(tx, new.account).await?.is_none() {
        return Ok(false);
    }
    let insert = "INSERT INTO console_link (hash, account_id, name, scopes, expires_at) \
                  VALUES ($1, $2, $3, $4, $5)";
    let (scopes, expires_at) = (new.scopes.to_string(), NewConsoleLink::end(by.at));
    tx.defer(insert, &values![new.hash, new.account, &new.name, scopes, expires_at])?;
    let details = json!({"name": new.name, "scopes": new.scopes.to_string()});
    let created = AuditedChange::new(AuditKind::ConsoleLinkCreated, new.account, details);
    tx.audit(new.account, created, by)?;
    Ok(true)
}

async fn redeem(
    tx: &mut Tx<'_>,
    link: SecretHash,
    token: SecretHash,
    session: SecretHash,
    at: Timestamp,
) -> Result<RedeemLinkOutcome, StoreError> {
    tx.lock_credentials().await?;
    let find = format!(
        "SELECT account_id, name, scopes, expires_at FROM console_link WHERE hash = $1{}",
        tx.dialect().for_update()
    );
    let invalid = Ok(RedeemLinkOutcome::Invalid);
    let Some(found) = tx.query_one(&find, &values![link], console_link).await? else {
        return invalid;
    };
    let Some(account) = accounts::one(tx, found.account).await? else { return invalid };
    let planned = match plan_redemption(&found, &account, token, at) {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    // The operator who created the link permits the token.
    let by = Author::operator(at);
    let added = accounts::add_credential(tx, account.id, &planned, by).await?;
    let AddCredentialOutcome::Added(id) = added else { return invalid };
    tx.execute("DELETE FROM console_link WHERE hash = $1", &values![link]).await?;
    insert(tx, &NewSession::new(session, id, planned.expires_at, at))?;
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
    Write::new(at, |at, tx| Box::pin(delete_expired(tx, *at)))
}

async fn delete_expired(tx: &mut Tx<'_>, at: Timestamp) -> Result<(), StoreError> {
    let sessions = "SELECT hash FROM console_session WHERE expires_at <= $1 OR last_seen_at <= $2";
    delete_sessions(tx, sessions, &values![at, idle_cutoff(at)]).await?;
    tx.execute("DELETE FROM console_link WHERE expires_at <= $1", &values![at]).await.map(drop)
}
