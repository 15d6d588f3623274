//! Listing and searching templates.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    rulebook::Category,
    template::{Status, search_terms},
};
use galley_store::{ListQuery, NameFilter};

use crate::{
    api::{
        auth::{Caller, Read},
        json,
        problem::Problem,
        query::{Known, MAX_SEARCH_WORDS, Parameters},
        view::{self, Paging},
    },
    app::App,
};

pub(super) async fn list(
    State(app): State<App>,
    caller: Caller<Read>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let known = &["name", "status", "category", "language", "q", "limit", "after"];
    let parameters = parameters.only(known)?;
    let page = app.store().list(listing(&caller, &parameters)?).await?;
    let after = page.templates.last().map(|template| template.id.to_string());
    let next = after.as_deref().filter(|_| page.more).map(|after| parameters.next_page(after));
    Ok(json(StatusCode::OK, view::templates(&page.templates, &Paging { after, next })))
}

fn listing(caller: &Caller<Read>, parameters: &Known) -> Result<ListQuery, Problem> {
    let one_of = |words: &[&str]| format!("one of {}", words.join(", "));
    let words = parameters.read("q", format!("1 to {MAX_SEARCH_WORDS} words"), |q| {
        Some(search_terms::words(q)).filter(|words| (1..=MAX_SEARCH_WORDS).contains(&words.len()))
    })?;
    let language = parameters.text("language");
    let status = parameters.read("status", one_of(Status::VALUES), Status::parse)?;
    let category = parameters.read("category", one_of(Category::VALUES), Category::parse)?;
    let (rulebook, account) = (caller.rulebook()?, caller.account.id);
    Ok(ListQuery {
        name: parameters.text("name").map(|name| NameFilter::under(rulebook, account, name)),
        statuses: status.into_iter().collect(),
        categories: category.into_iter().collect(),
        languages: language.map(str::to_owned).into_iter().collect(),
        words: words.unwrap_or_default(),
        after: parameters.read("after", "a cursor that a page ended with", |it| it.parse().ok())?,
        ..ListQuery::of(account, parameters.limit()?)
    })
}
