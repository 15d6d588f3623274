//! One step of the work on a connection.

use std::time::Duration;

use galley_domain::id::AccountId;
use galley_store::UpstreamConnection;
use jiff::{SignedDuration, Timestamp};

use super::session::{Begun, Session, SyncError, UpstreamContext, UpstreamSettings};

/// How many templates one step reads before it looks for other work.
const MAX_READS: usize = 50;

/// Makes the operations of a connection, reads the templates of which something may have changed, and
/// walks over all of them if that is due. Ends when the connection is paused. Does nothing while
/// it is, or while another process works on it.
/// Returns the number of calls.
pub async fn sync_connection(
    context: &UpstreamContext,
    account: AccountId,
) -> Result<u32, SyncError> {
    let Begun::Session(session) = Session::begin_in_background(context, account).await? else {
        return Ok(0);
    };
    let is_paused = session.connection.paused_at.is_some();
    let worked = if is_paused { Ok(()) } else { work(context, &session).await };
    let calls = session.calls();
    session.end().await?;
    worked.map(|()| calls)
}

async fn work(context: &UpstreamContext, session: &Session) -> Result<(), SyncError> {
    let (connection, now) = (&session.connection, context.clock.now());
    session.ask_after_rejection().await?;
    session.try_restricted().await?;
    let wanted = context.store.templates_to_read(connection.account, MAX_READS).await?;
    session.read_and_operate(&wanted, true).await?;
    let has_own_approvals = || context.store.has_own_approvals(connection.account);
    let due_sweep = match due_sweep(connection, context.settings, now) {
        // A person looks first at what a first sweep would end.
        Some(_) if !connection.has_begun_import() && has_own_approvals().await? => None,
        due_sweep => due_sweep,
    };
    if let Some(full) = due_sweep {
        session.sweep(full, true, &mut |_| {}).await?;
        if full {
            session.inspect_token().await?;
        }
    } else if !connection.has_begun_import() {
        session.confirm_recovery().await?;
    }
    Ok(())
}

/// Whether a sweep is due, and if so, whether it reads all contents.
fn due_sweep(
    connection: &UpstreamConnection,
    settings: UpstreamSettings,
    now: Timestamp,
) -> Option<bool> {
    if let Some(running) = &connection.sweep {
        return Some(running.full);
    }
    let interval = |it: Duration| SignedDuration::try_from(it).unwrap_or(SignedDuration::MAX);
    if !connection.has_begun_import() {
        let first_at = connection.first_sweep_at(interval(settings.sweep_interval));
        return (first_at <= now).then_some(true);
    }
    let is_over = |since: Option<Timestamp>, it: Duration| {
        since.is_none_or(|since| now.duration_since(since) >= interval(it))
    };
    let is_due =
        connection.sweep_wanted || is_over(connection.sweep_ended_at, settings.sweep_interval);
    is_due.then(|| is_over(connection.read_all_at, settings.full_interval))
}
