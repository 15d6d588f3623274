//! What bodies use of subjects that each engine still implements itself.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    template::lifecycle::{EventType, State},
    webhook::delivery::DisableReason,
};
use jiff::Timestamp;

use crate::{
    ChangeOutcome, NewTemplate, StoreError, StoredTemplate, TemplateChange, UpstreamConnection,
    Version, Webhook, changes::PlannedEdit, events::NewEvent, stored_row::Row,
    template_rows::ChangedTemplate,
};

/// A query whose text and decoder depend on the engine.
pub(crate) struct EngineQuery<T> {
    pub(crate) statement: String,
    pub(crate) decode: fn(&Row<'_>) -> Result<T, StoreError>,
}

/// The parts of these subjects that run in the transaction of another one.
#[async_trait]
pub(crate) trait SubjectsOfEngine: Send {
    /// Locks all credentials and accounts until the transaction ends. A body locks them before
    /// anything else.
    async fn lock_credentials(&mut self) -> Result<(), StoreError>;

    /// Invalidates cached credentials and accounts when the transaction commits. The credentials are
    /// locked.
    async fn credentials_changed(&mut self) -> Result<(), StoreError>;

    /// Lets the rest of the transaction see the limits and the deletion of an account that the body
    /// has written. PostgreSQL reads them again in each transaction.
    fn account_changed(&mut self, _account: AccountId) -> Result<(), StoreError> {
        Ok(())
    }

    /// A template, unless it is deleted.
    async fn template(
        &mut self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<StoredTemplate>, StoreError>;

    /// Those of these templates that exist. A damaged one is left out, if the engine can tell.
    async fn intact_templates(
        &mut self,
        account: AccountId,
        ids: &[TemplateId],
    ) -> Result<Vec<StoredTemplate>, StoreError>;

    /// The template of an account with this hash of its unique key.
    async fn template_with_key(
        &mut self,
        account: AccountId,
        unique_key: [u8; 16],
    ) -> Result<Option<StoredTemplate>, StoreError>;

    /// Inserts a template of a locked account; `None` if its unique key is in use.
    async fn insert_template(
        &mut self,
        new: &NewTemplate,
        state: &State,
    ) -> Result<Option<TemplateId>, StoreError>;

    /// Appends an event of a locked account.
    async fn append_event(&mut self, event: &NewEvent<'_>) -> Result<(), StoreError>;

    /// Appends an event about the provider of a locked account.
    fn append_upstream_event(
        &mut self,
        connection: &UpstreamConnection,
        event: (EventType, &'static str),
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Appends the event that the service disables an endpoint of a locked account.
    fn append_disabled_event(
        &mut self,
        webhook: &Webhook,
        reason: DisableReason,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Reads a version (`$2`) of a template (`$1`), even if the template is deleted.
    fn version_query(&self) -> EngineQuery<Version>;

    /// Writes the row of a template after a change by the service.
    async fn write_template_state(&mut self, changed: &ChangedTemplate) -> Result<(), StoreError>;

    /// Writes a planned edit.
    async fn write_edit(
        &mut self,
        change: &TemplateChange,
        planned: &PlannedEdit<'_>,
    ) -> Result<ChangeOutcome, StoreError>;
}
