//! What bodies that are written once use of the subjects that this engine implements itself.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    template::lifecycle::{EventType, State},
    webhook::delivery::DisableReason,
};
use jiff::Timestamp;

use super::writer::Batch;
use crate::{
    ChangeOutcome, NewTemplate, StoreError, StoredTemplate, TemplateChange, UpstreamConnection,
    Version, Webhook,
    changes::PlannedEdit,
    encoding::LookupKeys,
    engine::{EngineQuery, SubjectsOfEngine},
    events::NewEvent,
    template_rows::ChangedTemplate,
};

#[async_trait]
impl SubjectsOfEngine for Batch {
    async fn lock_credentials(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn credentials_changed(&mut self) -> Result<(), StoreError> {
        self.credentials_changed();
        Ok(())
    }

    fn account_changed(&mut self, account: AccountId) -> Result<(), StoreError> {
        self.account_changed(account)
    }

    async fn template(
        &mut self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<StoredTemplate>, StoreError> {
        super::templates::one(self.connection(), account, id)
    }

    async fn intact_templates(
        &mut self,
        account: AccountId,
        ids: &[TemplateId],
    ) -> Result<Vec<StoredTemplate>, StoreError> {
        let mut intact = Vec::with_capacity(ids.len());
        for id in ids {
            match super::templates::one(self.connection(), account, *id) {
                Ok(found) => intact.extend(found),
                Err(StoreError::Damaged(cause)) => {
                    tracing::error!(template = %id, %cause, "a review script cannot continue");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(intact)
    }

    async fn template_with_key(
        &mut self,
        account: AccountId,
        unique_key: [u8; 16],
    ) -> Result<Option<StoredTemplate>, StoreError> {
        let conflict = super::templates::conflict_in(self, account, unique_key)?;
        match conflict.and_then(|conflict| conflict.existing_id) {
            Some(id) => super::templates::one(self.connection(), account, id),
            None => Ok(None),
        }
    }

    async fn insert_template(
        &mut self,
        new: &NewTemplate,
        state: &State,
    ) -> Result<Option<TemplateId>, StoreError> {
        let lookup_keys = LookupKeys::of(new);
        super::templates::insert(self, new, &lookup_keys, state).map(Some)
    }

    async fn append_event(&mut self, event: &NewEvent<'_>) -> Result<(), StoreError> {
        super::events::append(self, event)
    }

    fn append_upstream_event(
        &mut self,
        connection: &UpstreamConnection,
        event: (EventType, &'static str),
        at: Timestamp,
    ) -> Result<(), StoreError> {
        super::events::append_upstream(self, connection, event, at)
    }

    fn append_disabled_event(
        &mut self,
        webhook: &Webhook,
        reason: DisableReason,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        super::events::append_disabled(self, webhook, reason.as_str(), at)
    }

    fn version_query(&self) -> EngineQuery<Version> {
        let statement = super::versions::EVEN_DELETED.to_owned();
        EngineQuery { statement, decode: super::versions::intact }
    }

    async fn write_template_state(&mut self, changed: &ChangedTemplate) -> Result<(), StoreError> {
        super::template_state::write(self.connection(), changed)
    }

    async fn write_edit(
        &mut self,
        change: &TemplateChange,
        planned: &PlannedEdit<'_>,
    ) -> Result<ChangeOutcome, StoreError> {
        super::changes::write_edit(self, change, planned)
    }
}
