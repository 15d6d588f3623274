//! Listing templates, with filters in all notations that clients use, pages in both directions, and
//! optional counts.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    emulator::faults::Call,
    id::TemplateId,
    rulebook::{Category, WHATSAPP},
    template::{Status, quality::Quality, search_terms},
};
use galley_store::{AccountLimits, ListQuery, NameFilter, Page};

use super::{
    caller::Caller,
    faithful::Faithful,
    ids::ProviderIds,
    parameters::{Query, invalid_parameter, list_url},
    view::{self, Fields, View},
};
use crate::{
    api::{
        auth::Read,
        json,
        problem::Problem,
        query::MAX_SEARCH_WORDS,
        search::{self, Listing},
    },
    app::App,
    json_writer::ObjectWriter,
};

/// Statuses of WhatsApp that no template in Galley has.
const UNUSED_STATUSES: [&str; 4] = ["DELETED", "IN_APPEAL", "LIMIT_EXCEEDED", "PENDING_DELETION"];

pub(super) async fn list(
    State(app): State<App>,
    caller: Caller<Read>,
    query: Query,
) -> Result<Response, Problem> {
    caller.strike(&app, Call::List, None).await?;
    let fields = Fields::of(&query)?;
    let faithful = Faithful::of(&app, &caller.account).await?;
    let cursors = Cursors::read(&query, faithful)?;
    let list_query = list_query(&caller, &query, &cursors)?;
    let listing = match list_query.clone() {
        Some(list_query) => search::list(&app, list_query).await?,
        None => Listing::empty(),
    };
    let found = &listing.page;
    let ids = found.templates.iter().map(|template| template.id);
    let ids = ProviderIds::of(&app, &caller.account, ids).await?;
    let view = View { app: &app, fields: &fields, faithful, ids };
    let mut out = String::with_capacity(1_024 * found.templates.len() + 512);
    out.push_str("{\"data\":[");
    for (index, template) in found.templates.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        view::write_template(&mut out, &view, template);
    }
    out.push_str("],\"paging\":");
    write_paging(&mut out, &app, &caller, &query, &cursors, found);
    if query.text("summary").is_some_and(|summary| summary != "false") {
        let total = match list_query {
            Some(list_query) => app.store().count_templates(list_query).await?,
            None => 0,
        };
        let all = app.store().count_templates(ListQuery::new(caller.account.id, 1)).await?;
        out.push_str(",\"summary\":");
        // An account without limits reports those of a verified business.
        let limits = caller.account.limits.unwrap_or(AccountLimits::VERIFIED);
        write_summary(&mut out, total, all, limits.templates);
    }
    out.push('}');
    let mut response = json(StatusCode::OK, out);
    listing.report_lag(&mut response);
    Ok(response)
}

/// The cursors of a request.
struct Cursors {
    after: Option<TemplateId>,
    before: Option<TemplateId>,
    /// For a faithful emulator account, whose cursors expire.
    faithful: Option<Faithful>,
}

impl Cursors {
    fn read(query: &Query, faithful: Option<Faithful>) -> Result<Self, Problem> {
        let cursor = |name| match faithful {
            Some(faithful) => faithful.read_cursor(query, name),
            None => query.cursor(name),
        };
        let after = cursor("after")?;
        // A client that sends both cursors read the last page forwards.
        let before = if after.is_some() { None } else { cursor("before")? };
        Ok(Self { after, before, faithful })
    }

    /// The cursors of an empty page, adjacent to the requested cursor, so that its links lead to a
    /// page that begins with the template of that cursor.
    fn of_empty_page(&self) -> (Option<TemplateId>, Option<TemplateId>) {
        let adjacent = |id: TemplateId, offset: i8| {
            TemplateId::new(id.get().saturating_add_signed(offset.into()))
        };
        match (self.after, self.before) {
            (Some(after), _) => (adjacent(after, -1), Some(after)),
            (None, Some(before)) => (Some(before), adjacent(before, 1)),
            (None, None) => (None, None),
        }
    }

    /// The text of a cursor. Some clients require strings, even if there is no cursor.
    fn text(&self, id: Option<TemplateId>) -> String {
        let text = |id: TemplateId| match self.faithful {
            Some(faithful) => faithful.cursor(id),
            None => id.to_string(),
        };
        id.map(text).unwrap_or_default()
    }
}

fn write_paging(
    out: &mut String,
    app: &App,
    caller: &Caller<Read>,
    query: &Query,
    cursors: &Cursors,
    found: &Page,
) {
    let ends = match (found.templates.first(), found.templates.last()) {
        (Some(first), Some(last)) => (Some(first.id), Some(last.id)),
        _ => cursors.of_empty_page(),
    };
    let (before, after) = (cursors.text(ends.0), cursors.text(ends.1));
    let list = list_url(app, &caller.version, &caller.account);
    let mut paging = ObjectWriter::open(out);
    paging.object("cursors", |cursors| {
        cursors.unescaped("before", &before);
        cursors.unescaped("after", &after);
    });
    if found.has_previous {
        paging.string("previous", &query.page_url(&list, &caller.secret, ("before", &before)));
    }
    if found.has_next {
        paging.string("next", &query.page_url(&list, &caller.secret, ("after", &after)));
    }
    paging.close();
}

fn write_summary(out: &mut String, total: u64, all: u64, limit: u32) {
    let mut summary = ObjectWriter::open(out);
    summary.number("total_count", total);
    summary.number("message_template_count", all);
    summary.number("message_template_limit", limit.into());
    summary.raw("are_translations_complete", "true");
    summary.close();
}

/// The requested list; `None` if a filter matches no template of Galley.
fn list_query(
    caller: &Caller<Read>,
    query: &Query,
    cursors: &Cursors,
) -> Result<Option<ListQuery>, Problem> {
    let (statuses, no_status) =
        filter_values(query, "status", Status::parse, Status::VALUES, &UNUSED_STATUSES)?;
    let (categories, _) = filter_values(query, "category", Category::parse, Category::VALUES, &[])?;
    let (mut qualities, _) =
        filter_values(query, "quality_score", Quality::parse, Quality::VALUES, &[])?;
    let mut no_quality = false;
    let is_rated = caller.account.emulator.is_some() || caller.account.is_connected;
    if !is_rated && !qualities.is_empty() {
        // Only providers and the scripts of emulator accounts rate templates: others are UNKNOWN.
        no_quality = !qualities.contains(&Quality::Unknown);
        qualities.clear();
    }
    let account = caller.account.id;
    // Meta no longer documents the filter.
    let name = query.text("name").filter(|_| cursors.faithful.is_none());
    let list_query = ListQuery {
        name: name.map(|name| NameFilter::for_rulebook(&WHATSAPP, account, name)),
        statuses,
        categories,
        languages: query.list("language")?.unwrap_or_default(),
        qualities,
        words: search_words(query)?,
        before: cursors.before,
        after: cursors.after,
        check_previous: true,
        ..ListQuery::new(account, query.limit()?)
    };
    Ok((!no_status && !no_quality).then_some(list_query))
}

/// The words of a search.
fn search_words(query: &Query) -> Result<Vec<String>, Problem> {
    let mut found = Vec::new();
    for parameter in ["name_or_content", "content"] {
        let Some(text) = query.text(parameter) else { continue };
        let words = search_terms::terms(text);
        if !(1..=MAX_SEARCH_WORDS).contains(&words.len()) {
            let problem = format!("must be a text of 1 to {MAX_SEARCH_WORDS} words");
            return Err(invalid_parameter(parameter, &problem));
        }
        found.extend(words);
    }
    Ok(found)
}

/// The values of a filter, in any letter case, and whether the filter matches nothing: the client
/// sent it, but with `unused` values only, which WhatsApp has and Galley does not.
fn filter_values<T>(
    query: &Query,
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
    supported: &[&str],
    unused: &[&str],
) -> Result<(Vec<T>, bool), Problem> {
    let Some(values) = query.list(name)? else { return Ok((Vec::new(), false)) };
    let mut found = Vec::new();
    for text in &values {
        match parse(text) {
            Some(value) => found.push(value),
            None if unused.iter().any(|unused| unused.eq_ignore_ascii_case(text)) => {}
            None => {
                let problem = format!("must consist of {}", supported.join(", "));
                return Err(invalid_parameter(name, &problem));
            }
        }
    }
    let matches_nothing = found.is_empty() && !values.is_empty();
    Ok((found, matches_nothing))
}
