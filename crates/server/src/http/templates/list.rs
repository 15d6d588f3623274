//! Listing and searching templates.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    search,
    template::{Category, Status},
};
use galley_store::{Listing, Named};

use crate::{
    App,
    http::{
        caller::{Caller, Read},
        json,
        problem::Problem,
        query::{Known, Parameters},
        view::{self, Paging},
    },
};

/// How many words one search may have. In some scripts every character is one.
pub(crate) const MOST_WORDS: usize = 40;

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

fn listing(caller: &Caller<Read>, parameters: &Known) -> Result<Listing, Problem> {
    let one_of = |words: &[&str]| format!("one of {}", words.join(", "));
    let words = parameters.read("q", format!("1 to {MOST_WORDS} words"), |q| {
        Some(search::words(q)).filter(|words| (1..=MOST_WORDS).contains(&words.len()))
    })?;
    let language = parameters.text("language");
    let status = parameters.read("status", one_of(Status::WORDS), Status::named)?;
    let category = parameters.read("category", one_of(Category::WORDS), Category::named)?;
    let (rulebook, account) = (caller.rulebook()?, caller.account.id);
    Ok(Listing {
        name: parameters.text("name").map(|name| Named::under(rulebook, account, name)),
        statuses: status.into_iter().collect(),
        categories: category.into_iter().collect(),
        languages: language.map(str::to_owned).into_iter().collect(),
        words: words.unwrap_or_default(),
        after: parameters.read("after", "a cursor that a page ended with", |it| it.parse().ok())?,
        ..Listing::of(account, parameters.limit()?)
    })
}
