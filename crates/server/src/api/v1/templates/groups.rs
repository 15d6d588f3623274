//! Lists names with their languages: `?group=name`.
//!
//! The list of templates is walked newest first. A name is on the page where its newest matching
//! template is; the languages of all names of a read are looked up together. So the cost does not depend on the number
//! of templates, and the cursor is that of the list.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use axum::{http::StatusCode, response::Response};
use galley_domain::id::TemplateId;
use galley_store::{LanguageSummary, ListQuery, Page, StoredTemplate};

use crate::{
    api::{
        at_provider::AllAtProvider,
        auth::{Caller, Read},
        json,
        problem::Problem,
        query::{CheckedParameters, MAX_PAGE_ITEMS},
        search::{self, Listing},
        view::{self, Paging},
    },
    app::App,
};

/// Maximum number of templates that one request walks. A page of names that have many matching
/// languages may be shorter than its limit, or empty, with a link to the next one.
const MAX_WALKED: usize = 1_000;

pub(super) async fn list(
    app: &App,
    caller: &Caller<Read>,
    query: ListQuery,
    parameters: &CheckedParameters,
) -> Result<Response, Problem> {
    let mut walk = Walk::new(caller.rulebook()?.supports_translations, query);
    let mut first: Option<Listing> = None;
    while let Some(query) = walk.next_query() {
        // Only the first read waits for the search index.
        let page = if first.is_none() {
            first.insert(search::list(app, query).await?).take_page()
        } else {
            app.store().list(query).await?
        };
        walk.add(app, page).await?;
    }
    let after = walk.cursor.map(|id| id.to_string());
    let next = after.as_deref().filter(|_| walk.has_more).map(|after| parameters.next_page(after));
    let languages = walk.groups.iter().flat_map(|it| it.iter());
    let newest: Vec<_> = languages.map(|it| (it.id, it.state.version)).collect();
    let all = AllAtProvider::read(app, &caller.account, &newest).await?;
    let body = view::groups(&walk.groups, &all, &Paging { after, next });
    let mut response = json(StatusCode::OK, body);
    if let Some(listing) = first {
        listing.report_lag(&mut response);
    }
    Ok(response)
}

/// The languages of a name, newest first.
type Languages = Arc<[LanguageSummary]>;

/// The names found so far.
struct Walk {
    has_translations: bool,
    query: ListQuery,
    groups: Vec<Languages>,
    /// The languages of each name that was looked up.
    looked_up: HashMap<String, Languages>,
    walked: usize,
    is_complete: bool,
    /// The last template that was walked.
    cursor: Option<TemplateId>,
    /// Whether the page does not contain all names.
    has_more: bool,
}

impl Walk {
    fn new(has_translations: bool, query: ListQuery) -> Self {
        Self {
            has_translations,
            groups: Vec::new(),
            looked_up: HashMap::new(),
            walked: 0,
            is_complete: false,
            cursor: None,
            has_more: false,
            query,
        }
    }

    /// The next templates to read; `None` if the page is complete. If the newest
    /// templates have different names, the first read is enough: it has one more, which shows whether
    /// another page follows.
    fn next_query(&self) -> Option<ListQuery> {
        let limit = if self.walked == 0 { self.query.limit + 1 } else { MAX_PAGE_ITEMS };
        let query =
            ListQuery { after: self.cursor.or(self.query.after), limit, ..self.query.clone() };
        (!self.is_complete).then_some(query)
    }

    /// Adds the names whose newest matching template is among these.
    async fn add(&mut self, app: &App, page: Page) -> Result<(), Problem> {
        self.look_up(app, &page.templates).await?;
        for template in page.templates {
            let id = template.id;
            let languages = self.languages(template);
            let is_newest = !languages.iter().any(|it| it.id > id && it.is_match);
            if is_newest && self.groups.len() == self.query.limit {
                self.is_complete = true;
                self.has_more = true;
                return Ok(());
            }
            if is_newest {
                self.groups.push(languages);
            }
            self.cursor = Some(id);
            self.walked += 1;
        }
        self.is_complete = !page.has_next || self.walked >= MAX_WALKED;
        self.has_more = page.has_next && self.is_complete;
        Ok(())
    }

    /// Looks up the languages of all names that were not looked up before, together.
    async fn look_up(&mut self, app: &App, templates: &[StoredTemplate]) -> Result<(), Problem> {
        if !self.has_translations {
            return Ok(());
        }
        let names: BTreeSet<&str> = templates.iter().map(|it| it.template.name()).collect();
        let names = names.into_iter().filter(|name| !self.looked_up.contains_key(*name));
        let names: Vec<String> = names.map(str::to_owned).collect();
        if names.is_empty() {
            return Ok(());
        }
        let mut found: HashMap<String, Vec<LanguageSummary>> = HashMap::new();
        for language in app.store().languages(self.query.clone(), names).await? {
            found.entry(language.name.clone()).or_default().push(language);
        }
        self.looked_up.extend(found.into_iter().map(|(name, it)| (name, Languages::from(it))));
        Ok(())
    }

    /// The languages of a template's name.
    fn languages(&self, template: StoredTemplate) -> Languages {
        let found = self.looked_up.get(template.template.name());
        // It may have been deleted since the list was read.
        match found.filter(|found| found.iter().any(|it| it.id == template.id)) {
            Some(found) => Arc::clone(found),
            None => Arc::new([LanguageSummary::new(&self.query, template)]),
        }
    }
}
