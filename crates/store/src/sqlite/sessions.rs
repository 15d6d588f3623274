//! SQL for sessions of the console and the links that start them.

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, params};

use super::{
    SqliteStore, accounts, audit,
    columns::{key, millis},
    credentials,
    writer::Batch,
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
impl SessionStore for SqliteStore {
    async fn start_session(&self, new: NewSession) -> Result<(), StoreError> {
        self.writer.write(move |batch| start(batch.connection(), &new)).await
    }

    async fn session(
        &self,
        hash: SecretHash,
        at: Timestamp,
    ) -> Result<Option<Session>, StoreError> {
        let found = self.point_readers.read(|connection| by_hash(connection, hash))?;
        Ok(found.filter(|session| session.is_active(at)))
    }

    async fn record_session_use(
        &self,
        uses: Vec<(SecretHash, Timestamp)>,
    ) -> Result<(), StoreError> {
        self.writer
            .write(move |batch| {
                let mut update = batch.connection().prepare_cached(
                    "UPDATE console_session SET last_seen_at = ?2 \
                     WHERE hash = ?1 AND last_seen_at < ?2",
                )?;
                for (hash, at) in &uses {
                    update.execute(params![hash.0, millis(*at)])?;
                }
                Ok(())
            })
            .await
    }

    async fn end_session(&self, hash: SecretHash) -> Result<bool, StoreError> {
        self.writer
            .write_for_operator(move |batch| {
                let mut delete = batch
                    .connection()
                    .prepare_cached("DELETE FROM console_session WHERE hash = ?1")?;
                Ok(delete.execute([hash.0])? > 0)
            })
            .await
    }

    async fn create_console_link(
        &self,
        new: NewConsoleLink,
        by: Author,
    ) -> Result<bool, StoreError> {
        self.writer.write_for_operator(move |batch| create_link(batch, &new, by)).await
    }

    async fn redeem_console_link(
        &self,
        link: SecretHash,
        token: SecretHash,
        session: SecretHash,
        at: Timestamp,
    ) -> Result<RedeemLinkOutcome, StoreError> {
        // A wrong guess does not queue a write.
        let find = |connection: &Connection| {
            let mut query =
                connection.prepare_cached("SELECT 1 FROM console_link WHERE hash = ?1")?;
            Ok(query.exists([link.0])?)
        };
        if !self.point_readers.read(find)? {
            return Ok(RedeemLinkOutcome::Invalid);
        }
        self.writer.write(move |batch| redeem(batch, link, token, session, at)).await
    }
}

/// Starts a session, and ends the oldest ones of its token beyond the maximum.
fn start(connection: &Connection, new: &NewSession) -> Result<(), StoreError> {
    connection
        .prepare_cached(
            "DELETE FROM console_session WHERE hash IN (SELECT hash FROM console_session \
             WHERE credential_id = ?1 ORDER BY created_at DESC LIMIT -1 OFFSET ?2)",
        )?
        .execute([key(new.credential.0), KEPT_SESSIONS])?;
    connection
        .prepare_cached(
            "INSERT INTO console_session (hash, credential_id, created_at, last_seen_at, \
             expires_at) VALUES (?1, ?2, ?3, ?3, ?4)",
        )?
        .execute(params![
            new.hash.0,
            key(new.credential.0),
            millis(new.at),
            millis(new.expires_at)
        ])?;
    Ok(())
}

fn by_hash(connection: &Connection, hash: SecretHash) -> Result<Option<Session>, StoreError> {
    let mut query = connection.prepare_cached(&format!("SELECT {COLUMNS} WHERE s.hash = ?1"))?;
    let mut rows = query.query([hash.0])?;
    rows.next()?.map(session).transpose()
}

fn create_link(
    batch: &mut Batch<'_>,
    new: &NewConsoleLink,
    by: Author,
) -> Result<bool, StoreError> {
    let connection = batch.connection();
    if accounts::one(connection, new.account)?.is_none() {
        return Ok(false);
    }
    connection.execute(
        "INSERT INTO console_link (hash, account_id, name, scopes, expires_at) \
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            new.hash.0,
            key(new.account.get()),
            new.name,
            new.scopes.to_string(),
            millis(NewConsoleLink::end(by.at)),
        ],
    )?;
    audit::append(connection, new.account, AuditedChange::ConsoleLinkCreated(new), by)?;
    Ok(true)
}

fn redeem(
    batch: &mut Batch<'_>,
    link: SecretHash,
    token: SecretHash,
    session: SecretHash,
    at: Timestamp,
) -> Result<RedeemLinkOutcome, StoreError> {
    let found = {
        let mut query = batch.connection().prepare_cached(
            "SELECT account_id, name, scopes, expires_at FROM console_link WHERE hash = ?1",
        )?;
        let mut rows = query.query([link.0])?;
        rows.next()?.map(console_link).transpose()?
    };
    let account = match &found {
        Some(link) => accounts::one(batch.connection(), link.account)?,
        None => None,
    };
    let (Some(account), planned) =
        (account.as_ref(), plan_redemption(found.as_ref(), account.as_ref(), token, at))
    else {
        return Ok(RedeemLinkOutcome::Invalid);
    };
    let planned = match planned {
        Ok(planned) => planned,
        Err(refusal) => return Ok(refusal),
    };
    // The operator who created the link permits the token.
    let added = credentials::add(batch, account.id, &planned, Author::operator(at))?;
    let AddCredentialOutcome::Added(id) = added else { return Ok(RedeemLinkOutcome::Invalid) };
    let connection = batch.connection();
    connection.prepare_cached("DELETE FROM console_link WHERE hash = ?1")?.execute([link.0])?;
    start(connection, &NewSession::new(session, id, planned.expires_at, at))?;
    Ok(RedeemLinkOutcome::Redeemed(id))
}

/// Deletes sessions and links that have expired.
pub(super) fn delete_expired(connection: &Connection, at: Timestamp) -> Result<(), StoreError> {
    connection
        .prepare_cached("DELETE FROM console_session WHERE expires_at <= ?1 OR last_seen_at <= ?2")?
        .execute([millis(at), idle_cutoff(at)])?;
    connection
        .prepare_cached("DELETE FROM console_link WHERE expires_at <= ?1")?
        .execute([millis(at)])?;
    Ok(())
}

/// Whether sessions or links have expired.
pub(super) fn has_expired(connection: &Connection, at: Timestamp) -> Result<bool, StoreError> {
    let mut query = connection.prepare_cached(
        "SELECT 1 FROM console_session WHERE expires_at <= ?1 OR last_seen_at <= ?2 \
         UNION ALL SELECT 1 FROM console_link WHERE expires_at <= ?1",
    )?;
    Ok(query.exists([millis(at), idle_cutoff(at)])?)
}
