//! Query parameters: each once, and none that nobody knows.

use std::{fmt::Display, str::FromStr};

use axum::{extract::FromRequestParts, http::request::Parts};
use galley_domain::document::suggest;

use super::problem::{Kind, Problem};
use crate::app::App;

/// How many words one search may have. In some scripts every character is one.
pub(crate) const MAX_SEARCH_WORDS: usize = 40;

/// What stands behind the `?`. Judged by [`Parameters::only`], behind the checks that come first.
pub(crate) struct Parameters(Vec<(String, String)>);

impl FromRequestParts<App> for Parameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect()))
    }
}

impl Parameters {
    /// The parameters, if all are among the known ones and none stands there twice.
    pub(crate) fn only(self, known: &'static [&'static str]) -> Result<Known, Problem> {
        let Self(pairs) = self;
        for (index, (name, _)) in pairs.iter().enumerate() {
            if !known.contains(&&**name) {
                let cure = match suggest::nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known are {}.", known.join(", ")),
                };
                let name: String = name.chars().take(40).collect();
                return Err(bad(format!("There is no query parameter `{name}`: {cure}")));
            }
            if pairs[..index].iter().any(|(other, _)| other == name) {
                return Err(bad(format!("The query parameter `{name}` stands there twice.")));
            }
        }
        Ok(Known(pairs))
    }
}

/// Parameters that are known.
pub(crate) struct Known(Vec<(String, String)>);

impl Known {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// What `read` makes of a parameter; when it can make nothing of it, `form` says what it is.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        form: impl Display,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let value =
            read(text).ok_or_else(|| bad(format!("The query parameter `{name}` is {form}.")))?;
        Ok(Some(value))
    }

    /// How many items a page has.
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        let limit = self.read("limit", "a whole number from 1 to 100", |text| {
            whole(text).filter(|limit| (1..=100).contains(limit))
        })?;
        Ok(limit.unwrap_or(25))
    }

    /// The same question for the page behind `after`, as a relative link: no key stands in it.
    pub(crate) fn next_page(&self, after: &str) -> String {
        let others = self.0.iter().filter(|(name, _)| name != "after");
        let mut query = form_urlencoded::Serializer::for_suffix("?".to_owned(), 1);
        query.extend_pairs(others).append_pair("after", after);
        query.finish()
    }
}

/// A number in plain digits.
pub(crate) fn whole<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

pub(crate) fn bad(detail: impl Into<String>) -> Problem {
    Problem::of(Kind::BadRequest).detail(detail)
}
