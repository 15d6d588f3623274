//! Lists of templates.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::{Category, Rulebook},
    template::{Status, search_terms},
};

use super::{StoredTemplate, TranslationGroup};

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
    /// Search terms: for each of them, a word of the template must start with it. Normalised as
    /// [`search_terms::terms`] does.
    pub words: Vec<String>,
    /// Cursor: only templates older than this one.
    pub after: Option<TemplateId>,
    /// Backward cursor: the templates newer than this one that are nearest to it.
    pub before: Option<TemplateId>,
    /// Whether a forward page sets [`Page::has_newer`], which costs one more query.
    pub check_newer: bool,
    /// The maximum number of templates.
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
            words: Vec::new(),
            after: None,
            before: None,
            check_newer: false,
            limit,
        }
    }

    /// Whether a template matches every search term.
    pub(crate) fn matches_words(&self, stored: &StoredTemplate) -> bool {
        let words = search_terms::template_terms(&stored.template);
        self.words.iter().all(|term| words.iter().any(|word| word.starts_with(&**term)))
    }
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
}
