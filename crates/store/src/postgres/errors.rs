//! What the driver reports, by what the caller can do about it.

use std::sync::Arc;

use deadpool_postgres::{PoolError, TimeoutType};
use tokio_postgres::{
    Error,
    error::{DbError, Severity, SqlState},
};

use crate::StoreError;

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let Some(code) = error.code() else {
            // No answer of the server: the connection is gone, or nothing can be made of it.
            return if error.is_closed() || caused_by_io(&error) {
                Self::Unavailable(Arc::new(error))
            } else {
                Self::Failed(Arc::new(error))
            };
        };
        match code {
            code if is_full(code) => Self::Full(Arc::new(error)),
            code if is_away(code) => Self::Unavailable(Arc::new(error)),
            _ => Self::Failed(Arc::new(error)),
        }
    }
}

impl From<PoolError> for StoreError {
    fn from(error: PoolError) -> Self {
        match error {
            // All connections are in use: more would only wait as well.
            PoolError::Timeout(TimeoutType::Wait) => Self::Busy,
            PoolError::Backend(error) => match Self::from(error) {
                // Whatever keeps a connection from being made, nothing was done yet.
                Self::Failed(cause) => Self::Unavailable(cause),
                other => other,
            },
            other => Self::Unavailable(Arc::new(other)),
        }
    }
}

fn caused_by_io(error: &Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        if inner.is::<std::io::Error>() {
            return true;
        }
        cause = inner.source();
    }
    false
}

fn is_full(code: &SqlState) -> bool {
    [SqlState::DISK_FULL, SqlState::OUT_OF_MEMORY].contains(code)
}

/// Whether nothing more is to be expected of the connection: the server is going, or has become one
/// that takes no writes; or what it has prepared does not fit the tables any more.
pub(super) fn spoils(error: &Error) -> bool {
    let Some(code) = error.code() else { return true };
    is_of_connection(code)
        || [
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::FEATURE_NOT_SUPPORTED,
            SqlState::INVALID_SQL_STATEMENT_NAME,
            SqlState::IN_FAILED_SQL_TRANSACTION,
        ]
        .contains(code)
}

fn is_of_connection(code: &SqlState) -> bool {
    code.code().starts_with("08") || code.code().starts_with("57P")
}

/// The server is going, coming, another one than it was, or was too slow.
fn is_away(code: &SqlState) -> bool {
    is_of_connection(code)
        || [
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::READ_ONLY_SQL_TRANSACTION,
            // Of a server that may only be read, and of a statement that was prepared for tables
            // which have changed: on another connection it works.
            SqlState::FEATURE_NOT_SUPPORTED,
            SqlState::INVALID_SQL_STATEMENT_NAME,
            SqlState::IN_FAILED_SQL_TRANSACTION,
            SqlState::QUERY_CANCELED,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ]
        .contains(code)
}

/// Whether the same transaction may well succeed when it is run again from its beginning.
pub(super) fn is_worth_another_try(error: &StoreError) -> bool {
    let StoreError::Unavailable(cause) = error else { return false };
    let code = cause.downcast_ref::<Error>().and_then(Error::code);
    let again = [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::T_R_DEADLOCK_DETECTED];
    code.is_some_and(|code| again.contains(&code))
}

/// Whether something was locked by somebody else for too long.
pub(super) fn is_locked(error: &StoreError) -> bool {
    let StoreError::Unavailable(cause) = error else { return false };
    let code = cause.downcast_ref::<Error>().and_then(Error::code);
    code == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Whether the connection turned out to be gone. A server that was too slow is no such case.
pub(super) fn is_lost_connection(error: &StoreError) -> bool {
    let StoreError::Unavailable(cause) = error else { return false };
    let error = cause.downcast_ref::<Error>();
    error.is_some_and(|error| error.code().is_none_or(is_of_connection))
}

/// Whether somebody else was faster with a name or an id: tried again, the transaction sees it.
pub(super) fn is_collision(error: &StoreError) -> bool {
    let StoreError::Failed(cause) = error else { return false };
    let code = cause.downcast_ref::<Error>().and_then(Error::code);
    code == Some(&SqlState::UNIQUE_VIOLATION)
}

/// Whether it was the name.
pub(super) fn is_taken_name(error: &StoreError) -> bool {
    let StoreError::Failed(cause) = error else { return false };
    let refusal = cause.downcast_ref::<Error>().and_then(Error::as_db_error);
    refusal.and_then(DbError::constraint) == Some("template_claim_key")
}

/// What became of a statement that was sent together with a commit: if the server has refused it,
/// nothing was committed; if it has not answered, or the connection ended, nobody knows.
pub(super) fn beside_commit(error: StoreError) -> StoreError {
    let is_refused = match &error {
        StoreError::Unavailable(cause) | StoreError::Failed(cause) | StoreError::Full(cause) => {
            cause.downcast_ref::<Error>().and_then(Error::as_db_error).is_some_and(|error| {
                error.parsed_severity() == Some(Severity::Error) && !is_of_connection(error.code())
            })
        }
        StoreError::Busy | StoreError::OutcomeUnknown(_) => true,
    };
    if is_refused { error } else { at_commit(error) }
}

/// What became of a commit that failed: nobody knows.
pub(super) fn at_commit(error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(cause) | StoreError::Failed(cause) | StoreError::Full(cause) => {
            StoreError::OutcomeUnknown(cause)
        }
        other => other,
    }
}
