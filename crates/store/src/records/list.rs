//! Lists of templates.

use galley_domain::{
    id::{AccountId, TemplateId},
    rulebook::{Category, Rulebook},
    template::{Review, Status, lifecycle::State, quality::Quality, search_terms},
};
use jiff::Timestamp;

use super::{MirroredTemplate, StoredTemplate, TranslationGroup};
use crate::ReadKind;

/// The order of a list, by the creation of the templates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListOrder {
    /// The newest template is first.
    #[default]
    NewestFirst,
    /// The oldest template is first.
    OldestFirst,
}

/// A query for templates of an account. A filter with several values matches any of
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
    /// Matches templates of these qualities, which only emulators and providers rate.
    pub qualities: Vec<Quality>,
    /// Matches templates with this state at the provider of a connected account.
    pub upstream: Option<UpstreamFilter>,
    /// Search terms: for each of them, a word of the template must start with it. Normalised as
    /// [`search_terms::terms`] does.
    pub words: Vec<String>,
    /// Matches templates on which a reviewer can decide: their newest version is PENDING and they
    /// are not DISABLED. In a connected account, neither the reviewers nor the provider have the
    /// version already.
    pub awaiting_review: bool,
    /// The review of the account, which says on which versions its reviewers decide.
    pub review: Review,
    /// The order of the list.
    pub order: ListOrder,
    /// Cursor: the templates that follow this one in the order of the list.
    pub after: Option<TemplateId>,
    /// Backward cursor: the templates that precede this one and are nearest to it. Takes precedence
    /// over `after`.
    pub before: Option<TemplateId>,
    /// Whether a forward page sets [`Page::has_previous`], which costs one more query.
    pub check_previous: bool,
    /// The maximum number of templates. A page with much content has fewer.
    pub limit: usize,
}

/// Newest versions of a connected account that wait for its own reviewers, as an SQL condition on a row
/// of `template` with this alias: no decision is made, and the provider does not have the version.
pub(crate) fn undecided(template: &str) -> String {
    format!(
        "{template}.decided_by IS NULL AND NOT EXISTS (SELECT 1 FROM upstream_template m WHERE \
         m.account_id = {template}.account_id AND m.template_id = {template}.id AND \
         m.version = {template}.version AND {})",
        MirroredTemplate::PRESENT
    )
}

/// The state of a template at the provider of a connected account, as a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamFilter {
    /// The provider shows another content.
    Drifted,
    /// The last operation was refused, or is in conflict, and is about the newest version.
    Failed,
    /// The provider had the template, and has it no longer.
    Missing,
}

impl UpstreamFilter {
    /// All filters.
    pub const ALL: [Self; 3] = [Self::Drifted, Self::Failed, Self::Missing];

    /// The word of the filter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Drifted => "drifted",
            Self::Failed => "failed",
            Self::Missing => "missing",
        }
    }

    /// The filter with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|filter| filter.as_str() == word)
    }

    /// The SQL condition on a row of `template`.
    pub(crate) fn condition(self) -> String {
        let (present, order) = (MirroredTemplate::PRESENT, MirroredTemplate::CURRENT_FIRST);
        let current = |shown: &str| {
            format!(
                "coalesce((SELECT {shown} FROM upstream_template m WHERE \
                 m.account_id = template.account_id AND m.template_id = template.id \
                 ORDER BY {order} LIMIT 1), false)"
            )
        };
        match self {
            Self::Drifted => current(&format!("m.drifted AND {present}")),
            Self::Missing => current(&format!("NOT ({present})")),
            // A failure to send a former version is not one of the template.
            Self::Failed => "coalesce((SELECT o.state IN ('refused', 'conflict') AND \
                             (o.kind NOT IN ('create', 'edit') OR o.version = template.version) \
                             FROM upstream_operation o WHERE \
                             o.account_id = template.account_id AND o.template_id = template.id \
                             AND (o.kind NOT IN ('archive', 'unarchive') OR \
                             o.state NOT IN ('done', 'superseded')) \
                             ORDER BY o.id DESC LIMIT 1), false)"
                .to_owned(),
        }
    }
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
            qualities: Vec::new(),
            upstream: None,
            words: Vec::new(),
            awaiting_review: false,
            review: Review::Manual,
            order: ListOrder::default(),
            after: None,
            before: None,
            check_previous: false,
            limit,
        }
    }

    /// Whether the list has filters that no index contains, so that each row has to be read.
    pub(crate) fn has_row_filters(&self) -> bool {
        !self.phones.is_empty()
            || self.updated_from.is_some()
            || self.updated_before.is_some()
            || !self.qualities.is_empty()
            || self.depends_on_provider()
    }

    /// Whether the list depends on the state of templates at the provider.
    pub(crate) fn depends_on_provider(&self) -> bool {
        self.upstream.is_some() || (self.awaiting_review && self.review.is_by_provider())
    }

    /// The SQL condition of the state at the provider, on a row of `template`.
    pub(crate) fn upstream_condition(&self) -> String {
        let filter = self.upstream.map(UpstreamFilter::condition);
        let undecided = match self.review {
            _ if !self.awaiting_review => None,
            Review::Provider => Some("false".to_owned()),
            Review::InHouseThenProvider => Some(undecided("template")),
            Review::Manual | Review::Auto | Review::Scripted => None,
        };
        let conditions: Vec<String> = filter.into_iter().chain(undecided).collect();
        if conditions.is_empty() { "true".to_owned() } else { conditions.join(" AND ") }
    }

    /// The SQL condition of the qualities and of the state at the provider. It has few forms, so a
    /// statement needs no parameter.
    pub(crate) fn row_condition(&self) -> String {
        let upstream = self.upstream_condition();
        if self.qualities.is_empty() {
            return upstream;
        }
        let names: Vec<String> =
            self.qualities.iter().map(|it| format!("'{}'", it.as_str())).collect();
        let quality = Quality::Unknown.as_str();
        format!("coalesce(quality, '{quality}') IN ({}) AND {upstream}", names.join(", "))
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
        // The index of templates that await review contains no category and no language.
        let filters_rows = self.has_row_filters()
            || self.awaiting_review
                && !(self.statuses.is_empty()
                    && self.categories.is_empty()
                    && self.languages.is_empty());
        let is_search = self.uses_search_index() || filters_rows;
        if is_search { ReadKind::Search } else { ReadKind::List }
    }

    /// Whether the list is read from the search index. The few templates of a name are searched
    /// without it.
    pub(crate) fn uses_search_index(&self) -> bool {
        !self.words.is_empty() && self.name.is_none()
    }

    /// Whether a template of the account matches the filters and the search terms. The name and the
    /// state at the provider are not compared.
    pub fn matches(&self, stored: &StoredTemplate) -> bool {
        self.passes_filters(stored) && self.matches_words(stored)
    }

    /// Whether a template matches the filters other than name and search terms.
    pub(crate) fn passes_filters(&self, stored: &StoredTemplate) -> bool {
        let template = &stored.template;
        let (from, before) = self.updated_range();
        (from..before).contains(&stored.updated_at.as_millisecond())
            && (!self.awaiting_review || stored.state.is_awaiting_review())
            && matches_any(&self.phones, |phone| Some(phone) == stored.phone.as_ref())
            && matches_any(&self.qualities, |quality| *quality == stored.quality)
            && matches_any(&self.statuses, |status| *status == stored.state.status())
            && matches_any(&self.categories, |category| *category == template.category())
            && matches_any(&self.languages, |language| language == template.language())
    }

    /// Whether a template matches every search term.
    pub(crate) fn matches_words(&self, stored: &StoredTemplate) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let words = search_terms::template_terms(&stored.template);
        self.words.iter().all(|term| words.iter().any(|word| word.starts_with(&**term)))
    }
}

/// Whether one of the filter's values matches; an empty filter matches everything.
pub(crate) fn matches_any<T>(filter: &[T], is_match: impl Fn(&T) -> bool) -> bool {
    filter.is_empty() || filter.iter().any(is_match)
}

/// A template as one of the languages of its name, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanguageSummary {
    /// Its id.
    pub id: TemplateId,
    /// Its name.
    pub name: String,
    /// Its language.
    pub language: String,
    /// Its category.
    pub category: Category,
    /// Its lifecycle state.
    pub state: State,
    /// The reviewer's reason for the decision on the newest version.
    pub reason: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Whether it matches the filters and the search terms of the list.
    pub is_match: bool,
}

impl LanguageSummary {
    /// The summary of a template in a list.
    pub fn new(query: &ListQuery, stored: StoredTemplate) -> Self {
        Self {
            id: stored.id,
            name: stored.template.name().to_owned(),
            language: stored.template.language().to_owned(),
            category: stored.template.category(),
            state: stored.state,
            is_match: query.matches(&stored),
            reason: stored.reason,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
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

/// The result of one [`index_account`](crate::Store::index_account) step.
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
    /// The templates, in the order of the list.
    pub templates: Vec<StoredTemplate>,
    /// Whether templates follow the page.
    pub has_next: bool,
    /// Whether templates precede the page. Always `false` for a forward page without
    /// [`ListQuery::check_previous`].
    pub has_previous: bool,
    /// What the search that found the page could not consider; `None` if nothing, or if the list
    /// does not use the search index.
    pub unindexed: Option<Unindexed>,
}

impl Page {
    /// A page with these templates, and none before or after it.
    pub fn of(templates: Vec<StoredTemplate>) -> Self {
        Self { templates, has_next: false, has_previous: false, unindexed: None }
    }
}
