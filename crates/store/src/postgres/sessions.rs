//! Sessions of the console and the links that start them, as SQL.

use async_trait::async_trait;
use jiff::Timestamp;

use super::{
    PostgresStore, accounts,
    columns::{key, millis},
    credentials::{self, lock_epoch},
    pool::{PgPools, Values},
    transaction::{Transaction, transact},
};
use crate::{
    AddCredentialOutcome, Author, NewConsoleLink, NewSession, RedeemLinkOutcome, SecretHash,
    Session, SessionStore, StoreError,
    decisions::{
        audit::AuditedChange,
        sessions::{COLUMNS, KEPT_SESSIONS, console_link, idle_cutoff, plan_redemption, session},
    },
};

#[async_trait]
impl SessionStore for PostgresStore {
    async fn start_session(&self, new: NewSession) -> Result<(), StoreError> {
        transact!(self, tx => start(tx, &new))
    }

    async fn session(
        &self,
        hash: SecretHash,
        at: Timestamp,
    ) -> Result<Option<Session>, StoreError> {
        let statement = format!("SELECT {COLUMNS} WHERE s.hash = $1");
        let row = self.pools.read_one(&statement, &[&&hash.0[..]]).await?;
        let found = row.as_ref().map(session).transpose()?;
        Ok(found.filter(|session| session.is_active(at)))
    }

    async fn record_session_use(
        &self,
        uses: Vec<(SecretHash, Timestamp)>,
    ) -> Result<(), StoreError> {
        let (hashes, times): (Vec<Vec<u8>>, Vec<i64>) =
            uses.into_iter().map(|(hash, at)| (hash.0.to_vec(), millis(at))).unzip();
        // The epoch row is locked, so that two instances never wait for each other in a circle.
        transact!(self, tx => async {
            lock_epoch(tx).await?;
            let update = "UPDATE console_session SET last_seen_at = used.at \
                          FROM unnest($1::bytea[], $2::int8[]) AS used (hash, at) \
                          WHERE console_session.hash = used.hash AND \
                          console_session.last_seen_at < used.at";
            tx.execute(update, &[&hashes, &times]).await.map(drop)
        })
    }

    async fn end_session(&self, hash: SecretHash) -> Result<bool, StoreError> {
        let delete = "DELETE FROM console_session WHERE hash = $1";
        transact!(self, tx => async {
            Ok(tx.execute(delete, &[&&hash.0[..]]).await? > 0)
        })
    }

    async fn create_console_link(
        &self,
        new: NewConsoleLink,
        by: Author,
    ) -> Result<bool, StoreError> {
        transact!(self, tx => create_link(tx, &new, by))
    }

    async fn redeem_console_link(
        &self,
        link: SecretHash,
        token: SecretHash,
        session: SecretHash,
        at: Timestamp,
    ) -> Result<RedeemLinkOutcome, StoreError> {
        // A wrong guess takes no lock.
        let find = "SELECT 1 FROM console_link WHERE hash = $1";
        if self.pools.read_one(find, &[&&link.0[..]]).await?.is_none() {
            return Ok(RedeemLinkOutcome::Invalid);
        }
        transact!(self, tx => redeem(tx, link, token, session, at))
    }
}

/// Starts a session, and ends the oldest ones of its token beyond the maximum.
async fn start(transaction: &Transaction, new: &NewSession) -> Result<(), StoreError> {
    let surplus = "DELETE FROM console_session WHERE hash IN (SELECT hash FROM console_session \
                   WHERE credential_id = $1 ORDER BY created_at DESC OFFSET $2)";
    transaction.execute(surplus, &[&key(new.credential.0), &KEPT_SESSIONS]).await?;
    let insert = "INSERT INTO console_session (hash, credential_id, created_at, last_seen_at, \
                  expires_at) VALUES ($1, $2, $3, $3, $4)";
    let values: Values<'_> =
        &[&&new.hash.0[..], &key(new.credential.0), &millis(new.at), &millis(new.expires_at)];
    transaction.execute(insert, values).await.map(drop)
}

async fn create_link(
    transaction: &mut Transaction,
    new: &NewConsoleLink,
    by: Author,
) -> Result<bool, StoreError> {
    lock_epoch(transaction).await?;
    if accounts::one(transaction, new.account).await?.is_none() {
        return Ok(false);
    }
    let insert = "INSERT INTO console_link (hash, account_id, name, scopes, expires_at) \
                  VALUES ($1, $2, $3, $4, $5)";
    let values: Values<'_> = &[
        &&new.hash.0[..],
        &key(new.account.get()),
        &new.name,
        &new.scopes.to_string(),
        &millis(NewConsoleLink::end(by.at)),
    ];
    transaction.execute(insert, values).await?;
    transaction.audit(new.account, AuditedChange::ConsoleLinkCreated(new), by);
    Ok(true)
}

async fn redeem(
    transaction: &mut Transaction,
    link: SecretHash,
    token: SecretHash,
    session: SecretHash,
    at: Timestamp,
) -> Result<RedeemLinkOutcome, StoreError> {
    lock_epoch(transaction).await?;
    let find = "SELECT account_id, name, scopes, expires_at FROM console_link WHERE hash = $1 \
                FOR UPDATE";
    let row = transaction.query_one(find, &[&&link.0[..]]).await?;
    let found = row.as_ref().map(console_link).transpose()?;
    let account = match &found {
        Some(link) => accounts::one(transaction, link.account).await?,
        None => None,
    };
    let planned = match plan_redemption(found.as_ref(), account.as_ref(), token, at) {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    let Some(account) = account else { return Ok(RedeemLinkOutcome::Invalid) };
    // The operator who created the link permits the token.
    let added = credentials::add(transaction, account.id, &planned, Author::operator(at)).await?;
    let AddCredentialOutcome::Added(id) = added else { return Ok(RedeemLinkOutcome::Invalid) };
    let delete = "DELETE FROM console_link WHERE hash = $1";
    transaction.execute(delete, &[&&link.0[..]]).await?;
    start(transaction, &NewSession::new(session, id, planned.expires_at, at)).await?;
    Ok(RedeemLinkOutcome::Redeemed(id))
}

/// Deletes sessions and links that have expired.
pub(super) async fn delete_expired(pools: &PgPools, at: Timestamp) -> Result<(), StoreError> {
    let connection = pools.acquire_slow().await?;
    let sessions = "DELETE FROM console_session WHERE expires_at <= $1 OR last_seen_at <= $2";
    connection.execute(sessions, &[&millis(at), &idle_cutoff(at)]).await?;
    let links = "DELETE FROM console_link WHERE expires_at <= $1";
    connection.execute(links, &[&millis(at)]).await.map(drop)
}
