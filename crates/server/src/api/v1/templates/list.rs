//! Listing and searching templates.

use axum::{extract::State, http::StatusCode, response::Response};
use galley_domain::{
    id::TemplateId,
    rulebook::Category,
    template::{Status, search_terms},
    timestamp,
};
use galley_store::{ListOrder, ListQuery, NameFilter, UpstreamFilter};

use super::groups;
use crate::{
    api::{
        at_provider::AllAtProvider,
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
    "group",
    "order",
    "awaiting_review",
    "upstream",
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
    let by_name = parameters.parse("group", "`name`", |group| (group == "name").then_some(()))?;
    if by_name.is_some() {
        if query.order == ListOrder::OldestFirst {
            return Err(bad_request(
                "With `group=name`, names are listed newest first: leave out `order`, or list \
                 templates without `group`.",
            ));
        }
        return groups::list(&app, &caller, query, &parameters).await;
    }
    let order = query.order;
    let listing = search::list(&app, query).await?;
    let page = &listing.page;
    let after = page.templates.last().map(|template| cursor(order, template.id));
    let next = after.as_deref().filter(|_| page.has_next).map(|after| parameters.next_page(after));
    let newest: Vec<_> =
        page.templates.iter().map(|template| (template.id, template.state.version)).collect();
    let all = AllAtProvider::read(&app, &caller.account, &newest).await?;
    let body = view::templates(&page.templates, &all, &Paging { after, next });
    let mut response = json(StatusCode::OK, body);
    listing.report_lag(&mut response);
    Ok(response)
}

/// Precedes the id in a cursor of a list that begins with the oldest template, so that a cursor of
/// one order is not used in the other.
const OLDEST_FIRST_CURSOR: &str = "oldest-";

fn cursor(order: ListOrder, last: TemplateId) -> String {
    match order {
        ListOrder::NewestFirst => last.to_string(),
        ListOrder::OldestFirst => format!("{OLDEST_FIRST_CURSOR}{last}"),
    }
}

fn parse_cursor(order: ListOrder, cursor: &str) -> Option<TemplateId> {
    match order {
        ListOrder::NewestFirst => cursor,
        ListOrder::OldestFirst => cursor.strip_prefix(OLDEST_FIRST_CURSOR)?,
    }
    .parse()
    .ok()
}

fn parse_order(order: &str) -> Option<ListOrder> {
    match order {
        "newest" => Some(ListOrder::NewestFirst),
        "oldest" => Some(ListOrder::OldestFirst),
        _ => None,
    }
}

fn list_query(caller: &Caller<Read>, parameters: &CheckedParameters) -> Result<ListQuery, Problem> {
    let one_of = |values: &[&str]| format!("one or more of {}", values.join(", "));
    let words = parameters.parse("q", format!("a text of 1 to {MAX_SEARCH_WORDS} words"), |q| {
        Some(search_terms::terms(q)).filter(|words| (1..=MAX_SEARCH_WORDS).contains(&words.len()))
    })?;
    let any = |text: &str| Some(text.to_owned());
    let (rulebook, account) = (caller.rulebook()?, caller.account.id);
    let order = parameters.parse("order", "`newest` or `oldest`", parse_order)?.unwrap_or_default();
    let awaiting_review = parameters
        .parse("awaiting_review", "`true`", |value| (value == "true").then_some(()))?
        .is_some();
    let upstream =
        parameters.parse("upstream", "`drifted`, `failed` or `missing`", UpstreamFilter::parse)?;
    Ok(ListQuery {
        upstream,
        name: parameters.text("name").map(|name| NameFilter::for_rulebook(rulebook, account, name)),
        statuses: parameters.parse_list("status", one_of(Status::VALUES), Status::parse)?,
        categories: parameters.parse_list("category", one_of(Category::VALUES), Category::parse)?,
        languages: parameters.parse_list("language", "a list of languages", any)?,
        phones: parameters.parse_list("phone_number_id", "a list of phone number ids", any)?,
        updated_from: parameters.parse("updated_after", TIMESTAMP, timestamp::parse)?,
        updated_before: parameters.parse("updated_before", TIMESTAMP, timestamp::parse)?,
        words: words.unwrap_or_default(),
        awaiting_review,
        review: caller.account.effective_review(),
        order,
        after: parameters.parse(
            "after",
            "the `after` cursor of a page in the same order",
            |it| parse_cursor(order, it),
        )?,
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
