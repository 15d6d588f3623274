//! Serves uploaded samples, completely or in part.

use axum::{
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use galley_domain::template::sample;
use galley_store::Media;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{faithful, parameters::Query, stream::Stream};
use crate::{
    api::{
        conditional::{FilePrecondition, RequestedRange, requested_range},
        problem::{Problem, ProblemKind},
    },
    app::App,
};

/// Creates an unguessable name.
pub(super) fn random_name(app: &App) -> String {
    app.webhooks().random.name()
}

/// The detail for a URL without a sample.
const SAMPLE_NOT_FOUND: &str = "No sample exists at this URL: it was deleted, its account is disabled, or the URL is incomplete. Read the template again to get the current URL.";

/// The detail for a link that has expired.
const LINK_EXPIRED: &str = "The link has expired on the clock of its account, or is incomplete. Read the template again to get a new one.";

/// The bytes that need no encoding in `filename*` (RFC 8187).
const ATTR_CHAR: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// Serves a sample. The request needs no token, because clients embed the URL when they show a
/// template: the URL itself is the secret. The bytes at a URL never change.
pub(super) async fn show(
    State(app): State<App>,
    method: Method,
    name: Result<Path<String>, PathRejection>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let not_found = || Problem::of(ProblemKind::NotFound).detail(SAMPLE_NOT_FOUND);
    let Path(name) = name.map_err(|_| not_found())?;
    let valid = sample::is_name(&name);
    let media = if valid { app.store().media(&name).await? } else { None };
    let media = media.ok_or_else(not_found)?;
    if let Some(account) = media.faithful
        && !faithful::is_valid_link(&app, account, &query).await?
    {
        return Err(Problem::of(ProblemKind::NotFound).detail(LINK_EXPIRED));
    }
    match FilePrecondition::evaluate(&headers, &name) {
        FilePrecondition::Failed => {
            let detail = "The tags in If-Match do not contain the tag of the file, which never changes. Omit If-Match.";
            let problem = Problem::of(ProblemKind::RevisionOutdated).detail(detail);
            return Ok(with_tag(problem.into_response(), &name));
        }
        FilePrecondition::NotModified => {
            return Ok(with_headers(StatusCode::NOT_MODIFIED.into_response(), &name));
        }
        FilePrecondition::Met => {}
    }
    let full = 0..media.length;
    let (status, part) = match requested_range(&headers, &name, media.length) {
        // Only GET supports ranges.
        _ if method != Method::GET => (StatusCode::OK, full),
        RequestedRange::Full => (StatusCode::OK, full),
        RequestedRange::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        RequestedRange::Unsatisfiable => return Err(Problem::range_not_satisfiable(media.length)),
    };
    let (first, end, length) = (part.start, part.end, media.length);
    let mut response = (status, Body::new(Stream::new(app, name.clone(), part))).into_response();
    let disposition = HeaderValue::try_from(disposition(&media));
    let content_type = HeaderValue::try_from(media.file_type)
        .unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let headers = response.headers_mut();
    headers.extend(disposition.map(|it| (header::CONTENT_DISPOSITION, it)).ok());
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(end - first));
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {first}-{}/{length}", end.saturating_sub(1));
        headers.extend(HeaderValue::try_from(range).map(|it| (header::CONTENT_RANGE, it)).ok());
    }
    Ok(with_headers(response, &name))
}

/// The `Content-Disposition` of a file, with the name that the client gave it. PDF files are
/// attachments, because the content security policy below keeps browsers from displaying them. The
/// extension always matches the type, so that no program opens the file as another type.
fn disposition(media: &Media) -> String {
    let (disposition, extensions): (&str, &[&str]) = match &*media.file_type {
        "application/pdf" => ("attachment", &[".pdf"]),
        "image/jpeg" => ("inline", &[".jpg", ".jpeg"]),
        "image/png" => ("inline", &[".png"]),
        "image/gif" => ("inline", &[".gif"]),
        "video/mp4" => ("inline", &[".mp4", ".m4v"]),
        "video/3gpp" => ("inline", &[".3gp"]),
        _ => ("attachment", &[".bin"]),
    };
    let name = media.file_name.rsplit(['/', '\\']).next().unwrap_or_default();
    let name: String = name.chars().filter(|it| !it.is_control()).collect();
    let name = if name.trim_matches(['.', ' ']).is_empty() { "sample" } else { &name };
    let lower = name.to_ascii_lowercase();
    let has_extension = extensions.iter().any(|it| lower.ends_with(it));
    let extension = if has_extension { "" } else { extensions[0] };
    let name = utf8_percent_encode(name, ATTR_CHAR);
    format!("{disposition}; filename*=UTF-8''{name}{extension}")
}

/// Adds the headers of a file, which 304 responses carry, too.
fn with_headers(mut response: Response, name: &str) -> Response {
    const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");
    // A file never changes, but its deletion should soon take effect.
    const SHORT_CACHE: HeaderValue = HeaderValue::from_static("public, max-age=300");
    const BYTES: HeaderValue = HeaderValue::from_static("bytes");
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::CACHE_CONTROL, SHORT_CACHE);
    headers.insert(header::ACCEPT_RANGES, BYTES);
    with_tag(response, name)
}

/// Adds the tag of a file, which is its name.
fn with_tag(mut response: Response, name: &str) -> Response {
    let tag = HeaderValue::try_from(format!("\"{name}\""));
    response.headers_mut().extend(tag.map(|tag| (header::ETAG, tag)).ok());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_name_and_gets_the_extension_of_its_type() {
        for (file_type, name, expected) in [
            ("image/png", "a.png", "inline; filename*=UTF-8''a.png"),
            ("image/jpeg", "Bild 1.JPEG", "inline; filename*=UTF-8''Bild%201.JPEG"),
            ("image/png", "Ü\"\r\n;.png", "inline; filename*=UTF-8''%C3%9C%22%3B.png"),
            ("application/pdf", "bill.exe", "attachment; filename*=UTF-8''bill.exe.pdf"),
            ("application/pdf", "", "attachment; filename*=UTF-8''sample.pdf"),
            ("video/mp4", "../..\\x/..", "inline; filename*=UTF-8''sample.mp4"),
            ("text/html", "a.html", "attachment; filename*=UTF-8''a.html.bin"),
        ] {
            let (file_type, file_name) = (file_type.to_owned(), name.to_owned());
            assert_eq!(
                disposition(&Media {
                    file_type,
                    file_name,
                    length: 1,
                    emulated_at: None,
                    faithful: None
                }),
                expected
            );
        }
    }
}
