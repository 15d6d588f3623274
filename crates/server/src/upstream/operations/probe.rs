//! Looks at the provider whether a call with an unknown outcome had its effect.

use galley_domain::upstream::{
    CallFailure, LostCall, OperationKind, OperationState, ProbeResult, RemoteTemplate, Replaced,
    content::VersionContent,
};
use galley_store::{MirroredTemplate, StoredOperation};
use galley_upstream::Upstream as _;

use super::{Progress, subject::Subject};
use crate::upstream::session::{Session, SyncError, kept};

impl Session {
    /// Probes an operation whose probe is due. Returns the operation after that.
    pub(super) async fn probe(
        &self,
        operation: &StoredOperation,
        subject: &Subject,
    ) -> Result<(Progress, Option<StoredOperation>), SyncError> {
        let store = &self.context.store;
        let begun = store.begin_operation(self.fence, operation.id, self.now()).await?;
        let begun = kept(begun)?.filter(|it| it.operation.state == OperationState::Probing);
        let Some(begun) = begun else { return Ok((Progress::Waits, None)) };
        let (found, result) = match self.look(&begun, subject).await? {
            Ok(found) => (self.result(&begun, subject, found).await?, Ok(())),
            Err(failure) => {
                let failure = self.attributed(begun.operation.kind, failure).await?;
                (ProbeResult::Failed(failure.clone()), Err(failure))
            }
        };
        let after = store.record_probe(self.fence, begun.id, found, self.now()).await?;
        Ok((Progress::Made(result), kept(after)?))
    }

    /// Reads the template of an operation at the provider; none if it does not exist.
    async fn look(
        &self,
        operation: &StoredOperation,
        subject: &Subject,
    ) -> Result<Result<Option<RemoteTemplate>, CallFailure>, SyncError> {
        if let Some(row) = &subject.row {
            return self.look_by_id(row).await;
        }
        if operation.operation.kind.is_archiving() {
            return Ok(Ok(None));
        }
        if operation.operation.kind == OperationKind::Delete {
            return self.find_own(operation, subject).await;
        }
        let Some((name, language)) = &subject.identity else { return Ok(Ok(None)) };
        self.while_leased(self.upstream.find(name, language)).await
    }

    async fn look_by_id(
        &self,
        row: &MirroredTemplate,
    ) -> Result<Result<Option<RemoteTemplate>, CallFailure>, SyncError> {
        let failure = match self.while_leased(self.upstream.read(&row.id)).await? {
            Ok(found) => return Ok(Ok(Some(found))),
            Err(failure) => failure,
        };
        if !matches!(failure, CallFailure::Gone(_)) {
            return Ok(Err(failure));
        }
        // The token may not see the account any more: then nothing is known.
        let check = self.while_leased(self.upstream.check()).await?;
        Ok(check.map(|_| None).map_err(|failure| match failure {
            CallFailure::Gone(error) => CallFailure::Credentials(error),
            failure => failure,
        }))
    }

    /// What a look means for the operation. What was found is recorded in the mirror first.
    async fn result(
        &self,
        operation: &StoredOperation,
        subject: &Subject,
        found: Option<RemoteTemplate>,
    ) -> Result<ProbeResult, SyncError> {
        let kind = operation.operation.kind;
        if kind.is_archiving() {
            return self.archive_result(operation, subject, found).await;
        }
        let present = found.as_ref().filter(|it| !it.status.is_deleted());
        if kind == OperationKind::Delete {
            let is_present = present.is_some();
            return Ok(if is_present { ProbeResult::Different } else { ProbeResult::Absent });
        }
        let result = match (present, &subject.template) {
            // Its name is taken until the provider removes it.
            (Some(found), _) if found.is_generated() => ProbeResult::Different,
            (Some(found), Some(template)) => {
                let wanted = VersionContent::of(&template.template);
                let call = LostCall {
                    // An edit without a row creates the template.
                    replaced: match (kind, &subject.row) {
                        (OperationKind::Edit, Some(_)) => Replaced::Content(operation.replaces),
                        _ => Replaced::Nothing,
                    },
                    may_be_made: operation.operation.may_be_made(),
                    sent_at: operation.sent_at,
                };
                ProbeResult::compare(Some(found), wanted, call)
            }
            // The version is no longer stored: a later one replaces the operation.
            (Some(_), None) => ProbeResult::Different,
            (None, _) => ProbeResult::Absent,
        };
        if !subject.is_deleted {
            let confirmed = (result == ProbeResult::Equal).then_some(operation.version);
            self.observe(subject, found, confirmed).await?;
        }
        Ok(match (kind, &subject.row, result) {
            // The call was a create: it is to be made again.
            (OperationKind::Edit, None, ProbeResult::Absent) => ProbeResult::Different,
            (_, _, result) => result,
        })
    }

    /// Records what a look has shown of a template that the account has, and the version that it has
    /// found.
    pub(super) async fn observe(
        &self,
        subject: &Subject,
        found: Option<RemoteTemplate>,
        confirmed: Option<u64>,
    ) -> Result<(), SyncError> {
        let (store, now) = (&self.context.store, self.now());
        let asked = subject.row.as_ref().and_then(|row| row.dirty_at);
        match (found, &subject.row) {
            (Some(found), row) if row.is_some() || !found.status.is_deleted() => {
                self.record_confirmed(found, asked, confirmed).await
            }
            (None, Some(row)) => {
                let absent = store.record_absent(self.fence, row.id.clone(), asked, now).await?;
                kept(absent).map(drop)
            }
            _ => Ok(()),
        }
    }
}
