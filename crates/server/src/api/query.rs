//! Query parameters of API v1.0. Unknown parameters are rejected, and repeated ones that do not take
//! several values.

use std::{fmt::Display, str::FromStr};

use axum::{extract::FromRequestParts, http::request::Parts};
use galley_domain::document::suggest;

use super::problem::{Problem, ProblemKind};
use crate::app::App;

/// Maximum number of items on a page.
pub(crate) const MAX_PAGE_ITEMS: usize = 100;

/// Maximum number of words in one search. In some scripts every character is a word.
pub(crate) const MAX_SEARCH_WORDS: usize = 40;

/// How much of a text a message repeats.
const MAX_SHOWN_CHARS: usize = 40;

/// Maximum number of values of one parameter.
const MAX_LIST_VALUES: usize = 100;

/// The unchecked query of a request. [`Parameters::only`] checks it, after the checks that take
/// precedence.
pub(crate) struct Parameters(Vec<(String, String)>);

impl FromRequestParts<App> for Parameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect()))
    }
}

impl Parameters {
    /// Rejects unknown and repeated parameters.
    pub(crate) fn only(self, known: &'static [&'static str]) -> Result<CheckedParameters, Problem> {
        self.only_with_lists(known, &[])
    }

    /// Rejects unknown parameters, and repeated ones other than `lists`.
    pub(crate) fn only_with_lists(
        self,
        known: &'static [&'static str],
        lists: &[&str],
    ) -> Result<CheckedParameters, Problem> {
        let Self(pairs) = self;
        for (index, (name, _)) in pairs.iter().enumerate() {
            if !known.contains(&&**name) {
                let remedy = match suggest::nearest(name, known.iter().copied()) {
                    Some(near) => format!("Did you mean `{near}`?"),
                    None if known.is_empty() => "This call takes no query parameters.".to_owned(),
                    None => format!("Supported parameters: {}.", known.join(", ")),
                };
                let name = shown(name);
                return Err(bad_request(format!("Unknown query parameter `{name}`. {remedy}")));
            }
            let may_repeat = lists.contains(&&**name);
            if !may_repeat && pairs[..index].iter().any(|(other, _)| other == name) {
                let detail =
                    format!("The query parameter `{name}` is repeated. Send it only once.");
                return Err(bad_request(detail));
            }
        }
        Ok(CheckedParameters(pairs))
    }
}

/// Parameters that the call supports.
pub(crate) struct CheckedParameters(Vec<(String, String)>);

impl CheckedParameters {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// Parses a parameter. If `parse` fails, the problem says that the value must be `expected`.
    pub(crate) fn parse<T>(
        &self,
        name: &str,
        expected: impl Display,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        parse(text).ok_or_else(|| invalid_value(name, expected, text)).map(Some)
    }

    /// Parses a parameter with several values: separated by commas, repeated, or both.
    pub(crate) fn parse_list<T>(
        &self,
        name: &str,
        expected: impl Display,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, Problem> {
        let mut found = Vec::new();
        let values = self.0.iter().filter(|(key, _)| key == name);
        for text in values.flat_map(|(_, value)| value.split(',')).map(str::trim) {
            found.push(parse(text).ok_or_else(|| invalid_value(name, &expected, text))?);
            if found.len() > MAX_LIST_VALUES {
                return Err(bad_request(format!(
                    "The query parameter `{name}` must have at most {MAX_LIST_VALUES} values."
                )));
            }
        }
        Ok(found)
    }

    /// The page size.
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        let limit = self.parse("limit", "a whole number from 1 to 100", |text| {
            parse_digits(text).filter(|limit| (1..=MAX_PAGE_ITEMS).contains(limit))
        })?;
        Ok(limit.unwrap_or(25))
    }

    /// The query for the page after the cursor `after`, as a relative link without the API key.
    pub(crate) fn next_page(&self, after: &str) -> String {
        self.next_page_with("after", after)
    }

    /// Like [`CheckedParameters::next_page`], with the cursor in another parameter.
    pub(crate) fn next_page_with(&self, parameter: &str, cursor: &str) -> String {
        let others = self.0.iter().filter(|(name, _)| name != parameter);
        let mut query = form_urlencoded::Serializer::for_suffix("?".to_owned(), 1);
        query.extend_pairs(others).append_pair(parameter, cursor);
        query.finish()
    }
}

/// Parses a number that consists only of digits.
pub(crate) fn parse_digits<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn invalid_value(name: &str, expected: impl Display, value: &str) -> Problem {
    let value = shown(value);
    bad_request(format!("The query parameter `{name}` must be {expected}, not `{value}`."))
}

/// The beginning of a text that a message repeats.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN_CHARS).collect()
}

pub(crate) fn bad_request(detail: impl Into<String>) -> Problem {
    Problem::of(ProblemKind::BadRequest).detail(detail)
}
