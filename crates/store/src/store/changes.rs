//! Creates and changes several templates.

use async_trait::async_trait;

use crate::{NewTemplate, StoreError, UpsertOutcome};

/// Creates and changes several templates.
#[async_trait]
pub trait ChangeStore: Send + Sync {
    /// Creates each of these templates, or edits the existing one with the same unique key to have
    /// this content and category: all of them, or none if one is refused. A template that needs no
    /// change stays as it is.
    async fn upsert_templates(
        &self,
        templates: Vec<NewTemplate>,
    ) -> Result<UpsertOutcome, StoreError>;
}
