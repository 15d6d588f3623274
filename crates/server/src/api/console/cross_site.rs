//! Refuses calls that pages of other origins make a browser send with the cookie of the console.

use axum::http::{HeaderMap, HeaderName, Method, header};
use url::Url;

use crate::api::problem::{Problem, ProblemKind};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The header that the console's pages send with every call. A page of another origin can send it
/// only after a preflight request, which the console always refuses.
const GALLEY_CONSOLE: HeaderName = HeaderName::from_static("galley-console");

/// The pages that may call the console's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConsoleOrigin {
    /// Those of this origin.
    Fixed(String),
    /// Those of the host that the request names. The operator has not set a public address.
    Host,
}

impl ConsoleOrigin {
    /// The origin of a URL.
    pub(crate) fn of(public_url: &str) -> Self {
        let origin = Url::parse(public_url).map(|url| url.origin().ascii_serialization());
        Self::Fixed(origin.unwrap_or_default())
    }

    /// Refuses a call that a page of another origin may have caused, whatever its method: another
    /// port of the same host is the same site, so the browser sends the cookie with its requests.
    ///
    /// Browsers say where a request comes from in `Sec-Fetch-Site`, but old ones do not, and none
    /// does to an address without TLS; then `Origin` does. They send neither with a read of their
    /// own page, which therefore has a header of its own.
    pub(crate) fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
        let is_own = if let Some(site) = headers.get(SEC_FETCH_SITE) {
            site == "same-origin"
        } else if let Some(origin) = headers.get(header::ORIGIN) {
            origin.to_str().is_ok_and(|origin| self.is_origin(origin, headers))
        } else {
            method.is_safe() && headers.contains_key(GALLEY_CONSOLE)
        };
        if is_own { Ok(()) } else { Err(Problem::of(ProblemKind::CrossSite)) }
    }

    fn is_origin(&self, origin: &str, headers: &HeaderMap) -> bool {
        match self {
            Self::Fixed(own) => origin == own,
            Self::Host => {
                let host = origin.strip_prefix("http://").or(origin.strip_prefix("https://"));
                let named = headers.get(header::HOST).and_then(|value| value.to_str().ok());
                host.zip(named).is_some_and(|(host, named)| host.eq_ignore_ascii_case(named))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(origin: &ConsoleOrigin, method: &Method, headers: &[(&str, &str)]) -> bool {
        let headers = headers.iter().map(|(name, value)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap())
        });
        origin.check(method, &headers.collect()).is_ok()
    }

    #[test]
    fn only_the_consoles_own_pages_make_calls() {
        let own = ConsoleOrigin::of("https://galley.test/base");
        for (headers, expected) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "same-origin"), ("origin", "https://evil.test")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "https://galley.test")], false),
            (&[("sec-fetch-site", "same-site"), ("galley-console", "1")], false),
            (&[("origin", "https://galley.test")], true),
            (&[("origin", "http://galley.test")], false),
            (&[("origin", "http://galley.test"), ("galley-console", "1")], false),
            (&[("origin", "https://galley.test:444")], false),
            (&[("origin", "https://evil.test"), ("host", "evil.test")], false),
            (&[("origin", "null")], false),
            (&[("referer", "https://galley.test/")], false),
            (&[], false),
        ] {
            assert_eq!(is_allowed(&own, &Method::POST, headers), expected, "{headers:?}");
            assert_eq!(is_allowed(&own, &Method::DELETE, headers), expected, "{headers:?}");
            assert_eq!(is_allowed(&own, &Method::GET, headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_read_without_any_word_of_the_browser_needs_the_header_of_the_consoles_pages() {
        let own = ConsoleOrigin::of("http://10.0.0.1:8080");
        let headers = [("galley-console", "1")];
        for (method, expected) in [
            (Method::GET, true),
            (Method::HEAD, true),
            (Method::POST, false),
            (Method::DELETE, false),
        ] {
            assert_eq!(is_allowed(&own, &method, &headers), expected, "{method}");
            assert!(!is_allowed(&own, &method, &[]), "{method}");
        }
    }

    #[test]
    fn without_a_public_address_the_host_of_the_request_is_compared() {
        for (origin, host, expected) in [
            ("http://localhost:8080", "localhost:8080", true),
            ("https://galley.test", "galley.test", true),
            ("http://localhost:8081", "localhost:8080", false),
            ("http://evil.test", "localhost:8080", false),
            ("null", "null", false),
        ] {
            let headers = [("origin", origin), ("host", host)];
            let allowed = is_allowed(&ConsoleOrigin::Host, &Method::POST, &headers);
            assert_eq!(allowed, expected, "{headers:?}");
        }
        assert!(!is_allowed(&ConsoleOrigin::Host, &Method::POST, &[("host", "a.test")]));
    }
}
