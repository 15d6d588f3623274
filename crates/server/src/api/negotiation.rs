//! Pages that programs can read as JSON: `Accept` decides.

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::json;

/// A page for people, or the same as JSON for a client that accepts JSON and not HTML.
pub(super) fn page_or_json(
    headers: &HeaderMap,
    page: impl FnOnce() -> String,
    document: &impl Serialize,
) -> Response {
    let mut response = if prefers_json(headers) {
        json(StatusCode::OK, serde_json::to_string(document).unwrap_or_default())
    } else {
        ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], page()).into_response()
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// Whether `Accept` names JSON and not HTML. Programs that take both, or anything, get HTML.
fn prefers_json(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok());
    let types = accepted.flat_map(|it| it.split(','));
    let types = types.map(|it| it.split(';').next().unwrap_or_default().trim());
    let (mut has_json, mut has_html) = (false, false);
    for it in types {
        has_json |= it.eq_ignore_ascii_case("application/json")
            || it.eq_ignore_ascii_case("application/problem+json");
        has_html |= it.eq_ignore_ascii_case("text/html");
    }
    has_json && !has_html
}

/// A complete HTML page. `title` and `body` are HTML.
pub(super) fn html(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title></head>\n\
         <body>\n{body}</body>\n</html>\n"
    )
}

/// Escapes a text for HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_sent_only_to_clients_that_ask_for_it() {
        for (accept, expected) in [
            ("", false),
            ("*/*", false),
            ("text/html,application/xhtml+xml,*/*;q=0.8", false),
            ("application/json", true),
            ("Application/JSON; q=0.9, */*;q=0.1", true),
            ("application/problem+json", true),
            ("application/json, text/html", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, accept.parse().unwrap())]);
            assert_eq!(prefers_json(&headers), expected, "{accept}");
        }
        assert!(!prefers_json(&HeaderMap::new()));
    }
}
