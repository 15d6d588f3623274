//! Maps driver errors to [`StoreError`] and classifies them for retries.

use std::{iter::successors, sync::Arc};

use tokio_postgres::{
    Error,
    error::{DbError, Severity, SqlState},
};

use crate::{Cause, StoreError};

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let kind: fn(Cause) -> Self = match error.code() {
            // Not an error from the server: the connection is lost, or the driver failed.
            None if error.is_closed() || is_caused_by_io(&error) => Self::Unavailable,
            Some(code) if [SqlState::DISK_FULL, SqlState::OUT_OF_MEMORY].contains(code) => {
                Self::Full
            }
            Some(code) if is_unavailable(code) => Self::Unavailable,
            // The server found a page that does not match its checksum, or is not a valid page.
            Some(code) if [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(code) => {
                Self::Damaged
            }
            None | Some(_) => Self::Failed,
        };
        kind(Arc::new(error))
    }
}

fn is_caused_by_io(error: &Error) -> bool {
    let mut causes = successors(std::error::Error::source(error), |cause| cause.source());
    causes.any(<dyn std::error::Error>::is::<std::io::Error>)
}

/// Whether the connection must not be reused: the server is shutting down or has become read-only,
/// or its prepared statements no longer match the tables.
pub(super) fn breaks_connection(error: &Error) -> bool {
    error.code().is_none_or(needs_other_connection)
}

fn is_connection_error(code: &SqlState) -> bool {
    code.code().starts_with("08") || code.code().starts_with("57P")
}

fn needs_other_connection(code: &SqlState) -> bool {
    is_connection_error(code)
        || [
            SqlState::READ_ONLY_SQL_TRANSACTION,
            // From a read-only server, or for a prepared statement whose tables have changed.
            SqlState::FEATURE_NOT_SUPPORTED,
            SqlState::INVALID_SQL_STATEMENT_NAME,
            SqlState::IN_FAILED_SQL_TRANSACTION,
        ]
        .contains(code)
}

/// Whether the server is shutting down, starting, read-only, too slow, or reports a conflict.
fn is_unavailable(code: &SqlState) -> bool {
    needs_other_connection(code)
        || [
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::QUERY_CANCELED,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ]
        .contains(code)
}

/// The error of the driver, unless the outcome is unknown.
fn driver_error(error: &StoreError) -> Option<&Error> {
    match error {
        StoreError::Unavailable(cause)
        | StoreError::Damaged(cause)
        | StoreError::Failed(cause)
        | StoreError::Full(cause) => cause.downcast_ref(),
        StoreError::Busy
        | StoreError::TooManyReads(_)
        | StoreError::TooManyChanges { .. }
        | StoreError::OutcomeUnknown(_) => None,
    }
}

fn code(error: &StoreError) -> Option<&SqlState> {
    driver_error(error).and_then(Error::code)
}

/// Whether the transaction may succeed when it is repeated: a serialization failure or a deadlock.
pub(super) fn is_transient_conflict(error: &StoreError) -> bool {
    let transient = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
    code(error).is_some_and(|code| transient.contains(code))
}

/// Whether the statement timed out waiting for another transaction's lock.
pub(super) fn is_lock_timeout(error: &StoreError) -> bool {
    code(error) == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Whether the connection was lost. A server that was too slow does not count.
pub(super) fn is_lost_connection(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(_))
        && driver_error(error).is_some_and(|error| error.code().is_none_or(is_connection_error))
}

/// Whether another transaction was faster with a name or an id. A retry sees its row.
pub(super) fn is_unique_violation(error: &StoreError) -> bool {
    code(error) == Some(&SqlState::UNIQUE_VIOLATION)
}

/// Whether the name was in use.
pub(super) fn is_name_in_use(error: &StoreError) -> bool {
    let db_error = driver_error(error).and_then(Error::as_db_error);
    db_error.and_then(DbError::constraint) == Some("template_unique_key")
}

/// The error of a failed connect: nothing was done, whatever the cause.
pub(super) fn at_connect(error: Error) -> StoreError {
    match StoreError::from(error) {
        StoreError::Failed(cause) => StoreError::Unavailable(cause),
        other => other,
    }
}

/// The error of a statement that was pipelined with a commit. If the server refused the statement,
/// nothing was committed; if it did not respond or the connection was lost, the outcome is unknown.
pub(super) fn beside_commit(error: StoreError) -> StoreError {
    let is_refused = driver_error(&error).and_then(Error::as_db_error).is_some_and(|error| {
        error.parsed_severity() == Some(Severity::Error) && !is_connection_error(error.code())
    });
    if is_refused { error } else { at_commit(error) }
}

/// The error of a failed commit: its outcome is unknown.
pub(super) fn at_commit(error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(cause)
        | StoreError::Damaged(cause)
        | StoreError::Failed(cause)
        | StoreError::Full(cause) => StoreError::OutcomeUnknown(cause),
        other => other,
    }
}
