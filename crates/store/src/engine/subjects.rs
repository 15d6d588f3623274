//! What bodies use of subjects that each engine still implements itself.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    template::lifecycle::State,
};

use crate::{
    NewTemplate, StoreError, StoredTemplate, Version, row_checksum::damaged, stored_row::Row,
};

/// A query whose text and decoder depend on the engine.
pub(crate) struct EngineQuery<T> {
    pub(crate) statement: String,
    pub(crate) decode: fn(&Row<'_>) -> Result<T, StoreError>,
}

/// The columns of a template, whose decoder depends on the engine.
pub(crate) struct TemplateColumns {
    pub(crate) columns: &'static str,
    pub(crate) decode: fn(&Row<'_>) -> Result<ReadTemplate, StoreError>,
}

/// A template that may be damaged.
pub(crate) struct ReadTemplate {
    pub(crate) template: StoredTemplate,
    /// Whether it matches its checksum.
    pub(crate) is_intact: bool,
}

impl ReadTemplate {
    /// The template, or the error if it is damaged.
    pub(crate) fn into_intact(self) -> Result<StoredTemplate, StoreError> {
        if self.is_intact { Ok(self.template) } else { Err(damaged("template", self.template.id)) }
    }
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

    /// The columns of a template.
    fn template_columns(&self) -> TemplateColumns;

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

    /// Reads a version (`$2`) of a template (`$1`), even if the template is deleted.
    fn version_query(&self) -> EngineQuery<Version>;
}
