//! What bodies that are written once use of the subjects that this engine implements itself.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    template::lifecycle::{EventType, State},
    webhook::delivery::DisableReason,
};
use jiff::Timestamp;

use super::transaction::Transaction;
use crate::{
    ChangeOutcome, NewTemplate, StoreError, StoredTemplate, TemplateChange, UpstreamConnection,
    Version, Webhook,
    changes::PlannedEdit,
    decisions::versions::version,
    encoding::LookupKeys,
    engine::{EngineQuery, SubjectsOfEngine},
    events::NewEvent,
    template_rows::ChangedTemplate,
};

#[async_trait]
impl SubjectsOfEngine for Transaction {
    async fn lock_credentials(&mut self) -> Result<(), StoreError> {
        self.run("SELECT epoch FROM credential_epoch FOR UPDATE", &[]).await.map(drop)
    }

    async fn credentials_changed(&mut self) -> Result<(), StoreError> {
        self.defer("UPDATE credential_epoch SET epoch = epoch + 1", Vec::new());
        Ok(())
    }

    async fn template(
        &mut self,
        account: AccountId,
        id: TemplateId,
    ) -> Result<Option<StoredTemplate>, StoreError> {
        self.ensure_begun().await?;
        super::templates::one_in(self, account, id).await
    }

    async fn intact_templates(
        &mut self,
        account: AccountId,
        ids: &[TemplateId],
    ) -> Result<Vec<StoredTemplate>, StoreError> {
        self.ensure_begun().await?;
        super::templates::several_in(self, account, ids).await
    }

    async fn template_with_key(
        &mut self,
        account: AccountId,
        unique_key: [u8; 16],
    ) -> Result<Option<StoredTemplate>, StoreError> {
        self.ensure_begun().await?;
        super::templates::with_unique_key(self, account, &unique_key).await
    }

    async fn insert_template(
        &mut self,
        new: &NewTemplate,
        state: &State,
    ) -> Result<Option<TemplateId>, StoreError> {
        let lookup_keys = LookupKeys::of(new);
        super::upsert::insert_counted(self, &lookup_keys, new, state).await
    }

    async fn append_event(&mut self, event: &NewEvent<'_>) -> Result<(), StoreError> {
        super::events::append(self, event).await
    }

    fn append_upstream_event(
        &mut self,
        connection: &UpstreamConnection,
        event: (EventType, &'static str),
        at: Timestamp,
    ) -> Result<(), StoreError> {
        super::events::append_upstream(self, connection, event, at);
        Ok(())
    }

    fn append_disabled_event(
        &mut self,
        webhook: &Webhook,
        reason: DisableReason,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        super::events::append_disabled(self, webhook, reason.as_str(), at);
        Ok(())
    }

    fn version_query(&self) -> EngineQuery<Version> {
        let statement = super::versions::EVEN_DELETED.to_owned();
        EngineQuery { statement, decode: |row| version(row) }
    }

    async fn write_template_state(&mut self, changed: &ChangedTemplate) -> Result<(), StoreError> {
        super::template_state::write(self, changed).await
    }

    async fn write_edit(
        &mut self,
        change: &TemplateChange,
        planned: &PlannedEdit<'_>,
    ) -> Result<ChangeOutcome, StoreError> {
        super::changes::write_edit(self, change, planned).await
    }
}
