//! Query parameters of the Graph surface. Lists have three notations, and unknown parameters are
//! ignored.

use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    http::{Uri, request::Parts},
};
use galley_domain::{
    document::{Document, Json},
    rulebook::graph_codes::GraphError,
};
use galley_store::Account;

use crate::{
    api::problem::{Problem, ProblemKind},
    app::App,
};

/// Default page size.
const DEFAULT_PAGE_SIZE: usize = 25;

/// Maximum page size. A larger `limit` is reduced to it.
pub(crate) const MAX_PAGE_ITEMS: usize = 250;

/// Maximum number of values in a list.
const MAX_LIST_VALUES: usize = 200;

/// The Graph error of an invalid cursor.
const INVALID_CURSOR: GraphError =
    GraphError { code: 131_059, subcode: None, title: "The cursor is invalid" };

/// The query of a request.
pub(super) struct Query(Vec<(String, String)>);

impl FromRequestParts<App> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.uri))
    }
}

impl Query {
    pub(super) fn of(uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// Size of all parameters.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }

    /// A parameter that is present and not empty; the first one if it is repeated.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim());
        found.filter(|value| !value.is_empty())
    }

    /// Whether a parameter is present, but empty.
    pub(super) fn is_empty(&self, name: &str) -> bool {
        self.0.iter().any(|(key, value)| key == name && value.trim().is_empty())
    }

    /// The values of a list: `A`, `A,B` or `["A","B"]`, also as `name[]` or `name[0]`. The values of
    /// a repeated parameter are joined. Numbers become strings.
    pub(super) fn list(&self, name: &str) -> Result<Option<Vec<String>>, Problem> {
        let mut values = Vec::new();
        let mut is_present = false;
        for (_, text) in self.0.iter().filter(|(key, _)| is_list_parameter(key, name)) {
            let text = text.trim();
            is_present |= !text.is_empty();
            if text.starts_with('[') {
                let document = Document::parse(text.as_bytes());
                let found = document.as_ref().ok().and_then(|document| items(document.root()));
                let invalid = || invalid_parameter(name, "must be a JSON list of strings");
                values.extend(found.ok_or_else(invalid)?);
            } else {
                values.extend(text.split(',').map(|value| value.trim().to_owned()));
            }
            if values.len() > MAX_LIST_VALUES {
                let problem = format!("must have at most {MAX_LIST_VALUES} values");
                return Err(invalid_parameter(name, &problem));
            }
        }
        values.retain(|value| !value.is_empty());
        Ok(is_present.then_some(values))
    }

    pub(super) fn limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.text("limit") else { return Ok(DEFAULT_PAGE_SIZE) };
        let limit: Option<usize> = text.parse().ok().filter(|limit| *limit > 0);
        let invalid = || invalid_parameter("limit", "must be a whole number, 1 or greater");
        Ok(limit.ok_or_else(invalid)?.min(MAX_PAGE_ITEMS))
    }

    /// A cursor.
    pub(super) fn cursor<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| invalid_cursor(name))
    }

    /// The URL of another page of the same list. It contains the whole query and the token, because
    /// some clients follow it without sending anything else.
    pub(super) fn page_url(&self, list: &str, secret: &str, (cursor, at): (&str, &str)) -> String {
        let others = self
            .0
            .iter()
            .filter(|(name, _)| !["after", "before", "access_token"].contains(&name.as_str()));
        let start = list.len() + 1;
        let mut query = form_urlencoded::Serializer::for_suffix(format!("{list}?"), start);
        query.extend_pairs(others).append_pair(cursor, at).append_pair("access_token", secret);
        query.finish()
    }

    /// The parameters except the token, for clients that send a document in the query.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value)).filter(|it| it.0 != "access_token")
    }
}

/// The URL of an account's list.
pub(super) fn list_url(app: &App, version: &str, account: &Account) -> String {
    format!("{}/{version}/{}/message_templates", app.public_url(), account.id)
}

/// Whether a parameter is the list with this name, or one of its items.
fn is_list_parameter(key: &str, name: &str) -> bool {
    let Some(rest) = key.strip_prefix(name) else { return false };
    let index = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    rest.is_empty() || index.is_some_and(|index| index.bytes().all(|it| it.is_ascii_digit()))
}

/// The strings and numbers of a list.
pub(super) fn items(list: &Json<'_>) -> Option<Vec<String>> {
    let Json::Array(items) = list else { return None };
    items
        .iter()
        .map(|item| match item {
            Json::String(text) => Some(text.clone().into_owned()),
            Json::Number(number) => Some(number.to_string()),
            _ => None,
        })
        .collect()
}

/// The problem of a cursor that is not one, or has expired.
pub(super) fn invalid_cursor(name: &str) -> Problem {
    let detail = format!(
        "The parameter `{name}` is not a cursor of this list, or it has expired. Start again without it."
    );
    Problem::of(ProblemKind::BadRequest).detail(detail).graph(INVALID_CURSOR)
}

/// The problem of an invalid parameter; `problem` is a predicate, such as "must be a number".
pub(super) fn invalid_parameter(name: &str, problem: &str) -> Problem {
    Problem::of(ProblemKind::BadRequest).detail(format!("The parameter `{name}` {problem}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::of(&format!("/x?{text}").parse().unwrap())
    }

    #[test]
    fn a_list_has_several_notations() {
        for text in
            ["s=A,B", "s=A%2CB", "s=%5B%22A%22,%22B%22%5D", "s=[%22A%22,+%22B%22]", "s=A,,+B"]
        {
            assert_eq!(query(text).list("s").unwrap().unwrap(), ["A", "B"], "{text}");
        }
        for text in ["s=A&s=B", "s[]=A&s[]=B", "s%5B0%5D=A&s%5B1%5D=B", "s=A&s=&s[]=[%22B%22]"] {
            assert_eq!(query(text).list("s").unwrap().unwrap(), ["A", "B"], "{text}");
        }
        assert_eq!(query("s=A").list("s").unwrap().unwrap(), ["A"]);
        assert_eq!(query("s=[7,%228%22]").list("s").unwrap().unwrap(), ["7", "8"]);
        for text in ["", "s=", "t=A", "st=A", "s[x]=A", "s[=A"] {
            assert_eq!(query(text).list("s").unwrap(), None, "{text}");
        }
        for text in ["s=[", "s=[true]", "s=[[1]]"] {
            assert!(query(text).list("s").is_err(), "{text}");
        }
    }

    #[test]
    fn the_url_of_another_page_contains_the_whole_query() {
        let query = query("name=a%26b&after=7&access_token=old");
        let page = query.page_url("http://x/v1.0/1/message_templates", "s t", ("after", "9"));
        assert_eq!(page, "http://x/v1.0/1/message_templates?name=a%26b&after=9&access_token=s+t");
    }
}
