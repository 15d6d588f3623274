//! Templates and changes to them.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::Category,
    template::{
        Review, Status, Template,
        lifecycle::{InvalidTransition, State},
        quality::Quality,
    },
};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::{Actor, Limit, TraceContext};

/// How long an idempotency record is valid.
pub const IDEMPOTENCY_HOURS: i64 = 24;

/// A template to create.
#[derive(Clone, Debug)]
pub struct NewTemplate {
    /// The account that owns it.
    pub account: AccountId,
    /// The phone number it is created for.
    pub phone: Option<String>,
    /// The key that no other template may have, as the rulebook defines it.
    pub unique_key: String,
    /// Its translation group, if the rulebook lets the languages of a template share a name. All
    /// templates of a group have the same category.
    pub translation_group: Option<TranslationGroup>,
    /// The template itself.
    pub template: Template,
    /// How it gets its first status.
    pub review: Review,
    /// Who creates it.
    pub actor: Actor,
    /// The trace of the request.
    pub trace: Option<TraceContext>,
    /// The idempotency key of the request, if it has one.
    pub idempotency: Option<Idempotency>,
    /// The creation time.
    pub at: Timestamp,
}

/// Identifies the templates of an account that share a name and differ in language: a hash of
/// account and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslationGroup(pub(crate) [u8; 16]);

impl TranslationGroup {
    /// The group of a name in an account.
    pub fn of(account: AccountId, name: &str) -> Self {
        let hash = Sha256::new().chain_update(account.get().to_be_bytes()).chain_update(name);
        let hash: [u8; 32] = hash.finalize().into();
        Self(*hash.first_chunk().expect("32 bytes begin with 16"))
    }
}

/// An Idempotency-Key and the request sent with it, both as hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// Hash of the key.
    pub key: [u8; 16],
    /// Hash of the request. It only distinguishes requests that one account sent with the same key.
    pub payload: [u8; 8],
}

/// The result of [`create_template`](crate::Store::create_template). Only `Created` changes the
/// store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateOutcome {
    /// The template was created.
    Created(CreatedTemplate),
    /// An earlier request with the same key and payload created this template.
    Replayed(CreatedTemplate),
    /// The Idempotency-Key was used for a different request.
    KeyReused,
    /// Another template has the same unique key.
    NameInUse(NameConflict),
    /// The translation group has this category.
    CategoryDiffers(Category),
    /// The account has reached a limit.
    Limited(Limit),
    /// A faithful emulator account has deleted an approved template with this name and language.
    NameLocked {
        /// When the name is free again, on the account's clock.
        until: Timestamp,
    },
}

/// A name is already in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameConflict {
    /// The template that uses the name, if it belongs to the same account.
    pub existing_id: Option<TemplateId>,
}

/// A newly created template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreatedTemplate {
    /// The template's id.
    pub id: TemplateId,
    /// Its first status.
    pub status: Status,
    /// Its first category.
    pub category: Category,
}

/// The stored result of a creation with an Idempotency-Key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// Hash of the request that was sent with the key.
    pub payload: [u8; 8],
    /// The template that the request created.
    pub created: CreatedTemplate,
}

/// A template with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTemplate {
    /// The template's id.
    pub id: TemplateId,
    /// The phone number it was created for.
    pub phone: Option<String>,
    /// The newest version of the template.
    pub template: Template,
    /// Its lifecycle state.
    pub state: State,
    /// The category before, if the newest version, or a review script or a provider since, has changed
    /// it.
    pub previous_category: Option<Category>,
    /// The category that a review script or a provider has announced for the newest version. If it equals the
    /// category, the change is done.
    pub announced_category: Option<Category>,
    /// Its quality, which only a review script or a provider changes.
    pub quality: Quality,
    /// The reviewer's reason for the decision on the newest version.
    pub reason: Option<String>,
    /// Who decided on the newest version: a reviewer, or the service for a script or a provider.
    pub decided_by: Option<Actor>,
    /// Increases with every event of the template.
    pub revision: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl StoredTemplate {
    /// Whether the provider changed the category although the template does not allow it: it is on hold
    /// until a person accepts the category.
    pub(crate) fn is_category_held(&self) -> bool {
        self.previous_category.is_some() && !self.template.allow_category_change()
    }

    /// The template with the content, category and status of one of its versions.
    #[expect(clippy::disallowed_methods, reason = "a stored version was validated on creation")]
    #[must_use]
    pub fn at_version(&self, version: Version) -> Self {
        let template = Template::restore(
            self.template.name().to_owned(),
            self.template.language().to_owned(),
            version.category,
            self.template.allow_category_change(),
            version.content,
        );
        let state = State { version: version.number, newest_status: version.status, ..self.state };
        let decided_by = version.decision.as_ref().map(|decision| decision.by);
        let reason = version.decision.and_then(|decision| decision.reason);
        let previous_category = version.previous_category;
        Self { template, state, previous_category, reason, decided_by, ..self.clone() }
    }
}

/// One version of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The version number, starting at 1.
    pub number: u64,
    /// Its review status: PENDING, APPROVED or REJECTED.
    pub status: Status,
    /// Its category.
    pub category: Category,
    /// The category before, if this version or a review script since has changed it.
    pub previous_category: Option<Category>,
    /// Its content in the format of [`Template::content`].
    pub content: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: Actor,
    /// The reviewer's decision, once there is one.
    pub decision: Option<Decision>,
}

/// A version without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionSummary {
    /// The version number, starting at 1.
    pub number: u64,
    /// Its review status: PENDING, APPROVED or REJECTED.
    pub status: Status,
    /// Its category.
    pub category: Category,
    /// The category before, if this version or a review script since has changed it.
    pub previous_category: Option<Category>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: Actor,
    /// The present name of the token that created it; empty without one.
    pub created_by_name: String,
    /// The reviewer's decision, once there is one.
    pub decision: Option<Decision>,
    /// The present name of the token that decided; empty without one.
    pub decided_by_name: String,
}

/// The approval or rejection of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The time of the decision.
    pub at: Timestamp,
    /// Who decided.
    pub by: Actor,
    /// The reviewer's reason.
    pub reason: Option<String>,
}

/// The common parameters of a change to a template.
#[derive(Clone, Debug)]
pub struct TemplateChange {
    /// The account that owns the template.
    pub account: AccountId,
    /// The template to change.
    pub id: TemplateId,
    /// Makes the change only if the template is at one of these revisions.
    pub expected: Option<Vec<u64>>,
    /// Makes the change only if this is the newest version.
    pub version: Option<u64>,
    /// How a new version gets its first status.
    pub review: Review,
    /// Who makes the change.
    pub actor: Actor,
    /// The trace of the request.
    pub trace: Option<TraceContext>,
    /// The time of the change.
    pub at: Timestamp,
}

/// Who deletes several templates, and when.
#[derive(Clone, Copy, Debug)]
pub struct Initiator {
    /// The account that owns the templates.
    pub account: AccountId,
    /// How the account reviews its templates.
    pub review: Review,
    /// Who deletes them.
    pub actor: Actor,
    /// The trace of the request.
    pub trace: Option<TraceContext>,
    /// The time of the deletion.
    pub at: Timestamp,
}

/// The result of a change to a template. Only `Done` changes the store, except that due steps of a review
/// script are applied before any change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// The change was made. Contains the template after the change, or the deleted template.
    Done(Box<StoredTemplate>),
    /// The account has no such template.
    NoTemplate,
    /// The template has no such version.
    NoVersion,
    /// The template is at this revision, which is not an expected one, or has a newer version.
    RevisionMismatch(u64),
    /// The template does not allow category changes; this is its category.
    CategoryLocked(Category),
    /// Other templates of the translation group have this category and would keep it.
    GroupCategory(Category),
    /// A version of this category is live, and the category of a template in a translation group
    /// cannot change while a version is live.
    LiveCategory(Category),
    /// The account has reached a limit.
    Limited(Limit),
    /// The deciding token has created the version itself, and the account needs a second person.
    FourEyes,
    /// The template's state does not allow the transition.
    InvalidTransition(InvalidTransition),
}

impl ChangeOutcome {
    /// The outcome of a change that was made, from the template that was read after it.
    pub(crate) fn done(changed: Option<StoredTemplate>) -> Self {
        changed.map_or(Self::NoTemplate, |changed| Self::Done(Box::new(changed)))
    }
}

/// The result of [`upsert_templates`](crate::Store::upsert_templates). Only `Done` changes the
/// store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpsertOutcome {
    /// All templates have the requested content; in the order of the request.
    Done(Vec<CreatedTemplate>),
    /// A template could not be created.
    NotCreated(CreateOutcome),
    /// An existing template could not be edited.
    NotEdited(TemplateId, ChangeOutcome),
}

/// The result of deleting several templates. Only `Done` changes the store, except that due steps of
/// review scripts are applied before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// These templates were deleted; none if no template has the name.
    Done(Vec<TemplateId>),
    /// The account has no such template.
    NoTemplate(TemplateId),
    /// This template's state does not allow deletion.
    InvalidTransition(TemplateId, InvalidTransition),
}
