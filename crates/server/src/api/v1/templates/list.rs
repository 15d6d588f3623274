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
        query::{CheckedParameters, MAX_SEARCH_WORDS, Parameters},
        view::{self, Paging},
    },
    app::App,
};

pub(super) async fn list(
    State(app): State<App>,
    caller: Caller<Read>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let supported = &["name", "status", "category", "language", "q", "limit", "after"];
    let parameters = parameters.only(supported)?;
    let page = app.store().list(list_query(&caller, &parameters)?).await?;
    let after = page.templates.last().map(|template| template.id.to_string());
    let next = after.as_deref().filter(|_| page.has_older).map(|after| parameters.next_page(after));
    Ok(json(StatusCode::OK, view::templates(&page.templates, &Paging { after, next })))
}

fn list_query(caller: &Caller<Read>, parameters: &CheckedParameters) -> Result<ListQuery, Problem> {
    let one_of = |values: &[&str]| format!("one of {}", values.join(", "));
    let words = parameters.parse("q", format!("a text of 1 to {MAX_SEARCH_WORDS} words"), |q| {
        Some(search_terms::terms(q)).filter(|words| (1..=MAX_SEARCH_WORDS).contains(&words.len()))
    })?;
    let language = parameters.text("language");
    let status = parameters.parse("status", one_of(Status::VALUES), Status::parse)?;
    let category = parameters.parse("category", one_of(Category::VALUES), Category::parse)?;
    let (rulebook, account) = (caller.rulebook()?, caller.account.id);
    Ok(ListQuery {
        name: parameters.text("name").map(|name| NameFilter::for_rulebook(rulebook, account, name)),
        statuses: status.into_iter().collect(),
        categories: category.into_iter().collect(),
        languages: language.map(str::to_owned).into_iter().collect(),
        words: words.unwrap_or_default(),
        after: parameters.parse("after", "the `after` cursor of a page", |it| it.parse().ok())?,
        ..ListQuery::new(account, parameters.limit()?)
    })
}
