//! What bodies that are written once use of the subjects that this engine implements itself.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    template::lifecycle::State,
};

use super::writer::Batch;
use crate::{
    NewTemplate, StoreError, StoredTemplate, Version,
    encoding::LookupKeys,
    engine::{EngineQuery, SubjectsOfEngine, TemplateColumns},
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

    fn template_columns(&self) -> TemplateColumns {
        TemplateColumns { columns: super::templates::COLUMNS, decode: super::templates::read_row }
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

    fn version_query(&self) -> EngineQuery<Version> {
        let statement = super::versions::EVEN_DELETED.to_owned();
        EngineQuery { statement, decode: super::versions::intact }
    }
}
