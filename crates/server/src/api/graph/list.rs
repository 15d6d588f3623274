//! Listing templates: filters in every spelling that clients have, pages in both directions, and
//! counts for those who ask.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    id::TemplateId,
    rulebook::{Category, WHATSAPP},
    template::{Status, search_terms},
};
use galley_store::{AccountLimits, ListQuery, NameFilter, Page};

use super::{
    caller::Caller,
    parameters::{Query, bad, list_address},
    view::{self, Fields},
};
use crate::{
    api::{auth::Read, json, problem::Problem, query::MAX_SEARCH_WORDS},
    app::App,
    json_writer::Object,
};

/// Statuses that WhatsApp has and no template here is ever in.
const NEVER: [&str; 5] = ["ARCHIVED", "DELETED", "IN_APPEAL", "LIMIT_EXCEEDED", "PENDING_DELETION"];

/// The judgements there are. Nobody judges here, so that all templates have the last one.
const QUALITIES: [&str; 4] = ["GREEN", "YELLOW", "RED", "UNKNOWN"];

pub(super) async fn list(
    State(app): State<App>,
    caller: Caller<Read>,
    query: Query,
) -> Result<Response, Problem> {
    let fields = Fields::of(&query)?;
    let wanted = wanted(&caller, &query)?;
    let found = match wanted.clone() {
        Some(wanted) => app.store().list(wanted).await?,
        None => Page { templates: Vec::new(), more: false, newer: false },
    };
    let mut out = String::with_capacity(1_024 * found.templates.len() + 512);
    out.push_str("{\"data\":[");
    for (index, template) in found.templates.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        view::write_template(&mut out, &app, template, &fields);
    }
    out.push_str("],\"paging\":");
    write_paging(&mut out, &app, &caller, &query, &found);
    if query.text("summary").is_some_and(|summary| summary != "false") {
        let total = match wanted {
            Some(wanted) => app.store().count_templates(wanted).await?,
            None => 0,
        };
        let all = app.store().count_templates(ListQuery::of(caller.account.id, 1)).await?;
        out.push_str(",\"summary\":");
        // Whoever is held to nothing is told what a verified business has.
        let limits = caller.account.limits.unwrap_or(AccountLimits::VERIFIED);
        write_summary(&mut out, total, all, limits.templates);
    }
    out.push('}');
    Ok(json(StatusCode::OK, out))
}

/// Where an empty page stands: right behind the cursor it was asked for with, so that what its links
/// lead to begins with the template that the cursor names.
fn around(query: &Query) -> (Option<TemplateId>, Option<TemplateId>) {
    let cursor = |name| query.cursor::<TemplateId>(name).ok().flatten();
    let beside =
        |id: TemplateId, step: i8| TemplateId::new(id.get().saturating_add_signed(step.into()));
    match (cursor("after"), cursor("before")) {
        (Some(after), _) => (beside(after, -1), Some(after)),
        (None, Some(before)) => (Some(before), beside(before, 1)),
        (None, None) => (None, None),
    }
}

fn write_paging(out: &mut String, app: &App, caller: &Caller<Read>, query: &Query, found: &Page) {
    let ends = match (found.templates.first(), found.templates.last()) {
        (Some(first), Some(last)) => (Some(first.id), Some(last.id)),
        _ => around(query),
    };
    // Some clients insist on strings, even where there is nothing to point at.
    let text = |id: Option<TemplateId>| id.map(|id| id.to_string()).unwrap_or_default();
    let (before, after) = (text(ends.0), text(ends.1));
    let list = list_address(app, &caller.version, &caller.account);
    let mut paging = Object::open(out);
    paging.object("cursors", |cursors| {
        cursors.word("before", &before);
        cursors.word("after", &after);
    });
    if found.newer {
        paging.text("previous", &query.page(&list, &caller.secret, ("before", &before)));
    }
    if found.more {
        paging.text("next", &query.page(&list, &caller.secret, ("after", &after)));
    }
    paging.close();
}

fn write_summary(out: &mut String, total: u64, all: u64, limit: u32) {
    let mut summary = Object::open(out);
    summary.number("total_count", total);
    summary.number("message_template_count", all);
    summary.number("message_template_limit", limit.into());
    summary.raw("are_translations_complete", "true");
    summary.close();
}

/// The list that a caller wants; none if it was asked for something that no template here ever is.
fn wanted(caller: &Caller<Read>, query: &Query) -> Result<Option<ListQuery>, Problem> {
    let (statuses, no_status) = words(query, "status", Status::parse, Status::VALUES, &NEVER)?;
    let (categories, _) = words(query, "category", Category::parse, Category::VALUES, &[])?;
    let unknown = |word: &str| word.eq_ignore_ascii_case("UNKNOWN").then_some(());
    let (_, no_quality) = words(query, "quality_score", unknown, &QUALITIES, &QUALITIES)?;
    let account = caller.account.id;
    let after = query.cursor("after")?;
    let listing = ListQuery {
        name: query.text("name").map(|name| NameFilter::under(&WHATSAPP, account, name)),
        statuses,
        categories,
        languages: query.list("language")?.unwrap_or_default(),
        words: searched(query)?,
        // Whoever sends both has read the last page forwards.
        before: if after.is_some() { None } else { query.cursor("before")? },
        after,
        both_ways: true,
        ..ListQuery::of(account, query.limit()?)
    };
    Ok((!no_status && !no_quality).then_some(listing))
}

/// The words that a text is searched for.
fn searched(query: &Query) -> Result<Vec<String>, Problem> {
    let mut found = Vec::new();
    for parameter in ["name_or_content", "content"] {
        let Some(text) = query.text(parameter) else { continue };
        let words = search_terms::words(text);
        if !(1..=MAX_SEARCH_WORDS).contains(&words.len()) {
            return Err(bad(parameter, &format!("a text of 1 to {MAX_SEARCH_WORDS} words")));
        }
        found.extend(words);
    }
    Ok(found)
}

/// The words of a filter, read in any letter case, and whether it can find nothing: it was given,
/// but names only words that are `known` there and never come true here.
fn words<T>(
    query: &Query,
    name: &str,
    read: impl Fn(&str) -> Option<T>,
    words: &[&str],
    known: &[&str],
) -> Result<(Vec<T>, bool), Problem> {
    let Some(given) = query.list(name)? else { return Ok((Vec::new(), false)) };
    let mut found = Vec::new();
    for word in &given {
        match read(word) {
            Some(value) => found.push(value),
            None if known.iter().any(|known| known.eq_ignore_ascii_case(word)) => {}
            None => return Err(bad(name, &format!("made of {}", words.join(", ")))),
        }
    }
    let nothing = found.is_empty() && !given.is_empty();
    Ok((found, nothing))
}
