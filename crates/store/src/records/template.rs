//! Templates as they go into a store and come out of it: new ones, changes, lists, events.

use galley_domain::{
    id::{AccountId, TemplateId, WebhookId},
    rulebook::{Category, Rulebook},
    template::{
        Review, Status, Template,
        lifecycle::{EventType, InvalidTransition, State},
    },
};
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::{Actor, Limit};

/// A template to be kept.
#[derive(Clone, Debug)]
pub struct NewTemplate {
    /// Whose it is.
    pub account: AccountId,
    /// The phone number it was made for.
    pub phone: Option<String>,
    /// What makes it unique, as the rulebook says.
    pub claim: String,
    /// Whose languages it is one of, where languages share a name. All of them have one category.
    pub family: Option<TranslationGroup>,
    /// The template itself.
    pub template: Template,
    /// How it gets its first status.
    pub review: Review,
    /// Who asked for it.
    pub actor: Actor,
    /// The key that makes a second try safe.
    pub idempotency: Option<Idempotency>,
    /// When.
    pub at: Timestamp,
}

/// The templates of an account that share a name and differ in language, as a hash of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranslationGroup(pub(crate) [u8; 16]);

impl TranslationGroup {
    /// Those of that name in that account.
    pub fn of(account: AccountId, name: &str) -> Self {
        let hash = Sha256::new().chain_update(account.get().to_be_bytes()).chain_update(name);
        let hash: [u8; 32] = hash.finalize().into();
        Self(*hash.first_chunk().expect("32 bytes begin with 16"))
    }
}

/// An Idempotency-Key and what was sent with it, both as hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// Hash of the key.
    pub key: [u8; 16],
    /// Hash of the request. It only tells apart what one caller sent under one key.
    pub payload: [u8; 8],
}

/// What came of a creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateOutcome {
    /// It is kept.
    Created(CreatedTemplate),
    /// The same request made this before; nothing was done now.
    Replayed(CreatedTemplate),
    /// The Idempotency-Key belongs to another request; nothing was done.
    KeyReused,
    /// Another template has the name.
    NameInUse(NameConflict),
    /// The other languages of the name have this category; nothing was done.
    CategoryDiffers(Category),
    /// The account has reached a limit; nothing was done.
    Limited(Limit),
}

/// A name is taken; told by which template when it is the same account's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameConflict {
    /// The account's own template of that name.
    pub own: Option<TemplateId>,
}

/// What a creation answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreatedTemplate {
    /// The new template.
    pub id: TemplateId,
    /// Its first status.
    pub status: Status,
    /// Its first category.
    pub category: Category,
}

/// What an Idempotency-Key made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// Hash of the request that came with it.
    pub payload: [u8; 8],
    /// What was answered.
    pub receipt: CreatedTemplate,
}

impl IdempotencyRecord {
    /// What a request with this payload gets from the record.
    pub fn answer(&self, payload: [u8; 8]) -> CreateOutcome {
        if self.payload == payload {
            CreateOutcome::Replayed(self.receipt)
        } else {
            CreateOutcome::KeyReused
        }
    }
}

/// A template as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTemplate {
    /// Which one.
    pub id: TemplateId,
    /// The phone number it was made for.
    pub phone: Option<String>,
    /// The template itself, in its newest version.
    pub template: Template,
    /// Where it stands.
    pub state: State,
    /// The category before the newest version, if that changed it.
    pub previous_category: Option<Category>,
    /// What a reviewer said about the newest version.
    pub reason: Option<String>,
    /// Raised by every event.
    pub revision: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl StoredTemplate {
    /// The template as it is in one of its versions: that version's content, category and status.
    #[expect(clippy::disallowed_methods, reason = "a version met the rules when it came in")]
    #[must_use]
    pub fn showing(&self, version: Version) -> Self {
        let template = Template::restore(
            self.template.name().to_owned(),
            self.template.language().to_owned(),
            version.category,
            self.template.allow_category_change(),
            version.content,
        );
        let state = State { version: version.number, newest: version.status, ..self.state };
        let reason = version.decision.and_then(|decision| decision.reason);
        let previous_category = version.previous_category;
        Self { template, state, previous_category, reason, ..self.clone() }
    }
}

/// One version of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// 1, 2, 3 …
    pub number: u64,
    /// What became of it: PENDING, APPROVED or REJECTED.
    pub status: Status,
    /// Its category.
    pub category: Category,
    /// The category before it, if it changed that.
    pub previous_category: Option<Category>,
    /// Its content, as [`Template::content`] has it.
    pub content: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: Actor,
    /// What a reviewer decided, if one did.
    pub decision: Option<Decision>,
}

/// When and by whom a version was approved or rejected, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: Actor,
    /// Why, in the reviewer's words.
    pub reason: Option<String>,
}

/// Which template is to change, and for whom.
#[derive(Clone, Debug)]
pub struct TemplateChange {
    /// Whose it is.
    pub account: AccountId,
    /// Which one.
    pub id: TemplateId,
    /// Only if it is at one of these revisions.
    pub expected: Option<Vec<u64>>,
    /// How new versions get their first status.
    pub review: Review,
    /// Who asked for it.
    pub actor: Actor,
    /// When.
    pub at: Timestamp,
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// It is done; this is the template now.
    Done(Box<StoredTemplate>),
    /// The account has no such template.
    NoTemplate,
    /// The template has no such version.
    NoVersion,
    /// It is at this revision, not at one of those expected.
    Outdated(u64),
    /// It may not change its category, which is this.
    CategoryLocked(Category),
    /// Other languages of its name have this category, too, and would be left with it.
    FamilyCategory(Category),
    /// A version of it is live, and where languages share a name its category stays what it is for
    /// so long. Nothing was done.
    LiveCategory(Category),
    /// The account has reached a limit.
    Limited(Limit),
    /// There is no such move from where it stands.
    InvalidTransition(InvalidTransition),
}

/// What came of making or editing several templates at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpsertOutcome {
    /// All of them are as they were sent, in that order.
    Done(Vec<CreatedTemplate>),
    /// One could not be made, and nothing was done.
    NotCreated(CreateOutcome),
    /// One that is there could not be edited, and nothing was done.
    NotEdited(TemplateId, ChangeOutcome),
}

/// What came of deleting several templates: all of them are gone, or none is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// These are gone. None, if a name was asked for that nothing has.
    Done(Vec<TemplateId>),
    /// The account has no such template.
    NoTemplate(TemplateId),
    /// There is no such move from where this one stands.
    InvalidTransition(TemplateId, InvalidTransition),
}

/// Which templates of an account are wanted, newest first. A list of values takes what agrees with
/// one of them; an empty one takes all.
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// Whose.
    pub account: AccountId,
    /// Those that have this name.
    pub name: Option<NameFilter>,
    /// Those in one of these statuses.
    pub statuses: Vec<Status>,
    /// Those of one of these categories.
    pub categories: Vec<Category>,
    /// Those in one of these languages.
    pub languages: Vec<String>,
    /// Those in which some word begins with each of these, folded as
    /// [`galley_domain::template::search_terms::words`] does.
    pub words: Vec<String>,
    /// Those older than this one.
    pub after: Option<TemplateId>,
    /// Those newer than this one, and of these the ones next to it: a page backwards.
    pub before: Option<TemplateId>,
    /// Whether a page that is read forwards is to say if there are newer ones: that is one look
    /// more.
    pub both_ways: bool,
    /// So many at most.
    pub limit: usize,
}

/// Which templates have a name.
#[derive(Clone, Debug)]
pub enum NameFilter {
    /// The one that has this claim.
    Claim(String),
    /// All languages of it.
    TranslationGroup(TranslationGroup),
}

impl NameFilter {
    /// Those of that name in an account with that rulebook.
    pub fn under(rulebook: &Rulebook, account: AccountId, name: &str) -> Self {
        if rulebook.names_have_languages {
            Self::TranslationGroup(TranslationGroup::of(account, name))
        } else {
            Self::Claim((rulebook.claim)(account, name, ""))
        }
    }
}

impl ListQuery {
    /// So many of an account's newest templates, whatever they are.
    pub fn of(account: AccountId, limit: usize) -> Self {
        Self {
            account,
            name: None,
            statuses: Vec::new(),
            categories: Vec::new(),
            languages: Vec::new(),
            words: Vec::new(),
            after: None,
            before: None,
            both_ways: false,
            limit,
        }
    }

    /// Whether a template holds every word.
    pub(crate) fn finds(&self, template: &StoredTemplate) -> bool {
        let held = galley_domain::template::search_terms::words_of(&template.template);
        self.words.iter().all(|word| held.iter().any(|held| held.starts_with(&**word)))
    }
}

/// Some templates of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The templates.
    pub templates: Vec<StoredTemplate>,
    /// Whether there are more behind them, older ones.
    pub more: bool,
    /// Whether there are more before them, newer ones: known of pages that are read backwards or
    /// that ask for it, else `false`.
    pub newer: bool,
}

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// 1, 2, 3 … in each account, without gaps.
    pub seq: u64,
    /// What happened.
    pub kind: EventType,
    /// To what.
    pub about: EventSubject,
    /// When.
    pub at: Timestamp,
    /// Who did it.
    pub actor: Actor,
    /// Why, in the words of whoever did it.
    pub reason: Option<String>,
}

/// What an event is about, as it was then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSubject {
    /// A template.
    Template {
        /// Which one.
        id: TemplateId,
        /// Its version.
        version: u64,
        /// Its name.
        name: String,
        /// Its language.
        language: String,
        /// Its category.
        category: Category,
        /// Its status.
        status: Status,
    },
    /// An endpoint.
    Webhook {
        /// Which one.
        id: WebhookId,
        /// Scheme and host of where events were sent; the rest may be a secret.
        origin: String,
    },
}

/// What a reader of events gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Feed {
    /// The events behind the one it named, without a gap.
    Events(Vec<Event>),
    /// The next one is not kept any more; this is the oldest that is, or will be.
    Expired(u64),
    /// There has not been such an event; this is the newest.
    CursorAhead(u64),
}
