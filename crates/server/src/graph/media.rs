//! Samples of attachments: the addresses where they are read, whole or in part.

use axum::{
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use galley_domain::sample;

use super::{
    range::{self, Wanted},
    stream::Stream,
};
use crate::{
    App,
    http::problem::{Kind, Problem},
};

/// Where the sample with that handle is read, if it was uploaded here.
pub(super) fn address(app: &App, handle: &str) -> Option<String> {
    let name = sample::name(handle)?;
    Some(format!("{}/media/{name}", app.public_url()))
}

/// The name of the sample that is read at that address, if it is one of ours.
pub(super) fn name_at<'a>(app: &App, address: &'a str) -> Option<&'a str> {
    let name = address.strip_prefix(app.public_url())?.strip_prefix("/media/")?;
    Some(name).filter(|name| sample::is_name(name))
}

/// A name that nobody can guess.
pub(super) fn new_name(app: &App) -> String {
    let mut bytes = [0; 24];
    app.webhooks().random.fill(&mut bytes);
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The sample itself. Whoever shows a template shows it, too, and sends no token for it: the
/// address is the secret. What is read at an address never changes.
pub(super) async fn show(
    State(app): State<App>,
    method: Method,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path(name) = name.map_err(|_| Problem::of(Kind::NotFound))?;
    let known = sample::is_name(&name);
    let media = if known { app.store().media(&name).await? } else { None };
    let media = media.ok_or(Problem::of(Kind::NotFound))?;
    let tag = format!("\"{name}\"");
    if range::is_known(&headers, &tag) {
        return Ok(with_headers(StatusCode::NOT_MODIFIED.into_response(), &tag));
    }
    let whole = 0..media.length;
    let (status, part) = match range::wanted(&headers, &tag, media.length) {
        // Only GET has ranges.
        _ if method != Method::GET => (StatusCode::OK, whole),
        Wanted::Whole => (StatusCode::OK, whole),
        Wanted::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        Wanted::Nothing => return Err(Problem::no_such_bytes(media.length)),
    };
    let (first, end, length) = (part.start, part.end, media.length);
    let mut response = (status, Body::new(Stream::of(app, name, part))).into_response();
    let content_type = HeaderValue::try_from(media.file_type)
        .unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(end - first));
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {first}-{}/{length}", end.saturating_sub(1));
        headers.extend(HeaderValue::try_from(range).map(|it| (header::CONTENT_RANGE, it)).ok());
    }
    Ok(with_headers(response, &tag))
}

/// What is told with the file and with the news that it is still the same.
fn with_headers(mut response: Response, tag: &str) -> Response {
    const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox");
    const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
    const BYTES: HeaderValue = HeaderValue::from_static("bytes");
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(header::CACHE_CONTROL, FOREVER);
    headers.insert(header::ACCEPT_RANGES, BYTES);
    headers.extend(HeaderValue::from_str(tag).map(|tag| (header::ETAG, tag)).ok());
    response
}
