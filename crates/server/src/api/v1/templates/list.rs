//! Listing and searching templates.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    rulebook::Category,
    template::{Status, search_terms},
    timestamp,
};
use galley_store::{ListQuery, NameFilter};

use crate::{
    api::{
        auth::{Caller, Read},
        json,
        problem::Problem,
        query::{CheckedParameters, MAX_SEARCH_WORDS, Parameters, bad_request, shown},
        search,
        view::{self, Paging},
    },
    app::App,
};

const PARAMETERS: &[&str] = &[
    "name",
    "status",
    "category",
    "language",
    "phone_number_id",
    "updated_after",
    "updated_before",
    "q",
    "limit",
    "after",
];

/// The parameters that take several values.
const LISTS: &[&str] = &["status", "category", "language", "phone_number_id"];

/// What `updated_after` and `updated_before` must be.
const TIMESTAMP: &str = "a timestamp such as 2026-11-15T09:30:00Z, in which a `+` is sent as `%2B`";

pub(super) async fn list(
    State(app): State<App>,
    caller: Caller<Read>,
    parameters: Parameters,
) -> Result<Response, Problem> {
    let parameters = parameters.only_with_lists(PARAMETERS, LISTS)?;
    let query = list_query(&caller, &parameters)?;
    ensure_own_phones(&app, &caller, &query.phones).await?;
    let listing = search::list(&app, query).await?;
    let page = &listing.page;
    let after = page.templates.last().map(|template| template.id.to_string());
    let next = after.as_deref().filter(|_| page.has_older).map(|after| parameters.next_page(after));
    let body = view::templates(&page.templates, &Paging { after, next });
    let mut response = json(StatusCode::OK, body);
    listing.report_lag(&mut response);
    Ok(response)
}

fn list_query(caller: &Caller<Read>, parameters: &CheckedParameters) -> Result<ListQuery, Problem> {
    let one_of = |values: &[&str]| format!("one or more of {}", values.join(", "));
    let words = parameters.parse("q", format!("a text of 1 to {MAX_SEARCH_WORDS} words"), |q| {
        Some(search_terms::terms(q)).filter(|words| (1..=MAX_SEARCH_WORDS).contains(&words.len()))
    })?;
    let any = |text: &str| Some(text.to_owned());
    let (rulebook, account) = (caller.rulebook()?, caller.account.id);
    Ok(ListQuery {
        name: parameters.text("name").map(|name| NameFilter::for_rulebook(rulebook, account, name)),
        statuses: parameters.parse_list("status", one_of(Status::VALUES), Status::parse)?,
        categories: parameters.parse_list("category", one_of(Category::VALUES), Category::parse)?,
        languages: parameters.parse_list("language", "a list of languages", any)?,
        phones: parameters.parse_list("phone_number_id", "a list of phone number ids", any)?,
        updated_from: parameters.parse("updated_after", TIMESTAMP, timestamp::parse)?,
        updated_before: parameters.parse("updated_before", TIMESTAMP, timestamp::parse)?,
        words: words.unwrap_or_default(),
        after: parameters.parse("after", "the `after` cursor of a page", |it| it.parse().ok())?,
        ..ListQuery::new(account, parameters.limit()?)
    })
}

/// Rejects phone numbers of other accounts and unclaimed ones: a typing error would otherwise look
/// like an empty list.
async fn ensure_own_phones(
    app: &App,
    caller: &Caller<Read>,
    phones: &[String],
) -> Result<(), Problem> {
    for phone in phones {
        if app.credentials().phone_owner(phone).await? != Some(caller.account.id) {
            return Err(bad_request(format!(
                "The query parameter `phone_number_id` must be phone numbers of this account, not \
                 `{}`. The operator lists them with `galley phone list`.",
                shown(phone)
            )));
        }
    }
    Ok(())
}
