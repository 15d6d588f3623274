//! Puts templates aside at the provider, and takes them back. The provider owns the status: a read after
//! the call changes the status of the account's template.

use galley_domain::upstream::{
    CallFailure, OperationKind, ProbeResult, ProviderError, RemoteTemplate,
};
use galley_store::StoredOperation;

use super::{
    call::{Call, Plan, not_looked_up},
    subject::Subject,
};
use crate::upstream::session::{Session, SyncError};

impl Session {
    /// What an operation about the archive needs now. A template that is where it should be needs
    /// nothing.
    pub(super) async fn plan_archive(
        &self,
        operation: &StoredOperation,
        subject: Subject,
    ) -> Result<Plan, SyncError> {
        let kind = operation.operation.kind;
        if subject.is_deleted {
            return Ok(Plan::Skip);
        }
        let row = match subject.row {
            // The mirror may show what was there before.
            Some(row) if kind.is_placed(&row.status) => match self.read_again(row).await? {
                Ok(row) => row,
                Err(failure) => return Ok(Plan::Failed(not_looked_up(failure))),
            },
            row => row,
        };
        Ok(match row {
            None => Plan::Failed(absent()),
            Some(row) if kind.is_placed(&row.status) => Plan::Skip,
            Some(row) if kind == OperationKind::Unarchive => {
                Plan::Call(Call::Unarchive { id: row.id })
            }
            Some(row) => Plan::Call(Call::Archive { id: row.id }),
        })
    }

    /// What a look means for an operation about the archive. What was found is recorded in the mirror.
    pub(super) async fn archive_result(
        &self,
        operation: &StoredOperation,
        subject: &Subject,
        found: Option<RemoteTemplate>,
    ) -> Result<ProbeResult, SyncError> {
        let result = ProbeResult::placed(found.as_ref(), operation.operation.kind);
        if !subject.is_deleted {
            self.observe(subject, found, None).await?;
        }
        Ok(result)
    }
}

/// The failure of a template that the provider no longer has.
fn absent() -> CallFailure {
    CallFailure::Refused(ProviderError {
        code: 0,
        subcode: None,
        title: None,
        message: "The provider does not have the template.".to_owned(),
    })
}
