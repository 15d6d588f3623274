//! One step of the work on a connection.

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
    let wanted = context.store.templates_to_read(connection.account, MAX_READS).await?;
    session.read_and_operate(&wanted, true).await?;
    if let Some(full) = due_sweep(connection, context.settings, now) {
        session.sweep(full, true, |_| {}).await?;
        if full {
            session.inspect_token().await?;
        }
    } else if !connection.has_begun_import() {
        session.confirm_recovery().await?;
    }
    Ok(())
}

/// Whether a sweep is due, and if so, whether it reads all contents. A person begins the first one.
fn due_sweep(
    connection: &UpstreamConnection,
    settings: UpstreamSettings,
    now: Timestamp,
) -> Option<bool> {
    if let Some(running) = &connection.sweep {
        return Some(running.full);
    }
    if !connection.has_begun_import() {
        return None;
    }
    let is_over = |since: Option<Timestamp>, interval: std::time::Duration| {
        let interval = SignedDuration::try_from(interval).unwrap_or(SignedDuration::MAX);
        since.is_none_or(|since| now.duration_since(since) >= interval)
    };
    let is_due =
        connection.sweep_wanted || is_over(connection.sweep_ended_at, settings.sweep_interval);
    is_due.then(|| is_over(connection.read_all_at, settings.full_interval))
}
