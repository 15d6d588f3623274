//! Query parameters as clients of the Graph API write them: lists in three spellings, and fields
//! that nobody knows are passed over.

use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    http::{Uri, request::Parts},
};
use galley_domain::{
    document::{Document, Json},
    rulebook::graph_codes::Graph,
};
use galley_store::Account;

use crate::{
    api::problem::{Kind, Problem},
    app::App,
};

/// How many templates a page has unless the caller says otherwise.
const USUAL: usize = 25;

/// How many it has at most; who asks for more gets so many and a link to the others.
const MOST: usize = 250;

/// How many values a list may have.
const MOST_VALUES: usize = 200;

/// A cursor that leads nowhere.
const BAD_CURSOR: Graph = Graph { code: 131_059, subcode: None, title: "The cursor leads nowhere" };

/// What stands behind the `?`.
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

    /// A parameter that is there and not empty; the first one if it stands there twice.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim());
        found.filter(|value| !value.is_empty())
    }

    /// Whether a parameter is there, but with nothing behind it.
    pub(super) fn is_empty(&self, name: &str) -> bool {
        self.0.iter().any(|(key, value)| key == name && value.trim().is_empty())
    }

    /// The values of a list: `A`, `A,B` or `["A","B"]`, also as `name[]` or `name[0]`, and all of
    /// them if it stands there more than once. Numbers count as their digits.
    pub(super) fn list(&self, name: &str) -> Result<Option<Vec<String>>, Problem> {
        let mut values = Vec::new();
        let mut is_there = false;
        for (_, text) in self.0.iter().filter(|(key, _)| is_named(key, name)) {
            let text = text.trim();
            is_there |= !text.is_empty();
            if text.starts_with('[') {
                let document = Document::parse(text.as_bytes());
                let found = document.as_ref().ok().and_then(|document| items(document.root()));
                values.extend(found.ok_or_else(|| bad(name, "a JSON list of strings"))?);
            } else {
                values.extend(text.split(',').map(|value| value.trim().to_owned()));
            }
            if values.len() > MOST_VALUES {
                return Err(bad(name, &format!("a list of at most {MOST_VALUES} values")));
            }
        }
        values.retain(|value| !value.is_empty());
        Ok(is_there.then_some(values))
    }

    pub(super) fn limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.text("limit") else { return Ok(USUAL) };
        let limit: Option<usize> = text.parse().ok().filter(|limit| *limit > 0);
        Ok(limit.ok_or_else(|| bad("limit", "a whole number from 1"))?.min(MOST))
    }

    /// Where a page begins or ends.
    pub(super) fn cursor<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            Problem::of(Kind::BadRequest)
                .detail(format!("`{name}` is no cursor of this list: begin again without it."))
                .graph(BAD_CURSOR)
        })
    }

    /// The address of another page of the same list: the whole query with its token, as some
    /// clients follow it without sending anything else.
    pub(super) fn page(&self, list: &str, secret: &str, (cursor, at): (&str, &str)) -> String {
        let others = self
            .0
            .iter()
            .filter(|(name, _)| !["after", "before", "access_token"].contains(&name.as_str()));
        let start = list.len() + 1;
        let mut query = form_urlencoded::Serializer::for_suffix(format!("{list}?"), start);
        query.extend_pairs(others).append_pair(cursor, at).append_pair("access_token", secret);
        query.finish()
    }

    /// The parameters as a form, for those who send a document this way.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value)).filter(|it| it.0 != "access_token")
    }
}

/// The address of an account's list.
pub(super) fn list_address(app: &App, version: &str, account: &Account) -> String {
    format!("{}/{version}/{}/message_templates", app.public_url(), account.id)
}

/// Whether a parameter is the list of that name, or one of its items.
fn is_named(key: &str, name: &str) -> bool {
    let Some(rest) = key.strip_prefix(name) else { return false };
    let index = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    rest.is_empty() || index.is_some_and(|index| index.bytes().all(|it| it.is_ascii_digit()))
}

fn items(list: &Json<'_>) -> Option<Vec<String>> {
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

/// A parameter that is not as it has to be.
pub(super) fn bad(name: &str, form: &str) -> Problem {
    Problem::of(Kind::BadRequest).detail(format!("The parameter `{name}` is {form}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::of(&format!("/x?{text}").parse().unwrap())
    }

    #[test]
    fn a_list_is_read_in_each_of_its_spellings() {
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
    fn another_page_is_asked_for_with_the_whole_query() {
        let query = query("name=a%26b&after=7&access_token=old");
        let page = query.page("http://x/v1.0/1/message_templates", "s t", ("after", "9"));
        assert_eq!(page, "http://x/v1.0/1/message_templates?name=a%26b&after=9&access_token=s+t");
    }
}
