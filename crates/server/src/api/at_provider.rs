//! What a connected account knows of its templates at the provider: the mirror and the newest
//! operation.

use std::collections::HashMap;

use galley_domain::{
    id::TemplateId,
    upstream::{OperationState, ProviderError},
};
use galley_store::{Account, MirroredTemplate, StoredOperation};

use super::problem::Problem;
use crate::app::App;

/// The number of templates that are looked up at a time. A page of names has more if they have many
/// languages.
const MAX_LOOKED_UP: usize = 500;

/// One template at the provider.
#[derive(Debug, Default)]
pub(crate) struct AtProvider {
    /// What the provider showed last.
    pub(crate) mirrored: Option<MirroredTemplate>,
    /// The newest operation.
    pub(crate) operation: Option<StoredOperation>,
    /// The newest version of the template.
    pub(crate) version: u64,
}

/// The states of a template at the provider, as [`AtProvider::state`] returns them.
pub(crate) const STATES: &[&str] =
    &["synced", "drifted", "missing", "queued", "sending", "held", "refused", "conflict", "local"];

impl AtProvider {
    /// The state in one word. An operation that is not done comes first: it changes what the provider
    /// has. One that failed counts only if it is about the newest version.
    pub(crate) fn state(&self) -> &'static str {
        match self.relevant_operation().map(|it| it.operation.state) {
            Some(OperationState::Queued) => "queued",
            Some(OperationState::Sending | OperationState::Unknown | OperationState::Probing) => {
                "sending"
            }
            Some(OperationState::Held(_)) => "held",
            Some(OperationState::Refused) => "refused",
            Some(OperationState::Conflict) => "conflict",
            Some(OperationState::Done | OperationState::Superseded) | None => self.mirrored_state(),
        }
    }

    /// The newest operation, unless it has failed to send a former version.
    fn relevant_operation(&self) -> Option<&StoredOperation> {
        self.operation.as_ref().filter(|it| {
            let is_failed =
                matches!(it.operation.state, OperationState::Refused | OperationState::Conflict);
            !is_failed || it.is_about(self.version)
        })
    }

    /// Whether the provider shows other content than the account has, whatever the newest operation
    /// is, unless that is about to replace it.
    pub(crate) fn is_drifted(&self) -> bool {
        let is_moving = matches!(self.state(), "queued" | "sending" | "held");
        self.mirrored.as_ref().is_some_and(|it| it.is_present() && it.drifted) && !is_moving
    }

    fn mirrored_state(&self) -> &'static str {
        match &self.mirrored {
            None => "local",
            Some(mirrored) if !mirrored.is_present() => "missing",
            Some(mirrored) if mirrored.drifted => "drifted",
            Some(_) => "synced",
        }
    }

    /// The provider's error about the newest operation, unless that is done.
    pub(crate) fn error(&self) -> Option<&ProviderError> {
        let operation = &self.relevant_operation()?.operation;
        let is_over = matches!(operation.state, OperationState::Done | OperationState::Superseded);
        operation.error.as_ref().filter(|_| !is_over)
    }
}

/// Templates at the provider.
#[derive(Debug, Default)]
pub(crate) struct AllAtProvider(Option<HashMap<TemplateId, AtProvider>>);

impl AllAtProvider {
    /// Looks templates up together, each with its newest version. Reads nothing for an account without
    /// a connection.
    pub(crate) async fn read(
        app: &App,
        account: &Account,
        templates: &[(TemplateId, u64)],
    ) -> Result<Self, Problem> {
        if !account.is_connected {
            return Ok(Self(None));
        }
        // Requests of other accounts do not carry the space that this needs.
        Box::pin(Self::look_up(app, account, templates)).await
    }

    async fn look_up(
        app: &App,
        account: &Account,
        templates: &[(TemplateId, u64)],
    ) -> Result<Self, Problem> {
        let mut found: HashMap<TemplateId, AtProvider> = templates
            .iter()
            .map(|(id, version)| (*id, AtProvider { version: *version, ..AtProvider::default() }))
            .collect();
        let templates: Vec<TemplateId> = templates.iter().map(|(id, _)| *id).collect();
        for part in templates.chunks(MAX_LOOKED_UP) {
            for mirrored in app.store().mirror_of(account.id, part.to_vec()).await? {
                let template = mirrored.template.and_then(|id| found.get_mut(&id));
                if let Some(template) = template {
                    // The first row of a template is its current one.
                    template.mirrored.get_or_insert(mirrored);
                }
            }
            for operation in app.store().operations_of(account.id, part.to_vec()).await? {
                if let Some(template) = found.get_mut(&operation.template) {
                    template.operation = Some(operation);
                }
            }
        }
        Ok(Self(Some(found)))
    }

    /// A template that was looked up; `None` if the account is not connected.
    pub(crate) fn get(&self, template: TemplateId) -> Option<&AtProvider> {
        self.0.as_ref()?.get(&template)
    }
}

#[cfg(test)]
mod tests {
    use galley_domain::upstream::{HeldReason, Operation, OperationKind, RemoteId, RemoteStatus};
    use jiff::Timestamp;

    use super::*;

    fn mirrored(status: RemoteStatus, drifted: bool, gone: bool) -> MirroredTemplate {
        MirroredTemplate {
            id: RemoteId::parse("7").unwrap(),
            template: TemplateId::new(1),
            name: "order".to_owned(),
            language: "en".to_owned(),
            status,
            category: "UTILITY".to_owned(),
            correct_category: None,
            quality: None,
            reason: None,
            remote_updated_at: None,
            content_key: None,
            version: Some(1),
            sent_version: None,
            drifted,
            observed_at: Timestamp::UNIX_EPOCH,
            changed_at: Timestamp::UNIX_EPOCH,
            sweep: 1,
            missing: 0,
            gone_at: gone.then_some(Timestamp::UNIX_EPOCH),
            dirty_at: None,
            info: None,
            source: None,
        }
    }

    fn operation(state: OperationState) -> StoredOperation {
        let error = ProviderError { code: 100, subcode: None, title: None, message: "No".into() };
        let operation = Operation::new(OperationKind::Create);
        StoredOperation {
            id: 1,
            template: TemplateId::new(1).unwrap(),
            name: None,
            language: None,
            version: 1,
            operation: Operation { state, error: Some(error), ..operation },
            replaces: None,
            created_at: Timestamp::UNIX_EPOCH,
            sent_at: None,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn the_mirror_tells_the_state_unless_an_operation_is_not_done() {
        let approved = || mirrored(RemoteStatus::Approved, false, false);
        let drifted = || mirrored(RemoteStatus::Approved, true, false);
        let cases = [
            (None, None, "local"),
            (Some(approved()), None, "synced"),
            (Some(drifted()), None, "drifted"),
            (Some(mirrored(RemoteStatus::Approved, true, true)), None, "missing"),
            (Some(mirrored(RemoteStatus::Deleted, false, false)), None, "missing"),
            (None, Some(OperationState::Queued), "queued"),
            (None, Some(OperationState::Sending), "sending"),
            (None, Some(OperationState::Unknown), "sending"),
            (None, Some(OperationState::Probing), "sending"),
            (Some(drifted()), Some(OperationState::Held(HeldReason::Quota)), "held"),
            (Some(drifted()), Some(OperationState::Refused), "refused"),
            (None, Some(OperationState::Conflict), "conflict"),
            (Some(drifted()), Some(OperationState::Done), "drifted"),
            (Some(approved()), Some(OperationState::Superseded), "synced"),
        ];
        for (mirrored, state, expected) in cases {
            let at = AtProvider { mirrored, operation: state.map(operation), version: 1 };
            assert_eq!(at.state(), expected, "{state:?}");
            assert!(STATES.contains(&at.state()));
            let is_over = state
                .is_none_or(|it| matches!(it, OperationState::Done | OperationState::Superseded));
            assert_eq!(at.error().is_some(), !is_over, "{state:?}");
        }
    }

    #[test]
    fn a_failure_is_about_its_own_version_only() {
        let refused = || Some(operation(OperationState::Refused));
        let at = |operation, version| AtProvider {
            mirrored: Some(mirrored(RemoteStatus::Approved, false, false)),
            operation,
            version,
        };
        assert_eq!(at(refused(), 1).state(), "refused");
        let former = at(refused(), 2);
        assert_eq!((former.state(), former.error()), ("synced", None));
        let queued = at(Some(operation(OperationState::Queued)), 2);
        assert_eq!(queued.state(), "queued", "the call is made all the same");
        let mut delete = operation(OperationState::Refused);
        delete.operation.kind = OperationKind::Delete;
        assert_eq!(at(Some(delete), 2).state(), "refused");
    }
}
