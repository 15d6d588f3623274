//! Lists of templates.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::{Category, Rulebook},
    template::{Status, search_terms},
};
use jiff::Timestamp;

use super::{StoredTemplate, TranslationGroup};
use crate::ReadKind;

/// A query for templates of an account, newest first. A filter with several values matches any of
/// them; an empty filter matches all templates.
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// The account that owns the templates.
    pub account: AccountId,
    /// Matches this name.
    pub name: Option<NameFilter>,
    /// Matches these statuses.
    pub statuses: Vec<Status>,
    /// Matches these categories.
    pub categories: Vec<Category>,
    /// Matches these languages.
    pub languages: Vec<String>,
    /// Matches templates created for these phone numbers.
    pub phones: Vec<String>,
    /// Matches templates whose last change was at this time or later.
    pub updated_from: Option<Timestamp>,
    /// Matches templates whose last change was before this time.
    pub updated_before: Option<Timestamp>,
    /// Search terms: for each of them, a word of the template must start with it. Normalised as
    /// [`search_terms::terms`] does.
    pub words: Vec<String>,
    /// Cursor: only templates older than this one.
    pub after: Option<TemplateId>,
    /// Backward cursor: the templates newer than this one that are nearest to it.
    pub before: Option<TemplateId>,
    /// Whether a forward page sets [`Page::has_newer`], which costs one more query.
    pub check_newer: bool,
    /// The maximum number of templates. A page with much content has fewer.
    pub limit: usize,
}

/// A filter for templates of one name.
#[derive(Clone, Debug)]
pub enum NameFilter {
    /// The template with this unique key.
    UniqueKey(String),
    /// All languages of the name.
    TranslationGroup(TranslationGroup),
}

impl NameFilter {
    /// The filter for a name, in an account with this rulebook.
    pub fn for_rulebook(rulebook: &Rulebook, account: AccountId, name: &str) -> Self {
        if rulebook.supports_translations {
            Self::TranslationGroup(TranslationGroup::of(account, name))
        } else {
            Self::UniqueKey((rulebook.unique_key)(account, name, ""))
        }
    }
}

impl ListQuery {
    /// A query for the newest templates of an account, without filters.
    pub fn new(account: AccountId, limit: usize) -> Self {
        Self {
            account,
            name: None,
            statuses: Vec::new(),
            categories: Vec::new(),
            languages: Vec::new(),
            phones: Vec::new(),
            updated_from: None,
            updated_before: None,
            words: Vec::new(),
            after: None,
            before: None,
            check_newer: false,
            limit,
        }
    }

    /// Whether the list has filters that no index contains, so that each row has to be read.
    pub(crate) fn has_row_filters(&self) -> bool {
        !self.phones.is_empty() || self.updated_from.is_some() || self.updated_before.is_some()
    }

    /// When a template was changed last, in milliseconds: the first that matches, and the first
    /// after it that does not.
    pub(crate) fn updated_range(&self) -> (i64, i64) {
        let first = |at: Timestamp| {
            let is_later = at.subsec_nanosecond().rem_euclid(1_000_000) != 0;
            at.as_millisecond() + i64::from(is_later && at.as_nanosecond() > 0)
        };
        (self.updated_from.map_or(i64::MIN, first), self.updated_before.map_or(i64::MAX, first))
    }

    /// The limit that applies to reading the list.
    pub(crate) fn read_kind(&self) -> ReadKind {
        let is_search = self.uses_search_index() || self.has_row_filters();
        if is_search { ReadKind::Search } else { ReadKind::List }
    }

    /// Whether the list is read from the search index. The few templates of a name are searched
    /// without it.
    pub(crate) fn uses_search_index(&self) -> bool {
        !self.words.is_empty() && self.name.is_none()
    }

    /// Whether a template matches every search term.
    pub(crate) fn matches_words(&self, stored: &StoredTemplate) -> bool {
        let words = search_terms::template_terms(&stored.template);
        self.words.iter().all(|term| words.iter().any(|word| word.starts_with(&**term)))
    }
}

/// The committed writes of an account that the search index does not contain yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unindexed {
    /// The number of the account's newest event.
    pub newest: u64,
    /// The number of the last event that is indexed; 0 while templates before it may be missing.
    pub indexed: u64,
    /// The time of the oldest write that is not indexed.
    pub since: Timestamp,
}

/// The result of one [`index_account`](crate::ListStore::index_account) step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexStep {
    /// The search index contains the account's events up to the requested one.
    CaughtUp,
    /// The step has indexed something; more is left.
    Advanced,
    /// Nothing was indexed: another instance is indexing the account, or the disk is full.
    Blocked,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The templates, newest first.
    pub templates: Vec<StoredTemplate>,
    /// Whether older templates follow the page.
    pub has_older: bool,
    /// Whether newer templates precede the page. Always `false` for a forward page without
    /// [`ListQuery::check_newer`].
    pub has_newer: bool,
    /// What the search that found the page could not consider; `None` if nothing, or if the list
    /// does not use the search index.
    pub unindexed: Option<Unindexed>,
}

impl Page {
    /// A page with these templates, and none before or after it.
    pub fn of(templates: Vec<StoredTemplate>) -> Self {
        Self { templates, has_older: false, has_newer: false, unindexed: None }
    }
}
