//! Waits for the provider of a connected account, so that the response to a create, an edit, a delete or
//! a change of the archive contains the id, the status or the error of the provider.

use std::{sync::Arc, time::Duration};

use galley_domain::{
    id::TemplateId,
    upstream::{CallKind, OperationKind, OperationState, operation::changed_outside},
};
use galley_store::{MirroredTemplate, StoredOperation, StoredTemplate, TemplateChange};
use jiff::Timestamp;
use tokio::time::{Instant, timeout_at};

use super::caller::Caller;
use crate::{
    api::{
        auth::Write,
        problem::{Problem, ProblemKind},
        throttling,
    },
    app::App,
    json_writer::ObjectWriter,
    upstream::SUBMISSION_WAIT,
};

/// First interval at which a request reads its operation, in case another process makes it. It grows to
/// a quarter of the time that the request has waited.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// The change that a request waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Awaited {
    /// The provider has this version of the template.
    Version(TemplateId, u64),
    /// The provider does not have the template any more.
    Deletion(TemplateId),
    /// The provider has put the template aside or taken it back, as this operation wants it.
    Archiving(TemplateId, u64),
}

/// What became of a change at the provider.
#[derive(Debug)]
pub(super) enum Submission {
    /// The account is not connected.
    NotConnected,
    /// The provider has made it. Contains what it shows of the template.
    Done(Option<Box<MirroredTemplate>>),
    /// The provider has not decided; the word says why.
    Pending(&'static str),
}

impl Submission {
    /// Writes the member that tells of a change that the provider has not made.
    pub(super) fn write(&self, object: &mut ObjectWriter<'_>) {
        if let Self::Pending(state) = self {
            object.object("galley_upstream", |upstream| upstream.unescaped("state", state));
        }
    }
}

impl Caller<Write> {
    /// Waits for the provider to make changes. A create that it refuses leaves no template behind.
    pub(super) async fn submitted(
        &self,
        app: &App,
        awaited: &[Awaited],
    ) -> Result<Vec<Submission>, Problem> {
        if !self.account.is_connected {
            return Ok(awaited.iter().map(|_| Submission::NotConnected).collect());
        }
        app.upstream().wake();
        let deadline = self.begin_wait(app);
        let mut submissions = Vec::with_capacity(awaited.len());
        let mut refusal = None;
        for change in awaited {
            match self.outcome(app, *change, deadline).await? {
                Outcome::Settled(submission) => submissions.push(submission),
                Outcome::Failed(operation) => {
                    let problem = failed(&operation);
                    self.undo_create(app, &operation).await?;
                    refusal.get_or_insert(problem);
                }
            }
        }
        refusal.map_or(Ok(submissions), Err)
    }

    /// Begins to wait, and returns when to stop: at once if too many requests of the account wait. The
    /// operation is queued in any case.
    pub(super) fn begin_wait(&self, app: &App) -> Instant {
        let wait = SUBMISSION_WAIT.min(app.limits().request / 2);
        let may_wait = throttling::may_wait(app, &self.context);
        Instant::now() + if may_wait { wait } else { Duration::ZERO }
    }

    /// Waits for one change.
    pub(super) async fn submitted_one(
        &self,
        app: &App,
        awaited: Awaited,
    ) -> Result<Submission, Problem> {
        let submissions = self.submitted(app, &[awaited]).await?;
        Ok(submissions.into_iter().next().unwrap_or(Submission::NotConnected))
    }

    /// Waits for one change until the deadline.
    pub(super) async fn outcome(
        &self,
        app: &App,
        awaited: Awaited,
        deadline: Instant,
    ) -> Result<Outcome, Problem> {
        let account = self.account.id;
        let template = awaited.template();
        let (mut moves, began) = (app.upstream().moves(), Instant::now());
        loop {
            let operation = match awaited {
                Awaited::Archiving(_, id) => app.store().operation(account, id).await?,
                _ => app.store().newest_operation(account, template).await?,
            };
            let Some(operation) = operation.filter(|it| awaited.is_by(it)) else {
                return self.without_operation(app, awaited).await;
            };
            let state = operation.operation.state;
            let is_over = Instant::now() >= deadline || self.is_resting(app, &operation).await?;
            match state {
                OperationState::Done => {
                    let row = self.present_row(app, template).await?;
                    if is_over || row.as_ref().is_none_or(|row| is_shown(row, app.clock().now())) {
                        return Ok(Outcome::Settled(Submission::Done(row)));
                    }
                }
                OperationState::Refused | OperationState::Conflict => {
                    return Ok(Outcome::Failed(Box::new(operation)));
                }
                // The create was refused, and another request has deleted the template again.
                OperationState::Superseded if operation.operation.error.is_some() => {
                    return Ok(Outcome::Failed(Box::new(operation)));
                }
                OperationState::Held(_) | OperationState::Superseded => {
                    return Ok(Outcome::Settled(Submission::Pending(word(state))));
                }
                _ if is_over => return Ok(Outcome::Settled(Submission::Pending(word(state)))),
                _ => {}
            }
            let pause = POLL_INTERVAL.max(began.elapsed() / 4);
            let next_read = deadline.min(Instant::now() + pause);
            let _ = timeout_at(next_read, moves.of(template)).await;
        }
    }

    /// What the mirror shows of a template that the provider has.
    async fn present_row(
        &self,
        app: &App,
        template: TemplateId,
    ) -> Result<Option<Box<MirroredTemplate>>, Problem> {
        let rows = app.store().mirror_of(self.account.id, vec![template]).await?;
        Ok(rows.into_iter().find(MirroredTemplate::is_present).map(Box::new))
    }

    /// No operation is about the change: the provider has it, or a reviewer has to approve it first.
    async fn without_operation(&self, app: &App, awaited: Awaited) -> Result<Outcome, Problem> {
        match awaited {
            Awaited::Deletion(_) => Ok(Outcome::Settled(Submission::Done(None))),
            Awaited::Version(template, 1) => match self.present_row(app, template).await? {
                None => Ok(Outcome::Settled(Submission::Pending(LOCAL))),
                row => Ok(Outcome::Settled(Submission::Done(row))),
            },
            Awaited::Version(..) | Awaited::Archiving(..) => {
                Ok(Outcome::Settled(Submission::Pending(LOCAL)))
            }
        }
    }

    /// Whether the call that a request waits for is not made now, so that waiting is useless: the one of
    /// the operation, or the read after it. A call that is being made is waited for.
    async fn is_resting(&self, app: &App, operation: &StoredOperation) -> Result<bool, Problem> {
        let is_done = operation.operation.state == OperationState::Done;
        let read = is_done.then_some(CallKind::Read);
        let Some(kind) = operation.operation.awaited_call().or(read) else { return Ok(false) };
        let connection = app.store().connection(self.account.id).await?;
        let calls_per_hour = app.metrics().upstream_calls_per_hour().unwrap_or(u32::MAX);
        let now = app.clock().now();
        Ok(connection.is_none_or(|it| it.is_resting(kind, calls_per_hour, now)))
    }

    /// Deletes a template whose create the provider has refused, so that its name is free, as it is at
    /// the provider. A template that was edited since stays, as does one that the account had before.
    async fn undo_create(&self, app: &App, operation: &StoredOperation) -> Result<(), Problem> {
        let is_refused = operation.operation.state == OperationState::Refused;
        if operation.operation.kind != OperationKind::Create || !is_refused {
            return Ok(());
        }
        let id = operation.template;
        let rows = app.store().mirror_of(self.account.id, vec![id]).await?;
        if rows.iter().any(MirroredTemplate::is_present) {
            // A delete would also delete what the provider has.
            return Ok(());
        }
        let stored = app.store().template(self.account.id, id).await?;
        // The operation was queued with the create of the template itself.
        let is_its_create = |it: &Arc<StoredTemplate>| {
            it.state.version == 1 && operation.version == 1 && it.created_at == operation.created_at
        };
        if let Some(stored) = stored.filter(is_its_create) {
            let expected = Some(vec![stored.revision]);
            let change = TemplateChange { expected, ..self.change(app, id) };
            app.store().delete_template(change).await?;
        }
        Ok(())
    }
}

/// The end of a wait.
pub(super) enum Outcome {
    Settled(Submission),
    /// The provider refused the change, or has another template in its place.
    Failed(Box<StoredOperation>),
}

impl Awaited {
    fn template(self) -> TemplateId {
        let (Self::Version(template, _) | Self::Deletion(template) | Self::Archiving(template, _)) =
            self;
        template
    }

    /// Whether an operation makes the change.
    fn is_by(self, operation: &StoredOperation) -> bool {
        let kind = operation.operation.kind;
        match self {
            Self::Version(_, version) => kind.is_submission() && operation.version == version,
            Self::Deletion(_) => kind == OperationKind::Delete,
            Self::Archiving(_, id) => operation.id == id,
        }
    }
}

/// Whether what the provider shows after a change is recorded, so that the lists and reads that follow
/// show it, too. A read that is postponed is not waited for.
fn is_shown(row: &MirroredTemplate, now: Timestamp) -> bool {
    row.dirty_at.is_none_or(|dirty_at| dirty_at > now)
}

/// The state of a version that the provider does not have, and that no operation is about.
const LOCAL: &str = "local";

/// The word for the state of an operation that is not over.
fn word(state: OperationState) -> &'static str {
    match state {
        OperationState::Unknown | OperationState::Probing => OperationState::Sending.as_str(),
        OperationState::Superseded => LOCAL,
        state => state.as_str(),
    }
}

/// The error of an operation that failed.
fn failed(operation: &StoredOperation) -> Problem {
    match (operation.operation.state, &operation.operation.error) {
        (OperationState::Refused | OperationState::Superseded, Some(error)) => Problem::upstream_refused(error.clone()),
        (OperationState::Conflict, Some(error)) if *error == changed_outside() => {
            Problem::of(ProblemKind::UpstreamAction).detail(
                "The content of the template was changed at the provider. Galley has stored your version, and has not sent it: accept the content of the provider, or push yours.",
            )
        }
        _ => Problem::name_taken(Some(operation.template)).detail(
            "The provider has a template with this name and language and another content, or none any more. Galley has kept yours: look at both, and accept one of them.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use galley_domain::upstream::{HeldReason, Operation};

    use super::*;

    #[test]
    fn a_request_waits_for_its_own_version_or_its_own_deletion() {
        let template = TemplateId::new(7).unwrap();
        let operation = |kind, version| StoredOperation {
            id: 1,
            template,
            name: None,
            language: None,
            version,
            operation: Operation::new(kind),
            replaces: None,
            created_at: Timestamp::UNIX_EPOCH,
            sent_at: None,
            updated_at: Timestamp::UNIX_EPOCH,
        };
        let edit = operation(OperationKind::Edit, 3);
        assert!(Awaited::Version(template, 3).is_by(&edit));
        assert!(!Awaited::Version(template, 4).is_by(&edit));
        assert!(!Awaited::Deletion(template).is_by(&edit));
        assert!(Awaited::Deletion(template).is_by(&operation(OperationKind::Delete, 3)));
        assert!(!Awaited::Version(template, 3).is_by(&operation(OperationKind::Delete, 3)));
        let archive = operation(OperationKind::Archive, 3);
        assert!(!Awaited::Version(template, 3).is_by(&archive));
        assert!(!Awaited::Deletion(template).is_by(&archive));
        assert!(Awaited::Archiving(template, 1).is_by(&archive));
        assert!(!Awaited::Archiving(template, 2).is_by(&archive));
    }

    #[test]
    fn clients_see_one_word_for_all_states_of_a_call() {
        use OperationState::{Held, Probing, Queued, Sending, Superseded, Unknown};
        let states = [Queued, Sending, Unknown, Probing, Superseded, Held(HeldReason::Throttle)];
        let words = ["queued", "sending", "sending", "sending", "local", "held"];
        assert_eq!(states.map(word), words);
    }
}
