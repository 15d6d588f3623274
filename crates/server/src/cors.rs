//! Cross-origin requests (CORS): which web pages may call the API from a browser.
//!
//! No response allows credentials that a browser adds by itself, such as cookies: only the console
//! uses one, which is not for other origins. A page has to send its own access token.

use std::str::FromStr;

use axum::http::{HeaderMap, HeaderValue, Method, header};
use thiserror::Error;
use url::Url;

use crate::observability::access_log::MONITORING_ROUTES;

/// Maximum number of origins.
const MAX_ORIGINS: usize = 100;

/// The methods of the API.
const ALLOWED_METHODS: HeaderValue =
    HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");

/// The request headers of the API, and those of traces.
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, File_Offset, Idempotency-Key, If-Match, If-None-Match, If-Range, \
     Range, Traceparent, Tracestate, X-Request-Id",
);

/// The response headers that a page may read besides those that every page may.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "Accept-Ranges, Allow, Content-Disposition, Content-Range, ETag, Galley-Search-Lag, \
     Galley-Warnings, Idempotent-Replayed, Location, RateLimit, RateLimit-Policy, Retry-After, \
     WWW-Authenticate, X-Request-Id",
);

/// How long a browser may keep the response to a preflight request, in seconds. Chromium keeps none
/// longer. It allows nothing by itself: every response names the allowed origin again.
const MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("7200");

/// The detail of the refusal of a preflight request.
pub(crate) const NOT_ALLOWED: &str = "This is a preflight request of a browser (CORS), and the page's origin is not allowed to call this service. The operator allows it with the setting `cors_origins`.";

/// The origins whose pages may call the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CorsOrigins {
    /// No other origin.
    #[default]
    None,
    /// These origins.
    Listed(Vec<HeaderValue>),
    /// Every origin.
    Any,
}

/// Why a list of origins is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CorsOriginsError {
    /// An entry is not an origin as browsers send it.
    #[error(
        "{0:?} is not an origin as browsers send it: write scheme, host and port in lower case, without the default port and without a path"
    )]
    NotAnOrigin(String),
    /// `*` stands beside other entries.
    #[error("`*` allows every origin: write nothing else")]
    AnyAndOthers,
    /// There are too many entries.
    #[error("there are more than {MAX_ORIGINS} origins")]
    TooMany,
}

/// Reads origins that are separated by spaces or commas; `*` is every origin.
impl FromStr for CorsOrigins {
    type Err = CorsOriginsError;

    fn from_str(text: &str) -> Result<Self, CorsOriginsError> {
        let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        match words[..] {
            [] => Ok(Self::None),
            ["*"] => Ok(Self::Any),
            _ if words.contains(&"*") => Err(CorsOriginsError::AnyAndOthers),
            _ if words.len() > MAX_ORIGINS => Err(CorsOriginsError::TooMany),
            _ => words.into_iter().map(origin).collect::<Result<_, _>>().map(Self::Listed),
        }
    }
}

/// An origin, exactly as browsers send it.
fn origin(text: &str) -> Result<HeaderValue, CorsOriginsError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    // No browser sends `*` in a name: it would look like a pattern that matches nothing.
    let is_origin =
        !text.contains('*') && url.is_some_and(|url| url.origin().ascii_serialization() == text);
    let value = HeaderValue::from_str(text).ok().filter(|_| is_origin);
    value.ok_or_else(|| CorsOriginsError::NotAnOrigin(text.to_owned()))
}

/// What a response says about the origin of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CorsDecision {
    /// Nothing: the path is not for other origins, or no origin is allowed.
    Silent,
    /// The request has no origin, or one that is not allowed.
    NotAllowed,
    /// A page of this origin may read the response.
    Allowed(HeaderValue),
    /// A page of this origin may send its request. The preflight request itself is not routed.
    Preflight(HeaderValue),
}

impl CorsOrigins {
    /// Decides about a request.
    pub(crate) fn decide(&self, method: &Method, path: &str, headers: &HeaderMap) -> CorsDecision {
        if *self == Self::None || !is_for_other_origins(path) {
            return CorsDecision::Silent;
        }
        match self.allowed(headers.get(header::ORIGIN)) {
            None => CorsDecision::NotAllowed,
            Some(origin) if is_preflight(method, headers) => CorsDecision::Preflight(origin),
            Some(origin) => CorsDecision::Allowed(origin),
        }
    }

    /// The value of `Access-Control-Allow-Origin` for a request from `origin`.
    fn allowed(&self, origin: Option<&HeaderValue>) -> Option<HeaderValue> {
        match self {
            Self::None => None,
            Self::Listed(origins) => origins.iter().find(|it| Some(*it) == origin).cloned(),
            Self::Any => Some(ANY),
        }
    }
}

const ANY: HeaderValue = HeaderValue::from_static("*");

/// Whether the operator can allow other origins to call a path: not those for operators, and not the
/// console, whose cookie is not for other origins.
pub(crate) fn is_for_other_origins(path: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    let is_console = path == "/console" || path.starts_with("/console/");
    !is_console && !MONITORING_ROUTES.contains(&path)
}

/// Whether a browser asks with this request whether it may send another.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

impl CorsDecision {
    pub(crate) fn is_preflight(&self) -> bool {
        matches!(self, Self::Preflight(_))
    }

    /// Adds the headers of the decision to a response.
    pub(crate) fn apply(self, headers: &mut HeaderMap) {
        let (origin, is_preflight) = match self {
            Self::Silent => return,
            Self::NotAllowed => (None, false),
            Self::Allowed(origin) => (Some(origin), false),
            Self::Preflight(origin) => (Some(origin), true),
        };
        // A cache must not serve the response for one origin to another.
        if origin != Some(ANY) {
            headers.append(header::VARY, HeaderValue::from_static("origin"));
        }
        let Some(origin) = origin else { return };
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if is_preflight {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECONDS);
        } else {
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CorsOrigins, CorsOriginsError> {
        text.parse()
    }

    #[test]
    fn origins_are_listed_as_browsers_send_them() {
        assert_eq!(read(""), Ok(CorsOrigins::None));
        assert_eq!(read(" * "), Ok(CorsOrigins::Any));
        let listed =
            ["https://a.example", "http://localhost:5173", "https://xn--bcher-kva.example"];
        let values = listed.map(HeaderValue::from_static).to_vec();
        assert_eq!(read(&listed.join(", ")), Ok(CorsOrigins::Listed(values)));
        assert_eq!(read("http://[::1]:8080").map(|it| it != CorsOrigins::None), Ok(true));
    }

    #[test]
    fn an_entry_that_no_browser_sends_is_refused() {
        for entry in [
            "a.example",
            "null",
            "https://",
            "https://a.example/",
            "https://a.example/path",
            "https://a.example?q",
            "https://a.example:443",
            "http://a.example:80",
            "https://A.example",
            "HTTPS://a.example",
            "https://u@a.example",
            "https://b\u{fc}cher.example",
            "https://*.example",
            "ftp://a.example",
            "file:///x",
        ] {
            let error = CorsOriginsError::NotAnOrigin(entry.to_owned());
            assert_eq!(read(&format!("https://b.example {entry}")), Err(error));
        }
        assert_eq!(read("* https://a.example"), Err(CorsOriginsError::AnyAndOthers));
        let many = "https://a.example ".repeat(MAX_ORIGINS + 1);
        assert_eq!(read(&many), Err(CorsOriginsError::TooMany));
    }

    fn headers(origin: &'static str, asks: bool) -> HeaderMap {
        let method = (header::ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("POST"));
        let origin = (header::ORIGIN, HeaderValue::from_static(origin));
        std::iter::once(origin).chain(asks.then_some(method)).collect()
    }

    #[test]
    fn only_a_listed_origin_is_allowed() {
        let (listed, other) = ("https://a.example", "https://a.example.evil.example");
        let origins = read(listed).unwrap();
        let decide = |method, path, headers| origins.decide(&method, path, &headers);
        let value = HeaderValue::from_static(listed);
        let (get, options) = (Method::GET, Method::OPTIONS);
        assert_eq!(
            decide(get.clone(), "/api/x", headers(listed, false)),
            CorsDecision::Allowed(value.clone())
        );
        assert_eq!(
            decide(options.clone(), "/v23.0/1", headers(listed, true)),
            CorsDecision::Preflight(value.clone())
        );
        assert_eq!(
            decide(options.clone(), "/api/x", headers(listed, false)),
            CorsDecision::Allowed(value)
        );
        assert_eq!(decide(get.clone(), "/api/x", HeaderMap::new()), CorsDecision::NotAllowed);
        for other in [other, "null", "http://a.example", "https://a.example:8443"] {
            let decision = decide(options.clone(), "/api/x", headers(other, true));
            assert_eq!(decision, CorsDecision::NotAllowed, "{other}");
        }
        for path in ["/metrics", "/readyz", "/healthz", "/healthz/", "/console", "/console/api/-/x"]
        {
            assert_eq!(decide(get.clone(), path, headers(listed, false)), CorsDecision::Silent);
        }
        let none = CorsOrigins::None.decide(&options, "/api/x", &headers(listed, true));
        assert_eq!(none, CorsDecision::Silent);
    }

    #[test]
    fn a_response_that_depends_on_the_origin_says_so() {
        let apply = |decision: CorsDecision| {
            let mut headers = HeaderMap::new();
            headers.insert(header::VARY, HeaderValue::from_static("accept"));
            decision.apply(&mut headers);
            let vary = headers.get_all(header::VARY).iter().map(|it| it.to_str().unwrap());
            vary.collect::<Vec<_>>().join(", ")
        };
        let listed = HeaderValue::from_static("https://a.example");
        assert_eq!(apply(CorsDecision::Silent), "accept");
        assert_eq!(apply(CorsDecision::NotAllowed), "accept, origin");
        assert_eq!(apply(CorsDecision::Allowed(listed.clone())), "accept, origin");
        assert_eq!(apply(CorsDecision::Preflight(listed)), "accept, origin");
        assert_eq!(apply(CorsDecision::Allowed(ANY)), "accept", "the same for every origin");
    }
}
