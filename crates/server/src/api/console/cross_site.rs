//! Refuses requests that pages of other sites make a browser send with the cookie of the console.

use axum::http::{HeaderMap, HeaderName, Method, header};
use url::Url;

use crate::api::problem::{Problem, ProblemKind};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The pages that may change something.
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

    /// Refuses a request that another site may have caused. Browsers say where a request comes from
    /// in `Sec-Fetch-Site`, but not to an address without TLS; then `Origin` does.
    pub(crate) fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
        if method.is_safe() {
            return Ok(());
        }
        let is_own = match headers.get(SEC_FETCH_SITE) {
            Some(site) => site == "same-origin",
            None => self.is_origin(headers),
        };
        if is_own { Ok(()) } else { Err(Problem::of(ProblemKind::CrossSite)) }
    }

    fn is_origin(&self, headers: &HeaderMap) -> bool {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let Some(origin) = text(header::ORIGIN) else { return false };
        match self {
            Self::Fixed(own) => origin == own,
            Self::Host => {
                let host = origin.strip_prefix("http://").or(origin.strip_prefix("https://"));
                let named = text(header::HOST);
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
    fn only_the_consoles_own_pages_change_something() {
        let own = ConsoleOrigin::of("https://galley.test/base");
        for (headers, expected) in [
            (&[("sec-fetch-site", "same-origin")][..], true),
            (&[("sec-fetch-site", "same-origin"), ("origin", "https://evil.test")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "https://galley.test")], false),
            (&[("origin", "https://galley.test")], true),
            (&[("origin", "http://galley.test")], false),
            (&[("origin", "https://galley.test:444")], false),
            (&[("origin", "https://evil.test"), ("host", "evil.test")], false),
            (&[("origin", "null")], false),
            (&[("referer", "https://galley.test/")], false),
            (&[], false),
        ] {
            assert_eq!(is_allowed(&own, &Method::POST, headers), expected, "{headers:?}");
            assert_eq!(is_allowed(&own, &Method::DELETE, headers), expected, "{headers:?}");
            assert!(is_allowed(&own, &Method::GET, headers), "{headers:?}");
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
