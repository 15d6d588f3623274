//! Changes and deletes templates.

use async_trait::async_trait;
use galley_domain::{
    id::{AccountId, TemplateId},
    template::{Review, edit::Edit, lifecycle::Trigger},
};
use jiff::Timestamp;

use crate::{
    Actor, ChangeOutcome, DeleteOutcome, NewTemplate, StoreError, TemplateChange, TraceContext,
    UpsertOutcome,
};

/// How often an account with limits may edit an APPROVED template within 24 hours.
pub const MAX_EDITS_PER_DAY: usize = 1;

/// How often an account with limits may edit an APPROVED template within 30 days.
pub const MAX_EDITS_PER_MONTH: usize = 10;

/// How many of the newest versions of a template are kept. An edit deletes older ones, except the
/// approved version.
pub const MAX_VERSIONS: u64 = 100;

/// Changes and deletes templates.
#[async_trait]
pub trait ChangeStore: Send + Sync {
    /// Creates a new version of a template, with a `template.edited` event and, if the category
    /// changes, a `template.category_changed` event.
    async fn edit_template(
        &self,
        change: TemplateChange,
        edit: Edit,
    ) -> Result<ChangeOutcome, StoreError>;

    /// Applies a lifecycle transition to a template, with the transition's event.
    async fn review_template(
        &self,
        change: TemplateChange,
        trigger: Trigger,
        reason: Option<String>,
    ) -> Result<ChangeOutcome, StoreError>;

    /// Creates each of these templates, or edits the existing one with the same unique key to have
    /// this content and category: all of them, or none if one is refused. A template that needs no
    /// change stays as it is.
    async fn upsert_templates(
        &self,
        templates: Vec<NewTemplate>,
    ) -> Result<UpsertOutcome, StoreError>;

    /// Deletes a template and returns it. Its name is free again immediately; its events stay.
    async fn delete_template(&self, change: TemplateChange) -> Result<ChangeOutcome, StoreError>;

    /// Deletes all languages of a name, each with its event; none if one cannot be deleted.
    async fn delete_translations(
        &self,
        account: AccountId,
        name: &str,
        review: Review,
        actor: Actor,
        trace: Option<TraceContext>,
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError>;

    /// Deletes these templates, each with its event; none if one is unknown or cannot be deleted.
    async fn delete_templates(
        &self,
        account: AccountId,
        ids: Vec<TemplateId>,
        review: Review,
        actor: Actor,
        trace: Option<TraceContext>,
        at: Timestamp,
    ) -> Result<DeleteOutcome, StoreError>;
}
