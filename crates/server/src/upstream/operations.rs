//! Makes the operations of a connection: creates, edits, deletes and changes of the archive at the
//! provider.
//!
//! `begin_operation` commits that a call is being made before its first byte leaves, and
//! `record_call` commits its outcome. A call whose outcome is not known is probed before it is made
//! again. All effects go through the store and the transport.

mod archive;
mod call;
mod document;
mod media;
mod permission;
mod probe;
mod subject;

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    sync::atomic::Ordering,
    time::Duration,
};

use galley_domain::upstream::{CallFailure, CallKind, HeldReason, OperationKind, OperationState};
use galley_store::StoredOperation;
use jiff::SignedDuration;

use self::subject::Identity;
use super::session::{HELD_UNTIL_SUCCESS, MAX_UNKNOWN_CALLS, Session, SyncError, kept};

/// How long a request waits for its operation, and for what the provider shows after it.
pub const SUBMISSION_WAIT: Duration = Duration::from_secs(10);

/// How many open operations are read at a time. Those that are held come last.
const MAX_OPEN_OPERATIONS: usize = 2_000;

/// What was done about an operation.
enum Progress {
    /// Nothing: it waits for another operation, or is not due.
    Waits,
    /// It ended without a call.
    Skipped,
    /// A call or a probe was made.
    Made(Result<(), CallFailure>),
}

/// The operations that a run has to make.
struct Run<'a> {
    open: &'a [StoredOperation],
    /// Those that the run has settled.
    settled: HashSet<u64>,
    /// Names and languages of their templates, as far as they were needed.
    identities: HashMap<u64, Option<Identity>>,
}

impl Session {
    /// Makes operations that are due, at most `limit`, oldest first. Returns how many it made: none
    /// while a person has to look at the connection, or while the account is restricted.
    pub async fn run_operations(&self, limit: usize) -> Result<usize, SyncError> {
        if self.is_restricted.load(Ordering::Relaxed) {
            return Ok(0);
        }
        self.run_open_operations(limit).await
    }

    /// Tries one operation if the account was restricted the last time. If it still is, the session makes
    /// no other one, and reads only.
    pub(super) async fn try_restricted(&self) -> Result<(), SyncError> {
        if !self.is_restricted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (store, now) = (&self.context.store, self.now());
        kept(store.release_operations(self.fence, HeldReason::Restricted, now).await?)?;
        match self.run_open_operations(1).await {
            Err(SyncError::Call(CallFailure::Restricted(_))) => Ok(()),
            // There is none, so that a read has to show whether calls succeed.
            Ok(0) => {
                self.is_restricted.store(false, Ordering::Relaxed);
                Ok(())
            }
            result => result.map(drop),
        }
    }

    async fn run_open_operations(&self, limit: usize) -> Result<usize, SyncError> {
        if self.connection.is_frozen() {
            return Ok(0);
        }
        let account = self.connection.account;
        let open = self.context.store.open_operations(account, MAX_OPEN_OPERATIONS).await?;
        if open.is_empty() {
            return Ok(0);
        }
        let is_held = |it: &StoredOperation| {
            let reason = it.operation.state.held_reason();
            let is_released = reason.is_some_and(|reason| HELD_UNTIL_SUCCESS.contains(&reason));
            is_released && it.operation.held_until.is_none()
        };
        self.has_held_operations.fetch_or(open.iter().any(is_held), Ordering::Relaxed);
        let run = Run { open: &open, settled: HashSet::default(), identities: HashMap::default() };
        // They are not part of a sweep, even if they are made between its pages.
        let was_background = self.budget.set_background(false);
        let made = self.run(run, limit).await;
        self.budget.set_background(was_background);
        made
    }

    async fn run(&self, mut run: Run<'_>, limit: usize) -> Result<usize, SyncError> {
        let (mut made, mut unknown_calls) = (0, 0);
        for operation in run.open {
            if made >= limit {
                break;
            }
            if !operation.operation.is_due(self.now()) {
                continue;
            }
            let (progress, after) = self.run_operation(operation, &mut run).await?;
            match progress {
                Progress::Waits => {
                    self.extend_if_due().await?;
                    continue;
                }
                // It tells nothing about calls.
                Progress::Skipped => {}
                Progress::Made(result) => {
                    unknown_calls = self.assess(result, unknown_calls).await?;
                }
            }
            made += 1;
            self.extend().await?;
            if let Some(after) = after.filter(|it| self.is_read_at_once(it)) {
                self.read_after_call(after.template).await?;
                self.context.waker.operation_moved(after.template);
            }
        }
        Ok(made)
    }

    /// Whether what the provider shows after an operation is read at once: a request may wait for it, or
    /// the operation has no other effect here. Other templates are read together, later: a read in the
    /// second of a change has to be repeated.
    fn is_read_at_once(&self, operation: &StoredOperation) -> bool {
        let wait = SignedDuration::try_from(SUBMISSION_WAIT).unwrap_or_default();
        let is_awaited = self.now().duration_since(operation.created_at) <= wait;
        operation.operation.state == OperationState::Done
            && (is_awaited || operation.operation.kind.is_archiving())
    }

    /// Ends the run if a failure is about the connection, not about the operation. Returns how many
    /// calls in a row have an unknown outcome.
    async fn assess(
        &self,
        result: Result<(), CallFailure>,
        unknown_calls: u32,
    ) -> Result<u32, SyncError> {
        let Err(failure) = result else {
            self.recovered_fully().await?;
            return Ok(0);
        };
        match failure {
            CallFailure::Throttled { .. } => match self.budget.take_refusal() {
                // Creates have a limit of their own, and an operation may need several calls: others
                // may still be possible.
                Some(_) if self.allows_edits().await? => Ok(unknown_calls),
                Some(until) => Err(SyncError::NotBefore(until)),
                None => Err(self.failed(failure).await?),
            },
            CallFailure::Unknown(_) if unknown_calls + 1 < MAX_UNKNOWN_CALLS => {
                Ok(unknown_calls + 1)
            }
            CallFailure::Unknown(_)
            | CallFailure::NotSent(_)
            | CallFailure::Credentials(_)
            | CallFailure::Restricted(_) => Err(self.failed(failure).await?),
            _ => Ok(0),
        }
    }

    /// Whether the budget allows calls that are not creates.
    async fn allows_edits(&self) -> Result<bool, SyncError> {
        let connection = self.context.store.connection(self.connection.account).await?;
        let calls_per_hour = self.context.settings.calls_per_hour;
        let is_resting =
            connection.is_none_or(|it| it.is_resting(CallKind::Edit, calls_per_hour, self.now()));
        Ok(!is_resting)
    }

    /// Makes an operation. Returns what was done, and the operation after that if it has moved.
    async fn run_operation(
        &self,
        operation: &StoredOperation,
        run: &mut Run<'_>,
    ) -> Result<(Progress, Option<StoredOperation>), SyncError> {
        let subject = self.subject(operation).await?;
        let (progress, after) = match operation.operation.state {
            OperationState::Unknown => {
                self.together(Box::pin(self.probe(operation, &subject))).await?
            }
            _ => self.together(Box::pin(self.make(operation, subject, run))).await?,
        };
        if let Some(after) = &after {
            if after.operation.state.is_settled() {
                run.settled.insert(after.id);
            }
            self.context.waker.operation_moved(after.template);
        }
        Ok((progress, after))
    }

    /// Whether an earlier operation has to end first: it deletes, or may have created, another
    /// template with the same name and language.
    async fn is_name_awaited(
        &self,
        operation: &StoredOperation,
        wanted: &Identity,
        run: &mut Run<'_>,
    ) -> Result<bool, SyncError> {
        for earlier in run.open {
            let is_candidate = earlier.id < operation.id
                && earlier.template != operation.template
                && !run.settled.contains(&earlier.id)
                && (earlier.operation.kind == OperationKind::Delete
                    || earlier.operation.state.is_uncertain());
            if !is_candidate {
                continue;
            }
            let identity = match run.identities.entry(earlier.id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(vacant) => vacant.insert(self.subject(earlier).await?.identity),
            };
            if identity.as_ref() == Some(wanted) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
