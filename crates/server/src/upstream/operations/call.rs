//! Makes the call of an operation.

use galley_domain::upstream::{
    CallDone, CallFailure, CallKind, OperationKind, OperationState, ProviderError, RemoteId,
    failure::NAME_IN_USE, operation::changed_outside,
};
use galley_store::{MirroredTemplate, StoredOperation, StoredTemplate};
use galley_upstream::Upstream as _;

use super::{Progress, Run, document, subject::Subject};
use crate::upstream::session::{Session, SyncError, kept};

/// A call to make.
pub(super) enum Call {
    Create { document: String },
    Edit { id: RemoteId, document: String },
    Delete { id: RemoteId, name: String },
    Archive { id: RemoteId },
    Unarchive { id: RemoteId },
}

/// What an operation needs now.
pub(super) enum Plan {
    /// An earlier operation has to end first.
    Wait,
    /// Nothing: the provider has what the operation wants, or a later one replaces it.
    Skip,
    /// No call: a person has to decide about what the provider shows.
    Conflict(ProviderError),
    /// A call that is not made, because of this failure: what it needs to know could not be read, or
    /// the provider would refuse it.
    Failed(CallFailure),
    /// A call.
    Call(Call),
}

impl Session {
    /// Makes the call of an operation whose call is due, unless none is needed. Returns the operation
    /// after that.
    pub(super) async fn make(
        &self,
        operation: &StoredOperation,
        subject: Subject,
        run: &mut Run<'_>,
    ) -> Result<(Progress, Option<StoredOperation>), SyncError> {
        let store = &self.context.store;
        let call = match self.plan(operation, subject, run).await? {
            Plan::Wait => return Ok((Progress::Waits, None)),
            Plan::Skip => {
                let skipped = store.skip_operation(self.fence, operation.id, self.now()).await?;
                return Ok((Progress::Skipped, kept(skipped)?));
            }
            Plan::Conflict(error) => {
                let (id, now) = (operation.id, self.now());
                let ended = store.record_conflict(self.fence, id, error, now).await?;
                return Ok((Progress::Skipped, kept(ended)?));
            }
            Plan::Failed(failure) => Err(failure),
            // Samples change no template: they are uploaded before the call counts as begun.
            Plan::Call(call) => self.with_samples(call).await?,
        };
        let call = match call {
            Err(failure) => Err(self.attributed(operation.operation.kind, failure).await?),
            call => call,
        };
        let begun = store.begin_operation(self.fence, operation.id, self.now()).await?;
        let begun = kept(begun)?.filter(|it| it.operation.state == OperationState::Sending);
        let Some(begun) = begun else { return Ok((Progress::Waits, None)) };
        let (outcome, result) = match call {
            Ok(call) => {
                let outcome = self.send(begun.operation.kind, call).await?;
                let result = outcome.as_ref().map(drop).map_err(CallFailure::clone);
                (outcome, result)
            }
            Err(failure) => (Err(not_made(failure.clone())), Err(failure)),
        };
        let after = kept(store.record_call(self.fence, begun.id, outcome, self.now()).await?)?;
        Ok((Progress::Made(result), after))
    }

    async fn plan(
        &self,
        operation: &StoredOperation,
        subject: Subject,
        run: &mut Run<'_>,
    ) -> Result<Plan, SyncError> {
        if subject.row.as_ref().is_some_and(MirroredTemplate::is_generated) {
            // Deleting it only in the account is all that can be done.
            let is_deletion = operation.operation.kind == OperationKind::Delete;
            return Ok(if is_deletion { Plan::Skip } else { Plan::Failed(generated()) });
        }
        if operation.operation.kind == OperationKind::Delete {
            return self.plan_delete(operation, subject).await;
        }
        if operation.operation.kind.is_archiving() {
            return self.plan_archive(operation, subject).await;
        }
        let account = self.connection.account;
        let newest = self.context.store.newest_operation(account, operation.template).await?;
        let is_replaced = newest.is_some_and(|newest| newest.id != operation.id);
        let Subject { template: Some(template), row, is_deleted: false, .. } = subject else {
            return Ok(Plan::Skip);
        };
        if is_replaced {
            return Ok(Plan::Skip);
        }
        let Some(mut row) = row else { return self.plan_create(operation, &template, run).await };
        let is_create = operation.operation.kind == OperationKind::Create;
        if !is_create || row.has_version(&template) {
            // The mirror may show what was there before the last edit, here or at the provider.
            row = match self.current_row(row, &template).await? {
                Ok(Some(current)) => current,
                Ok(None) => return self.plan_create(operation, &template, run).await,
                Err(failure) => return Ok(Plan::Failed(not_looked_up(failure))),
            };
        }
        if row.has_version(&template) {
            return Ok(Plan::Skip);
        }
        if is_create {
            return Ok(Plan::Failed(taken()));
        }
        if !operation.may_replace(&row) {
            let shown = self.context.store.mirrored_document(account, row.id.clone()).await?;
            if !shown.is_some_and(|shown| operation.may_have_made(&template, &shown)) {
                return Ok(Plan::Conflict(changed_outside()));
            }
        }
        let category = row.other_category(&template);
        let document = document::edit(&template.template, category);
        Ok(Plan::Call(Call::Edit { id: row.id, document }))
    }

    async fn plan_create(
        &self,
        operation: &StoredOperation,
        template: &StoredTemplate,
        run: &mut Run<'_>,
    ) -> Result<Plan, SyncError> {
        let template = &template.template;
        let wanted = (template.name().to_owned(), template.language().to_owned());
        if self.is_name_awaited(operation, &wanted, run).await? {
            return Ok(Plan::Wait);
        }
        Ok(Plan::Call(Call::Create { document: document::create(template) }))
    }

    async fn plan_delete(
        &self,
        operation: &StoredOperation,
        subject: Subject,
    ) -> Result<Plan, SyncError> {
        if let Some(row) = subject.row {
            return Ok(Plan::Call(Call::Delete { id: row.id, name: row.name }));
        }
        if let Err(failure) = self.room_for(CallKind::Delete, 2).await? {
            return Ok(Plan::Failed(failure));
        }
        // A create whose outcome was not known may have made it, even if the mirror had a former one.
        match self.find_own(operation, &subject).await? {
            Ok(Some(found)) => Ok(Plan::Call(Call::Delete { id: found.id, name: found.name })),
            Ok(None) => Ok(Plan::Skip),
            Err(failure) => Ok(Plan::Failed(not_looked_up(failure))),
        }
    }

    /// The call with the handles that the provider gave to the samples of its document, or why one of
    /// them could not be uploaded.
    async fn with_samples(&self, call: Call) -> Result<Result<Call, CallFailure>, SyncError> {
        Ok(match call {
            Call::Create { document } => {
                let sent = self.upload_samples(document, CallKind::Create).await?;
                sent.map(|document| Call::Create { document })
            }
            Call::Edit { id, document } => {
                let sent = self.upload_samples(document, CallKind::Edit).await?;
                sent.map(|document| Call::Edit { id, document })
            }
            without @ (Call::Delete { .. } | Call::Archive { .. } | Call::Unarchive { .. }) => {
                Ok(without)
            }
        })
    }

    async fn send(
        &self,
        kind: OperationKind,
        call: Call,
    ) -> Result<Result<CallDone, CallFailure>, SyncError> {
        let outcome = match call {
            Call::Create { document } => {
                let created = self.while_leased(self.upstream.create(&document)).await?;
                created.map(CallDone::Created).map_err(|failure| match failure {
                    // An edit whose template the provider does not have creates it.
                    CallFailure::Gone(error) if kind == OperationKind::Edit => {
                        CallFailure::Credentials(error)
                    }
                    failure => failure,
                })
            }
            Call::Edit { id, document } => {
                let edited = self.while_leased(self.upstream.edit(&id, &document)).await?;
                edited.map(|()| CallDone::Edited).map_err(|failure| match failure {
                    // It is not about a create: no other call of the edit has made the template.
                    CallFailure::Exists(error) => CallFailure::Refused(error),
                    failure => failure,
                })
            }
            Call::Delete { id, name } => {
                let deleted = self.while_leased(self.upstream.delete(&name, Some(&id))).await?;
                deleted.map(|()| CallDone::Deleted)
            }
            Call::Archive { id } => {
                let archived = self.while_leased(self.upstream.archive(&id)).await?;
                archived.map(|()| CallDone::Archived)
            }
            Call::Unarchive { id } => {
                let unarchived = self.while_leased(self.upstream.unarchive(&id)).await?;
                unarchived.map(|()| CallDone::Unarchived)
            }
        };
        Ok(match outcome {
            Err(failure) => Err(self.attributed(kind, failure).await?),
            done => done,
        })
    }
}

/// The failure of a create whose name and language are taken, as the provider would tell it. A probe
/// compares both contents.
fn taken() -> CallFailure {
    CallFailure::Exists(ProviderError {
        code: 100,
        subcode: Some(NAME_IN_USE),
        title: None,
        message: "The provider has another template with this name and language.".to_owned(),
    })
}

/// The failure of a change of a template that the provider generated, as the provider would tell it.
fn generated() -> CallFailure {
    CallFailure::Refused(ProviderError {
        code: 100,
        subcode: Some(2_388_318),
        title: None,
        message: "The provider generated this template, and allows no change of it.".to_owned(),
    })
}

/// The failure of a lookup before a call. A list or an account that does not exist: the token cannot see
/// it.
pub(super) fn not_looked_up(failure: CallFailure) -> CallFailure {
    match failure {
        CallFailure::Gone(error) => CallFailure::Credentials(error),
        CallFailure::TooMuchData(error) | CallFailure::CursorExpired(error) => {
            CallFailure::Unknown(error.to_string())
        }
        failure => failure,
    }
}

/// The failure of what comes before a call as that of the call, which was not made: it is made later,
/// without a probe.
pub(super) fn not_made(failure: CallFailure) -> CallFailure {
    match failure {
        CallFailure::Unknown(text) => CallFailure::NotSent(text),
        failure => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_or_an_upload_that_may_have_failed_leaves_the_call_unmade() {
        let CallFailure::Exists(error) = taken() else { panic!("a probe has to compare") };
        let unknown = CallFailure::Unknown("timeout".to_owned());
        for failure in [
            unknown,
            not_looked_up(CallFailure::TooMuchData(error.clone())),
            not_looked_up(CallFailure::CursorExpired(error.clone())),
        ] {
            let not_made = not_made(failure);
            assert!(matches!(not_made, CallFailure::NotSent(_)), "{not_made:?}");
        }
        let invisible = not_made(not_looked_up(CallFailure::Gone(error.clone())));
        assert_eq!(invisible, CallFailure::Credentials(error));
        assert_eq!(not_made(taken()), taken());
    }
}
