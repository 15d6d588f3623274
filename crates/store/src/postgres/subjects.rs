//! What bodies that are written once use of the subjects that this engine implements itself.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    template::lifecycle::State,
};

use super::transaction::Transaction;
use crate::{
    NewTemplate, StoreError, StoredTemplate, Version,
    decisions::versions::version,
    encoding::LookupKeys,
    engine::{EngineQuery, SubjectsOfEngine, TemplateColumns},
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

    fn template_columns(&self) -> TemplateColumns {
        TemplateColumns { columns: super::templates::COLUMNS, decode: super::templates::read_row }
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

    fn version_query(&self) -> EngineQuery<Version> {
        let statement = super::versions::EVEN_DELETED.to_owned();
        EngineQuery { statement, decode: |row| version(row) }
    }
}
